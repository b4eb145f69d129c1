// SPDX-License-Identifier: GPL-2.0-only
//! The scheduling class: enqueue and dequeue, and where insertions lead.
//!
//! Function by function what `kernel/sched/ext` does; each carries the
//! kernel's name in its first line.

use super::dsq::TaskId;
use super::ffi;
use super::log::What;
use super::machine::{Curr, Happening, Machine, Op};
use super::tasks::{Insert, Place, State};

/// Why a task is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Woken or new.
    Wakeup,
    /// An attribute changed; it runs on.
    RestoreRunning,
    /// An attribute changed; it waited.
    Restore,
    /// It moves to another run queue and has to be queued by the scheduler.
    Migrate,
    /// ... and goes straight onto that CPU's local queue.
    Sticky,
}

impl Machine {
    /// `update_curr_scx()`
    pub(super) fn update_curr(&mut self, cpu: usize) {
        let (Curr::Task(task) | Curr::Rt(task)) = self.cpus[cpu].curr else {
            return;
        };
        let c = &mut self.cpus[cpu];
        let delta = self.now - c.exec_start;
        c.exec_start = self.now;
        if c.curr == Curr::Task(task) {
            c.busy += delta;
            self.server_charge(cpu, delta);
        }
        let c = &mut self.cpus[cpu];
        let worked = self.now.saturating_sub(c.work_start);
        c.work_start = c.work_start.max(self.now);
        let worked = self.cfg.topology.work_in(cpu, worked);
        let fastest = self.cfg.topology.is_fastest(cpu);
        let t = &mut self.tasks[task];
        t.ran += delta;
        t.ran_fast += if fastest { delta } else { 0 };
        t.remaining = t.remaining.saturating_sub(worked);
        self.stats.groups[t.group].ran += delta;
        let cgroup = if t.rt { 0 } else { t.cgroup };
        self.stats.cgroups[cgroup] += delta;
        t.cell.write(|k| {
            k.sum_exec_runtime = k.sum_exec_runtime.wrapping_add(delta);
            if k.slice != u64::MAX {
                k.slice = k.slice.saturating_sub(delta);
            }
        });
    }

    /// `enqueue_task_scx()`
    pub(super) fn enqueue_task(&mut self, task: TaskId, cpu: usize, flags: u64, why: Why) {
        if self.tasks[task].queued() {
            let name = self.name(task);
            return self.fail(format!("simulator: {name} is enqueued twice"));
        }
        let rq = self.tasks[task].cpu();
        self.tasks[task]
            .cell
            .write(|k| k.scx_flags |= ffi::TASK_QUEUED);
        self.cpus[rq].nr_running += 1;
        if matches!(why, Why::Wakeup | Why::Restore | Why::RestoreRunning) {
            self.call_runnable(task, cpu, flags);
        }
        let t = &mut self.tasks[task];
        if why != Why::RestoreRunning {
            t.state = State::Runnable;
        }
        if why == Why::Wakeup {
            t.waits_since = self.now;
            t.stalled_since = self.now;
            t.woken = true;
        }
        let sticky = matches!(why, Why::Sticky | Why::RestoreRunning);
        self.do_enqueue(task, cpu, flags, sticky);
        self.server_start(rq);
    }

    /// `do_enqueue_task()`
    pub(super) fn do_enqueue(&mut self, task: TaskId, cpu: usize, flags: u64, sticky: bool) {
        let rq = self.tasks[task].cpu();
        if sticky {
            return self.dispatch_local(task, rq, flags);
        }
        if !self.cpus[rq].active {
            self.tasks[task].direct = None;
            self.tasks[task].cell.write(|k| k.slice = ffi::SLICE_DFL);
            return self.dispatch_local(task, rq, flags);
        }
        if self.bypass {
            self.tasks[task].direct = None;
            self.tasks[task].cell.write(|k| k.slice = ffi::SLICE_DFL);
            self.tasks[task].place = Place::Global;
            return self.global.push(task, false);
        }
        if self.tasks[task].direct.is_none() {
            self.tasks[task].enqueue_seq += 1;
            self.call_enqueue(task, cpu, flags);
        }
        match self.tasks[task].direct.take() {
            Some(mut insert) => {
                insert.flags |= flags;
                self.commit(task, insert);
            }
            None => self.tasks[task].custody = true,
        }
    }

    /// `scx_bpf_reenqueue_local()`, which is for ops.cpu_release() alone.
    pub(super) fn reenqueue_released(&mut self) -> u32 {
        if self.ctx.op != Op::Release {
            self.fail("scx_bpf_reenqueue_local() outside ops.cpu_release()".to_string());
            return 0;
        }
        let before = self.ctx;
        let count = self.reenqueue_local(before.cpu);
        self.ctx = before;
        self.enter_world();
        count
    }

    /// `scx_bpf_dsq_reenq()`: some time later, on the queue's CPU.
    pub(super) fn reenqueue_later(&mut self, dsq: u64, _flags: u64) {
        if dsq >> 62 != 3 {
            return self.fail(format!("the simulator can't re-enqueue DSQ {dsq:#x}"));
        }
        if let Some(cpu) = self.valid_cpu((dsq & 0xffff_ffff) as i32, "scx_bpf_dsq_reenq") {
            let (first, last) = self.cfg.costs.ipi;
            let delay = self.rng.range(first, last);
            self.push(self.now + delay, Happening::Reenqueue(cpu));
        }
    }

    /// `reenq_local()`
    pub(super) fn reenqueue_local(&mut self, cpu: usize) -> u32 {
        if !self.cpus[cpu].active || self.bypass {
            return 0;
        }
        let tasks: Vec<TaskId> = self.cpus[cpu].local.drain(..).collect();
        for &task in &tasks {
            self.tasks[task].place = Place::None;
        }
        for &task in &tasks {
            self.do_enqueue(task, cpu, ffi::ENQ_REENQ, false);
        }
        tasks.len() as u32
    }

    /// `direct_dispatch()` and `finish_dispatch()`: puts `task` where the insert says.
    pub(super) fn commit(&mut self, task: TaskId, insert: Insert) {
        if self.failure.is_some() {
            return;
        }
        let rq = self.tasks[task].cpu();
        if insert.dsq == ffi::DSQ_GLOBAL {
            self.write_values(task, insert);
            self.tasks[task].place = Place::Global;
            return self.global.push(task, false);
        }
        if insert.dsq >> 62 == 3 || insert.dsq == ffi::DSQ_LOCAL {
            if insert.vtime.is_some() {
                return self.fail("cannot use vtime ordering for built-in DSQs".to_string());
            }
            self.write_values(task, insert);
            let target = if insert.dsq == ffi::DSQ_LOCAL {
                Some(rq)
            } else {
                self.valid_cpu((insert.dsq & 0xffff_ffff) as i32, "SCX_DSQ_LOCAL_ON")
            };
            if let Some(target) = target {
                self.commit_local(task, target, insert.flags);
            }
            return;
        }
        let Some(&index) = self.dsq_index.get(&insert.dsq) else {
            let name = self.name(task);
            return self.fail(format!("non-existent DSQ {:#x} for {name}", insert.dsq));
        };
        self.queue_in(task, index, insert);
        self.tasks[task].custody = true;
    }

    fn commit_local(&mut self, task: TaskId, target: usize, flags: u64) {
        let rq = self.tasks[task].cpu();
        if target == rq {
            return self.dispatch_local(task, rq, flags);
        }
        if !self.tasks[task].may_use(target) || self.tasks[task].stuck() {
            let name = self.name(task);
            return self.fail(format!(
                "SCX_DSQ_LOCAL[_ON] target CPU {target} not allowed for {name}"
            ));
        }
        if !self.cpus[target].active {
            self.tasks[task].place = Place::Global;
            return self.global.push(task, false);
        }
        self.take_to_local(task, target);
        if flags & ffi::ENQ_PREEMPT != 0 {
            self.preempt_for(task, target);
        }
        self.resched_if_idle(target);
    }

    /// Puts `task` into user queue `index`.
    pub(super) fn queue_in(&mut self, task: TaskId, index: usize, insert: Insert) {
        let queue = &self.dsqs[index];
        if !queue.is_empty() && queue.by_vtime != insert.vtime.is_some() {
            return self.fail(format!(
                "DSQ {:#x} holds tasks of the other order",
                insert.dsq
            ));
        }
        self.write_values(task, insert);
        self.stats.dsq_locks += 1;
        match insert.vtime {
            Some(vtime) => self.dsqs[index].insert(vtime, task),
            None => self.dsqs[index].push(task, insert.flags & ffi::ENQ_PREEMPT != 0),
        }
        self.tasks[task].place = Place::User(index);
        self.tasks[task].allowed_since = self.now;
        self.bound_queued(task, insert);
        self.log
            .record(self.now, self.ctx.cpu, Some(task), What::Insert, insert.dsq);
    }

    /// `dispatch_enqueue()` on a local queue.
    fn dispatch_local(&mut self, task: TaskId, cpu: usize, flags: u64) {
        self.tasks[task].custody = false;
        self.tasks[task].place = Place::Local(cpu);
        if flags & ffi::ENQ_PREEMPT != 0 {
            self.cpus[cpu].local.push_front(task);
            self.preempt_for(task, cpu);
        } else {
            self.cpus[cpu].local.push_back(task);
        }
        self.log
            .record(self.now, cpu, Some(task), What::Insert, ffi::DSQ_LOCAL);
    }

    fn preempt_for(&mut self, task: TaskId, cpu: usize) {
        if let Curr::Task(curr) = self.cpus[cpu].curr
            && curr != task
        {
            self.tasks[curr].cell.write(|k| k.slice = 0);
            self.resched(cpu, self.ctx.cpu);
        }
    }

    /// `dequeue_task_scx()`
    pub(super) fn dequeue_task(&mut self, task: TaskId, cpu: usize, flags: u64, migrating: bool) {
        if !self.tasks[task].queued() {
            return;
        }
        let rq = self.tasks[task].cpu();
        self.leave_custody(task, cpu, flags);
        if self.cpus[rq].curr == Curr::Task(task) {
            self.update_curr(rq);
            self.call_stopping(task, cpu, false);
        }
        if !migrating {
            self.call_quiescent(task, cpu, flags);
        }
        self.tasks[task]
            .cell
            .write(|k| k.scx_flags &= !ffi::TASK_QUEUED);
        self.cpus[rq].nr_running -= 1;
        if !migrating {
            self.tasks[task].queued_since = None;
        }
        self.unqueue(task);
    }

    /// `ops_dequeue()`: before 7.1 only tasks that no DSQ holds are told.
    pub(super) fn leave_custody(&mut self, task: TaskId, cpu: usize, flags: u64) {
        if !std::mem::take(&mut self.tasks[task].custody) {
            return;
        }
        self.tasks[task].enqueue_seq += 1;
        let sleeping = flags & ffi::DEQ_SLEEP;
        if self.cfg.release >= 701 {
            let flags = if sleeping != 0 {
                sleeping
            } else {
                ffi::DEQ_SCHED_CHANGE
            };
            self.call_dequeue(task, cpu, flags);
        } else if self.tasks[task].place == Place::None {
            self.call_dequeue(task, cpu, sleeping);
        }
    }

    /// `dispatch_dequeue()`
    pub(super) fn unqueue(&mut self, task: TaskId) {
        match std::mem::replace(&mut self.tasks[task].place, Place::None) {
            Place::None => {}
            Place::Local(cpu) => self.cpus[cpu].local.retain(|other| *other != task),
            Place::Global => {
                self.global.remove(0, task);
            }
            Place::User(index) => {
                let vtime = self.tasks[task].cell.read(|k| k.dsq_vtime);
                if !self.dsqs[index].remove(vtime, task) {
                    let name = self.name(task);
                    self.fail(format!(
                        "{name} can't be found in its queue: dsq_vtime was written while queued"
                    ));
                }
            }
        }
    }

    /// `consume_remote_task()` / `move_local_task_to_local_dsq()`: a task that
    /// was just taken from a queue goes onto the local queue of `cpu`.
    pub(super) fn take_to_local(&mut self, task: TaskId, cpu: usize) {
        self.tasks[task].place = Place::None;
        if std::mem::take(&mut self.tasks[task].custody) && self.cfg.release >= 701 {
            self.call_dequeue(task, cpu, 0);
        }
        let from = self.tasks[task].cpu();
        if from == cpu {
            return self.dispatch_local(task, cpu, 0);
        }
        self.stats.rq_locks += 1;
        self.note_move();
        self.dequeue_task(task, cpu, 0, true);
        self.set_task_cpu(task, cpu);
        self.enqueue_task(task, cpu, 0, Why::Sticky);
    }

    /// `set_task_cpu()`
    pub(super) fn set_task_cpu(&mut self, task: TaskId, cpu: usize) {
        let from = self.tasks[task].cpu();
        if from != cpu {
            self.tasks[task].cell.write(|k| k.cpu = cpu as u32);
            self.stats.migrations += 1;
            let group = self.tasks[task].group;
            self.stats.groups[group].migrations += 1;
            self.log
                .record(self.now, cpu, Some(task), What::Migrate, from as u64);
        }
    }

    /// `flush_dispatch_buf()`: a task that meanwhile left the scheduler's hands is skipped.
    pub(super) fn flush_dispatch_buffer(&mut self) {
        for (task, insert, sequence) in std::mem::take(&mut self.buffered) {
            let t = &self.tasks[task];
            if !t.custody || t.place != Place::None || t.enqueue_seq != sequence {
                continue;
            }
            self.dispatched += 1;
            if self.cfg.release >= 701 && insert.dsq & (1 << 63) != 0 {
                self.tasks[task].custody = false;
                let cpu = self.ctx.cpu;
                self.call_dequeue(task, cpu, 0);
            }
            let mut insert = insert;
            if insert.dsq == ffi::DSQ_LOCAL {
                insert.dsq = ffi::DSQ_LOCAL_ON | self.ctx.cpu as u64;
            }
            self.commit(task, insert);
        }
    }
}
