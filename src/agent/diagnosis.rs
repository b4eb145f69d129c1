// SPDX-License-Identifier: GPL-2.0-only
//! Tasks that wait too long: who, and why. The BPF program finds them
//! (`bpf/diagnose.h`); here they are remembered, and told now and then.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// How many are remembered.
const KEPT: usize = 16;

/// A wait is news for so long.
const NEWS: Duration = Duration::from_secs(60);

/// At most one line in the log in this time.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Why a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Others were before it; its CPU is crowded.
    Crowded,
    /// Its weight is low.
    LowWeight,
    /// Its cgroup, or one above, has `cpu.idle`.
    Background,
    /// A higher scheduling class keeps the only CPU that it may use.
    HigherClass,
    /// Its CPU is offline.
    Offline,
}

impl Reason {
    /// The reason with this number in the BPF program (`enum wait_reason`).
    pub const fn numbered(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Crowded,
            2 => Self::LowWeight,
            3 => Self::Background,
            4 => Self::HigherClass,
            5 => Self::Offline,
            _ => return None,
        })
    }

    /// The reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Crowded => "behind the other tasks of its CPU",
            Self::LowWeight => "its weight is low: see its nice level and its cgroup's cpu.weight",
            Self::Background => "its cgroup, or one above, has cpu.idle",
            Self::HigherClass => {
                "pinned to a CPU that a real-time task keeps: give it other CPUs, or that task"
            }
            Self::Offline => "its CPU is offline",
        }
    }
}

/// A task that had waited for seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Number of this report since the scheduler was attached, from 1.
    pub number: u32,
    /// The task's id.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// The CPU in whose queue it waited.
    pub cpu: u32,
    /// Its weight in the whole machine; 1024 = nice 0.
    pub weight: u32,
    /// How long it had waited by then.
    pub waited: Duration,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}[{}] has waited for {:.1} s on CPU {}, weight {}: {}",
            self.comm,
            self.pid,
            self.waited.as_secs_f64(),
            self.cpu,
            self.weight,
            self.reason.text()
        )
    }
}

/// The last of them.
#[derive(Debug, Default)]
pub struct Waits {
    seen: u32,
    recent: VecDeque<(Instant, Wait)>,
    told_at: Option<Instant>,
    untold: u32,
}

impl Waits {
    /// Number of the last report seen.
    pub const fn seen(&self) -> u32 {
        self.seen
    }

    /// The last word of each task of which there was one lately.
    pub fn news(&self, now: Instant) -> Vec<String> {
        let mut pids = Vec::new();
        let mut news = Vec::new();
        for (at, wait) in self.recent.iter().rev() {
            if now < *at + NEWS && !pids.contains(&wait.pid) {
                pids.push(wait.pid);
                news.push(wait.to_string());
            }
        }
        news
    }

    /// Why this very wait lasted, if a neighbour of the CPU has said so before. Who
    /// runs the task in the end only knows that it was there.
    fn known_reason(&self, wait: &Wait, now: Instant) -> Option<Reason> {
        let earlier = self.recent.iter().rev();
        let mut same = earlier.filter(|(at, earlier)| {
            let outside = matches!(earlier.reason, Reason::HigherClass | Reason::Offline);
            outside && earlier.pid == wait.pid && now.saturating_duration_since(*at) < wait.waited
        });
        same.next().map(|(_, earlier)| earlier.reason)
    }

    /// Takes in reports, in the order of their numbers; the line for the log,
    /// if it is time for one.
    pub fn take(&mut self, reports: Vec<Wait>, now: Instant) -> Option<String> {
        for mut wait in reports {
            if let Some(reason) = self.known_reason(&wait, now) {
                wait.reason = reason;
            }
            let new = wait.number.wrapping_sub(self.seen);
            self.untold = self.untold.saturating_add(new);
            self.seen = wait.number;
            self.recent.push_back((now, wait));
        }
        while self.recent.len() > KEPT {
            self.recent.pop_front();
        }
        let (_, last) = self.recent.back().filter(|_| self.untold > 0)?;
        if self.told_at.is_some_and(|told| now < told + TELL_EVERY) {
            return None;
        }
        let others = match self.untold {
            1 => String::new(),
            count => format!(" ({} more such reports)", count - 1),
        };
        let line = format!("{last}{others}");
        self.told_at = Some(now);
        self.untold = 0;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(number: u32) -> Wait {
        Wait {
            number,
            pid: 42,
            comm: "cc1".to_string(),
            cpu: 3,
            weight: 15,
            waited: Duration::from_millis(3140),
            reason: Reason::LowWeight,
        }
    }

    #[test]
    fn the_log_gets_a_line_now_and_then_and_loses_no_count() {
        let mut waits = Waits::default();
        let start = Instant::now();
        let line = waits.take(vec![wait(1)], start).unwrap();
        assert!(line.starts_with("cc1[42] has waited for 3.1 s on CPU 3, weight 15: its weight"));
        assert!(!line.contains("more such"));
        // 17 reports, of which the ring kept 16.
        for number in 3..19 {
            assert_eq!(waits.take(vec![wait(number)], start), None);
        }
        let line = waits.take(vec![wait(19)], start + TELL_EVERY).unwrap();
        assert!(line.ends_with("(17 more such reports)"), "{line}");
        assert_eq!(waits.take(vec![], start + TELL_EVERY * 3), None);
        assert_eq!(waits.recent.len(), KEPT);
        assert_eq!(waits.news(start + TELL_EVERY).len(), 1, "one task");
        assert_eq!(waits.news(start + TELL_EVERY + NEWS), [""; 0]);
        assert_eq!(waits.seen(), 19);
    }

    #[test]
    fn a_wait_keeps_the_reason_that_was_seen_from_outside() {
        let mut waits = Waits::default();
        let start = Instant::now();
        let behind = Wait {
            reason: Reason::HigherClass,
            ..wait(1)
        };
        let rescued = |number| Wait {
            waited: Duration::from_secs(4),
            reason: Reason::Crowded,
            ..wait(number)
        };
        waits.take(vec![behind], start);
        waits.take(vec![rescued(2)], start + Duration::from_secs(1));
        let news = waits.news(start + Duration::from_secs(1));
        assert!(news[0].contains("4.0 s") && news[0].contains("real-time"));
        // Another wait, which began afterwards.
        waits.take(vec![rescued(3)], start + Duration::from_secs(9));
        let news = waits.news(start + Duration::from_secs(9));
        assert!(news[0].contains("behind the other tasks"), "{news:?}");
    }

    #[test]
    fn every_reason_has_its_words() {
        let known: Vec<_> = (0..8).filter_map(Reason::numbered).collect();
        assert_eq!(known.len(), 5);
        for reason in known {
            assert!(!reason.text().is_empty());
        }
    }
}
