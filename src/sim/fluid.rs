//! The ideal: every runnable task gets its weighted share at every moment, as
//! if CPUs could be divided without end. No scheduler can do better for
//! fairness; reports put it beside what the real one did.
//!
//! Rates are max-min fair by weight: no task gets more than one CPU, and tasks
//! whose masks lie within a set of CPUs get no more than those. The tightest
//! such limit is found, its tasks are settled, and so on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ffi::CpuMask;
use super::rng::{Rng, mix};
use super::run::WEIGHTS;
use super::workload::program::{Action, Channel, Interp, Mutex};
use super::workload::{Arrivals, Policy, Workload};

/// Different masks for which limits are computed; beyond, masks are ignored.
const MAX_MASKS: usize = 8;
const MAX_STEPS: usize = 2_000_000;

/// What the ideal machine gave.
#[derive(Clone, Debug, Default)]
pub struct Ideal {
    /// CPU time by group, ns.
    pub ran: Vec<f64>,
    /// The masks were too many to be honoured.
    pub masks_ignored: bool,
}

struct Task {
    group: usize,
    weight: f64,
    mask: usize,
    program: Interp,
    remaining: f64,
    rate: f64,
    running: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Birth(usize, usize),
    Wake(usize),
    Arrival(usize),
}

struct Fluid<'a> {
    workload: &'a Workload,
    seed: u64,
    now: f64,
    tasks: Vec<Task>,
    born: Vec<usize>,
    masks: Vec<CpuMask>,
    unions: Vec<(Vec<usize>, f64)>,
    cpus: usize,
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
            unions: unions(&masks),
            masks,
            cpus,
            channels: workload.channels.iter().map(channel).collect(),
            mutexes: vec![Mutex::default(); workload.mutexes],
            future: BinaryHeap::new(),
            sequence: 0,
            arrivals: Rng::new(mix(seed ^ 0xa881)),
            ideal: Ideal {
                ran: vec![0.0; workload.groups.len()],
                masks_ignored,
            },
        };
        for (group, spec) in workload.groups.iter().enumerate() {
            for instance in 0..spec.count {
                let at = spec.start + spec.stagger * instance as u64;
                fluid.push(at, What::Birth(group, instance));
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
        }
    }

    fn happen(&mut self) {
        let Some(Reverse((_, _, what))) = self.future.pop() else {
            return;
        };
        match what {
            What::Birth(group, instance) => self.birth(group, instance),
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

    fn birth(&mut self, group: usize, instance: usize) {
        let spec = &self.workload.groups[group];
        let mask = spec.cpus.as_ref().and_then(|mask| {
            let known = self.masks.iter().position(|known| known == mask);
            known.filter(|_| !self.ideal.masks_ignored)
        });
        let weight = match spec.policy {
            Policy::Idle => 3,
            _ => WEIGHTS[(spec.nice + 20).clamp(0, 39) as usize],
        };
        self.tasks.push(Task {
            group,
            weight: f64::from(weight),
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
                    self.push(now, What::Birth(group, instance));
                }
                Action::Exit => return,
            }
        }
    }

    /// The rates of all tasks that run.
    fn share(&mut self) {
        let mut open: Vec<usize> = (0..self.tasks.len())
            .filter(|&id| self.tasks[id].running)
            .collect();
        let mut settled = vec![0.0; self.masks.len()];
        while !open.is_empty() {
            let mut per_mask = vec![0.0; self.masks.len()];
            for &id in &open {
                per_mask[self.tasks[id].mask] += self.tasks[id].weight;
            }
            let heaviest = open
                .iter()
                .map(|&id| self.tasks[id].weight)
                .fold(0.0, f64::max);
            let mut tightest = (1.0 / heaviest, None);
            for (index, (members, cpus)) in self.unions.iter().enumerate() {
                let sum = |of: &[f64]| members.iter().map(|&mask| of[mask]).sum::<f64>();
                let weight = sum(&per_mask);
                let level = (cpus - sum(&settled)).max(0.0) / weight;
                if weight > 0.0 && level < tightest.0 {
                    tightest = (level, Some(index));
                }
            }
            let (level, limit) = tightest;
            let (now, later): (Vec<usize>, Vec<usize>) = open.into_iter().partition(|&id| {
                let task = &self.tasks[id];
                match limit {
                    Some(index) => self.unions[index].0.contains(&task.mask),
                    None => task.weight >= heaviest,
                }
            });
            for id in now {
                let task = &mut self.tasks[id];
                task.rate = task.weight * level;
                settled[task.mask] += task.rate;
            }
            open = later;
        }
        debug_assert!(settled.iter().sum::<f64>() <= self.cpus as f64 + 1e-6);
    }
}

/// Every union of masks: which masks lie within it, and its CPUs.
fn unions(masks: &[CpuMask]) -> Vec<(Vec<usize>, f64)> {
    (1u32..1 << masks.len())
        .map(|set| {
            let mut all = CpuMask::empty();
            for (index, mask) in masks.iter().enumerate() {
                if set >> index & 1 != 0 {
                    all.bits
                        .iter_mut()
                        .zip(&mask.bits)
                        .for_each(|(a, b)| *a |= b);
                }
            }
            let within = |mask: &CpuMask| mask.bits.iter().zip(&all.bits).all(|(m, a)| m & !a == 0);
            let members = (0..masks.len())
                .filter(|&index| within(&masks[index]))
                .collect();
            (members, all.count() as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::workload::Group;

    fn shares(groups: Vec<Group>, cpus: usize) -> Vec<f64> {
        let workload = Workload {
            groups,
            ..Workload::default()
        };
        let ran = run(&workload, cpus, 1, 1_000_000_000).ran;
        ran.iter().map(|ran| (ran / 1e6).round() / 1000.0).collect()
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
