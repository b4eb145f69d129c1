// SPDX-License-Identifier: GPL-2.0-only
//! What the agent has to tell besides figures: decisions of its balancer,
//! warnings, events. It reports here; streams and `status` read here.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::frame::Decision;

/// Decisions and events that are kept for readers that come round later.
const KEPT: usize = 1024;

/// Something that happened, for those who subscribe to events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// What: `settings`, `balance`, `warning`, `clients`, `stopping`.
    pub event: String,
    /// The same in words.
    pub text: String,
}

/// The last entries of a log that goes on; each has a number, from 0.
#[derive(Clone, Debug)]
pub struct Tail<T> {
    entries: VecDeque<T>,
    next: u64,
}

impl<T> Default for Tail<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            next: 0,
        }
    }
}

impl<T> Tail<T> {
    /// Add an entry; the oldest is forgotten.
    pub fn push(&mut self, entry: T) {
        if self.entries.len() >= KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.next += 1;
    }

    /// The number that the next entry will have.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The entries from number `from` on that are still known.
    pub fn since(&self, from: u64) -> impl Iterator<Item = &T> {
        let first = self.next - self.entries.len() as u64;
        self.entries
            .iter()
            .skip(from.saturating_sub(first) as usize)
    }
}

/// All that the agent reports.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// The balancer's decisions.
    pub decisions: Tail<Decision>,
    /// Events.
    pub events: Tail<Event>,
    /// What somebody should look at now, a sentence each.
    pub warnings: Vec<String>,
    /// What this kernel lacks and the scheduler does in another way.
    pub fallbacks: Vec<String>,
    /// Times that the agent woke since its start.
    pub wakeups: u64,
}

impl Reports {
    /// Report a decision of the balancer.
    pub fn decided(&mut self, decision: Decision) {
        let text = format!(
            "{} {} from CPU {} to CPU {}: {}",
            decision.kind, decision.count, decision.from_cpu, decision.to_cpu, decision.outcome
        );
        self.happened("balance", text);
        self.decisions.push(decision);
    }

    /// Report an event.
    pub fn happened(&mut self, event: &str, text: String) {
        self.events.push(Event {
            time_ms: unix_ms(),
            event: event.to_string(),
            text,
        });
    }
}

/// Milliseconds since 1970; 0 before that.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_forgets_the_oldest_and_keeps_the_numbers() {
        let mut tail = Tail::default();
        for number in 0..KEPT + 10 {
            tail.push(number);
        }
        assert_eq!(tail.next(), KEPT as u64 + 10);
        assert_eq!(tail.since(0).next(), Some(&10));
        assert_eq!(tail.since(1000).next(), Some(&1000));
        assert_eq!(tail.since(tail.next()).next(), None);
        assert_eq!(tail.since(u64::MAX).next(), None);
    }

    #[test]
    fn a_decision_is_an_event_too() {
        let mut reports = Reports::default();
        reports.decided(Decision {
            kind: "move".to_string(),
            from_cpu: 1,
            to_cpu: 5,
            count: 2,
            outcome: "applied".to_string(),
            ..Decision::default()
        });
        let event = reports.events.since(0).next().unwrap();
        assert_eq!(event.text, "move 2 from CPU 1 to CPU 5: applied");
        assert_eq!(reports.decisions.next(), 1);
    }
}
