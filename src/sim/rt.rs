// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks (`SCHED_FIFO`, one priority), and the server that keeps
//! them from starving everybody else.
//!
//! The scheduler is told nothing of them but that they exist (init_task,
//! exit_task, cgroup moves); a CPU that runs one is lost to it. Since 7.0 the
//! ext server gives the tasks of such a CPU 50 ms a second; before, they wait
//! until the real-time task sleeps, or the watchdog ejects the scheduler.

use super::dsq::TaskId;
use super::log::What;
use super::machine::{Curr, Happening, Machine};
use super::tasks::State;

/// `rq->ext_server` exists since.
const SERVER_SINCE: u32 = 700;
/// Its runtime in a period, ns.
const SERVER_RUNTIME: u64 = 50_000_000;
/// ... and the period.
const SERVER_PERIOD: u64 = 1_000_000_000;

/// A CPU's real-time queue and its ext server.
#[derive(Default)]
pub struct RealTime {
    /// Who waits, first in first out.
    pub queue: Vec<TaskId>,
    /// The server's timer is armed.
    armed: bool,
    /// The period began.
    since: u64,
    /// What our class has used in it.
    used: u64,
    /// The server runs: our class comes first.
    pub served: bool,
}

impl Machine {
    /// The real-time task that `cpu` should run.
    pub(super) fn rt_next(&mut self, cpu: usize) -> Option<TaskId> {
        if let Curr::Rt(task) = self.cpus[cpu].curr
            && self.tasks[task].state == State::Running
            && self.cpus[cpu].active
        {
            return Some(task);
        }
        if self.cpus[cpu].rt.queue.is_empty() && self.rt_waiting > 0 && self.cpus[cpu].active {
            self.rt_pull(cpu);
        }
        self.cpus[cpu].rt.queue.first().copied()
    }

    /// `pull_rt_task()`
    fn rt_pull(&mut self, cpu: usize) {
        let waits = |c: &super::machine::Cpu| {
            let mut queue = c.rt.queue.iter().copied();
            queue.find(|&task| self.tasks[task].may_use(cpu))
        };
        let Some(task) = self.cpus.iter().find_map(waits) else {
            return;
        };
        self.rt_forget(task);
        self.rt_queue(task, cpu, false);
    }

    fn rt_queue(&mut self, task: TaskId, cpu: usize, first: bool) {
        self.set_task_cpu(task, cpu);
        let queue = &mut self.cpus[cpu].rt.queue;
        queue.insert(if first { 0 } else { queue.len() }, task);
        self.rt_waiting += 1;
    }

    fn rt_forget(&mut self, task: TaskId) {
        let cpu = self.tasks[task].cpu();
        self.cpus[cpu].rt.queue.retain(|other| *other != task);
        self.rt_waiting -= 1;
    }

    /// A real-time task is woken: `select_task_rq_rt()` and `wakeup_preempt()`.
    pub(super) fn rt_wake(&mut self, task: TaskId) {
        let here = self.ctx.cpu;
        let cpu = self.rt_cpu(task);
        self.stats.wakeups += 1;
        let t = &mut self.tasks[task];
        t.state = State::Runnable;
        t.waits_since = self.now;
        t.woken = true;
        self.log
            .record(self.now, here, Some(task), What::Wake, cpu as u64);
        self.rt_queue(task, cpu, false);
        if !matches!(self.cpus[cpu].curr, Curr::Rt(_) | Curr::Higher) {
            self.resched(cpu, here);
        }
    }

    /// Its last CPU if no other real-time task has that, else one that is
    /// idle, else any without, else the last.
    fn rt_cpu(&mut self, task: TaskId) -> usize {
        let n = self.cfg.topology.cpus;
        let own = self.tasks[task].cpu();
        let first = self.rng.below(n as u64) as usize;
        let free = |cpu: &usize| {
            let c = &self.cpus[*cpu];
            let taken = matches!(c.curr, Curr::Rt(_) | Curr::Higher) || !c.rt.queue.is_empty();
            c.active && !taken && self.tasks[task].may_use(*cpu)
        };
        let idle = |cpu: &usize| self.cpus[*cpu].curr == Curr::Idle;
        let around = || (0..n).map(|i| (first + i) % n).filter(free);
        let found = (free(&own).then_some(own))
            .or_else(|| around().find(idle))
            .or_else(|| around().next());
        match found {
            Some(cpu) => cpu,
            None if self.cpus[own].active && self.tasks[task].may_use(own) => own,
            None => self.fallback_cpu(task),
        }
    }

    /// `put_prev_task_rt()`
    pub(super) fn rt_put_prev(&mut self, task: TaskId, cpu: usize) {
        self.update_curr(cpu);
        let t = &mut self.tasks[task];
        if t.state != State::Running {
            return;
        }
        t.state = State::Runnable;
        t.waits_since = self.now;
        t.woken = false;
        self.log.record(self.now, cpu, Some(task), What::Preempt, 0);
        self.rt_queue(task, cpu, true);
    }

    /// `set_next_task_rt()`
    pub(super) fn rt_set_next(&mut self, task: TaskId, cpu: usize) {
        self.rt_forget(task);
        let c = &mut self.cpus[cpu];
        c.exec_start = self.now;
        c.work_start = self.now + self.cfg.costs.switch;
        c.curr = Curr::Rt(task);
        self.note_wait_end(task);
        self.tasks[task].state = State::Running;
        self.log.record(self.now, cpu, Some(task), What::Run, 0);
        self.arm_work(cpu, task);
        self.server_start(cpu);
    }

    /// The real-time tasks of a CPU that goes away move elsewhere.
    pub(super) fn rt_push_away(&mut self, cpu: usize) {
        for task in self.cpus[cpu].rt.queue.clone() {
            self.rt_forget(task);
            let to = self.rt_cpu(task);
            self.rt_queue(task, to, false);
            self.resched(to, self.ctx.cpu);
        }
    }

    /// `dl_server_start()`: a task of ours waits on a CPU that a real-time task has.
    pub(super) fn server_start(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let needed = matches!(c.curr, Curr::Rt(_)) && c.nr_running > 0;
        if c.rt.armed || !needed || self.cfg.release < SERVER_SINCE {
            return;
        }
        c.rt.armed = true;
        c.rt.since = self.now;
        c.rt.used = 0;
        self.server_defer(cpu);
    }

    /// The server begins at the last moment at which it can still give its
    /// runtime within the period.
    fn server_defer(&mut self, cpu: usize) {
        let at = self.cpus[cpu].rt.since + SERVER_PERIOD - SERVER_RUNTIME;
        self.push(at, Happening::Server(cpu));
    }

    /// `dl_server_update()`: what our class uses counts, served or not.
    pub(super) fn server_charge(&mut self, cpu: usize, ran: u64) {
        let rt = &mut self.cpus[cpu].rt;
        if !rt.armed {
            return;
        }
        rt.used += ran;
        if rt.used >= SERVER_RUNTIME && !rt.served {
            rt.since = self.now;
            rt.used = 0;
        }
    }

    /// The server's timer.
    pub(super) fn server_timer(&mut self, cpu: usize) {
        self.update_curr(cpu);
        let now = self.now;
        let c = &mut self.cpus[cpu];
        if c.rt.served {
            // The runtime is used up: a new period.
            c.rt.served = false;
            c.rt.since = now;
            c.rt.used = 0;
            self.server_defer(cpu);
            return self.schedule(cpu);
        }
        if c.nr_running == 0 || !matches!(c.curr, Curr::Rt(_)) {
            c.rt.armed = false;
            return;
        }
        if now < c.rt.since + SERVER_PERIOD - SERVER_RUNTIME {
            return self.server_defer(cpu);
        }
        c.rt.served = true;
        let left = SERVER_RUNTIME - c.rt.used.min(SERVER_RUNTIME - 1);
        self.push(now + left, Happening::Server(cpu));
        self.schedule(cpu);
    }
}
