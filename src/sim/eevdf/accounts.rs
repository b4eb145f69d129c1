// SPDX-License-Identifier: GPL-2.0-only
//! EEVDF's accounts: who waits where, each task's virtual time and lag, and what
//! a cgroup makes of a weight.

use std::collections::{BTreeSet, HashMap};

use crate::sim::ffi::KTask;
use crate::sim::run::WEIGHTS;

/// `sysctl_sched_base_slice` of a machine with several CPUs.
pub const SLICE: i64 = 2_800_000;
pub const CPUS: usize = 4096;
/// Effective weights have 10 more binary digits than nice weights.
pub const FINER: i64 = 1024;

#[derive(Clone, Copy, Default)]
pub struct Entity {
    pub v: i64,
    pub lag: i64,
    pub deadline: i64,
    /// In the whole machine, [`FINER`].
    pub weight: i64,
    pub charged: u64,
    pub fresh: bool,
    pub cgroup: usize,
    pub runnable: bool,
    /// The CPU in whose queue it waits.
    pub waits_on: Option<usize>,
}

/// A cgroup; the root is the first.
#[derive(Clone, Copy, Default)]
pub struct Group {
    pub parent: usize,
    /// 1024 = `cpu.weight` 100
    pub weight: f64,
    /// `cpu.weight`, also while idle.
    pub told: u32,
    /// Weight of what is runnable directly in it.
    pub load: f64,
    /// How many of them.
    pub active: usize,
}

#[derive(Default)]
pub struct Queue {
    /// Pointers of waiting tasks.
    pub waiting: Vec<usize>,
    pub curr: Option<usize>,
    /// V of an empty queue.
    pub last: i64,
}

#[derive(Default)]
pub struct State {
    pub queues: Vec<Queue>,
    pub entities: HashMap<usize, Entity>,
    pub groups: Vec<Group>,
    /// Queues with waiting tasks, by how many.
    pub longest: BTreeSet<(usize, usize)>,
}

pub fn task<'a>(p: *mut KTask) -> &'a KTask {
    // SAFETY: called with the pointer of a callback, valid for its duration.
    unsafe { &*p }
}

impl State {
    pub fn average(&self, cpu: usize) -> i64 {
        let queue = &self.queues[cpu];
        let (mut sum, mut load) = (0i128, 0i128);
        for p in queue.waiting.iter().chain(&queue.curr) {
            let e = &self.entities[p];
            sum += i128::from(e.v - queue.last) * i128::from(e.weight);
            load += i128::from(e.weight);
        }
        queue.last + sum.checked_div(load).unwrap_or(0) as i64
    }

    pub fn charge(&mut self, p: *mut KTask) {
        let now = task(p).sum_exec_runtime;
        let weight = self.effective_weight(p);
        let Some(e) = self.entities.get_mut(&(p as usize)) else {
            return;
        };
        let ran = now.wrapping_sub(e.charged) as i64;
        e.charged = now;
        e.v += ran * 1024 * FINER / e.weight;
        e.weight = weight;
        if e.v >= e.deadline {
            e.deadline = e.v + SLICE * 1024 * FINER / e.weight;
        }
    }

    /// `place_entity()`
    pub fn place(&mut self, p: *mut KTask, cpu: usize) {
        let average = self.average(cpu);
        let weight = self.effective_weight(p);
        let Some(e) = self.entities.get_mut(&(p as usize)) else {
            return;
        };
        e.weight = weight;
        let bound = SLICE * 1024 * FINER / weight;
        e.v = average - e.lag.clamp(-bound, bound);
        e.deadline = e.v + bound / if e.fresh { 2 } else { 1 };
        e.fresh = false;
    }

    pub fn forget_place(&mut self, p: *mut KTask, cpu: usize) {
        let average = self.average(cpu);
        self.queues[cpu].last = average;
        if let Some(e) = self.entities.get_mut(&(p as usize)) {
            e.lag = average - e.v;
        }
        self.stop_waiting(p, cpu);
        let queue = &mut self.queues[cpu];
        if queue.curr == Some(p as usize) {
            queue.curr = None;
        }
    }

    pub fn start_waiting(&mut self, p: *mut KTask, cpu: usize) {
        let length = self.queues[cpu].waiting.len();
        self.longest.remove(&(length, cpu));
        self.longest.insert((length + 1, cpu));
        self.queues[cpu].waiting.push(p as usize);
        if let Some(e) = self.entities.get_mut(&(p as usize)) {
            e.waits_on = Some(cpu);
        }
    }

    pub fn stop_waiting(&mut self, p: *mut KTask, cpu: usize) {
        let e = self.entities.get_mut(&(p as usize));
        if e.is_none_or(|e| e.waits_on.take_if(|on| *on == cpu).is_none()) {
            return;
        }
        let length = self.queues[cpu].waiting.len();
        self.longest.remove(&(length, cpu));
        if length > 1 {
            self.longest.insert((length - 1, cpu));
        }
        let queue = &mut self.queues[cpu];
        queue.waiting.retain(|other| *other != p as usize);
    }

    pub fn waits_on(&self, p: *mut KTask) -> Option<usize> {
        self.entities.get(&(p as usize)).and_then(|e| e.waits_on)
    }

    /// Its nice weight, times each cgroup's part of what is around it.
    pub fn effective_weight(&self, p: *mut KTask) -> i64 {
        let mut weight = f64::from(weight_of(task(p))) * FINER as f64;
        let e = self.entities.get(&(p as usize));
        let mut at = e.map_or(0, |e| e.cgroup);
        while at != 0 {
            let group = self.groups[at];
            if group.load > 0.0 {
                weight *= group.weight / group.load;
            }
            at = group.parent;
        }
        (weight as i64).max(1)
    }

    /// Something of this weight becomes runnable in `cgroup`, or is no more.
    pub fn count(&mut self, cgroup: usize, weight: f64, runnable: bool) {
        let (mut at, mut weight) = (cgroup, weight);
        loop {
            let group = &mut self.groups[at];
            let before = group.active;
            if runnable {
                group.load += weight;
                group.active += 1;
            } else {
                group.active = before.saturating_sub(1);
                group.load = if group.active == 0 {
                    0.0
                } else {
                    group.load - weight
                };
            }
            if at == 0 || (before == 0) == (group.active == 0) {
                return;
            }
            (weight, at) = (group.weight, group.parent);
        }
    }

    /// Changes what a runnable task counts for.
    pub fn recount(&mut self, p: *mut KTask, change: impl FnOnce(&mut Entity)) {
        let own = f64::from(weight_of(task(p)));
        let Some(e) = self.entities.get_mut(&(p as usize)) else {
            return;
        };
        let before = *e;
        change(e);
        let after = *e;
        if before.runnable {
            self.count(before.cgroup, own, false);
        }
        if after.runnable {
            self.count(after.cgroup, own, true);
        }
    }

    pub fn set_group_weight(&mut self, at: usize, weight: f64) {
        let group = self.groups[at];
        if at != 0 && group.active > 0 {
            self.groups[group.parent].load += weight - group.weight;
        }
        self.groups[at].weight = weight;
    }

    /// `pick_eevdf()` among the waiting tasks and `curr`.
    pub fn pick(&self, cpu: usize, curr: Option<usize>) -> Option<usize> {
        let average = self.average(cpu);
        let all = || self.queues[cpu].waiting.iter().chain(&curr).copied();
        let due = |p: &usize| self.entities[p].deadline;
        all()
            .filter(|p| self.entities[p].v <= average)
            .min_by_key(due)
            .or_else(|| all().min_by_key(due))
    }
}

pub fn weight_of(k: &KTask) -> u32 {
    match k.policy {
        5 => 3,
        _ => WEIGHTS[(k.static_prio - 100).clamp(0, 39) as usize],
    }
}

pub fn group_weight(weight: u32, idle: bool) -> f64 {
    if idle { 3.0 } else { f64::from(weight) * 10.24 }
}
