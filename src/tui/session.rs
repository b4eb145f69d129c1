// SPDX-License-Identifier: GPL-2.0-only
//! The loop behind the screen: it sleeps until a key, a frame, a signal or the
//! next frame of a recording, and draws what came of it. Nothing else wakes it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use ratatui::crossterm::event::Event;

use super::live::{self, Asked, Message, Outbox};
use super::model::{Feed, Model};
use super::player::Player;
use super::terminal::Screen;
use super::update::{self, Effect};
use super::{sections, view};
use crate::control;
use crate::exit::{ExitCode, Failure, Outcome};
use crate::wake::Sleeper;

/// A screen, what is on it, and where frames come from.
pub struct Session<'a> {
    /// What is shown.
    pub model: Model,
    /// Where frames come from.
    pub player: Player,
    /// What is asked of the scheduler that runs; `None`: that stays as it is.
    pub asked: Option<Asked>,
    /// A file for the lines of the stream.
    pub record: Option<Record>,
    /// What threads hand over.
    pub inbox: Receiver<Message>,
    /// For threads that are started on the way.
    pub outbox: Outbox,
    /// What the loop sleeps on.
    pub sleeper: &'a Sleeper,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Go,
    Stop,
}

impl Session<'_> {
    /// Show the screen until the user or a signal ends it.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Unexpected`] if the terminal fails.
    pub fn run(&mut self) -> Outcome<()> {
        let mut screen = Screen::take().map_err(|error| broken(&error))?;
        live::listen(self.outbox.clone());
        loop {
            self.draw(&mut screen).map_err(|error| broken(&error))?;
            if let Some(asked) = &self.asked {
                asked.change(sections::wanted(&self.model));
            }
            let deadline = self.deadline()?;
            self.sleeper
                .sleep(&[], deadline)
                .map_err(Failure::sleepless)?;
            if self.sleeper.stopping() || self.take(&mut screen)? == Next::Stop {
                return Ok(());
            }
            self.play();
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let size = screen.size()?;
        if size != self.model.size {
            update::resize(&mut self.model, size);
        }
        screen.draw(|buffer| view::draw(buffer, &self.model))
    }

    /// When the next frame of a recording is due.
    fn deadline(&mut self) -> Outcome<Option<Instant>> {
        match &mut self.player {
            Player::Replay(replay) if self.model.paused => {
                replay.hold();
                Ok(None)
            }
            Player::Replay(replay) => replay.due(Instant::now()),
            Player::Live(_) => Ok(None),
        }
    }

    /// Show the next frame of a recording if it is time to.
    fn play(&mut self) {
        let Player::Replay(replay) = &mut self.player else {
            return;
        };
        if !self.model.paused && replay.play(Instant::now()) {
            self.model.feed = replay.feed();
            update::show(&mut self.model, replay.shown());
            if replay.ended() {
                self.model.paused = true;
                let text = "the recording is at its end: Space plays it again";
                self.model.say(text, false);
            }
        }
    }

    /// Take all messages that have come.
    fn take(&mut self, screen: &mut Screen) -> Outcome<Next> {
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Input(Event::Key(key)) => {
                    let effect = update::key(&mut self.model, key);
                    if self.carry_out(effect, screen)? == Next::Stop {
                        return Ok(Next::Stop);
                    }
                }
                Message::Input(_) => {}
                Message::Deaf(why) => return Err(broken(&why)),
                other => self.heard(other),
            }
        }
        Ok(Next::Go)
    }

    /// Something came from the scheduler.
    fn heard(&mut self, message: Message) {
        match message {
            Message::Frame(frame, line) => {
                let frame = Rc::from(frame);
                if let Player::Live(live) = &mut self.player {
                    live.arrived(Rc::clone(&frame), self.model.paused);
                }
                update::frame(&mut self.model, frame);
                if let Some(Err(failure)) = self.record.as_mut().map(|record| record.add(&line)) {
                    self.record = None;
                    self.model.say(failure.message, true);
                }
            }
            Message::Lost(why) => self.model.feed = Feed::Live { lost: Some(why) },
            Message::Answer(Ok(text)) => self.model.say(text, false),
            Message::Answer(Err(text)) => self.model.say(text, true),
            Message::Input(_) | Message::Deaf(_) => {}
        }
    }

    fn carry_out(&mut self, effect: Effect, screen: &mut Screen) -> Outcome<Next> {
        let terminal = |error: io::Error| broken(&error);
        match effect {
            Effect::None => self.resume()?,
            Effect::Quit => return Ok(Next::Stop),
            Effect::Redraw => screen.clear().map_err(terminal)?,
            Effect::Suspend => screen.suspend().map_err(terminal)?,
            Effect::Step(by) => self.step(by)?,
            Effect::Speed(by) => match &mut self.player {
                Player::Replay(replay) => {
                    replay.faster(by);
                    self.model.feed = replay.feed();
                }
                Player::Live(_) => self.model.say("only a recording has a speed", false),
            },
            Effect::Set { key, value } => {
                let socket = Path::new(control::SOCKET).to_path_buf();
                self.model.say(format!("setting {key}={value}"), false);
                live::set(socket, key, value, self.outbox.clone());
            }
        }
        Ok(Next::Go)
    }

    fn step(&mut self, by: isize) -> Outcome<()> {
        if let Some(frame) = self.player.step(by)? {
            if let Player::Replay(replay) = &self.player {
                self.model.feed = replay.feed();
            }
            update::show(&mut self.model, frame);
        }
        Ok(())
    }

    /// After a pause: the newest frame at once, a recording from its start if
    /// it was at its end.
    fn resume(&mut self) -> Outcome<()> {
        if self.model.paused {
            return Ok(());
        }
        match &mut self.player {
            Player::Live(live) if live.behind() => self.step(isize::MAX),
            Player::Replay(replay) if replay.ended() => self.step(isize::MIN),
            _ => Ok(()),
        }
    }
}

/// A file to which the lines of a stream are added.
#[derive(Debug)]
pub struct Record {
    file: File,
    name: String,
}

impl Record {
    /// Begin the file `path`.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Usage`] if it can't be written.
    pub fn begin(path: &Path) -> Outcome<Self> {
        let name = path.display().to_string();
        match File::create(path) {
            Ok(file) => Ok(Self { file, name }),
            Err(error) => Err(unwritten(&name, &error)),
        }
    }

    /// Add a line.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Usage`] if it can't be written.
    pub fn add(&mut self, line: &[u8]) -> Outcome<()> {
        let written = self.file.write_all(line);
        written.map_err(|error| unwritten(&self.name, &error))
    }
}

fn unwritten(name: &str, error: &io::Error) -> Failure {
    let message = format!("recording {name} can't be written ({error}): name a file that can");
    Failure::new(ExitCode::Usage, message)
}

fn broken(why: &dyn std::fmt::Display) -> Failure {
    let message = format!("the terminal failed ({why}): try another, or pipe the output to cat");
    Failure::new(ExitCode::Unexpected, message)
}
