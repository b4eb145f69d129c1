// SPDX-License-Identifier: GPL-2.0-only
//! Calling the scheduler: each callback with the CPU, the locks and the rights
//! that it has in the kernel.

use super::dsq::TaskId;
use super::ffi::{CpuMask, InitArgs, KTask, Ops, TaskView};
use super::kfuncs;
use super::machine::{Context, Curr, Machine, Op};

impl Machine {
    /// Shows C the CPU, task and time of the current context.
    pub(super) fn enter_world(&mut self) {
        let cpu = self.ctx.cpu;
        let current = self.current_task(cpu);
        // SAFETY: the leased variant's world; C reads it only within callbacks.
        let raw = self.variant.raw();
        // SAFETY: as above; the CPU exists.
        let (world, own) = unsafe { (&mut *raw.world, raw.cpus.add(cpu)) };
        world.own = own;
        world.own_size = size_of::<super::ffi::cpu_state>() as u64;
        world.now = self.cfg.clock_base.wrapping_add(self.now);
        world.cpu = cpu as u32;
        world.in_task = u32::from(self.ctx.in_task);
        world.current = current;
    }

    fn current_task(&self, cpu: usize) -> *mut KTask {
        match self.cpus[cpu].curr {
            Curr::Task(task) | Curr::Rt(task) => self.tasks[task].cell.pointer(),
            _ => self.idle_task.pointer(),
        }
    }

    /// Runs one callback in context `ctx`.
    pub(super) fn call<R>(&mut self, ctx: Context, call: impl FnOnce(&Ops) -> R) -> R {
        let before = std::mem::replace(&mut self.ctx, ctx);
        if let Some(cpu) = ctx.locked {
            self.locks.push(cpu);
        }
        self.executing.push(ctx.cpu);
        self.enter_world();
        // The program counts as migration-disabled once on the account of the
        // task that it interrupts.
        let current = match self.cpus[ctx.cpu].curr {
            Curr::Task(task) | Curr::Rt(task) => Some(task),
            _ => None,
        };
        self.count_program(current, true);
        let ops = self.variant.ops();
        let result = kfuncs::with_machine(self, || call(ops));
        self.count_program(current, false);
        self.executing.pop();
        if ctx.locked.is_some() {
            self.locks.pop();
        }
        self.ctx = before;
        if before.op != Op::None {
            self.enter_world();
        }
        result
    }

    fn count_program(&self, current: Option<TaskId>, enter: bool) {
        if let Some(task) = current {
            self.tasks[task].cell.write(|k| {
                k.migration_disabled = if enter {
                    k.migration_disabled + 1
                } else {
                    k.migration_disabled - 1
                };
            });
        }
    }

    pub(super) fn context(&self, op: Op, cpu: usize, locked: Option<usize>) -> Context {
        Context {
            op,
            cpu,
            subject: None,
            locked,
            in_task: self.ctx.in_task,
        }
    }

    pub(super) fn call_init(&mut self) -> i32 {
        let ctx = self.context(Op::Unlocked, 0, None);
        // SAFETY (here and below): the callback's signature is that of
        // platform/sim_platform.h, and the pointers are valid for the call.
        self.call(ctx, |ops| ops.init.map_or(0, |init| unsafe { init() }))
    }

    pub(super) fn call_hotplug(&mut self, cpu: usize, online: bool) {
        let ctx = self.context(Op::Unlocked, cpu, None);
        self.call(ctx, |ops| {
            let op = if online {
                ops.cpu_online
            } else {
                ops.cpu_offline
            };
            if let Some(op) = op {
                // SAFETY: see call_init.
                unsafe { op(cpu as i32) };
            }
        });
    }

    pub(super) fn call_init_task(&mut self, task: TaskId, cpu: usize, fork: bool) -> i32 {
        let ctx = self.context(Op::Unlocked, cpu, None);
        let pointer = self.tasks[task].cell.pointer();
        let cgroup = self.cgroup_pointer(self.tasks[task].cgroup);
        let mut args = InitArgs { fork, cgroup };
        self.call(ctx, |ops| {
            ops.init_task
                // SAFETY: see call_init.
                .map_or(0, |op| unsafe { op(pointer, &raw mut args) })
        })
    }

    /// A callback that gets the task and nothing else to decide.
    pub(super) fn call_rest(
        &mut self,
        task: TaskId,
        cpu: usize,
        call: impl FnOnce(&Ops, *mut KTask),
    ) {
        let locked = self.tasks[task].cpu();
        let ctx = self.context(Op::Rest, cpu, Some(locked));
        let pointer = self.tasks[task].cell.pointer();
        self.call(ctx, |ops| call(ops, pointer));
    }

    pub(super) fn call_select_cpu(
        &mut self,
        task: TaskId,
        prev: usize,
        cpu: usize,
        flags: u64,
    ) -> i32 {
        let mut ctx = self.context(Op::SelectCpu, cpu, None);
        ctx.subject = Some(task);
        let pointer = self.tasks[task].cell.pointer();
        self.call(ctx, |ops| {
            ops.select_cpu.map_or(prev as i32, |op| {
                // SAFETY: see call_init.
                unsafe { op(pointer, prev as i32, flags) }
            })
        })
    }

    pub(super) fn call_enqueue(&mut self, task: TaskId, cpu: usize, flags: u64) {
        let locked = self.tasks[task].cpu();
        let mut ctx = self.context(Op::Enqueue, cpu, Some(locked));
        ctx.subject = Some(task);
        let pointer = self.tasks[task].cell.pointer();
        self.call(ctx, |ops| {
            if let Some(op) = ops.enqueue {
                // SAFETY: see call_init.
                unsafe { op(pointer, flags) };
            }
        });
    }

    pub(super) fn call_dispatch(&mut self, cpu: usize, prev: Option<TaskId>) {
        let ctx = self.context(Op::Dispatch, cpu, Some(cpu));
        let pointer = prev.map_or(std::ptr::null_mut(), |task| self.tasks[task].cell.pointer());
        self.stats.dispatches += 1;
        self.call(ctx, |ops| {
            if let Some(op) = ops.dispatch {
                // SAFETY: see call_init.
                unsafe { op(cpu as i32, pointer) };
            }
        });
    }

    pub(super) fn call_yield(&mut self, task: TaskId, cpu: usize) {
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.yield_task {
                // SAFETY: see call_init.
                unsafe { op(p, std::ptr::null_mut()) };
            }
        });
    }

    pub(super) fn call_stopping(&mut self, task: TaskId, cpu: usize, runnable: bool) {
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.stopping {
                // SAFETY: see call_init.
                unsafe { op(p, runnable) };
            }
        });
    }

    pub(super) fn call_running(&mut self, task: TaskId, cpu: usize) {
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.running {
                // SAFETY: see call_init.
                unsafe { op(p) };
            }
        });
    }

    pub(super) fn call_runnable(&mut self, task: TaskId, cpu: usize, flags: u64) {
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.runnable {
                // SAFETY: see call_init.
                unsafe { op(p, flags) };
            }
        });
    }

    pub(super) fn call_quiescent(&mut self, task: TaskId, cpu: usize, flags: u64) {
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.quiescent {
                // SAFETY: see call_init.
                unsafe { op(p, flags) };
            }
        });
    }

    pub(super) fn call_dequeue(&mut self, task: TaskId, cpu: usize, flags: u64) {
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.dequeue {
                // SAFETY: see call_init.
                unsafe { op(p, flags) };
            }
        });
    }

    pub(super) fn call_set_cpumask(&mut self, task: TaskId, cpu: usize) {
        let mask: *const CpuMask = self.tasks[task].cell.read(|k| k.cpus_ptr);
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.set_cpumask {
                // SAFETY: see call_init.
                unsafe { op(p, mask) };
            }
        });
    }

    /// `scx_enable_task()`: enable, then the weight.
    pub(super) fn call_enable(&mut self, task: TaskId, cpu: usize) {
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.enable {
                // SAFETY: see call_init.
                unsafe { op(p) };
            }
        });
        self.call_set_weight(task, cpu);
    }

    pub(super) fn call_set_weight(&mut self, task: TaskId, cpu: usize) {
        let weight = self.tasks[task].cell.read(|k| k.scx_weight);
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.set_weight {
                // SAFETY: see call_init.
                unsafe { op(p, weight) };
            }
        });
    }

    /// `scx_exit_task()`: disable, then exit_task.
    pub(super) fn call_exit_task(&mut self, task: TaskId, cpu: usize) {
        let mut args = super::ffi::ExitArgs { cancelled: false };
        let ours = !self.tasks[task].rt;
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.disable.filter(|_| ours) {
                // SAFETY: see call_init.
                unsafe { op(p) };
            }
        });
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.exit_task {
                // SAFETY: see call_init.
                unsafe { op(p, &raw mut args) };
            }
        });
    }

    pub(super) fn call_cpu_release(&mut self, cpu: usize) {
        // The agent leaves it out where the kernel knows a better way.
        if self.bypass || self.cfg.release >= 701 {
            return;
        }
        let ctx = self.context(Op::Release, cpu, Some(cpu));
        self.call(ctx, |ops| {
            if let Some(op) = ops.cpu_release {
                // SAFETY: see call_init; the arguments are not looked at.
                unsafe { op(cpu as i32, std::ptr::null_mut()) };
            }
        });
    }

    pub(super) fn call_tick(&mut self, task: TaskId, cpu: usize) {
        self.call_rest(task, cpu, |ops, p| {
            if let Some(op) = ops.tick {
                // SAFETY: see call_init.
                unsafe { op(p) };
            }
        });
    }

    /// `ops.core_sched_before()`: does `a` come before `b` where the threads of
    /// a core run what trusts each other? None: the scheduler doesn't say.
    pub fn core_sched_before(&mut self, a: TaskId, b: TaskId) -> Option<bool> {
        let (a, b) = (self.tasks[a].cell.pointer(), self.tasks[b].cell.pointer());
        let ctx = self.context(Op::Rest, 0, None);
        self.call(ctx, |ops| {
            // SAFETY: see call_init.
            ops.core_sched_before.map(|op| unsafe { op(a, b) })
        })
    }

    /// What the scheduler keeps of a task.
    #[must_use]
    pub fn view(&self, task: TaskId) -> TaskView {
        let mut view = TaskView::default();
        // SAFETY: valid pointers; looks only.
        unsafe {
            (self.variant.raw().view_task)(self.tasks[task].cell.pointer(), &raw mut view);
        }
        view
    }

    /// The virtual clock of a CPU's queue.
    #[must_use]
    pub fn vclock(&self, cpu: usize) -> u64 {
        assert!(cpu < self.cfg.topology.cpus, "no such CPU");
        // SAFETY: within the array; no callback runs.
        unsafe { (*self.variant.raw().cpus.add(cpu)).vclock }
    }

    /// What the scheduler keeps of a CPU.
    #[must_use]
    pub fn cpu_state(&self, cpu: usize) -> super::ffi::cpu_state {
        assert!(cpu < self.cfg.topology.cpus, "no such CPU");
        // SAFETY: within the array; no callback runs.
        unsafe { *self.variant.raw().cpus.add(cpu) }
    }
}
