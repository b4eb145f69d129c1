// SPDX-License-Identifier: GPL-2.0-only
//! The running task's clock: when its work is done, the tick, and the timers
//! that the scheduler starts itself.

use std::ffi::c_void;

use super::config::TICK;
use super::dsq::TaskId;
use super::machine::{Curr, Happening, Machine, Op};

impl Machine {
    /// When the running task will have done its work.
    pub(super) fn arm_work(&mut self, cpu: usize, task: TaskId) {
        self.cpus[cpu].generation += 1;
        let takes = self.cfg.topology.time_for(cpu, self.tasks[task].remaining);
        let done = self.cpus[cpu].work_start.max(self.now) + takes;
        let generation = self.cpus[cpu].generation;
        self.push(done, Happening::WorkDone(cpu, generation));
    }

    /// `bpf_timer_start()`, pinned: starting it again replaces the last start.
    pub(super) fn start_timer(&mut self, timer: *mut c_void, ns: u64) {
        let count = self.timers.entry(timer as usize).or_default();
        *count += 1;
        let what = Happening::SchedTimer(self.ctx.cpu, timer as usize, *count);
        let (first, last) = self.cfg.costs.ipi;
        let late = self.rng.range(first, last);
        self.push(self.now + ns + late, what);
    }

    /// A soft interrupt: no run queue is locked.
    pub(super) fn sched_timer(&mut self, cpu: usize, timer: usize, count: u64) {
        if self.timers.get(&timer) != Some(&count) {
            return;
        }
        let fire = self.variant.raw().fire_timer;
        self.interrupt(cpu, |m| {
            let ctx = m.context(Op::Rest, cpu, None);
            // SAFETY: the address came from start_timer; the scheduler's maps
            // live as long as the machine.
            m.call(ctx, |_| unsafe { fire(timer as *mut c_void) });
        });
    }

    pub(super) fn arm_tick(&mut self, cpu: usize) {
        if self.cpus[cpu].ticking {
            return;
        }
        self.cpus[cpu].ticking = true;
        let phase = self.cpus[cpu].tick_phase;
        let next = (self.now + TICK - phase) / TICK * TICK + phase;
        self.push(next.max(self.now + 1), Happening::Tick(cpu));
    }

    /// `task_tick_scx()`; an idle CPU's tick stops.
    pub(super) fn tick(&mut self, cpu: usize) {
        let Curr::Task(task) = self.cpus[cpu].curr else {
            self.cpus[cpu].ticking = self.cpus[cpu].curr != Curr::Idle;
            if self.cpus[cpu].ticking {
                self.push(self.now + TICK, Happening::Tick(cpu));
            }
            return;
        };
        self.push(self.now + TICK, Happening::Tick(cpu));
        self.update_curr(cpu);
        if self.bypass {
            self.tasks[task].cell.write(|k| k.slice = 0);
        } else {
            self.interrupt(cpu, |m| m.call_tick(task, cpu));
        }
        if self.tasks[task].cell.read(|k| k.slice) == 0 {
            self.schedule(cpu);
        }
    }
}
