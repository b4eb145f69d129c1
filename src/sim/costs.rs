// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler's decisions cost: kernel functions called, locks taken,
//! writes to lines that CPUs share, full barriers; by kind of decision.

use std::ops::{Add, AddAssign, Sub};

use super::machine::Machine;

/// A kind of decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// What belongs to none of the others: ticks, switches, changes of tasks.
    #[default]
    Other,
    /// A wakeup, from the choice of a CPU to the queue there.
    Wakeup,
    /// A round of ops.dispatch().
    Dispatch,
    /// A round of ops.dispatch() that moved a task here from another run queue.
    Migration,
}

/// Sums of costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Kernel functions called.
    pub calls: u64,
    /// Locks of dispatch queues and of foreign run queues.
    pub locks: u64,
    /// Atomic writes to shared words, and any writes to another CPU's words.
    pub shared_writes: u64,
    /// Full barriers.
    pub barriers: u64,
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            locks: self.locks + other.locks,
            shared_writes: self.shared_writes + other.shared_writes,
            barriers: self.barriers + other.barriers,
        }
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            calls: self.calls - other.calls,
            locks: self.locks - other.locks,
            shared_writes: self.shared_writes - other.shared_writes,
            barriers: self.barriers - other.barriers,
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Sums so far by kind of decision, and to which kind the present belongs.
#[derive(Default)]
pub struct Meter {
    current: Decision,
    settled: Cost,
    sums: [Cost; 4],
    migrations: u64,
    /// The present round did.
    moved: bool,
}

impl Machine {
    fn total_cost(&self) -> Cost {
        // SAFETY: the world outlives the lease, and C counts only when called.
        let world = unsafe { &*self.variant.raw().world };
        Cost {
            calls: world.nr_calls,
            locks: self.stats.dsq_locks + self.stats.rq_locks,
            shared_writes: world.shared_writes,
            barriers: world.barriers,
        }
    }

    /// What has come up since the last time goes to the present kind.
    fn settle_costs(&mut self) {
        let total = self.total_cost();
        let meter = &mut self.meter;
        meter.sums[meter.current as usize] += total - meter.settled;
        meter.settled = total;
    }

    /// Does `work` on the account of `decision`.
    pub(super) fn on_account<R>(
        &mut self,
        decision: Decision,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        self.settle_costs();
        let outer = std::mem::replace(&mut self.meter.current, decision);
        let result = work(self);
        self.settle_costs();
        self.meter.current = outer;
        result
    }

    /// A round of ops.dispatch(): it turns out in the end what it was.
    pub(super) fn on_account_of_round(&mut self, round: impl FnOnce(&mut Self)) {
        let before = self.meter.sums[Decision::Dispatch as usize];
        self.meter.moved = false;
        self.on_account(Decision::Dispatch, round);
        if std::mem::take(&mut self.meter.moved) {
            let sums = &mut self.meter.sums;
            let cost = sums[Decision::Dispatch as usize] - before;
            sums[Decision::Dispatch as usize] = before;
            sums[Decision::Migration as usize] += cost;
            self.meter.migrations += 1;
        }
    }

    /// A task comes from another run queue.
    pub(super) fn note_move(&mut self) {
        self.meter.moved |= self.meter.current == Decision::Dispatch;
    }

    /// What all decisions of a kind cost together.
    #[must_use]
    pub fn cost_of(&self, decision: Decision) -> Cost {
        self.meter.sums[decision as usize]
    }

    /// Rounds of ops.dispatch() that moved a task between run queues.
    #[must_use]
    pub fn rounds_with_a_move(&self) -> u64 {
        self.meter.migrations
    }

    /// What everything has cost.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.total_cost()
    }

    /// Calls of each kernel function, by name; those that were called.
    #[must_use]
    pub fn calls_by_function(&self) -> Vec<(String, u64)> {
        // SAFETY: as in total_cost.
        let world = unsafe { &*self.variant.raw().world };
        let names = self.variant.kfunc_names().into_iter();
        names
            .zip(world.calls)
            .filter(|(_, calls)| *calls > 0)
            .collect()
    }
}
