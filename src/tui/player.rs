// SPDX-License-Identifier: GPL-2.0-only
//! Which frame is shown when: as they come, or as they were recorded.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::model::Feed;
use super::replay::{self, Recording};
use crate::exit::Outcome;
use crate::stats::frame::Frame;

/// Frames of a running scheduler that are kept to look back at.
pub const KEPT: usize = 60;

/// Slowest and fastest playing, as powers of two.
const SPEEDS: (i32, i32) = (-4, 6);

/// Where frames come from.
#[derive(Debug)]
pub enum Player {
    /// A running scheduler.
    Live(Live),
    /// A recording.
    Replay(Replay),
}

/// The last frames of a running scheduler.
#[derive(Debug, Default)]
pub struct Live {
    kept: VecDeque<Rc<Frame>>,
    /// The one that is shown.
    at: usize,
}

/// A recording that plays.
#[derive(Debug)]
pub struct Replay {
    recording: Recording,
    shown: Rc<Frame>,
    at: usize,
    speed: i32,
    /// When the next frame is to be shown, and which that is.
    next: Option<(Instant, Rc<Frame>)>,
}

impl Live {
    /// A frame came; while `paused`, the one that is shown stays.
    pub fn arrived(&mut self, frame: Rc<Frame>, paused: bool) {
        self.kept.push_back(frame);
        if self.kept.len() > KEPT {
            self.kept.pop_front();
            self.at = self.at.saturating_sub(1);
        }
        if !paused {
            self.at = self.kept.len() - 1;
        }
    }

    /// Whether there are newer frames than the one that is shown.
    pub fn behind(&self) -> bool {
        self.at + 1 < self.kept.len()
    }

    fn step(&mut self, by: isize) -> Option<Rc<Frame>> {
        let last = self.kept.len().checked_sub(1)?;
        self.at = self.at.saturating_add_signed(by).min(last);
        self.kept.get(self.at).cloned()
    }
}

impl Replay {
    /// From the first frame on.
    ///
    /// # Errors
    ///
    /// Those of reading it.
    pub fn new(mut recording: Recording) -> Outcome<Self> {
        let shown = Rc::new(recording.frame(0)?);
        Ok(Self {
            recording,
            shown,
            at: 0,
            speed: 0,
            next: None,
        })
    }

    /// The frame that is shown.
    pub fn shown(&self) -> Rc<Frame> {
        Rc::clone(&self.shown)
    }

    /// What the screen says of it.
    pub fn feed(&self) -> Feed {
        Feed::Replay {
            frames: self.recording.len(),
            at: self.at,
            speed: f64::from(self.speed).exp2(),
        }
    }

    /// Show the frame that is `by` further on.
    ///
    /// # Errors
    ///
    /// Those of reading it.
    pub fn step(&mut self, by: isize) -> Outcome<()> {
        let last = self.recording.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
        self.shown = Rc::new(self.recording.frame(self.at)?);
        self.next = None;
        Ok(())
    }

    /// Whether there is nothing after the frame that is shown.
    pub fn ended(&self) -> bool {
        self.at + 1 >= self.recording.len()
    }

    /// Play that many times faster, as a power of two.
    pub fn faster(&mut self, by: isize) {
        let by = i32::try_from(by).unwrap_or(0);
        self.speed = (self.speed + by).clamp(SPEEDS.0, SPEEDS.1);
        self.next = None;
    }

    /// When to call [`Self::play`] next.
    ///
    /// # Errors
    ///
    /// Those of reading the next frame.
    pub fn due(&mut self, now: Instant) -> Outcome<Option<Instant>> {
        if self.ended() {
            return Ok(None);
        }
        if self.next.is_none() {
            let frame = self.recording.frame(self.at + 1)?;
            let pause = replay::pause(&self.shown, &frame).as_secs_f64();
            let pause = Duration::from_secs_f64(pause / f64::from(self.speed).exp2());
            self.next = Some((now + pause, Rc::new(frame)));
        }
        Ok(self.next.as_ref().map(|(due, _)| *due))
    }

    /// Show the next frame if it is time to.
    pub fn play(&mut self, now: Instant) -> bool {
        let due = self.next.take_if(|(due, _)| *due <= now);
        let Some((_, frame)) = due else {
            return false;
        };
        self.at += 1;
        self.shown = frame;
        true
    }

    /// Time stood still: the pause before the next frame starts anew.
    pub fn hold(&mut self) {
        self.next = None;
    }
}

impl Player {
    /// The frame that is `by` further on, if there is one.
    ///
    /// # Errors
    ///
    /// Those of reading it.
    pub fn step(&mut self, by: isize) -> Outcome<Option<Rc<Frame>>> {
        match self {
            Self::Live(live) => Ok(live.step(by)),
            Self::Replay(replay) => {
                replay.step(by)?;
                Ok(Some(replay.shown()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sample;

    fn recorded(frames: u64) -> (tempfile::TempDir, Replay) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recording");
        let lines = sample::frames(frames).into_iter();
        let lines = lines.map(|frame| serde_json::to_string(&frame).unwrap() + "\n\n");
        std::fs::write(&file, lines.collect::<String>()).unwrap();
        let replay = Replay::new(Recording::open(&file).unwrap()).unwrap();
        (folder, replay)
    }

    #[test]
    fn a_recording_plays_at_its_speed() {
        let (_folder, mut replay) = recorded(3);
        let now = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(replay.due(now).unwrap(), Some(now + second));
        assert!(!replay.play(now));
        assert!(replay.play(now + second));
        replay.faster(1);
        assert_eq!(replay.due(now).unwrap(), Some(now + second / 2));
        // A pause: the wait begins anew.
        replay.hold();
        assert_eq!(
            replay.due(now + second).unwrap(),
            Some(now + second * 3 / 2)
        );
        assert!(replay.play(now + 2 * second));
        assert!(replay.ended());
        assert_eq!(replay.due(now).unwrap(), None);
        assert_eq!(*replay.shown(), sample::frames(3).remove(2));
        replay.step(isize::MIN).unwrap();
        assert_eq!(*replay.shown(), sample::frames(1).remove(0));
    }

    #[test]
    fn the_last_frames_can_be_looked_back_at() {
        let mut live = Live::default();
        assert!(live.step(-1).is_none());
        let frames: Vec<_> = sample::frames(70).into_iter().map(Rc::new).collect();
        for frame in &frames {
            live.arrived(Rc::clone(frame), false);
        }
        assert!(!live.behind());
        assert_eq!(live.step(-1).as_ref(), frames.get(68));
        live.arrived(Rc::clone(&frames[0]), true);
        assert!(live.behind());
        assert_eq!(live.step(-1000).as_ref(), frames.get(11));
        assert_eq!(live.step(isize::MAX).as_ref(), frames.first());
    }
}
