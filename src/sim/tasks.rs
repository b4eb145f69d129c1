// SPDX-License-Identifier: GPL-2.0-only
//! A task as the machine keeps it, and all of them.

use std::ops::{Index, IndexMut};

use super::dsq::TaskId;
use super::ffi::{self, TaskCell};
use super::workload::program::Interp;

/// What a task does, as the kernel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not yet born.
    New,
    /// Asleep.
    Sleeping,
    /// Between select_cpu and enqueue.
    Waking,
    /// Waits for a CPU.
    Runnable,
    /// Runs.
    Running,
    /// Gone.
    Dead,
}

/// The queue that a runnable task is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// None: runs, sleeps, or the scheduler keeps it by itself.
    None,
    /// The local queue of a CPU.
    Local(usize),
    /// A user queue, by index.
    User(usize),
    /// The global queue.
    Global,
}

/// An insertion that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insert {
    /// Where to.
    pub dsq: u64,
    /// 0 = keep.
    pub slice: u64,
    /// In this order, not first in first out.
    pub vtime: Option<u64>,
    /// Enqueue flags.
    pub flags: u64,
}

/// A task.
pub struct Task {
    /// What C sees.
    pub cell: TaskCell,
    /// A real-time task: not the scheduler's.
    pub rt: bool,
    /// Its life.
    pub state: State,
    /// Where it waits.
    pub place: Place,
    /// Held by the scheduler (ops.dequeue() would tell).
    pub custody: bool,
    /// Changes with every enqueue, so that a stale insert is recognised.
    pub enqueue_seq: u64,
    /// A direct dispatch to be carried out.
    pub direct: Option<Insert>,
    /// Its group in the workload.
    pub group: usize,
    /// Its cgroup among the machine's.
    pub cgroup: usize,
    /// What it does.
    pub program: Interp,
    /// CPU time left of what it does, ns.
    pub remaining: u64,
    /// It runs kernel code on its own account that ends in a further step.
    pub timer_count: u64,
    /// Runnable but not running since.
    pub waits_since: u64,
    /// It waits because it was woken (not preempted).
    pub woken: bool,
    /// In the queue of a CPU since; for the bound of its wait.
    pub queued_since: Option<super::bounds::Queued>,
    /// In its present queue, with its present mask, since; for work conservation.
    pub allowed_since: u64,
    /// The watchdog's: runnable without having run since.
    pub stalled_since: u64,
    /// When the request that it works on came.
    pub released: Option<u64>,
    /// The period that its request must be done in.
    pub period: u64,
    /// It exits at the end of its step.
    pub exiting: bool,
    /// CPU time received.
    pub ran: u64,
    /// ... of which on CPUs of the fastest kind.
    pub ran_fast: u64,
    /// CPU time received before it last started.
    pub ran_at_start: u64,
    /// When it was born.
    pub born: u64,
    /// When it died.
    pub died: Option<u64>,
    /// Its longest wait, ns.
    pub longest_wait: u64,
}

impl Task {
    /// The CPU whose run queue it belongs to.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cell.read(|k| k.cpu as usize)
    }

    /// Is it on a run queue?
    #[must_use]
    pub fn queued(&self) -> bool {
        self.cell.read(|k| k.scx_flags & ffi::TASK_QUEUED != 0)
    }

    /// May it run on `cpu`?
    #[must_use]
    pub fn may_use(&self, cpu: usize) -> bool {
        self.cell.allowed(|mask| mask.has(cpu))
    }

    /// Migration disabled.
    #[must_use]
    pub fn stuck(&self) -> bool {
        self.cell.read(|k| k.migration_disabled > 0)
    }
}

/// All tasks ever; ids are positions.
#[derive(Default)]
pub struct Tasks(Vec<Task>);

impl Tasks {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one.
    pub fn push(&mut self, task: Task) -> TaskId {
        self.0.push(task);
        self.0.len() - 1
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.0.iter().enumerate()
    }
}

impl Index<TaskId> for Tasks {
    type Output = Task;

    fn index(&self, id: TaskId) -> &Task {
        &self.0[id]
    }
}

impl IndexMut<TaskId> for Tasks {
    fn index_mut(&mut self, id: TaskId) -> &mut Task {
        &mut self.0[id]
    }
}
