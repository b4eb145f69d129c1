// SPDX-License-Identifier: GPL-2.0-only
//! Waking, creating and ending tasks; reschedules and kicks on their way.
//!
//! A wakeup has two steps, as in `try_to_wake_up()`: the CPU is chosen without
//! any run-queue lock, then the task is enqueued there under that CPU's lock.
//! By chance something else happens between the two; the waker's CPU is busy
//! in the kernel meanwhile.

use super::costs::Decision;
use super::dsq::TaskId;
use super::ffi;
use super::log::What;
use super::machine::{Context, Curr, Happening, Machine, Op};
use super::sched::Why;
use super::tasks::State;

/// Flag between the two steps: select_cpu chose the CPU.
const SELECTED: u64 = 1 << 63;
/// ... the waker is a task, not an interrupt.
const BY_TASK: u64 = 1 << 62;

impl Machine {
    /// Runs `handler` as an interrupt on `cpu`.
    pub(super) fn interrupt(&mut self, cpu: usize, handler: impl FnOnce(&mut Self)) {
        self.within(cpu, false, handler);
    }

    /// Runs `work` on `cpu`, on a task's account or an interrupt's.
    pub(super) fn within(&mut self, cpu: usize, in_task: bool, work: impl FnOnce(&mut Self)) {
        let outside = Context {
            op: Op::None,
            cpu,
            subject: None,
            locked: None,
            in_task,
        };
        let before = std::mem::replace(&mut self.ctx, outside);
        work(self);
        self.ctx = before;
    }

    /// `try_to_wake_up()` on the current context's CPU.
    pub(super) fn wake(&mut self, task: TaskId, flags: u64) {
        if !matches!(self.tasks[task].state, State::Sleeping | State::New) {
            return;
        }
        let waker = self.ctx.cpu;
        if self.runs(task) {
            // Its CPU has not switched away yet (`on_cpu`): the waker spins.
            let at = self.now + 300;
            self.cpus[waker].frozen_until = self.cpus[waker].frozen_until.max(at + 1);
            let by_task = if self.ctx.in_task { BY_TASK } else { 0 };
            return self.push(at, Happening::WakeAgain(task, flags | by_task, waker));
        }
        if self.tasks[task].rt {
            return self.rt_wake(task);
        }
        self.on_account(Decision::Wakeup, |m| m.wake_ours(task, flags, waker));
    }

    fn wake_ours(&mut self, task: TaskId, flags: u64, waker: usize) {
        self.stats.wakeups += 1;
        self.tasks[task].state = State::Waking;
        self.tasks[task].allowed_since = self.now;
        let prev = self.tasks[task].cpu();
        let existed = self.idle_cpu_exists(task);
        let (cpu, selected) = self.select_task_rq(task, prev, flags);
        if self.failure.is_some() {
            return;
        }
        if existed {
            self.stats.idle_existed += 1;
            let to_idle = self.cpus[cpu].curr == Curr::Idle || self.idle_kick_follows(cpu);
            self.stats.idle_taken += u64::from(to_idle);
        }
        self.log
            .record(self.now, waker, Some(task), What::Wake, cpu as u64);
        let mut enq_flags = 0;
        if flags & ffi::WAKE_FORK == 0 {
            enq_flags |= ffi::ENQ_WAKEUP;
        }
        if selected {
            enq_flags |= SELECTED;
        }
        if self.ctx.in_task {
            enq_flags |= BY_TASK;
        }
        if self.locks.contains(&cpu) || self.rng.one_in(self.cfg.gap_one_in) {
            let (first, last) = self.cfg.costs.wake_gap;
            let at = self.now + self.rng.range(first, last);
            self.cpus[waker].frozen_until = self.cpus[waker].frozen_until.max(at + 1);
            return self.push(at, Happening::Activate(task, cpu, enq_flags, waker));
        }
        self.activate(task, cpu, enq_flags, waker);
    }

    /// Its CPU has it as the current task.
    pub(super) fn runs(&self, task: TaskId) -> bool {
        let curr = self.cpus[self.tasks[task].cpu()].curr;
        curr == Curr::Task(task) || curr == Curr::Rt(task)
    }

    pub(super) fn wake_again(&mut self, task: TaskId, flags: u64, waker: usize) {
        self.within(waker, flags & BY_TASK != 0, |m| {
            m.wake(task, flags & !BY_TASK)
        });
    }

    fn idle_cpu_exists(&self, task: TaskId) -> bool {
        self.idle.any()
            && self.tasks[task]
                .cell
                .allowed(|mask| self.idle.intersects(mask))
    }

    /// Counted as "went to an idle CPU" as well: the CPU is about to be.
    fn idle_kick_follows(&self, cpu: usize) -> bool {
        self.cpus[cpu].curr == Curr::Higher
    }

    /// `select_task_rq()`
    fn select_task_rq(&mut self, task: TaskId, prev: usize, flags: u64) -> (usize, bool) {
        let here = self.ctx.cpu;
        let several = self.tasks[task]
            .cell
            .read(|k| k.nr_cpus_allowed > 1 && k.migration_disabled == 0);
        let (cpu, selected) = if !several {
            (
                self.tasks[task].cell.allowed(|mask| mask.iter().next()),
                false,
            )
        } else if self.bypass {
            (self.select_in_bypass(task, prev, flags), true)
        } else {
            let answer = self.call_select_cpu(task, prev, here, flags);
            let answer = self.valid_cpu(answer, "ops.select_cpu()");
            self.check_choice(task, prev, answer);
            (answer, true)
        };
        let cpu = cpu.unwrap_or(prev);
        if self.cpus[cpu].active && self.tasks[task].may_use(cpu) {
            return (cpu, selected);
        }
        (self.fallback_cpu(task), selected)
    }

    fn select_in_bypass(&mut self, task: TaskId, prev: usize, flags: u64) -> Option<usize> {
        let allowed = self.tasks[task].cell.allowed(Clone::clone);
        let cpu = self.select_cpu_and(task, prev, flags, &allowed)?;
        self.tasks[task].direct = None;
        Some(cpu)
    }

    /// `select_fallback_rq()`: an active CPU that the task may use; without
    /// one its mask is widened.
    pub(super) fn fallback_cpu(&mut self, task: TaskId) -> usize {
        let n = self.cfg.topology.cpus;
        let own = self.tasks[task].cpu();
        let first = self.rng.below(n as u64) as usize;
        let around = (0..n).map(|i| (first + i) % n);
        let fits = |cpu: &usize| self.cpus[*cpu].active && self.tasks[task].may_use(*cpu);
        if let Some(cpu) = around.clone().find(fits) {
            return cpu;
        }
        let all = ffi::CpuMask::first(n);
        self.tasks[task].cell.pin(None);
        self.tasks[task].cell.set_mask(&all);
        around
            .clone()
            .find(|cpu| self.cpus[*cpu].active)
            .unwrap_or(own)
    }

    /// `ttwu_do_activate()`
    pub(super) fn activate(&mut self, task: TaskId, cpu: usize, flags: u64, waker: usize) {
        self.on_account(Decision::Wakeup, |m| {
            m.activate_ours(task, cpu, flags, waker);
        });
    }

    fn activate_ours(&mut self, task: TaskId, cpu: usize, flags: u64, waker: usize) {
        if self.locks.contains(&cpu) {
            let at = self.now + 100;
            self.cpus[waker].frozen_until = self.cpus[waker].frozen_until.max(at + 1);
            return self.push(at, Happening::Activate(task, cpu, flags, waker));
        }
        let cpu = if self.cpus[cpu].active {
            cpu
        } else {
            self.fallback_cpu(task)
        };
        let mut enq_flags = flags & !(SELECTED | BY_TASK);
        if flags & SELECTED != 0 {
            enq_flags |= self.enq_cpu_selected();
        }
        self.within(waker, flags & BY_TASK != 0, |m| {
            m.set_task_cpu(task, cpu);
            m.enqueue_task(task, waker, enq_flags, Why::Wakeup);
            m.resched_if_idle(cpu);
        });
    }

    fn enq_cpu_selected(&self) -> u64 {
        // SAFETY: the leased variant's world; no callback runs.
        unsafe { (*self.variant.raw().world).enums[ffi::ENUM_CPU_SELECTED] }
    }

    /// `resched_curr()`: at once on the own CPU, by an interrupt elsewhere.
    pub(super) fn resched(&mut self, cpu: usize, from: usize) {
        if std::mem::replace(&mut self.cpus[cpu].need_resched, true) {
            return;
        }
        let costs = self.cfg.costs;
        let mut delay = 0;
        if cpu != from {
            delay += self.rng.range(costs.ipi.0, costs.ipi.1);
        }
        if self.cpus[cpu].curr == Curr::Idle {
            delay += self.rng.range(costs.idle_exit.0, costs.idle_exit.1);
        }
        self.push(self.now + delay, Happening::Resched(cpu));
    }

    /// `wakeup_preempt()`: our class interrupts only the idle task.
    pub(super) fn resched_if_idle(&mut self, cpu: usize) {
        if self.cpus[cpu].curr == Curr::Idle {
            let from = self.ctx.cpu;
            self.resched(cpu, from);
        }
    }

    /// `kick_one_cpu()` and `kick_one_cpu_if_idle()`
    pub(super) fn kicked(&mut self, cpu: usize, flags: u64) {
        if !self.online.has(cpu) {
            return;
        }
        if flags & ffi::KICK_IDLE != 0 {
            if self.cpus[cpu].curr != Curr::Idle {
                return;
            }
        } else if matches!(self.cpus[cpu].curr, Curr::Higher | Curr::Rt(_)) {
            return;
        } else if flags & ffi::KICK_PREEMPT != 0
            && let Curr::Task(task) = self.cpus[cpu].curr
        {
            self.tasks[task].cell.write(|k| k.slice = 0);
        }
        self.resched(cpu, cpu);
    }

    pub(super) fn mark_idle(&mut self, cpu: usize) {
        if self.cpus[cpu].idle_since == u64::MAX {
            self.cpus[cpu].idle_since = self.now;
        }
        if self.cpus[cpu].active {
            let topology = self.cfg.topology.clone();
            self.idle.update(&topology, cpu, true);
        }
    }

    pub(super) fn unmark_idle(&mut self, cpu: usize) {
        self.cpus[cpu].idle_since = u64::MAX;
        let topology = self.cfg.topology.clone();
        self.idle.update(&topology, cpu, false);
    }

    /// `wake_up_new_task()` after `sched_ext`'s part of fork, on the CPU of
    /// the current context.
    pub(super) fn birth(&mut self, task: TaskId) {
        let cpu = self.any_active_cpu();
        // Its group may have moved meanwhile.
        self.tasks[task].cgroup = self.load.groups[self.tasks[task].group].cgroup;
        if self.ctx.op == Op::None && self.ctx.in_task {
            return self.born(task);
        }
        self.within(cpu, true, |m| m.born(task));
    }

    pub(super) fn born(&mut self, task: TaskId) {
        let cpu = self.ctx.cpu;
        self.tasks[task].born = self.now;
        self.tasks[task].cell.write(|k| k.cpu = cpu as u32);
        self.log.record(self.now, cpu, Some(task), What::Birth, 0);
        let error = self.call_init_task(task, cpu, true);
        if error != 0 {
            return self.fail(format!("ops.init_task() returned {error}"));
        }
        if !self.tasks[task].rt {
            self.call_enable(task, cpu);
        }
        self.start_program(task);
        self.wake(task, ffi::WAKE_FORK);
    }

    pub(super) fn any_active_cpu(&mut self) -> usize {
        let n = self.cfg.topology.cpus;
        let first = self.rng.below(n as u64) as usize;
        (0..n)
            .map(|i| (first + i) % n)
            .find(|cpu| self.cpus[*cpu].active)
            .unwrap_or(0)
    }

    /// `sched_ext_dead()`: the last switch away from an exited task is done.
    pub(super) fn release(&mut self, task: TaskId, cpu: usize) {
        self.call_exit_task(task, cpu);
        let t = &mut self.tasks[task];
        t.state = State::Dead;
        t.died = Some(self.now);
        self.log.record(self.now, cpu, Some(task), What::Exit, 0);
    }
}
