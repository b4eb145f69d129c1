// SPDX-License-Identifier: GPL-2.0-only
//! A thread that does what its program says, and measures how it fared.

use super::stage::{Cast, Slot, Stage};
use crate::burn;
use crate::clock;
use crate::cpus;
use anyhow::{Context, Result, bail};
use scx_fulcrum::sim::stats::GroupStats;
use scx_fulcrum::sim::workload::program::{Action, Interp};
use scx_fulcrum::sim::workload::{Group, Policy};
use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

/// CPU time between two looks at the clock, ns.
const CHUNK_NS: u64 = 20_000;

struct Actor {
    stage: Arc<Stage>,
    id: usize,
    group: usize,
    slot: Arc<Slot>,
    program: Interp,
    stats: GroupStats,
    /// When the request came that it works on, and the period it has for it.
    released: Option<u64>,
    period: u64,
    /// CPU time by which earlier steps took too long, ns.
    ahead: u64,
}

/// Makes the threads that start by themselves; how many.
pub fn cast(stage: &Arc<Stage>) -> Result<usize> {
    let mut count = 0;
    for (group, cast) in stage.groups.iter().enumerate() {
        for instance in 0..cast.spec.count {
            let mut actor = Actor::new(stage, group)?;
            let start = cast.spec.start + cast.spec.stagger * instance as u64;
            count += 1;
            stage.spawn(move || actor.enter(start))?;
        }
    }
    Ok(count)
}

impl Actor {
    fn new(stage: &Arc<Stage>, group: usize) -> Result<Self> {
        let (id, instance, slot) = stage.enter(group)?;
        let Some(cast) = stage.groups.get(group) else {
            bail!("there is no group {group}");
        };
        Ok(Self {
            stage: Arc::clone(stage),
            id,
            group,
            slot,
            program: Interp::new(&cast.spec.steps, stage.seed, group, instance),
            stats: GroupStats::default(),
            released: None,
            period: 0,
            ahead: 0,
        })
    }

    /// A thread that was there before the start.
    fn enter(&mut self, start: u64) {
        if let Err(error) = self.prepare() {
            self.stage.fail(format!("{error:#}"));
        }
        self.stage.is_ready();
        let start = self.stage.await_open() + start;
        if start >= self.stage.end() {
            return;
        }
        clock::sleep_until(start);
        self.live(start);
    }

    fn prepare(&self) -> Result<()> {
        let Some(cast) = self.stage.groups.get(self.group) else {
            return Ok(());
        };
        if let Some(tree) = &self.stage.tree {
            tree.admit(0, cast.spec.cgroup)?;
        }
        prepare(cast)
    }

    /// One that another has started, in its cgroup.
    fn enter_forked(&mut self, parent: usize, forked: u64) {
        let groups = &self.stage.groups;
        if let (Some(cast), Some(parent)) = (groups.get(self.group), groups.get(parent))
            && differ(&cast.spec, &parent.spec)
            && let Err(error) = prepare(cast)
        {
            return self.stage.fail(format!("{error:#}"));
        }
        self.live(forked);
    }

    /// Its program, for which it was woken at `woken`.
    fn live(&mut self, woken: u64) {
        self.slot.begin();
        let before = involuntary_switches();
        self.woke(woken);
        while !self.stage.over() && self.step().is_continue() {}
        self.stats.preemptions = involuntary_switches().saturating_sub(before);
        self.slot.finish();
        self.stage.note(self.group, &self.stats);
    }

    /// The next step; break: nothing is left to do before the end.
    fn step(&mut self) -> ControlFlow<()> {
        let now = clock::now();
        match self.program.next(now) {
            Action::Run(ns) => self.work(ns),
            Action::Sleep(ns) => self.sleep_until(now.saturating_add(ns)),
            Action::Until(at, period) => {
                self.finish_request();
                self.released = Some(at);
                self.period = period;
                if at <= now {
                    return Continue(());
                }
                self.sleep_until(at)
            }
            Action::Wait(channel) => self.wait(channel),
            Action::Signal(channel, all, _) => {
                self.stage.signal(channel, all, None);
                Continue(())
            }
            Action::Lock(mutex) => {
                if self.stage.lock(mutex, self.id) {
                    return Continue(());
                }
                let ring = self.slot.bell.wait(false);
                self.woke(ring.at);
                Continue(())
            }
            Action::Unlock(mutex) => {
                self.stage.unlock(mutex);
                Continue(())
            }
            Action::Yield => {
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
                Continue(())
            }
            Action::Fork(group) => self.fork(group),
            Action::Exit => Break(()),
        }
    }

    /// Uses so much CPU time. What the clock's grain makes too much is taken
    /// off the next steps, so that the sum is the program's.
    fn work(&mut self, ns: u64) -> ControlFlow<()> {
        let began = clock::thread_cpu();
        let wanted = ns.saturating_sub(self.ahead);
        self.ahead = self.ahead.saturating_sub(ns);
        let mut used = 0;
        while used < wanted {
            if self.stage.over() {
                return Break(());
            }
            // Half of what is left, lest a rate that is too high overshoots.
            let chunk = ((wanted - used) / 2).clamp(200, CHUNK_NS);
            burn::spin((chunk as f64 * self.stage.rate.per_us() / 1000.0) as u64);
            used = clock::thread_cpu().saturating_sub(began);
        }
        self.ahead += used.saturating_sub(wanted);
        Continue(())
    }

    fn sleep_until(&mut self, due: u64) -> ControlFlow<()> {
        if due >= self.stage.end() {
            return Break(());
        }
        clock::sleep_until(due);
        self.woke(due);
        Continue(())
    }

    fn wait(&mut self, channel: usize) -> ControlFlow<()> {
        self.finish_request();
        if let Some(came) = self.stage.wait(channel, self.id) {
            self.released = Some(came);
            return Continue(());
        }
        let ring = self.slot.bell.wait(self.stage.is_sync(channel));
        self.released = Some(ring.released);
        self.woke(ring.at);
        Continue(())
    }

    fn fork(&mut self, group: usize) -> ControlFlow<()> {
        let forked = clock::now();
        let parent = self.group;
        let spawned = Self::new(&self.stage, group)
            .and_then(|mut child| self.stage.spawn(move || child.enter_forked(parent, forked)));
        match spawned {
            Ok(()) => Continue(()),
            Err(error) => {
                self.stage.fail(format!("{error:#}"));
                Break(())
            }
        }
    }

    /// It runs again: how long after it should.
    fn woke(&mut self, due: u64) {
        let now = clock::now();
        if now < self.stage.end() && !self.stage.over() {
            self.stats.wakeup.add(now.saturating_sub(due));
        }
    }

    /// The request that it worked on is done.
    fn finish_request(&mut self) {
        let now = clock::now();
        let Some(released) = self.released.take().filter(|_| now < self.stage.end()) else {
            return;
        };
        let took = now.saturating_sub(released);
        self.stats.response.add(took);
        if self.period > 0 && took > self.period {
            self.stats.misses += 1;
        }
    }
}

fn differ(a: &Group, b: &Group) -> bool {
    (a.nice, a.policy, &a.cpus) != (b.nice, b.policy, &b.cpus)
}

/// Makes the calling thread one of the group.
fn prepare(cast: &Cast) -> Result<()> {
    // The simulator knows no timer slack; real-time tasks have none either.
    // SAFETY: plain system call on the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let spec = &cast.spec;
    let name = &spec.name;
    if let Some(cpus) = &cast.cpus {
        cpus.confine(0)
            .with_context(|| format!("{name}: no online CPU in {cpus}"))?;
    }
    let policy = match spec.policy {
        Policy::Normal => libc::SCHED_OTHER,
        Policy::Batch => libc::SCHED_BATCH,
        Policy::Idle => libc::SCHED_IDLE,
        Policy::Fifo => libc::SCHED_FIFO,
    };
    let param = libc::sched_param {
        sched_priority: i32::from(spec.policy == Policy::Fifo),
    };
    // SAFETY: `param` is valid.
    if unsafe { libc::sched_setscheduler(0, policy, &param) } != 0 {
        return Err(io::Error::last_os_error()).with_context(|| format!("{name}: its policy"));
    }
    cpus::renice(spec.nice)
        .with_context(|| format!("{name}: nice {}: be root or ask for nice >= 0", spec.nice))
}

/// How often the calling thread lost its CPU while it could have gone on.
fn involuntary_switches() -> u64 {
    // SAFETY: all-zero is a valid rusage, and the call fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nivcsw as u64
    }
}
