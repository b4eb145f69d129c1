// SPDX-License-Identifier: GPL-2.0-only
//! What to do about it: from a look at all CPUs to hints for a few of them.
//!
//! Pure: the same look and the same memory give the same plan. What a plan
//! keeps to, whatever it is given: each CPU gets at most one hint; nothing is
//! moved within a domain, where CPUs balance by themselves, however long one
//! queue there is for a moment; a move leaves both CPUs nearer to each other;
//! one to another node has to gain more; and a machine where no domain's CPUs
//! have twice as much to do as another's gets no plan at all.

use super::ledger::{Load, Shape};

/// Hints in a round.
pub const HINTS: usize = 256;

/// Hints in a round that take from one queue: each takes its lock.
pub const HINTS_A_QUEUE: usize = 128;

/// Tasks that one hint may move: `HINT_TASKS_MAX` of `bpf/balance.h`.
pub const TASKS_A_HINT: u32 = 8;

/// A domain gives to another of its node if its CPUs have more to do than this
/// factor times what those have, and so many tasks more.
const FACTOR: f64 = 2.0;
const TASKS_NEAR: f64 = 2.0;

/// ... and to one of another node, where a task leaves its memory behind.
const TASKS_FAR: f64 = 3.0;

/// `to` may take up to `tasks` tasks out of the queue of `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The CPU that takes.
    pub to: usize,
    /// The CPU that gives.
    pub from: usize,
    /// How many at most.
    pub tasks: u32,
}

/// Which moves earlier rounds found impossible.
pub trait Closed {
    /// No task of the queue of `from` may run in `domain`.
    fn is_closed(&self, from: usize, domain: u16) -> bool;
    /// Nothing of the queue of `from` can leave.
    fn is_stuck(&self, from: usize) -> bool;
}

/// Nothing is known to be impossible.
impl Closed for () {
    fn is_closed(&self, _: usize, _: u16) -> bool {
        false
    }
    fn is_stuck(&self, _: usize) -> bool {
        false
    }
}

/// A CPU that may give or take.
#[derive(Clone, Copy, Debug)]
struct Side {
    cpu: usize,
    total: f64,
    /// Of one of its tasks.
    weight: f64,
    waiting: u32,
    /// Hints in this round that take from it.
    hints: usize,
    /// It has a hint itself.
    took: bool,
}

/// CPUs that share a cache.
#[derive(Clone, Debug, Default)]
struct Domain {
    number: u16,
    node: u16,
    /// Weight of all that its CPUs have to do, and what that is for one of them.
    sum: f64,
    mean: f64,
    cpus: Vec<Side>,
}

/// What to do about `loads`, the look at each CPU of `shape`: at most [`HINTS`]
/// moves, each `to` once.
pub fn plan(shape: &Shape, loads: &[Load], closed: &impl Closed) -> Vec<Move> {
    let level = fair_level(loads, closed);
    let mut domains = domains(shape, loads, level, closed);
    domains.sort_by(|a, b| {
        let order = b.mean.total_cmp(&a.mean);
        order.then(a.number.cmp(&b.number))
    });
    let mut moves = Vec::new();
    for near in [true, false] {
        for giver in 0..domains.len() {
            // Who has the least to do comes last.
            for taker in (giver + 1..domains.len()).rev() {
                let Ok([from, to]) = domains.get_disjoint_mut([giver, taker]) else {
                    continue;
                };
                if (from.node == to.node) == near
                    && !exchange(from, to, level, near, closed, &mut moves)
                {
                    break;
                }
            }
        }
    }
    moves
}

/// What each CPU would have to do if tasks could be divided without end. One
/// whose only task weighs more keeps it, and is left out; so is one whose tasks
/// can't leave.
pub fn fair_level(loads: &[Load], closed: &impl Closed) -> f64 {
    let mut left: Vec<&Load> = loads
        .iter()
        .enumerate()
        .filter(|(cpu, load)| load.busy && !closed.is_stuck(*cpu))
        .map(|(_, load)| load)
        .collect();
    loop {
        let sum: f64 = left.iter().map(|load| load.total()).sum();
        let level = if left.is_empty() {
            0.0
        } else {
            sum / left.len() as f64
        };
        let before = left.len();
        left.retain(|load| fits(load, level));
        if left.len() == before {
            return level;
        }
    }
}

/// Is it not a single task that weighs more than a CPU's part?
fn fits(load: &Load, level: f64) -> bool {
    load.waiting > 0 || load.total() <= level * 1.001
}

/// The CPUs that have part in it, by domain.
fn domains(shape: &Shape, loads: &[Load], level: f64, closed: &impl Closed) -> Vec<Domain> {
    let mut domains = vec![Domain::default(); shape.domains];
    for (cpu, (place, load)) in shape.places.iter().zip(loads).enumerate() {
        let takes_part = place.exists && load.busy && fits(load, level) && !closed.is_stuck(cpu);
        let Some(domain) = domains.get_mut(usize::from(place.domain)) else {
            continue;
        };
        domain.number = place.domain;
        domain.node = place.node;
        if takes_part {
            domain.sum += load.total();
            domain.cpus.push(Side {
                cpu,
                total: load.total(),
                weight: load.weight,
                waiting: load.waiting,
                hints: 0,
                took: false,
            });
        }
    }
    domains.retain(|domain| !domain.cpus.is_empty());
    for domain in &mut domains {
        domain.mean = domain.sum / domain.cpus.len() as f64;
    }
    domains
}

/// Moves from one domain to another until they are even, if they are apart by
/// enough to begin; false: `from` has no more than that to give to anybody at
/// this distance.
fn exchange(
    from: &mut Domain,
    to: &mut Domain,
    level: f64,
    near: bool,
    closed: &impl Closed,
    moves: &mut Vec<Move>,
) -> bool {
    let more = if near { TASKS_NEAR } else { TASKS_FAR };
    let (from_mean, to_mean) = (from.mean, to.mean);
    while moves.len() < HINTS {
        let Some(giver) = fullest(from, to.number, closed) else {
            return true;
        };
        if from_mean < FACTOR * to_mean + more * giver.weight {
            return false;
        }
        let Some(taker) = emptiest(to) else {
            return true;
        };
        let room = ((level - taker.total) / giver.weight).round();
        let half = ((giver.total - taker.total) / (2.0 * giver.weight)).floor();
        if room < 1.0 || half < 1.0 {
            return true;
        }
        let tasks = (room.min(half) as u32).min(giver.waiting).min(TASKS_A_HINT);
        moves.push(Move {
            to: taker.cpu,
            from: giver.cpu,
            tasks,
        });
        let weight = f64::from(tasks) * giver.weight;
        giver.waiting -= tasks;
        giver.total -= weight;
        giver.hints += 1;
        taker.total += weight;
        taker.took = true;
    }
    false
}

/// The CPU with the most to do that still has a task to give to `domain`.
fn fullest<'a>(from: &'a mut Domain, domain: u16, closed: &impl Closed) -> Option<&'a mut Side> {
    from.cpus
        .iter_mut()
        .filter(|side| side.waiting > 0 && side.hints < HINTS_A_QUEUE && !side.took)
        .filter(|side| !closed.is_closed(side.cpu, domain))
        .max_by(|a, b| a.total.total_cmp(&b.total).then(b.cpu.cmp(&a.cpu)))
}

/// The CPU with the least to do that has no hint yet.
fn emptiest(to: &mut Domain) -> Option<&mut Side> {
    to.cpus
        .iter_mut()
        .filter(|side| side.hints == 0 && !side.took)
        .min_by(|a, b| a.total.total_cmp(&b.total).then(a.cpu.cmp(&b.cpu)))
}

#[cfg(test)]
#[path = "planner_tests.rs"]
mod tests;
