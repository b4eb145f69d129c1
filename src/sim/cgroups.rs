// SPDX-License-Identifier: GPL-2.0-only
//! Cgroups: the tree, what is done to it, and the scheduler's callbacks for it.
//!
//! As in the kernel: every cgroup is announced when the scheduler is attached,
//! parents first and before any task; a task moves in three steps, of which
//! the first may be taken back; a weight or `cpu.idle` is told only when it
//! changes, `cpu.idle` since 6.19 only.

use std::cell::UnsafeCell;
use std::ops::Index;
use std::ptr::null_mut;

use super::change::Fault;
use super::dsq::TaskId;
use super::ffi::{CgroupInitArgs, Css, KCgroup, KTask, KernfsNode, Ops};
use super::log::What;
use super::machine::{Curr, Happening, Machine, Op};
use super::tasks::State;
use super::workload::{self, Changed, DEFAULT_WEIGHT};

/// `ops.cgroup_set_idle()` exists since.
const TELLS_IDLE: u32 = 619;
/// ... and `cpu.idle` is told at creation since.
const TELLS_IDLE_AT_INIT: u32 = 703;
/// Faults leave it at so many cgroups of their own.
const MOST_BY_FAULT: usize = 12;

/// A cgroup.
pub struct Cgroup {
    cell: Box<UnsafeCell<KCgroup>>,
    /// Its id is read through a pointer.
    _node: Box<UnsafeCell<KernfsNode>>,
    /// `a/b`; empty: the root.
    pub path: String,
    /// Its place among the machine's cgroups; the root is its own.
    pub parent: usize,
    /// `cpu.weight`
    pub weight: u32,
    /// `cpu.idle`
    pub idle: bool,
    /// Not removed.
    pub online: bool,
    by_fault: bool,
}

/// All cgroups ever, parents first; 0 is the root.
#[derive(Default)]
pub struct Cgroups(Vec<Cgroup>);

impl Cgroups {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None, not even the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = &Cgroup> {
        self.0.iter()
    }

    /// Is `inner` within `outer`, or the same?
    #[must_use]
    pub fn within(&self, inner: usize, outer: usize) -> bool {
        let mut at = inner;
        while at != outer && at != 0 {
            at = self.0[at].parent;
        }
        at == outer
    }

    fn add(&mut self, spec: &workload::Cgroup, by_fault: bool) -> usize {
        let number = self.0.len();
        // Like the kernel's: the root has 1, the next ones any.
        let node = Box::new(UnsafeCell::new(KernfsNode {
            id: 1 + 37 * number as u64,
        }));
        let (parent, level) = match number {
            0 => (null_mut(), 0),
            _ => self.parent_css(spec.parent),
        };
        let cell = Box::new(UnsafeCell::new(KCgroup {
            css: Css {
                cgroup: null_mut(),
                parent,
            },
            kn: node.get(),
            level,
            index: number as u32,
        }));
        // SAFETY: nobody else has the pointer yet.
        unsafe { (*cell.get()).css.cgroup = cell.get() };
        self.0.push(Cgroup {
            cell,
            _node: node,
            path: spec.path.clone(),
            parent: spec.parent,
            weight: spec.weight,
            idle: spec.idle,
            online: true,
            by_fault,
        });
        number
    }

    fn parent_css(&self, parent: usize) -> (*mut Css, i32) {
        let parent = self.0[parent].cell.get();
        // SAFETY: C never writes cgroups, and nobody holds a reference.
        unsafe { (&raw mut (*parent).css, (*parent).level + 1) }
    }

    fn has_children(&self, number: usize) -> bool {
        let children = self.0.iter().skip(1);
        children.into_iter().any(|c| c.online && c.parent == number)
    }

    /// Children after their parents, a child's own before the next child.
    fn preorder(&self) -> Vec<usize> {
        let mut order = vec![0];
        let mut at = 0;
        while let Some(&number) = order.get(at) {
            at += 1;
            let children = (1..self.0.len()).filter(|&c| self.0[c].parent == number);
            let children: Vec<usize> = children.collect();
            order.splice(at..at, children);
        }
        order
    }
}

impl Index<usize> for Cgroups {
    type Output = Cgroup;

    fn index(&self, number: usize) -> &Cgroup {
        &self.0[number]
    }
}

impl Machine {
    /// The cgroups.
    #[must_use]
    pub fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    pub(super) fn cgroup_pointer(&self, number: usize) -> *mut KCgroup {
        self.cgroups[number].cell.get()
    }

    /// `scx_cgroup_init()`: all cgroups that are there at attach.
    pub(super) fn attach_cgroups(&mut self, specs: &[workload::Cgroup]) {
        let root = workload::Cgroup {
            path: String::new(),
            parent: 0,
            weight: 100,
            idle: false,
        };
        self.cgroups.add(&root, false);
        for spec in specs {
            self.cgroups.add(spec, false);
        }
        self.stats.cgroups = vec![0; self.cgroups.len()];
        for number in self.cgroups.preorder() {
            self.call_cgroup_init(number);
        }
    }

    fn call_cgroup_init(&mut self, number: usize) {
        let pointer = self.cgroup_pointer(number);
        let cgroup = &self.cgroups[number];
        let mut args = CgroupInitArgs {
            weight: cgroup.weight,
            sched_idle: cgroup.idle && self.cfg.release >= TELLS_IDLE_AT_INIT,
        };
        let error = self.call_unlocked(|ops| {
            ops.cgroup_init
                // SAFETY: see call_init.
                .map_or(0, |op| unsafe { op(pointer, &raw mut args) })
        });
        if error != 0 {
            self.fail(format!("ops.cgroup_init() returned {error}"));
        }
    }

    fn call_unlocked<R>(&mut self, call: impl FnOnce(&Ops) -> R) -> R {
        let ctx = self.context(Op::Unlocked, self.ctx.cpu, None);
        self.call(ctx, call)
    }

    /// What the workload's file says happens now.
    pub(super) fn change_from_workload(&mut self, index: usize) {
        let change = self.load.changes[index].what.clone();
        let cpu = self.any_active_cpu();
        self.within(cpu, true, |m| match change {
            Changed::Weight { cgroup, weight } => m.set_cgroup_weight(cgroup, weight),
            Changed::Idle { cgroup, idle } => m.set_cgroup_idle(cgroup, idle),
            Changed::Remade { cgroup } => m.remake_cgroup(cgroup),
            Changed::Move { groups, to } => {
                let members = |(_, t): &(TaskId, &super::tasks::Task)| groups.contains(&t.group);
                let tasks: Vec<TaskId> = m.tasks.iter().filter(members).map(|(id, _)| id).collect();
                for group in groups.iter().copied() {
                    m.load.groups[group].cgroup = to;
                }
                m.regroup(&tasks, to);
            }
        });
    }

    /// `cpu.weight` is written; the kernel refuses it for an idle cgroup.
    fn set_cgroup_weight(&mut self, number: usize, weight: u32) {
        if self.cgroups[number].idle || self.cgroups[number].weight == weight {
            return;
        }
        self.log_cgroup(None, number);
        let pointer = self.cgroup_pointer(number);
        self.call_unlocked(|ops| {
            if let Some(op) = ops.cgroup_set_weight {
                // SAFETY: see call_init.
                unsafe { op(pointer, weight) };
            }
        });
        self.cgroups.0[number].weight = weight;
    }

    /// `cpu.idle` is written.
    fn set_cgroup_idle(&mut self, number: usize, idle: bool) {
        if self.cgroups[number].idle == idle {
            return;
        }
        self.log_cgroup(None, number);
        let pointer = self.cgroup_pointer(number);
        if self.cfg.release >= TELLS_IDLE {
            self.call_unlocked(|ops| {
                if let Some(op) = ops.cgroup_set_idle {
                    // SAFETY: see call_init.
                    unsafe { op(pointer, idle) };
                }
            });
        }
        self.cgroups.0[number].idle = idle;
    }

    fn log_cgroup(&mut self, task: Option<TaskId>, number: usize) {
        let argument = Fault::Cgroup as u64 | (number as u64) << 8;
        let cpu = self.ctx.cpu;
        self.log.record(self.now, cpu, task, What::Fault, argument);
    }

    /// Some tasks move to cgroup `to`: `cgroup_migrate_execute()`. One that is
    /// being woken moves when that is over, as the kernel's locks have it.
    pub(super) fn regroup(&mut self, tasks: &[TaskId], to: usize) {
        if !self.cgroups[to].online {
            return;
        }
        let mut ready = Vec::new();
        for &task in tasks {
            let t = &self.tasks[task];
            match t.state {
                State::Waking => self.push(self.now + 1000, Happening::Regroup(task, to)),
                State::New | State::Dead => {}
                _ if t.exiting || t.cgroup == to => {}
                _ => ready.push(task),
            }
        }
        if !self.prepare_move(&ready, to) {
            return;
        }
        for task in ready {
            self.move_to_cgroup(task, to);
        }
    }

    /// `scx_cgroup_can_attach()`; false: refused, and taken back.
    fn prepare_move(&mut self, tasks: &[TaskId], to: usize) -> bool {
        for (at, &task) in tasks.iter().enumerate() {
            let error = self.call_move(task, to, |ops, p, from, to| {
                ops.cgroup_prep_move
                    // SAFETY: see call_init.
                    .map_or(0, |op| unsafe { op(p, from, to) })
            });
            if error != 0 {
                self.cancel_move(&tasks[..at], to);
                return false;
            }
        }
        true
    }

    /// `scx_cgroup_cancel_attach()`
    fn cancel_move(&mut self, tasks: &[TaskId], to: usize) {
        for &task in tasks {
            self.call_move(task, to, |ops, p, from, to| {
                if let Some(op) = ops.cgroup_cancel_move {
                    // SAFETY: see call_init.
                    unsafe { op(p, from, to) };
                }
            });
        }
    }

    fn call_move<R>(
        &mut self,
        task: TaskId,
        to: usize,
        call: impl FnOnce(&Ops, *mut KTask, *mut KCgroup, *mut KCgroup) -> R,
    ) -> R {
        let p = self.tasks[task].cell.pointer();
        let from = self.cgroup_pointer(self.tasks[task].cgroup);
        let to = self.cgroup_pointer(to);
        self.call_unlocked(|ops| call(ops, p, from, to))
    }

    /// `sched_move_task()`: the task is off its queue meanwhile, and its run
    /// queue is locked.
    fn move_to_cgroup(&mut self, task: TaskId, to: usize) {
        let cpu = self.ctx.cpu;
        self.log_cgroup(Some(task), to);
        self.change(task, cpu, |m| {
            let (old, new) = (m.cgroup_pointer(m.tasks[task].cgroup), m.cgroup_pointer(to));
            m.tasks[task].cgroup = to;
            m.call_rest(task, cpu, |ops, p| {
                if let Some(op) = ops.cgroup_move {
                    // SAFETY: see call_init.
                    unsafe { op(p, old, new) };
                }
            });
        });
        let rq = self.tasks[task].cpu();
        if self.cpus[rq].curr == Curr::Task(task) {
            self.resched(rq, cpu);
        }
    }

    /// A fault: something about cgroups, on the CPU of the current context.
    pub(super) fn disturb_cgroups(&mut self) {
        let online = self.cgroups.iter().enumerate().filter(|(_, c)| c.online);
        let online: Vec<usize> = online.map(|(number, _)| number).collect();
        let number = online[self.rng.below(online.len() as u64) as usize];
        match self.rng.below(8) {
            0..=3 => self.disturb_task(number),
            4 if number != 0 => {
                let weight = self.rng.range(1, 10_000) as u32;
                self.set_cgroup_weight(number, weight);
            }
            5 if number != 0 => {
                let idle = !self.cgroups[number].idle;
                self.set_cgroup_idle(number, idle);
            }
            6 => self.make_cgroup(number),
            _ => self.remove_cgroup(number),
        }
    }

    /// A task moves to cgroup `to`, or nearly: another controller may refuse.
    fn disturb_task(&mut self, to: usize) {
        let Some(task) = self.any_task(false) else {
            return;
        };
        if self.rng.one_in(4) && self.tasks[task].cgroup != to {
            if self.prepare_move(&[task], to) {
                self.cancel_move(&[task], to);
            }
            return;
        }
        self.regroup(&[task], to);
    }

    /// `mkdir`: `scx_tg_online()`
    fn make_cgroup(&mut self, parent: usize) {
        let made = |c: &&Cgroup| c.online && c.by_fault;
        if self.cgroups.iter().filter(made).count() >= MOST_BY_FAULT {
            return;
        }
        let spec = workload::Cgroup {
            path: format!("fault{}", self.cgroups.len()),
            parent,
            weight: 100,
            idle: false,
        };
        let number = self.cgroups.add(&spec, true);
        self.stats.cgroups.push(0);
        self.log_cgroup(None, number);
        self.call_cgroup_init(number);
    }

    /// `rmdir` and `mkdir` of the same path.
    fn remake_cgroup(&mut self, number: usize) {
        let lives = |t: &super::tasks::Task| !matches!(t.state, State::Dead | State::New);
        let inside = |t: &super::tasks::Task| t.cgroup == number && lives(t);
        if self.cgroups.has_children(number) || self.tasks.iter().any(|(_, t)| inside(t)) {
            let path = self.cgroups[number].path.clone();
            self.fail(format!("changes: {path:?} is remade, and is not empty"));
            return;
        }
        self.take_offline(number);
        let cgroup = &mut self.cgroups.0[number];
        cgroup.weight = DEFAULT_WEIGHT;
        cgroup.idle = false;
        cgroup.online = true;
        self.call_cgroup_init(number);
    }

    /// `rmdir` of an empty cgroup that a fault made.
    fn remove_cgroup(&mut self, number: usize) {
        let lives = |t: &super::tasks::Task| t.state != State::Dead && t.cgroup == number;
        let used = self.cgroups.has_children(number) || self.tasks.iter().any(|(_, t)| lives(t));
        if self.cgroups[number].by_fault && !used {
            self.take_offline(number);
        }
    }

    /// `scx_tg_offline()`
    fn take_offline(&mut self, number: usize) {
        self.log_cgroup(None, number);
        let pointer = self.cgroup_pointer(number);
        self.call_unlocked(|ops| {
            if let Some(op) = ops.cgroup_exit {
                // SAFETY: see call_init.
                unsafe { op(pointer) };
            }
        });
        self.cgroups.0[number].online = false;
    }
}
