// SPDX-License-Identifier: GPL-2.0-only
//! Leaks: more contexts than tasks, tasks in queues that are not known to be
//! there. None of it should ever be seen; if it is, somebody should hear of it.
//!
//! Nobody is woken up to look: it is done when the agent is awake anyway, at
//! most every ten seconds, and what looks wrong is believed when a second look
//! says the same.

use std::time::{Duration, Instant};

use crate::kernel::tally::Tally;

/// From one look to the next.
const EVERY: Duration = Duration::from_secs(10);

/// ... and from one that saw something to the one that confirms it.
const AGAIN: Duration = Duration::from_secs(1);

/// At most one line in the log in this time.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Contexts above the number of tasks that mean nothing: tasks come and go
/// between the two counts.
const SLACK: u64 = 32;

/// What was seen last.
#[derive(Debug, Default)]
pub struct Leaks {
    next: Option<Instant>,
    /// The last look, if it has to be confirmed.
    suspect: Option<Tally>,
    found: Vec<String>,
    told_at: Option<Instant>,
}

impl Leaks {
    /// Is it time for a look?
    pub fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// When to come back for a look, if it can't wait until the agent is awake
    /// for something else.
    pub fn deadline(&self) -> Option<Instant> {
        self.next.filter(|_| self.is_open())
    }

    /// Is there something to confirm?
    const fn is_open(&self) -> bool {
        self.suspect.is_some() && self.found.is_empty()
    }

    /// The leaks that there are, a sentence each.
    pub fn news(&self) -> &[String] {
        &self.found
    }

    /// Takes in a look; the line for the log, if it is time for one.
    pub fn look(&mut self, tally: Tally, now: Instant) -> Option<String> {
        self.found = match &self.suspect {
            Some(earlier) => confirmed(earlier, &tally),
            None => Vec::new(),
        };
        self.found.extend(strays(&tally));
        let suspect = excess(&tally) > SLACK || !tally.unmarked.is_empty();
        self.suspect = suspect.then_some(tally);
        self.next = Some(now + if self.is_open() { AGAIN } else { EVERY });
        if self.found.is_empty() || self.told_at.is_some_and(|told| now < told + TELL_EVERY) {
            return None;
        }
        self.told_at = Some(now);
        Some(self.found.join("; "))
    }
}

fn excess(tally: &Tally) -> u64 {
    let threads = tally.threads.unwrap_or(u64::MAX);
    tally.contexts.saturating_sub(threads)
}

/// What both looks saw.
fn confirmed(earlier: &Tally, now: &Tally) -> Vec<String> {
    let mut found = Vec::new();
    // Kernels that end a context with the last reference to its task may be behind
    // by those that ended lately.
    let lately = now.ended.saturating_sub(earlier.ended);
    let slack = SLACK.saturating_add(lately);
    if excess(earlier) > slack && excess(now) > slack {
        found.push(format!(
            "leak: contexts of {} tasks, and there are {}: please report it",
            now.contexts,
            now.threads.unwrap_or_default()
        ));
    }
    let both = now.unmarked.iter();
    for cpu in both.filter(|cpu| earlier.unmarked.contains(cpu)) {
        found.push(format!(
            "leak: tasks wait in the queue of CPU {cpu}, which does not know of them: please report it"
        ));
    }
    found
}

fn strays(tally: &Tally) -> Option<String> {
    (tally.strays > 0).then(|| {
        format!(
            "leak: {} times a task was in a queue that should not have been: please report it",
            tally.strays
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(contexts: u64, threads: u64, ended: u64) -> Tally {
        Tally {
            contexts,
            threads: Some(threads),
            ended,
            ..Tally::default()
        }
    }

    #[test]
    fn a_leak_is_believed_at_the_second_look_and_told_now_and_then() {
        let (mut leaks, start) = (Leaks::default(), Instant::now());
        assert!(leaks.is_due(start) && leaks.deadline().is_none());
        assert_eq!(leaks.look(tally(300, 200, 5), start), None);
        assert_eq!(leaks.deadline(), Some(start + AGAIN));
        let second = start + AGAIN;
        assert!(!leaks.is_due(start) && leaks.is_due(second));
        let line = leaks.look(tally(300, 200, 5), second).unwrap();
        assert!(line.starts_with("leak: contexts of 300 tasks, and there are 200"));
        assert_eq!(leaks.news(), [line]);
        // It stands, and nobody is woken up for it, nor told again so soon.
        assert_eq!(leaks.deadline(), None);
        let third = second + EVERY;
        assert_eq!(leaks.look(tally(301, 200, 5), third), None);
        assert_eq!(leaks.news().len(), 1);
        let later = second + TELL_EVERY;
        assert!(leaks.look(tally(302, 200, 5), later).is_some());
        assert_eq!(leaks.look(tally(200, 200, 5), later + EVERY), None);
        assert!(leaks.news().is_empty());
    }

    #[test]
    fn tasks_that_come_and_go_are_no_leak() {
        let (mut leaks, start) = (Leaks::default(), Instant::now());
        let unknown = Tally {
            contexts: 1000,
            ..Tally::default()
        };
        for (at, tally) in [
            tally(232, 200, 0),
            tally(150, 200, 0),
            // A storm of short lives, whose ends are counted a little later.
            tally(900, 200, 1000),
            tally(900, 200, 3000),
            tally(220, 200, 4000),
            unknown.clone(),
            unknown,
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(leaks.look(tally, start + AGAIN * at as u32), None, "{at}");
        }
        assert!(leaks.news().is_empty());
    }

    #[test]
    fn a_queue_that_stays_unmarked_and_a_stray_are_told() {
        let (mut leaks, start) = (Leaks::default(), Instant::now());
        let unmarked = |unmarked: &[usize]| Tally {
            unmarked: unmarked.to_vec(),
            ..tally(10, 10, 0)
        };
        assert_eq!(leaks.look(unmarked(&[1, 3]), start), None);
        // Another one now: each was only on its way.
        assert_eq!(leaks.look(unmarked(&[2]), start + AGAIN), None);
        let line = leaks.look(unmarked(&[2, 3]), start + AGAIN * 2).unwrap();
        assert!(line.contains("queue of CPU 2") && !line.contains("CPU 3"));
        let mut stray = Leaks::default();
        let seen = Tally {
            strays: 2,
            ..tally(10, 10, 0)
        };
        assert!(
            stray
                .look(seen, start)
                .unwrap()
                .starts_with("leak: 2 times")
        );
        assert_eq!(stray.deadline(), None);
    }
}
