// SPDX-License-Identifier: GPL-2.0-only
//! What happens to tasks and CPUs from outside: affinity, nice, migration
//! disabled, hotplug, higher scheduling classes, bypass.
//!
//! Which of them, to whom and when, is the fault plan's: chance, at the rates
//! of [`Faults`](super::config::Faults).

use std::ops::RangeInclusive;

use super::dsq::TaskId;
use super::ffi::{self, CpuMask};
use super::log::What;
use super::machine::{Curr, Happening, Machine};
use super::sched::Why;
use super::tasks::State;
use crate::control::settings::{CREDIT_US, POLICIES, SLICE_US, Settings};
use crate::kernel::scheduler::write_knobs;

/// The longest that a migration-disabled section lasts, ns.
const LONGEST_SECTION: u64 = 2_000_000;
/// The longest that a higher class keeps a CPU, ns.
const LONGEST_HIGHER: u64 = 3_000_000;

/// What can happen, as the log numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Affinity,
    Renice,
    MigrateDisable,
    Hotplug,
    Higher,
    Bypass,
    Cgroup,
    Knobs,
}

impl Machine {
    fn fault_rates(&self) -> [(Fault, u64); 8] {
        let faults = self.cfg.faults;
        [
            (Fault::Affinity, faults.affinity),
            (Fault::Renice, faults.renice),
            (Fault::MigrateDisable, faults.migrate_disable),
            (Fault::Hotplug, faults.hotplug),
            (Fault::Higher, faults.higher),
            (Fault::Bypass, faults.bypass),
            (Fault::Cgroup, faults.cgroup),
            (Fault::Knobs, faults.knobs),
        ]
    }

    /// The next fault, at a time that fits all rates together.
    pub(super) fn plan_faults(&mut self) {
        let rate: f64 = self
            .fault_rates()
            .iter()
            .filter(|(_, every)| *every > 0)
            .map(|(_, every)| 1.0 / *every as f64)
            .sum();
        if rate > 0.0 {
            let wait = self.rng.exponential((1.0 / rate) as u64);
            self.push(self.now + wait, Happening::Fault);
        }
    }

    /// One fault, each kind as often as its rate says.
    pub(super) fn fault(&mut self) {
        let rates = self.fault_rates();
        let weight = |every: u64| (1u64 << 50).checked_div(every).unwrap_or(0);
        let total: u64 = rates.iter().map(|(_, every)| weight(*every)).sum();
        let mut at = self.rng.below(total);
        for (fault, every) in rates {
            if at < weight(every) {
                self.cause(fault);
                break;
            }
            at -= weight(every);
        }
        self.plan_faults();
    }

    fn cause(&mut self, fault: Fault) {
        let cpu = self.any_active_cpu();
        self.within(cpu, true, |m| match fault {
            Fault::Affinity => {
                if let Some(task) = m.any_task(true) {
                    let mask = m.random_mask();
                    m.set_affinity(task, cpu, &mask);
                }
            }
            Fault::Renice => {
                if let Some(task) = m.any_task(true) {
                    let nice = m.rng.below(40) as i32 - 20;
                    m.set_nice(task, cpu, nice);
                }
            }
            Fault::MigrateDisable => m.migrate_disable(cpu),
            Fault::Hotplug => m.cpu_offline(cpu),
            Fault::Higher => {
                let time = m.rng.range(10_000, LONGEST_HIGHER);
                m.push(m.now, Happening::HigherStart(cpu, time));
            }
            Fault::Bypass => {
                let time = m.rng.range(10_000, 20_000_000);
                m.set_bypass(true);
                m.push(m.now + time, Happening::BypassEnd);
            }
            Fault::Cgroup => m.disturb_cgroups(),
            Fault::Knobs => m.random_knobs(),
        });
    }

    /// A task to which something may be done; real-time ones are left alone
    /// but by cgroups.
    pub(super) fn any_task(&mut self, of_ours: bool) -> Option<TaskId> {
        let n = self.tasks.len() as u64;
        (0..8).find_map(|_| {
            let task = self.rng.below(n) as usize;
            let t = &self.tasks[task];
            let busy = (t.rt && of_ours)
                || t.exiting
                || matches!(t.state, State::New | State::Waking | State::Dead);
            (n > 0 && !busy).then_some(task)
        })
    }

    /// Any policy, with any slice and credit.
    fn random_knobs(&mut self) {
        let mut pick = |key: &str, range: &RangeInclusive<u64>| {
            let value = self.rng.range(*range.start(), *range.end());
            (key.to_string(), value.to_string())
        };
        let mut values = vec![pick("slice-us", &SLICE_US), pick("credit-us", &CREDIT_US)];
        let policy = &POLICIES[self.rng.below(POLICIES.len() as u64) as usize];
        values.push(("policy".to_string(), policy.name.to_string()));
        // All of them are within their ranges.
        if let Ok(settings) = self.cfg.settings.with(&values) {
            self.set_knobs(&settings);
        }
    }

    /// What the agent does when somebody sets the knobs.
    pub fn set_knobs(&mut self, settings: &Settings) {
        self.knobs_generation += 1;
        // SAFETY: the variant is leased to us, and no callback runs meanwhile.
        let knobs = unsafe { &mut *self.variant.raw().knobs };
        write_knobs(knobs, settings, self.knobs_generation);
    }

    /// One CPU, a run of CPUs, or all.
    fn random_mask(&mut self) -> CpuMask {
        let n = self.cfg.topology.cpus;
        let first = self.rng.below(n as u64) as usize;
        match self.rng.below(4) {
            0 => CpuMask::one(first),
            1 | 2 => {
                let count = self.rng.range(1, n as u64) as usize;
                let mut mask = CpuMask::empty();
                (0..count).for_each(|i| mask.set((first + i) % n));
                mask
            }
            _ => CpuMask::first(n),
        }
    }

    /// `sched_change`: takes the task out, changes it, puts it back. `cpu`
    /// executes it.
    pub(super) fn change(&mut self, task: TaskId, cpu: usize, change: impl FnOnce(&mut Self)) {
        let queued = self.tasks[task].queued();
        let running = self.cpus[self.tasks[task].cpu()].curr == Curr::Task(task);
        let waits = (self.tasks[task].waits_since, self.tasks[task].woken);
        let flags = if self.cfg.release >= 701 {
            ffi::DEQ_SCHED_CHANGE
        } else {
            0
        };
        if queued {
            self.dequeue_task(task, cpu, flags, false);
        }
        change(self);
        if !queued {
            return;
        }
        if running {
            self.enqueue_task(task, cpu, 0, Why::RestoreRunning);
            let rq = self.tasks[task].cpu();
            self.unqueue(task);
            self.call_running(task, cpu);
            self.cpus[rq].exec_start = self.now;
        } else {
            self.enqueue_task(task, cpu, 0, Why::Restore);
            (self.tasks[task].waits_since, self.tasks[task].woken) = waits;
            let rq = self.tasks[task].cpu();
            self.resched_if_idle(rq);
        }
    }

    /// `sched_setaffinity()`; an empty intersection with the active CPUs is refused.
    pub fn set_affinity(&mut self, task: TaskId, cpu: usize, mask: &CpuMask) {
        if !mask.iter().any(|cpu| self.cpus[cpu].active) {
            return;
        }
        self.log.record(
            self.now,
            cpu,
            Some(task),
            What::Fault,
            Fault::Affinity as u64,
        );
        let pinned = self.tasks[task].cell.is_pinned();
        self.change(task, cpu, |m| {
            m.tasks[task].cell.set_mask(mask);
            if !pinned {
                m.call_set_cpumask(task, cpu);
            }
        });
        self.tasks[task].allowed_since = self.now;
        if !pinned {
            self.leave_forbidden_cpu(task);
        }
    }

    /// `affine_move_task()`: a task on a CPU that it may not use is moved.
    fn leave_forbidden_cpu(&mut self, task: TaskId) {
        let rq = self.tasks[task].cpu();
        if self.tasks[task].may_use(rq) || !self.tasks[task].queued() || self.tasks[task].stuck() {
            return;
        }
        if self.cpus[rq].curr == Curr::Task(task) {
            return self.stop_soon(rq, task);
        }
        self.move_queued(task);
    }

    fn stop_soon(&mut self, cpu: usize, task: TaskId) {
        self.cpus[cpu].stopper.push_back(task);
        let (first, last) = self.cfg.costs.ipi;
        let delay = self.rng.range(first, last);
        self.push(self.now + delay, Happening::Stop(cpu));
    }

    /// `move_queued_task()`
    fn move_queued(&mut self, task: TaskId) {
        let here = self.ctx.cpu;
        let to = self.fallback_cpu(task);
        self.dequeue_task(task, here, 0, true);
        self.set_task_cpu(task, to);
        self.enqueue_task(task, here, 0, Why::Migrate);
        self.resched_if_idle(to);
    }

    /// The stopper runs: it preempts whatever runs and moves its tasks.
    pub(super) fn stop(&mut self, cpu: usize) {
        if self.cpus[cpu].stopper.is_empty() {
            return;
        }
        self.within(cpu, true, |m| {
            m.put_prev(cpu, false);
            if m.cpus[cpu].curr == Curr::Idle {
                m.unmark_idle(cpu);
            }
            m.cpus[cpu].generation += 1;
            m.cpus[cpu].curr = Curr::Higher;
            if !m.cpus[cpu].active {
                m.rt_push_away(cpu);
            }
            while let Some(task) = m.cpus[cpu].stopper.pop_front() {
                let t = &m.tasks[task];
                let here = t.queued() && t.cpu() == cpu && t.state == State::Runnable;
                if here && !(t.may_use(cpu) && m.cpus[cpu].active) && !t.stuck() {
                    m.move_queued(task);
                }
            }
            m.schedule(cpu);
        });
    }

    /// `set_user_nice()`
    fn set_nice(&mut self, task: TaskId, cpu: usize, nice: i32) {
        self.log
            .record(self.now, cpu, Some(task), What::Fault, Fault::Renice as u64);
        self.change(task, cpu, |m| {
            super::run::set_nice(&m.tasks[task].cell, nice);
            m.call_set_weight(task, cpu);
        });
    }

    /// `migrate_disable()` by the task that runs on `cpu`.
    fn migrate_disable(&mut self, cpu: usize) {
        let Curr::Task(task) = self.cpus[cpu].curr else {
            return;
        };
        if self.tasks[task].stuck() || self.tasks[task].exiting {
            return;
        }
        self.log.record(
            self.now,
            cpu,
            Some(task),
            What::Fault,
            Fault::MigrateDisable as u64,
        );
        self.tasks[task].cell.write(|k| k.migration_disabled = 1);
        let time = self.rng.below(LONGEST_SECTION);
        self.push(self.now + time, Happening::MigrateEnable(task));
    }

    /// `migrate_disable_switch()`: the mask of a task that leaves its CPU
    /// within such a section is narrowed to that CPU.
    pub(super) fn pin_switched_out(&mut self, task: TaskId, cpu: usize) {
        if !self.tasks[task].stuck() || self.tasks[task].cell.is_pinned() {
            return;
        }
        if self.tasks[task].cpu() != cpu {
            let name = self.name(task);
            return self.fail(format!("migration-disabled {name} left CPU {cpu}"));
        }
        self.change(task, cpu, |m| {
            m.tasks[task].cell.pin(Some(cpu));
            m.call_set_cpumask(task, cpu);
        });
    }

    /// `migrate_enable()`: only the task itself can, while it runs.
    pub(super) fn migrate_enable(&mut self, task: TaskId) {
        let t = &self.tasks[task];
        if t.state == State::Dead {
            return;
        }
        let cpu = t.cpu();
        if self.cpus[cpu].curr != Curr::Task(task)
            || self.cpus[cpu].frozen_until > self.now
            || t.exiting
        {
            let later = self.now + 50_000;
            return self.push(later, Happening::MigrateEnable(task));
        }
        self.within(cpu, true, |m| {
            m.tasks[task].cell.write(|k| k.migration_disabled = 0);
            if m.tasks[task].cell.is_pinned() {
                m.change(task, cpu, |m| {
                    m.tasks[task].cell.pin(None);
                    m.call_set_cpumask(task, cpu);
                });
                m.tasks[task].allowed_since = m.now;
            }
            m.leave_forbidden_cpu(task);
            if m.cpus[cpu].curr == Curr::Task(task) && m.tasks[task].queued() {
                m.update_curr(cpu);
                m.arm_work(cpu, task);
            }
        });
    }

    /// `sched_cpu_deactivate()`, with `balance_push()` for what is left there.
    fn cpu_offline(&mut self, here: usize) {
        let n = self.cfg.topology.cpus;
        let active = (0..n).filter(|cpu| self.cpus[*cpu].active).count();
        let cpu = self.rng.below(n as u64) as usize;
        if active < 2 || !self.cpus[cpu].active || cpu == here {
            return;
        }
        self.log
            .record(self.now, cpu, None, What::Fault, Fault::Hotplug as u64);
        self.cpus[cpu].active = false;
        let topology = self.cfg.topology.clone();
        self.idle.update(&topology, cpu, false);
        self.call_hotplug(cpu, false);
        self.push_away(cpu);
        let gone = self.now + self.rng.range(1_000, 200_000);
        self.push(gone, Happening::OnlineMask(cpu));
        let back = gone + self.rng.range(1_000, 50_000_000);
        self.push(back, Happening::Online(cpu));
    }

    /// Everything on the local queue, and what runs, has to go elsewhere.
    fn push_away(&mut self, cpu: usize) {
        let mut tasks: Vec<TaskId> = self.cpus[cpu].local.iter().copied().collect();
        if let Curr::Task(task) | Curr::Rt(task) = self.cpus[cpu].curr {
            tasks.push(task);
        }
        for task in tasks {
            self.stop_soon(cpu, task);
        }
    }

    /// `cpu` leaves the online mask once nothing is left on it.
    pub(super) fn leave_online_mask(&mut self, cpu: usize) {
        if self.cpus[cpu].active {
            return;
        }
        let has_rt = !self.cpus[cpu].rt.queue.is_empty();
        let busy = self.cpus[cpu].nr_running > 0 || has_rt;
        if busy || matches!(self.cpus[cpu].curr, Curr::Rt(_)) {
            self.push_away(cpu);
            let later = self.now + 100_000;
            return self.push(later, Happening::OnlineMask(cpu));
        }
        self.online.clear(cpu);
    }

    /// `sched_cpu_activate()`
    pub(super) fn cpu_online(&mut self, cpu: usize) {
        if self.online.has(cpu) {
            // Tasks are still leaving it.
            let later = self.now + 1_000_000;
            return self.push(later, Happening::Online(cpu));
        }
        self.online.set(cpu);
        self.cpus[cpu].active = true;
        self.within(cpu, true, |m| m.call_hotplug(cpu, true));
        self.cpus[cpu].need_resched = false;
        if self.cpus[cpu].curr == Curr::Idle {
            self.cpus[cpu].idle_since = self.now;
        }
        self.resched(cpu, cpu);
    }

    pub(super) fn higher_start(&mut self, cpu: usize, time: u64) {
        if !self.cpus[cpu].active {
            return;
        }
        self.cpus[cpu].higher_pending = time;
        self.schedule(cpu);
    }

    pub(super) fn higher_end(&mut self, cpu: usize) {
        if self.cpus[cpu].curr == Curr::Higher {
            self.schedule(cpu);
        }
    }

    /// `scx_bypass()`: every runnable task is taken out and put back.
    pub(super) fn set_bypass(&mut self, on: bool) {
        if self.bypass == on {
            return;
        }
        self.bypass = on;
        self.log
            .record(self.now, 0, None, What::Fault, Fault::Bypass as u64);
        for task in 0..self.tasks.len() {
            if self.tasks[task].queued() {
                let cpu = self.tasks[task].cpu();
                self.within(cpu, true, |m| m.change(task, cpu, |_| {}));
            }
        }
        for cpu in 0..self.cfg.topology.cpus {
            if self.online.has(cpu) {
                self.resched(cpu, cpu);
            }
        }
    }
}
