// SPDX-License-Identifier: GPL-2.0-only
//! The ideal: every runnable task gets its weighted share at every moment, as
//! if CPUs could be divided without end. No scheduler can do better for
//! fairness; reports put it beside what the real one did.
//!
//! Rates are max-min fair by weight, in the tree of cgroups ([`fill`]): no task
//! gets more than one CPU, and tasks whose masks lie within a set of CPUs get
//! no more than those. The tightest such limit is found, its tasks are settled,
//! and so on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ffi::CpuMask;
use super::mask::unions;
use super::rng::Rng;
use super::run::WEIGHTS;
use super::workload;
use super::workload::program::{Action, Channel, Interp, Mutex};
use super::workload::{Arrivals, Changed, DEFAULT_WEIGHT, Policy, Workload, arrivals};

/// Different masks for which limits are computed; beyond, masks are ignored.
const MAX_MASKS: usize = 8;
const MAX_STEPS: usize = 2_000_000;
/// Real-time tasks come before everybody; cgroups don't count for them.
const REAL_TIME: f64 = 1e12;

/// What the ideal machine gave.
#[derive(Clone, Debug, Default)]
pub struct Ideal {
    /// CPU time by group, ns.
    pub ran: Vec<f64>,
    /// ... by cgroup, of the tasks directly in it; the root's first.
    pub cgroups: Vec<f64>,
    /// The masks were too many to be honoured.
    pub masks_ignored: bool,
}

pub(super) struct Task {
    group: usize,
    pub(super) cgroup: usize,
    pub(super) weight: f64,
    pub(super) mask: usize,
    program: Interp,
    remaining: f64,
    pub(super) rate: f64,
    pub(super) running: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Of a task of this group, in this cgroup or where its group is then.
    Birth(usize, usize, Option<usize>),
    Wake(usize),
    Arrival(usize),
    Change(usize),
}

pub(super) struct Fluid<'a> {
    workload: &'a Workload,
    seed: u64,
    now: f64,
    pub(super) tasks: Vec<Task>,
    born: Vec<usize>,
    /// Parent and weight, the root first.
    pub(super) cgroups: Vec<(usize, f64)>,
    /// Each group's cgroup.
    homes: Vec<usize>,
    pub(super) masks: Vec<CpuMask>,
    pub(super) unions: Vec<(Vec<usize>, f64)>,
    pub(super) cpus: usize,
    channels: Vec<Channel>,
    mutexes: Vec<Mutex>,
    future: BinaryHeap<Reverse<(u64, u64, What)>>,
    sequence: u64,
    arrivals: Rng,
    ideal: Ideal,
}

/// Runs `workload` for `duration` ns on an ideal machine with `cpus` CPUs.
#[must_use]
pub fn run(workload: &Workload, cpus: usize, seed: u64, duration: u64) -> Ideal {
    let mut fluid = Fluid::new(workload, cpus, seed);
    for _ in 0..MAX_STEPS {
        if fluid.step(duration) {
            break;
        }
    }
    fluid.ideal
}

impl<'a> Fluid<'a> {
    fn new(workload: &'a Workload, cpus: usize, seed: u64) -> Self {
        let mut masks = vec![CpuMask::first(cpus)];
        for mask in workload
            .groups
            .iter()
            .filter_map(|group| group.cpus.as_ref())
        {
            if !masks.contains(mask) {
                masks.push(mask.clone());
            }
        }
        let masks_ignored = masks.len() > MAX_MASKS;
        if masks_ignored {
            masks.truncate(1);
        }
        let channel = |&limit: &usize| Channel {
            limit,
            ..Channel::default()
        };
        let mut fluid = Self {
            workload,
            seed,
            now: 0.0,
            tasks: Vec::new(),
            born: vec![0; workload.groups.len()],
            cgroups: tree(workload),
            homes: workload.groups.iter().map(|group| group.cgroup).collect(),
            unions: unions(&masks),
            masks,
            cpus,
            channels: workload.channels.iter().map(channel).collect(),
            mutexes: vec![Mutex::default(); workload.mutexes],
            future: BinaryHeap::new(),
            sequence: 0,
            arrivals: arrivals(seed),
            ideal: Ideal {
                ran: vec![0.0; workload.groups.len()],
                cgroups: vec![0.0; workload.cgroups.len() + 1],
                masks_ignored,
            },
        };
        for (index, change) in workload.changes.iter().enumerate() {
            fluid.push(change.at, What::Change(index));
        }
        for (group, spec) in workload.groups.iter().enumerate() {
            for instance in 0..spec.count {
                let at = spec.start + spec.stagger * instance as u64;
                fluid.push(at, What::Birth(group, instance, None));
                fluid.born[group] += 1;
            }
        }
        (0..workload.sources.len()).for_each(|source| fluid.next_arrival(source));
        fluid
    }

    fn push(&mut self, at: u64, what: What) {
        self.sequence += 1;
        self.future.push(Reverse((at, self.sequence, what)));
    }

    fn next_arrival(&mut self, source: usize) {
        let (Arrivals::Poisson(mean) | Arrivals::Bursts(_, mean)) =
            self.workload.sources[source].arrivals;
        let at = self.now as u64 + self.arrivals.exponential(mean);
        self.push(at, What::Arrival(source));
    }

    /// To the next thing that happens; true: the end is reached.
    fn step(&mut self, duration: u64) -> bool {
        self.share();
        let done = |task: &Task| self.now + task.remaining / task.rate;
        let next_done = (self.tasks.iter().enumerate())
            .filter(|(_, task)| task.running && task.rate > 0.0)
            .map(|(id, task)| (done(task), id))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let next_event = self
            .future
            .peek()
            .map_or(f64::MAX, |event| event.0.0 as f64);
        let at = next_done.map_or(next_event, |(at, _)| at.min(next_event));
        let end = at >= duration as f64;
        self.pass(at.min(duration as f64));
        if end {
            return true;
        }
        match next_done {
            Some((done, id)) if done <= next_event => {
                self.tasks[id].remaining = 0.0;
                self.advance(id);
            }
            _ => self.happen(),
        }
        false
    }

    fn pass(&mut self, to: f64) {
        let elapsed = (to - self.now).max(0.0);
        self.now = self.now.max(to);
        for task in self.tasks.iter_mut().filter(|task| task.running) {
            let ran = task.rate * elapsed;
            task.remaining = (task.remaining - ran).max(0.0);
            self.ideal.ran[task.group] += ran;
            self.ideal.cgroups[task.cgroup] += ran;
        }
    }

    fn happen(&mut self) {
        let Some(Reverse((_, _, what))) = self.future.pop() else {
            return;
        };
        match what {
            What::Birth(group, instance, cgroup) => self.birth(group, instance, cgroup),
            What::Change(index) => self.change(index),
            What::Wake(task) => self.advance(task),
            What::Arrival(source) => {
                self.next_arrival(source);
                let spec = self.workload.sources[source];
                let count = match spec.arrivals {
                    Arrivals::Poisson(_) => 1,
                    Arrivals::Bursts(size, _) => size,
                };
                (0..count).for_each(|_| self.signal(spec.channel));
            }
        }
    }

    fn birth(&mut self, group: usize, instance: usize, cgroup: Option<usize>) {
        let spec = &self.workload.groups[group];
        let mask = spec.cpus.as_ref().and_then(|mask| {
            let known = self.masks.iter().position(|known| known == mask);
            known.filter(|_| !self.ideal.masks_ignored)
        });
        let weight = match spec.policy {
            Policy::Idle => 3.0,
            Policy::Fifo => REAL_TIME,
            _ => f64::from(WEIGHTS[(spec.nice + 20).clamp(0, 39) as usize]),
        };
        let cgroup = match spec.policy {
            Policy::Fifo => 0,
            _ => cgroup.unwrap_or(self.homes[group]),
        };
        self.tasks.push(Task {
            group,
            cgroup,
            weight,
            mask: mask.unwrap_or(0),
            program: Interp::new(&spec.steps, self.seed, group, instance),
            remaining: 0.0,
            rate: 0.0,
            running: false,
        });
        self.advance(self.tasks.len() - 1);
    }

    fn signal(&mut self, channel: usize) {
        if let Some(waiter) = self.channels[channel].signal(self.now as u64) {
            self.advance(waiter);
        }
    }

    /// Steps until the task wants CPU time or sleeps.
    fn advance(&mut self, id: usize) {
        self.tasks[id].running = false;
        for _ in 0..10_000 {
            let now = self.now as u64;
            match self.tasks[id].program.next(now) {
                Action::Run(ns) => {
                    self.tasks[id].remaining = ns as f64;
                    self.tasks[id].running = true;
                    return;
                }
                Action::Sleep(ns) => return self.push(now + ns, What::Wake(id)),
                Action::Until(at, _) if at > now => return self.push(at, What::Wake(id)),
                Action::Until(..) | Action::Yield => {}
                Action::Wait(channel) => {
                    if self.channels[channel].signals.pop_front().is_none() {
                        return self.channels[channel].waiters.push_back(id);
                    }
                }
                Action::Signal(channel, all, _) => {
                    let count = if all {
                        self.channels[channel].waiters.len()
                    } else {
                        1
                    };
                    (0..count).for_each(|_| self.signal(channel));
                }
                Action::Lock(mutex) => {
                    if !self.mutexes[mutex].lock(id) {
                        return;
                    }
                }
                Action::Unlock(mutex) => {
                    if let Some(next) = self.mutexes[mutex].unlock() {
                        self.advance(next);
                    }
                }
                Action::Fork(group) => {
                    let instance = self.born[group];
                    self.born[group] += 1;
                    self.push(
                        now,
                        What::Birth(group, instance, Some(self.tasks[id].cgroup)),
                    );
                }
                Action::Exit => return,
            }
        }
    }

    fn change(&mut self, index: usize) {
        match &self.workload.changes[index].what {
            Changed::Weight { cgroup, weight } => {
                self.cgroups[*cgroup].1 = cgroup_weight(*weight, false);
            }
            Changed::Idle { cgroup, idle } => {
                let weight = self.workload.cgroups[*cgroup - 1].weight;
                self.cgroups[*cgroup].1 = cgroup_weight(weight, *idle);
            }
            Changed::Remade { cgroup } => {
                self.cgroups[*cgroup].1 = cgroup_weight(DEFAULT_WEIGHT, false);
            }
            Changed::Move { groups, to } => {
                groups.iter().for_each(|&group| self.homes[group] = *to);
                let moves =
                    |task: &&mut Task| groups.contains(&task.group) && task.weight < REAL_TIME;
                for task in self.tasks.iter_mut().filter(moves) {
                    task.cgroup = *to;
                }
            }
        }
    }
}

/// A cgroup's weight in the unit of task weights: 100 is 1024, and `cpu.idle`
/// is like the policy `SCHED_IDLE`.
fn cgroup_weight(weight: u32, idle: bool) -> f64 {
    if idle { 3.0 } else { f64::from(weight) * 10.24 }
}

fn tree(workload: &Workload) -> Vec<(usize, f64)> {
    let weight = |cgroup: &workload::Cgroup| cgroup_weight(cgroup.weight, cgroup.idle);
    let others = workload.cgroups.iter();
    std::iter::once((0, 0.0))
        .chain(others.map(|cgroup| (cgroup.parent, weight(cgroup))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::workload::{Cgroup, Change, Group};

    fn shares(groups: Vec<Group>, cpus: usize) -> Vec<f64> {
        let workload = Workload {
            groups,
            ..Workload::default()
        };
        let ran = run(&workload, cpus, 1, 1_000_000_000).ran;
        ran.iter().map(|ran| (ran / 1e6).round() / 1000.0).collect()
    }

    #[test]
    fn cgroups_share_by_their_weights_and_changes_take_effect() {
        let cgroup = |path: &str, parent, weight| Cgroup {
            path: path.to_string(),
            parent,
            weight,
            idle: false,
        };
        let mut workload = Workload {
            groups: vec![
                Group::hogs("a", 2).within(1),
                Group::hogs("b", 1).within(2),
                Group::hogs("c", 1).within(3),
            ],
            cgroups: vec![
                cgroup("a", 0, 300),
                cgroup("b", 0, 100),
                cgroup("b/c", 2, 100),
            ],
            ..Workload::default()
        };
        let shares = |workload: &Workload| {
            let ran = run(workload, 1, 1, 1_000_000_000).ran;
            ran.iter()
                .map(|ran| (ran / 1e6).round() / 1000.0)
                .collect::<Vec<f64>>()
        };
        // A task beside a cgroup of weight 100 is its equal.
        assert_eq!(shares(&workload), [0.75, 0.125, 0.125]);
        let weight = Changed::Weight {
            cgroup: 2,
            weight: 900,
        };
        let moved = Changed::Move {
            groups: vec![2],
            to: 1,
        };
        workload.changes = vec![
            Change {
                at: 500_000_000,
                what: weight,
            },
            Change {
                at: 500_000_000,
                what: moved,
            },
        ];
        // For one half .25 : .75, a's three tasks alike.
        assert_eq!(shares(&workload), [0.458, 0.438, 0.104]);
    }

    #[test]
    fn shares_follow_weights_caps_and_masks() {
        let hogs = Group::hogs;
        assert_eq!(shares(vec![hogs("a", 3)], 2), [2.0]);
        // 1024 and 335: of one CPU
        let pair = vec![hogs("a", 1), hogs("b", 1).nice(5)];
        assert_eq!(shares(pair.clone(), 1), [0.753, 0.247]);
        assert_eq!(shares(pair, 2), [1.0, 1.0]);
        // Nobody gets more than one CPU.
        let heavy = vec![hogs("a", 1).nice(-20), hogs("b", 2)];
        assert_eq!(shares(heavy, 2), [1.0, 1.0]);
        // Three pinned to one CPU; the free one has the other.
        let pinned = vec![hogs("a", 3).on(CpuMask::one(0)), hogs("b", 1)];
        assert_eq!(shares(pinned, 2), [1.0, 1.0]);
    }
}
