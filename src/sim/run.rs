// SPDX-License-Identifier: GPL-2.0-only
//! Tasks at work: what a running task does when it has used the CPU time that
//! it wanted, and what wakes it later.

use super::dsq::TaskId;
use super::ffi::{self, CpuMask, TaskCell};
use super::log::What;
use super::machine::{Curr, Happening, Machine};
use super::tasks::{Place, State, Task};
use super::workload::program::{Action, Channel, Interp, Mutex};
use super::workload::{Arrivals, Change, Group, Policy, Workload, arrivals};

/// The workload as the machine runs it.
#[derive(Default)]
pub struct Load {
    pub(super) groups: Vec<Group>,
    pub(super) changes: Vec<Change>,
    pub(super) born: Vec<usize>,
    pub(super) channels: Vec<Channel>,
    pub(super) mutexes: Vec<Mutex>,
    pub(super) sources: Vec<super::workload::Source>,
    pub(super) arrivals: super::rng::Rng,
}

impl Machine {
    /// Gives the machine its workload; tasks start at their times.
    pub fn start(&mut self, workload: &Workload) {
        self.load.groups.clone_from(&workload.groups);
        self.load.changes.clone_from(&workload.changes);
        self.load.born = vec![0; workload.groups.len()];
        self.load.channels = workload
            .channels
            .iter()
            .map(|&limit| Channel {
                limit,
                ..Channel::default()
            })
            .collect();
        self.load.mutexes = vec![Mutex::default(); workload.mutexes];
        self.load.sources.clone_from(&workload.sources);
        self.load.arrivals = arrivals(self.cfg.seed);
        self.stats.groups = vec![super::stats::GroupStats::default(); workload.groups.len()];
        self.attach_cgroups(&workload.cgroups);
        for (group, spec) in workload.groups.iter().enumerate() {
            for instance in 0..spec.count {
                let at = spec.start + spec.stagger * instance as u64;
                if let Some(task) = self.new_task(group) {
                    self.push(at, Happening::Birth(task));
                }
            }
        }
        for (index, change) in workload.changes.iter().enumerate() {
            self.push(change.at, Happening::Change(index));
        }
        for source in 0..self.load.sources.len() {
            self.next_arrival(source);
        }
        self.plan_faults();
        let settle = self.rng.below(2_000_000);
        self.push(settle, Happening::BypassEnd);
        if self.cfg.audit_period > 0 {
            self.push(self.cfg.audit_period, Happening::Audit);
        }
    }

    fn new_task(&mut self, group: usize) -> Option<TaskId> {
        let spec = self.load.groups.get(group)?;
        let instance = self.load.born[group];
        self.load.born[group] += 1;
        let n = self.cfg.topology.cpus;
        let mask = match &spec.cpus {
            Some(cpus) if cpus.iter().any(|cpu| cpu < n) => cpus.clone(),
            _ => CpuMask::first(n),
        };
        let id = self.tasks.len();
        let cell = TaskCell::new(id as u32, &mask);
        let denied = self.rng.one_in(self.cfg.storage_fails_one_in);
        cell.write(|k| {
            k.pid = self.cfg.pid_base.wrapping_add(id as i32);
            k.policy = spec.policy.number();
            k.sum_exec_runtime = self.cfg.exec_base;
            k.storage_denied = u32::from(denied);
            if spec.kthread {
                k.flags |= ffi::PF_KTHREAD;
            }
            for (to, from) in k.comm.iter_mut().take(15).zip(spec.name.bytes()) {
                *to = from;
            }
        });
        set_nice(&cell, spec.nice);
        let program = Interp::new(&spec.steps, self.cfg.seed, group, instance);
        Some(self.tasks.push(Task {
            cell,
            rt: spec.policy == Policy::Fifo,
            state: State::New,
            place: Place::None,
            custody: false,
            enqueue_seq: 0,
            direct: None,
            group,
            cgroup: spec.cgroup,
            program,
            remaining: 0,
            timer_count: 0,
            waits_since: 0,
            woken: false,
            queued_since: None,
            allowed_since: 0,
            stalled_since: 0,
            released: None,
            period: 0,
            exiting: false,
            ran: 0,
            ran_fast: 0,
            ran_at_start: 0,
            born: 0,
            died: None,
            longest_wait: 0,
        }))
    }

    /// A new task's first step is reached when it first runs.
    pub(super) fn start_program(&mut self, task: TaskId) {
        self.tasks[task].remaining = 0;
    }

    /// The running task of `cpu` has used the CPU time that it wanted.
    pub(super) fn work_done(&mut self, cpu: usize) {
        let (Curr::Task(task) | Curr::Rt(task)) = self.cpus[cpu].curr else {
            return;
        };
        self.update_curr(cpu);
        if self.cpus[cpu].need_resched && self.rng.one_in(2) {
            // The interrupt came first.
            self.schedule(cpu);
            if self.runs(task) {
                self.arm_work(cpu, task);
            }
            return;
        }
        self.within(cpu, true, |m| m.advance(task, cpu));
    }

    /// Steps until the task wants CPU time, or sleeps.
    fn advance(&mut self, task: TaskId, cpu: usize) {
        let action = self.tasks[task].program.next(self.now);
        match action {
            Action::Run(ns) => self.work(task, cpu, ns),
            Action::Sleep(ns) => self.sleep_until(task, cpu, self.now + ns),
            Action::Until(at, period) => {
                self.finish_request(task);
                let t = &mut self.tasks[task];
                t.released = Some(at);
                t.period = period;
                if at <= self.now {
                    return self.work(task, cpu, 0);
                }
                self.sleep_until(task, cpu, at);
            }
            Action::Wait(channel) => self.wait_on(task, cpu, channel),
            Action::Signal(channel, all, sync) => self.signal(task, cpu, channel, all, sync),
            Action::Lock(mutex) => {
                if self.load.mutexes[mutex].lock(task) {
                    return self.work(task, cpu, 0);
                }
                self.block(task, cpu);
            }
            Action::Unlock(mutex) => {
                if let Some(next) = self.load.mutexes[mutex].unlock() {
                    self.wake(next, ffi::WAKE_TTWU);
                }
                self.work_after_wake(task, cpu);
            }
            Action::Yield if self.tasks[task].rt => self.work_after_wake(task, cpu),
            Action::Yield => {
                self.call_yield(task, cpu);
                self.arm_work(cpu, task);
                self.schedule(cpu);
            }
            Action::Fork(group) => {
                if let Some(child) = self.new_task(group) {
                    self.tasks[child].cgroup = self.tasks[task].cgroup;
                    self.born(child);
                }
                self.work_after_wake(task, cpu);
            }
            Action::Exit => {
                self.tasks[task].exiting = true;
                self.tasks[task].cell.write(|k| k.flags |= ffi::PF_EXITING);
                self.block(task, cpu);
            }
        }
    }

    /// The task goes on for `ns`.
    fn work(&mut self, task: TaskId, cpu: usize, ns: u64) {
        self.tasks[task].remaining = ns;
        self.arm_work(cpu, task);
    }

    /// Waking others took a moment of the task's own time.
    fn work_after_wake(&mut self, task: TaskId, cpu: usize) {
        let (first, last) = self.cfg.costs.wake;
        let cost = self.rng.range(first, last);
        self.work(task, cpu, cost);
    }

    fn wait_on(&mut self, task: TaskId, cpu: usize, channel: usize) {
        self.finish_request(task);
        if let Some(came) = self.load.channels[channel].signals.pop_front() {
            self.tasks[task].released = Some(came);
            return self.work(task, cpu, 0);
        }
        self.load.channels[channel].waiters.push_back(task);
        self.block(task, cpu);
    }

    fn signal(&mut self, task: TaskId, cpu: usize, channel: usize, all: bool, sync: bool) {
        let flags = ffi::WAKE_TTWU | if sync { ffi::WAKE_SYNC } else { 0 };
        let count = if all {
            self.load.channels[channel].waiters.len()
        } else {
            1
        };
        for _ in 0..count {
            self.signal_one(channel, flags);
        }
        self.work_after_wake(task, cpu);
    }

    fn signal_one(&mut self, channel: usize, flags: u64) {
        if let Some(waiter) = self.load.channels[channel].signal(self.now) {
            self.tasks[waiter].released = Some(self.now);
            self.wake(waiter, flags);
        }
    }

    /// The request that the task worked on is done.
    fn finish_request(&mut self, task: TaskId) {
        let t = &mut self.tasks[task];
        let Some(released) = t.released.take() else {
            return;
        };
        let took = self.now - released.min(self.now);
        let group = &mut self.stats.groups[t.group];
        group.response.add(took);
        if t.period > 0 && took > t.period {
            group.misses += 1;
        }
    }

    fn sleep_until(&mut self, task: TaskId, cpu: usize, at: u64) {
        self.tasks[task].timer_count += 1;
        let count = self.tasks[task].timer_count;
        self.push(at, Happening::Timer(task, count));
        self.block(task, cpu);
    }

    /// The running task sleeps (or exits): `__schedule()` dequeues it first.
    fn block(&mut self, task: TaskId, cpu: usize) {
        self.log.record(self.now, cpu, Some(task), What::Sleep, 0);
        self.dequeue_task(task, cpu, ffi::DEQ_SLEEP, false);
        self.tasks[task].state = State::Sleeping;
        self.tasks[task].remaining = 0;
        self.schedule(cpu);
    }

    /// A timer interrupt on the CPU that the task last ran on.
    pub(super) fn timer(&mut self, task: TaskId, count: u64) {
        if self.tasks[task].timer_count != count || self.tasks[task].state != State::Sleeping {
            return;
        }
        let own = self.tasks[task].cpu();
        let cpu = if self.cpus[own].active {
            own
        } else {
            self.any_active_cpu()
        };
        if self.defer_interrupt(cpu, Happening::Timer(task, count)) {
            return;
        }
        self.interrupt(cpu, |m| m.wake(task, ffi::WAKE_TTWU));
    }

    /// Requests of a source arrive, by an interrupt anywhere.
    pub(super) fn arrival(&mut self, source: usize) {
        let cpu = self.any_active_cpu();
        if self.defer_interrupt(cpu, Happening::Arrival(source)) {
            return;
        }
        self.next_arrival(source);
        let spec = self.load.sources[source];
        let count = match spec.arrivals {
            Arrivals::Poisson(_) => 1,
            Arrivals::Bursts(size, _) => size,
        };
        self.interrupt(cpu, |m| {
            for _ in 0..count {
                m.signal_one(spec.channel, ffi::WAKE_TTWU);
            }
        });
    }

    fn next_arrival(&mut self, source: usize) {
        let mean = match self.load.sources[source].arrivals {
            Arrivals::Poisson(mean) | Arrivals::Bursts(_, mean) => mean,
        };
        let at = self.now + self.load.arrivals.exponential(mean);
        self.push(at, Happening::Arrival(source));
    }

    /// An interrupt can't be taken while the CPU is inside the kernel or,
    /// within a callback, while it is the CPU that executes it.
    fn defer_interrupt(&mut self, cpu: usize, what: Happening) -> bool {
        let frozen = self.cpus[cpu].frozen_until > self.now;
        let inside = self.executing.contains(&cpu);
        if !frozen && !inside {
            return false;
        }
        let at = self.cpus[cpu].frozen_until.max(self.now + 200);
        self.push(at, what);
        true
    }
}

/// Sets the nice level and the kernel's rounded weight.
pub(super) fn set_nice(cell: &TaskCell, nice: i32) {
    cell.write(|k| {
        k.static_prio = 120 + nice;
        let weight = if k.policy == 5 {
            3
        } else {
            WEIGHTS[(nice + 20).clamp(0, 39) as usize]
        };
        // scx: 1024 -> 100, rounded, 1..=10000
        k.scx_weight = ((weight * 100 + 512) / 1024).clamp(1, 10_000);
    });
}

/// The kernel's weights of nice -20..=19.
pub const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];
