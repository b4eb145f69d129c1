// SPDX-License-Identifier: GPL-2.0-only
//! The machine: its state, its clock, and the loop that takes one event after
//! the other.
//!
//! Time is exact: nothing happens between events. Where a real machine leaves
//! an order or a delay open, the seed's random numbers decide, in one place
//! each: ties between events (`push`), interrupt and kick delays (`resched`),
//! wakeups in two steps (`wake.rs`), wakeups within another CPU's callback
//! (`interleave`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::config::Config;
use super::dsq::{Dsq, TaskId};
use super::ffi::{CpuMask, KTask, TaskCell};
use super::idle::IdleMasks;
use super::log::{Log, What};
use super::rng::Rng;
use super::stats::Stats;
use super::tasks::{Task, Tasks};
use super::variants::Variant;

pub use super::load::simulate;

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curr {
    /// Its idle task.
    Idle,
    /// A task of a higher class that isn't the workload's (deadline, the stopper).
    Higher,
    /// A real-time task of the workload.
    Rt(TaskId),
    /// One of ours.
    Task(TaskId),
}

/// A CPU.
pub struct Cpu {
    /// Runs now.
    pub curr: Curr,
    /// The local dispatch queue.
    pub local: VecDeque<TaskId>,
    /// Active: takes tasks (`cpu_active`, and the run queue is online).
    pub active: bool,
    /// A reschedule is on its way.
    pub need_resched: bool,
    /// Counts switches, so that an event of an earlier run is recognised.
    pub generation: u64,
    /// Up to when the running task is charged.
    pub exec_start: u64,
    /// From when on the running task's work counts.
    pub work_start: u64,
    /// The tick is armed.
    pub ticking: bool,
    /// When within a period this CPU's tick comes.
    pub tick_phase: u64,
    /// It is inside the kernel until then; its events wait.
    pub frozen_until: u64,
    /// A higher class wants it that long.
    pub higher_pending: u64,
    /// Tasks that the stopper has to move away.
    pub stopper: VecDeque<TaskId>,
    /// Idle since; `u64::MAX` = not idle.
    pub idle_since: u64,
    /// Runnable tasks of ours, the running one included.
    pub nr_running: usize,
    /// Time spent with a task of ours.
    pub busy: u64,
    /// Which tasks started, and when.
    pub starts: super::bounds::Starts,
    /// Real-time tasks, and the server against them.
    pub rt: super::rt::RealTime,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// `cpu` reschedules.
    Resched(usize),
    /// The timer tick of `cpu`.
    Tick(usize),
    /// The running task of `cpu` has done its work, if the generation stands.
    WorkDone(usize, u64),
    /// A sleeping task's timer, if its count stands.
    Timer(TaskId, u64),
    /// The second half of a wakeup: task, CPU, enqueue flags, waker's CPU.
    Activate(TaskId, usize, u64, usize),
    /// A wakeup that had to wait for the task's CPU to let go of it: task,
    /// wake flags, waker's CPU.
    WakeAgain(TaskId, u64, usize),
    /// A timer of the scheduler's, armed on `cpu`, if its count stands.
    SchedTimer(usize, usize, u64),
    /// What waits on `cpu`'s local queue is queued anew.
    Reenqueue(usize),
    /// A kick reaches `cpu`.
    Kick(usize, u64),
    /// A higher class takes `cpu` for that long.
    HigherStart(usize, u64),
    /// ... and is done.
    HigherEnd(usize),
    /// The timer of `cpu`'s ext server.
    Server(usize),
    /// The stopper of `cpu` moves the tasks on its list.
    Stop(usize),
    /// Requests of an open-loop source arrive.
    Arrival(usize),
    /// A task starts its life.
    Birth(TaskId),
    /// A change from the workload, by number.
    Change(usize),
    /// A task that was between two CPUs moves to a cgroup.
    Regroup(TaskId, usize),
    /// A fault from the plan.
    Fault,
    /// A task leaves its migration-disabled section when it runs.
    MigrateEnable(TaskId),
    /// An offline CPU comes back.
    Online(usize),
    /// A CPU that was taken down leaves the online mask.
    OnlineMask(usize),
    /// Bypass mode ends.
    BypassEnd,
    /// The watchdog looks.
    Watchdog,
    /// The properties are checked.
    Audit,
    /// A round of the agent's that was planned for this time.
    Agent(u64),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    time: u64,
    tie: u32,
    sequence: u64,
}

/// Which callback runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// None.
    None,
    /// `ops.select_cpu()`
    SelectCpu,
    /// `ops.enqueue()`
    Enqueue,
    /// `ops.dispatch()`
    Dispatch,
    /// `ops.cpu_release()`
    Release,
    /// An op that runs without a run-queue lock: init, hotplug, init_task.
    Unlocked,
    /// Any other.
    Rest,
}

/// What a running callback may do, and on whose behalf it runs.
#[derive(Clone, Copy)]
pub struct Context {
    /// Which.
    pub op: Op,
    /// On this CPU.
    pub cpu: usize,
    /// The task that may be inserted directly.
    pub subject: Option<TaskId>,
    /// The run queue that is locked.
    pub locked: Option<usize>,
    /// The CPU executes a task, not an interrupt.
    pub in_task: bool,
}

/// A simulated machine with a scheduler loaded.
pub struct Machine {
    /// How it was set up.
    pub cfg: Config,
    pub(super) variant: Variant,
    pub(super) rng: Rng,
    /// Nanoseconds since the start.
    pub now: u64,
    pub(super) events: BinaryHeap<Reverse<(Event, EventBody)>>,
    pub(super) sequence: u64,
    pub(super) cpus: Vec<Cpu>,
    pub(super) tasks: Tasks,
    pub(super) cgroups: super::cgroups::Cgroups,
    pub(super) idle_task: TaskCell,
    pub(super) online: Box<CpuMask>,
    pub(super) idle: IdleMasks,
    pub(super) dsqs: Vec<Dsq>,
    pub(super) dsq_index: HashMap<u64, usize>,
    pub(super) global: Dsq,
    pub(super) ctx: Context,
    /// Run queues locked by callbacks that are being executed.
    pub(super) locks: Vec<usize>,
    /// CPUs that execute a callback, with interrupts off.
    pub(super) executing: Vec<usize>,
    pub(super) load: super::run::Load,
    /// Inserts made in ops.dispatch(), not yet committed.
    pub(super) buffered: Vec<(TaskId, super::tasks::Insert, u64)>,
    /// Tasks that the current ops.dispatch() has moved.
    pub(super) dispatched: u32,
    /// Real-time tasks that wait.
    pub(super) rt_waiting: usize,
    pub(super) bypass: bool,
    pub(super) interleave_depth: u32,
    /// Changes of the knobs, and one.
    pub(super) knobs_generation: u32,
    /// Why the run failed.
    pub failure: Option<String>,
    /// What happened, for hash, trace and report.
    pub log: Log,
    /// Figures of the run.
    pub stats: Stats,
    pub(super) audit: super::audit::Audit,
    /// How often each timer of the scheduler's, by address, was started.
    pub(super) timers: HashMap<usize, u64>,
    pub(super) meter: super::costs::Meter,
    /// What balances across caches, if one sits.
    pub(super) agent: Option<super::agent::SimAgent>,
}

#[derive(PartialEq, Eq)]
pub(super) struct EventBody(Happening);

impl PartialOrd for EventBody {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EventBody {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        // The sequence number before it is unique.
        std::cmp::Ordering::Equal
    }
}

impl Machine {
    /// Puts `what` into the future; who comes first at one moment is chance.
    pub fn push(&mut self, time: u64, what: Happening) {
        let event = Event {
            time: time.max(self.now),
            tie: self.rng.next() as u32,
            sequence: self.sequence,
        };
        self.sequence += 1;
        self.events.push(Reverse((event, EventBody(what))));
    }

    /// Runs until `end` ns or a failure.
    pub fn run_until(&mut self, end: u64) {
        while self.failure.is_none() {
            match self.events.peek() {
                Some(Reverse((event, _))) if event.time <= end => {}
                _ => break,
            }
            if let Some(Reverse((event, EventBody(what)))) = self.events.pop() {
                self.now = event.time;
                self.stats.events += 1;
                self.handle(what);
            }
        }
        if self.failure.is_none() {
            self.now = end;
        }
    }

    /// The CPU whose kernel code handles `what`, if one does.
    fn handler_cpu(&self, what: Happening) -> Option<usize> {
        match what {
            Happening::Resched(cpu)
            | Happening::Tick(cpu)
            | Happening::WorkDone(cpu, _)
            | Happening::SchedTimer(cpu, ..)
            | Happening::Reenqueue(cpu)
            | Happening::Kick(cpu, _)
            | Happening::HigherStart(cpu, _)
            | Happening::HigherEnd(cpu)
            | Happening::Server(cpu)
            | Happening::Stop(cpu) => Some(cpu),
            _ => None,
        }
    }

    fn handle(&mut self, what: Happening) {
        if let Some(cpu) = self.handler_cpu(what)
            && self.cpus[cpu].frozen_until > self.now
        {
            let later = self.cpus[cpu].frozen_until;
            return self.push(later, what);
        }
        match what {
            Happening::Resched(cpu) => {
                if self.cpus[cpu].need_resched {
                    self.schedule(cpu);
                }
            }
            Happening::Tick(cpu) => self.tick(cpu),
            Happening::WorkDone(cpu, generation) => {
                if self.cpus[cpu].generation == generation {
                    self.work_done(cpu);
                }
            }
            Happening::Timer(task, count) => self.timer(task, count),
            Happening::Activate(task, cpu, flags, waker) => self.activate(task, cpu, flags, waker),
            Happening::WakeAgain(task, flags, waker) => self.wake_again(task, flags, waker),
            Happening::SchedTimer(cpu, timer, count) => self.sched_timer(cpu, timer, count),
            Happening::Reenqueue(cpu) => self.interrupt(cpu, |m| {
                m.reenqueue_local(cpu);
            }),
            Happening::Kick(cpu, flags) => self.kicked(cpu, flags),
            Happening::HigherStart(cpu, time) => self.higher_start(cpu, time),
            Happening::HigherEnd(cpu) => self.higher_end(cpu),
            Happening::Server(cpu) => self.server_timer(cpu),
            Happening::Stop(cpu) => self.stop(cpu),
            Happening::Arrival(source) => self.arrival(source),
            Happening::Birth(task) => self.birth(task),
            Happening::Change(index) => self.change_from_workload(index),
            Happening::Regroup(task, to) => self.regroup(&[task], to),
            Happening::Fault => self.fault(),
            Happening::MigrateEnable(task) => self.migrate_enable(task),
            Happening::Online(cpu) => self.cpu_online(cpu),
            Happening::OnlineMask(cpu) => self.leave_online_mask(cpu),
            Happening::BypassEnd => self.set_bypass(false),
            Happening::Watchdog => self.watchdog(),
            Happening::Audit => self.run_audit(),
            Happening::Agent(planned) => self.agent_round(planned),
        }
    }

    /// Lets wakeups that are due about now happen in the middle of another
    /// CPU's callback. Only such as don't need a lock that is held.
    pub(super) fn interleave(&mut self) {
        if self.interleave_depth >= 2
            || self.ctx.op == Op::None
            || !self.rng.one_in(self.cfg.interleave_one_in)
        {
            return;
        }
        let Some(Reverse((event, EventBody(what)))) = self.events.peek() else {
            return;
        };
        let irq = matches!(what, Happening::Timer(..) | Happening::Arrival(_));
        if !irq || event.time > self.now + self.cfg.costs.interleave_window {
            return;
        }
        if let Some(Reverse((event, EventBody(what)))) = self.events.pop() {
            self.now = event.time;
            self.stats.events += 1;
            self.stats.interleaved += 1;
            self.interleave_depth += 1;
            let subject = std::mem::take(&mut self.buffered);
            self.handle(what);
            self.buffered = subject;
            self.interleave_depth -= 1;
            self.enter_world();
        }
    }

    /// The run fails, as the kernel would eject the scheduler. The first
    /// reason counts.
    pub fn fail(&mut self, reason: String) {
        if self.failure.is_none() {
            self.log
                .record(self.now, self.ctx.cpu, None, What::Failure, 0);
            self.failure = Some(reason);
        }
    }

    /// `name[pid]`, as the kernel prints tasks.
    pub fn name(&self, task: TaskId) -> String {
        let task = &self.tasks[task];
        task.cell.read(|k| {
            let end = k.comm.iter().position(|c| *c == 0).unwrap_or(k.comm.len());
            format!("{}[{}]", String::from_utf8_lossy(&k.comm[..end]), k.pid)
        })
    }

    /// The task of a pointer that C passed.
    pub(super) fn task_of(&self, pointer: *const KTask) -> TaskId {
        // SAFETY: C has only pointers that we gave it, and tasks are never freed
        // while the machine lives.
        unsafe { (*pointer).index as TaskId }
    }

    /// The scheduler, for another run.
    #[must_use]
    pub fn into_variant(self) -> Variant {
        self.variant
    }

    /// The groups of the workload.
    #[must_use]
    pub fn groups(&self) -> &[super::workload::Group] {
        &self.load.groups
    }

    /// How many tasks a group has had.
    #[must_use]
    pub fn members(&self, group: usize) -> usize {
        self.load.born[group]
    }

    /// One task's state.
    #[must_use]
    pub fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task]
    }

    /// How many tasks there are, dead ones included.
    #[must_use]
    pub fn nr_tasks(&self) -> usize {
        self.tasks.len()
    }
}
