// SPDX-License-Identifier: GPL-2.0-only
//! The pick and the switch: what a CPU runs next.
//!
//! Function by function what `kernel/sched/ext` does; each carries the
//! kernel's name in its first line.

use super::dsq::TaskId;
use super::ffi;
use super::log::What;
use super::machine::{Curr, Happening, Machine};
use super::tasks::{Place, State};

/// `SCX_DSP_MAX_LOOPS`
const DISPATCH_LOOPS: u32 = 32;

impl Machine {
    /// `__schedule()` with the pick of `balance_one()`.
    pub(super) fn schedule(&mut self, cpu: usize) {
        self.cpus[cpu].need_resched = false;
        let before = self.ctx;
        self.ctx.cpu = cpu;
        self.ctx.in_task = true;
        let prev = self.cpus[cpu].curr;
        let prev_task = match prev {
            Curr::Task(task) => Some(task),
            _ => None,
        };
        let higher = std::mem::take(&mut self.cpus[cpu].higher_pending);
        let next = if higher > 0 {
            self.push(self.now + higher, Happening::HigherEnd(cpu));
            Curr::Higher
        } else {
            self.pick_class(cpu, prev_task)
        };
        if self.failure.is_none() {
            self.switch(cpu, prev, next);
        }
        self.ctx = before;
    }

    /// `__pick_next_task()`: real-time tasks come first, unless the ext server
    /// runs and there is something for it.
    fn pick_class(&mut self, cpu: usize, prev: Option<TaskId>) -> Curr {
        let rt = self.rt_next(cpu);
        if let Some(task) = rt
            && !self.cpus[cpu].rt.served
        {
            return Curr::Rt(task);
        }
        if self.bypass_or_pick(cpu, prev) {
            return self.cpus[cpu].curr;
        }
        match (self.cpus[cpu].local.front(), rt) {
            (Some(&task), _) => Curr::Task(task),
            (None, Some(task)) => Curr::Rt(task),
            (None, None) => Curr::Idle,
        }
    }

    /// `balance_one()`; true: the previous task is kept.
    fn bypass_or_pick(&mut self, cpu: usize, prev: Option<TaskId>) -> bool {
        self.update_curr(cpu);
        let runnable = |m: &Self| prev.is_some_and(|task| m.tasks[task].queued());
        let slice = |m: &Self| prev.map_or(0, |task| m.tasks[task].cell.read(|k| k.slice));
        if runnable(self) && slice(self) > 0 && !self.bypass {
            return true;
        }
        if !self.cpus[cpu].local.is_empty() || self.consume_global(cpu) {
            return false;
        }
        if !self.bypass && self.cpus[cpu].active {
            for round in 0..=DISPATCH_LOOPS {
                if round == DISPATCH_LOOPS {
                    self.resched(cpu, cpu);
                    break;
                }
                self.dispatched = 0;
                self.on_account_of_round(|m| {
                    m.call_dispatch(cpu, prev);
                    m.flush_dispatch_buffer();
                });
                if self.failure.is_some() {
                    return false;
                }
                if runnable(self) && slice(self) > 0 {
                    return true;
                }
                if !self.cpus[cpu].local.is_empty() || self.consume_global(cpu) {
                    return false;
                }
                if self.dispatched == 0 {
                    break;
                }
            }
        }
        runnable(self) && (self.bypass || !self.knows_speeds())
    }

    /// `consume_global_dsq()`
    fn consume_global(&mut self, cpu: usize) -> bool {
        let position = self.global.iter().position(|task| self.may_take(task, cpu));
        let Some(task) = position.and_then(|position| self.global.remove_at(position)) else {
            return false;
        };
        self.take_to_local(task, cpu);
        true
    }

    /// `put_prev_set_next_task()` and what a switch brings with it.
    fn switch(&mut self, cpu: usize, prev: Curr, next: Curr) {
        if let Curr::Task(task) = next {
            self.tasks[task].cell.write(|k| {
                if k.slice == 0 {
                    k.slice = ffi::SLICE_DFL;
                }
            });
        }
        if prev == next {
            match next {
                Curr::Task(task) => {
                    let slice = self.tasks[task].cell.read(|k| k.slice);
                    self.log
                        .record(self.now, cpu, Some(task), What::Keep, slice);
                    self.check_placement(task, cpu);
                }
                // Entering idle anew sets the idle mark again.
                Curr::Idle => self.mark_idle(cpu),
                Curr::Higher | Curr::Rt(_) => {}
            }
            return;
        }
        self.put_prev(cpu, matches!(next, Curr::Idle));
        let dying = match prev {
            Curr::Task(task) | Curr::Rt(task)
                if self.tasks[task].exiting && self.tasks[task].state == State::Sleeping =>
            {
                Some(task)
            }
            _ => None,
        };
        if prev == Curr::Idle {
            self.unmark_idle(cpu);
        }
        self.cpus[cpu].generation += 1;
        if matches!(next, Curr::Higher | Curr::Rt(_)) && !matches!(prev, Curr::Higher | Curr::Rt(_))
        {
            self.call_cpu_release(cpu);
        }
        match next {
            Curr::Task(task) => self.set_next(cpu, task),
            Curr::Idle => {
                self.cpus[cpu].curr = Curr::Idle;
                self.log.record(self.now, cpu, None, What::Idle, 0);
                self.mark_idle(cpu);
            }
            Curr::Higher => self.cpus[cpu].curr = Curr::Higher,
            Curr::Rt(task) => self.rt_set_next(task, cpu),
        }
        if let Some(task) = dying {
            self.release(task, cpu);
        }
        if let Curr::Task(task) = prev
            && !self.tasks[task].exiting
        {
            self.pin_switched_out(task, cpu);
        }
    }

    /// `put_prev_task_scx()`; `last`: the CPU goes idle.
    pub(super) fn put_prev(&mut self, cpu: usize, last: bool) {
        let task = match self.cpus[cpu].curr {
            Curr::Task(task) => task,
            Curr::Rt(task) => return self.rt_put_prev(task, cpu),
            Curr::Idle | Curr::Higher => return,
        };
        self.update_curr(cpu);
        if !self.tasks[task].queued() {
            return;
        }
        self.call_stopping(task, cpu, true);
        let slice = self.tasks[task].cell.read(|k| k.slice);
        self.log
            .record(self.now, cpu, Some(task), What::Preempt, slice);
        let t = &mut self.tasks[task];
        t.state = State::Runnable;
        t.waits_since = self.now;
        t.stalled_since = self.now;
        t.woken = false;
        let group = t.group;
        self.stats.groups[group].preemptions += 1;
        if slice > 0 && !self.bypass {
            self.tasks[task].place = Place::Local(cpu);
            self.cpus[cpu].local.push_front(task);
        } else {
            let flags = if last { ffi::ENQ_LAST } else { 0 };
            self.do_enqueue(task, cpu, flags, false);
        }
    }

    /// `set_next_task_scx()`
    pub(super) fn set_next(&mut self, cpu: usize, task: TaskId) {
        self.leave_custody(task, cpu, 0);
        self.unqueue(task);
        let c = &mut self.cpus[cpu];
        let switched = c.curr != Curr::Task(task);
        c.exec_start = self.now;
        c.work_start = self.now + if switched { self.cfg.costs.switch } else { 0 };
        // The context is still the previous task's while running() is called.
        let granted = self.tasks[task].cell.read(|k| k.slice);
        self.call_running(task, cpu);
        self.check_slice(task, granted);
        self.check_preemptor(cpu);
        self.bound_started(task, cpu);
        self.cpus[cpu].curr = Curr::Task(task);
        self.stats.switches += 1;
        self.note_wait_end(task);
        let t = &mut self.tasks[task];
        t.state = State::Running;
        let slice = t.cell.read(|k| k.slice);
        self.log.record(self.now, cpu, Some(task), What::Run, slice);
        self.check_placement(task, cpu);
        self.arm_work(cpu, task);
        self.arm_tick(cpu);
    }

    pub(super) fn note_wait_end(&mut self, task: TaskId) {
        let t = &mut self.tasks[task];
        if t.state != State::Runnable {
            return;
        }
        let waited = self.now - t.waits_since;
        t.longest_wait = t.longest_wait.max(waited);
        let group = &mut self.stats.groups[t.group];
        group.wait.add(waited);
        if std::mem::take(&mut t.woken) {
            group.wakeup.add(waited);
        }
    }
}
