// SPDX-License-Identifier: GPL-2.0-only
//! Two properties of the scheduler's own arithmetic: lag is bounded, and a
//! task that waits is passed over by a bounded amount of CPU time.
//!
//! Lag. A task that wakes into a queue, or starts, has a virtual runtime near the
//! queue's clock (one that waited may be owed more for a while: a light task
//! that ran out of turn takes the clock along): no further than `SANE` of its own CPU time (what a wakeup
//! allows, 12 ms behind and 20 ms ahead, and what a change of weight may leave,
//! lie within), twice the drift that a move between queues may add, and what
//! it ran since it last started or was asked to go on.
//!
//! Waiting. Let task i join the queue of a CPU when its clock reads V. Its
//! deadline is at most V + D, D = lag + drift + its request, all by its weight.
//! Another task j goes first only while its deadline is earlier, and it joins
//! no earlier than V - C, C = lag + drift by its own weight. So while i waits,
//! j uses no more than (D + C) * weight(j), and what it goes beyond when it is
//! not stopped at once: a request and a tick. The bound is the sum over all j
//! that ran here meanwhile. Where a weight has changed meanwhile, the worst counts.
//! Very light tasks are rescued before: once they have waited 3 s, one of them a
//! second runs out of turn. What other classes use is not the scheduler's doing, so
//! only the CPU time of our class counts.

use std::collections::{BTreeMap, VecDeque};

use super::config::TICK;
use super::dsq::TaskId;
use super::machine::{Curr, Machine};
use super::tasks::Insert;

const MS: f64 = 1e6;
/// `VTIME_SANE`
const SANE: f64 = 40.0 * MS;
/// Twice `VTIME_DRIFT`
const DRIFT: f64 = 24.0 * MS;
/// The longest request of a task that wakes: `REQUEST_MAX`; a busy one asks for
/// two slices at most.
const REQUEST: f64 = 6.0 * MS;
/// `POLICY_FAIR`
const FAIR: u32 = 0;
/// A slice that nobody asked back: `LONE_SLICE`.
const LONE: f64 = 20.0 * MS;
/// Waits below that are always in order, and not looked into.
const SHORT: u64 = 50_000_000;
/// From when on, and how often, the longest waiting run out of turn.
const RESCUE_AGE: f64 = 3000.0 * MS;
const RESCUE_EVERY: f64 = 1000.0 * MS;
/// How many starts a CPU remembers.
const REMEMBERED: usize = 100_000;

/// What a CPU gave to whom: when, and that one's weight then.
#[derive(Default)]
pub struct Starts(VecDeque<(u64, TaskId, f64)>);

/// Since when a task is in the queue of a CPU: the time, what the CPU's tasks had
/// used until then, and its weight.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    cpu: usize,
    at: u64,
    busy: u64,
    weight: f64,
}

impl Machine {
    /// The other policies order tasks by rules of their own, and a change of
    /// the knobs leaves requests by the old ones behind.
    fn bounds_apply(&self) -> bool {
        let knobs = self.knobs();
        self.cfg.audit_period > 0 && knobs.policy == FAIR && knobs.generation == 1
    }

    fn knobs(&self) -> &super::ffi::knobs {
        // SAFETY: the leased variant's; only the engine writes them, between callbacks.
        unsafe { &*self.variant.raw().knobs }
    }

    /// ns
    fn longest_request(&self) -> f64 {
        REQUEST.max(2.0 * self.knobs().slice_ns as f64)
    }

    /// None: the scheduler knows nothing of `task`.
    fn weight_now(&self, task: TaskId) -> Option<f64> {
        let view = self.view(task);
        (view.known != 0).then(|| (1u64 << 32) as f64 / view.inv.max(1) as f64)
    }

    /// CPU time that tasks of our class have had of `cpu`.
    fn busy_until_now(&self, cpu: usize) -> u64 {
        let c = &self.cpus[cpu];
        match c.curr {
            Curr::Task(_) => c.busy + (self.now - c.exec_start),
            _ => c.busy,
        }
    }

    /// `task` joins a CPU's own queue, whose id is the CPU's number.
    pub(super) fn bound_queued(&mut self, task: TaskId, insert: Insert) {
        let cpu = insert.dsq as usize;
        if !self.bounds_apply() || insert.vtime.is_none() || cpu >= self.cpus.len() {
            return;
        }
        self.tasks[task].queued_since = Some(Queued {
            cpu,
            at: self.now,
            busy: self.busy_until_now(cpu),
            weight: self.weight_now(task).unwrap_or(f64::INFINITY),
        });
        let t = &self.tasks[task];
        let wakes = t.woken && t.waits_since == self.now;
        self.check_lag(task, "joins a queue", wakes);
    }

    /// `task` starts on `cpu`: its wait is over, and others' may be longer.
    pub(super) fn bound_started(&mut self, task: TaskId, cpu: usize) {
        if !self.bounds_apply() {
            return;
        }
        self.check_lag(task, "starts", true);
        self.check_passed_over(task);
        let t = &mut self.tasks[task];
        t.queued_since = None;
        t.ran_at_start = t.ran;
        let weight = self.weight_now(task).unwrap_or(0.0);
        let starts = &mut self.cpus[cpu].starts.0;
        if starts.len() >= REMEMBERED {
            starts.pop_front();
        }
        starts.push_back((self.now, task, weight));
    }

    /// What a task is owed is bounded anew when it wakes or starts, what it owes
    /// always.
    fn check_lag(&mut self, task: TaskId, when: &str, both: bool) {
        let view = self.view(task);
        if view.known == 0 || view.weight == 0 {
            return;
        }
        let lag = view.clock.wrapping_sub(view.vruntime) as i64 as f64;
        // The clock follows a task that goes on: what it ran since it was last
        // asked to is all that it can be ahead.
        let t = &self.tasks[task];
        let ran = ((t.ran - t.ran_at_start) as f64).min(LONE);
        let weight = (1u64 << 32) as f64 / view.inv.max(1) as f64;
        let own = (SANE + ran + TICK as f64) * 1024.0 / weight;
        let off = if both { lag.abs() } else { -lag };
        if off > own + DRIFT {
            let name = self.name(task);
            self.violate(format!(
                "{name} {when} with a lag of {:.1} ms at weight {}",
                lag / MS,
                view.weight
            ));
        }
    }

    /// Has the CPU of its queue done too much for others while it waited?
    pub(super) fn check_passed_over(&mut self, task: TaskId) {
        let Some(queued) = self.tasks[task]
            .queued_since
            .filter(|_| self.bounds_apply())
        else {
            return;
        };
        // A moment within a switch is on nobody's account.
        let given = self.busy_until_now(queued.cpu).saturating_sub(queued.busy);
        if given < SHORT {
            return;
        }
        let Some(bound) = self.wait_bound(task, queued) else {
            return;
        };
        if given as f64 > bound {
            let name = self.name(task);
            self.violate(format!(
                "{name} waited on CPU {} while others ran there for {:.1} ms (bound {:.1} ms)",
                queued.cpu,
                given as f64 / MS,
                bound / MS
            ));
        }
    }

    /// None: somebody with a right to go first ran there, or too much has
    /// happened to be remembered.
    fn wait_bound(&self, task: TaskId, queued: Queued) -> Option<f64> {
        let starts = &self.cpus[queued.cpu].starts.0;
        if starts.len() >= REMEMBERED && starts.front().is_some_and(|first| first.0 > queued.at) {
            return None;
        }
        let mine = self.weight_now(task)?.min(queued.weight);
        let request = self.longest_request();
        let deadline = DRIFT + (SANE + request) * 1024.0 / mine;
        let mut others: BTreeMap<TaskId, f64> = BTreeMap::new();
        // The one that ran when it came, and all that started since.
        let since = starts.partition_point(|start| start.0 < queued.at);
        for &(_, other, then) in starts.range(since.saturating_sub(1)..) {
            if other == task {
                continue;
            }
            if let Some(heaviest) = others.get_mut(&other) {
                *heaviest = heaviest.max(then);
                continue;
            }
            let t = &self.tasks[other];
            let pinned = t
                .cell
                .read(|k| k.nr_cpus_allowed == 1 && k.flags & super::ffi::PF_KTHREAD != 0);
            if pinned || t.stuck() {
                return None;
            }
            others.insert(other, self.weight_now(other)?.max(then));
        }
        let mut fair = 0.0;
        for &theirs in others.values() {
            let ahead = SANE * 1024.0 / theirs + DRIFT;
            fair += (deadline + ahead) * theirs / 1024.0 + request + TICK as f64 + LONE;
        }
        let rescued = RESCUE_AGE + RESCUE_EVERY * (others.len() + 2) as f64;
        Some(fair.min(rescued))
    }
}
