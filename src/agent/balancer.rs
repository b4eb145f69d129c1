// SPDX-License-Identifier: GPL-2.0-only
//! Rounds of the balancer: what the last hints came to, the next plan, and
//! when to look again.
//!
//! A round happens because the BPF program called, or because the one before
//! sent hints. So where there is nothing to balance there are none.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use super::ledger::{Load, Sample, Shape};
use super::planner::{self, Closed, Move};

/// From one round to the next while there is something to move.
pub const ROUND: Duration = Duration::from_millis(20);

/// How long a hint is good for.
pub const HINT_VALID: Duration = Duration::from_millis(50);

/// A hint that nobody has dealt with by then was lost with its CPU.
const ACK_LIMIT: Duration = Duration::from_millis(200);

/// How long a move that was refused is not tried again, at first and at most.
const CLOSED: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// For how long no call is wanted after rounds in a row that could do nothing,
/// at first and at most.
const FUTILE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Refused in so many domains with nothing moved, a queue counts as stuck.
const STUCK_AFTER: u32 = 3;

/// A hint that was sent.
#[derive(Clone, Copy, Debug)]
struct Pending {
    to: usize,
    from: usize,
    generation: u32,
    sent: Duration,
}

/// What is not to be tried for a while.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    until: Duration,
    length: Duration,
}

impl Pause {
    fn extend(&mut self, now: Duration) {
        let (first, longest) = CLOSED;
        self.length = (self.length * 2).clamp(first, longest);
        self.until = now + self.length;
    }
}

/// What refusals taught.
#[derive(Clone, Debug, Default)]
struct Memory {
    now: Duration,
    closed: HashMap<(usize, u16), Pause>,
    stuck: HashMap<usize, (u32, Pause)>,
}

impl Closed for Memory {
    fn is_closed(&self, from: usize, domain: u16) -> bool {
        let pause = self.closed.get(&(from, domain));
        pause.is_some_and(|pause| pause.until > self.now)
    }

    fn is_stuck(&self, from: usize) -> bool {
        let stuck = self.stuck.get(&from);
        stuck.is_some_and(|(times, pause)| *times >= STUCK_AFTER && pause.until > self.now)
    }
}

impl Memory {
    fn refused(&mut self, from: usize, domain: u16) {
        let now = self.now;
        self.closed.entry((from, domain)).or_default().extend(now);
        let (times, pause) = self.stuck.entry(from).or_default();
        *times += 1;
        if *times >= STUCK_AFTER {
            pause.extend(now);
        }
    }

    fn moved(&mut self, from: usize, domain: u16) {
        self.closed.remove(&(from, domain));
        self.stuck.remove(&from);
    }

    /// Drops what has long been tried again since.
    fn forget(&mut self) {
        let (now, keep) = (self.now, CLOSED.1 * 2);
        self.closed.retain(|_, pause| pause.until + keep > now);
        self.stuck.retain(|_, (_, pause)| pause.until + keep > now);
    }
}

/// What became of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// The CPU that was to take.
    pub to: usize,
    /// The CPU that was to give.
    pub from: usize,
    /// Tasks that moved.
    pub moved: u32,
    /// `applied`, `refused` or `expired`.
    pub outcome: &'static str,
}

/// What a round decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Hints to send.
    pub moves: Vec<Move>,
    /// What became of earlier ones.
    pub dealt: Vec<Dealt>,
    /// No call is wanted for so long.
    pub quiet: Duration,
    /// When to look again, called or not.
    pub again: Option<Duration>,
}

/// Sums over all rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Rounds.
    pub rounds: u64,
    /// Hints sent.
    pub hints: u64,
    /// Tasks that they moved.
    pub moved: u64,
    /// Hints that no task could follow.
    pub refused: u64,
    /// Hints that came too late or were no longer needed.
    pub expired: u64,
}

/// The balancer between rounds.
#[derive(Debug, Default)]
pub struct Balancer {
    shape: Shape,
    memory: Memory,
    pending: Vec<Pending>,
    before: Vec<Load>,
    before_at: Duration,
    futile: Duration,
    futile_at: Duration,
    affinity_changes: u64,
    figures: Figures,
}

impl Balancer {
    /// A balancer for a machine of this shape.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            ..Self::default()
        }
    }

    /// How many CPUs it wants to see, from CPU 0 on.
    pub fn cpus(&self) -> usize {
        self.shape.places.len()
    }

    /// Sums over all rounds.
    pub const fn figures(&self) -> Figures {
        self.figures
    }

    /// A round at `now`, of any clock that only goes forward.
    pub fn round(&mut self, now: Duration, samples: &[Sample]) -> Round {
        self.figures.rounds += 1;
        self.memory.now = now;
        let dealt = self.reap(now, samples);
        let moved: u64 = dealt.iter().map(|dealt| u64::from(dealt.moved)).sum();
        self.figures.moved += moved;
        self.memory.forget();
        self.reopen(samples);
        let loads = self.steady(now, samples);
        let moves = planner::plan(&self.shape, &loads, &self.memory);
        let (first, longest) = FUTILE;
        self.futile = if !moves.is_empty() || moved > 0 {
            Duration::ZERO
        } else if now < self.futile_at + self.futile * 4 {
            (self.futile * 2).min(longest)
        } else {
            first
        };
        self.futile_at = now;
        let busy = !moves.is_empty() || !self.pending.is_empty();
        Round {
            moves,
            dealt,
            quiet: self.futile.max(ROUND),
            again: busy.then_some(now + ROUND),
        }
    }

    /// `hint` was sent at `now` as number `generation`.
    pub fn sent(&mut self, now: Duration, hint: Move, generation: u32) {
        self.figures.hints += 1;
        self.pending.push(Pending {
            to: hint.to,
            from: hint.from,
            generation,
            sent: now,
        });
    }

    /// Learns what became of the hints.
    fn reap(&mut self, now: Duration, samples: &[Sample]) -> Vec<Dealt> {
        let (memory, shape, figures) = (&mut self.memory, &self.shape, &mut self.figures);
        let mut dealt = Vec::new();
        self.pending.retain(|hint| {
            let ack = samples.get(hint.to).map(|sample| sample.ack);
            let ack = ack.filter(|ack| ack.generation == hint.generation);
            if ack.is_none() && hint.sent + ACK_LIMIT >= now {
                return true;
            }
            let ack = ack.unwrap_or_default();
            let domain = shape.places.get(hint.to).map_or(0, |place| place.domain);
            let outcome = if ack.moved > 0 {
                memory.moved(hint.from, domain);
                "applied"
            } else if ack.refused {
                memory.refused(hint.from, domain);
                figures.refused += 1;
                "refused"
            } else {
                figures.expired += 1;
                "expired"
            };
            dealt.push(Dealt {
                to: hint.to,
                from: hint.from,
                moved: ack.moved,
                outcome,
            });
            false
        });
        dealt
    }

    /// Once CPU masks change, what could not move may.
    fn reopen(&mut self, samples: &[Sample]) {
        let changes = samples.iter().map(|sample| sample.affinity_changes);
        let changes = changes.fold(0_u64, u64::wrapping_add);
        if changes != self.affinity_changes {
            self.affinity_changes = changes;
            self.memory.closed.clear();
            self.memory.stuck.clear();
        }
    }

    /// The loads to go by. Short tasks come and go: what a CPU has beyond the
    /// mean is the less of two looks, what it has below it the greater.
    fn steady(&mut self, now: Duration, samples: &[Sample]) -> Vec<Load> {
        let loads: Vec<Load> = samples.iter().map(|sample| sample.load).collect();
        let recent = self.before_at + ROUND * 3 > now && self.before.len() == loads.len();
        let waiting = |load: &Load| f64::from(load.waiting);
        let mean = loads.iter().map(waiting).sum::<f64>() / loads.len().max(1) as f64;
        let merged = |(now, before): (&Load, &Load)| {
            let waiting = if waiting(now) > mean {
                now.waiting.min(before.waiting)
            } else {
                now.waiting.max(before.waiting.min(mean as u32))
            };
            Load { waiting, ..*now }
        };
        let steady = if recent {
            loads.iter().zip(&self.before).map(merged).collect()
        } else {
            loads.clone()
        };
        self.before = loads;
        self.before_at = now;
        steady
    }
}

#[cfg(test)]
#[path = "balancer_tests.rs"]
mod tests;
