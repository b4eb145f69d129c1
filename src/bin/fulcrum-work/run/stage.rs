// SPDX-License-Identifier: GPL-2.0-only
//! What all threads of a run share: channels, mutexes, each thread's bell and
//! clock, the figures, and when it is over.

use super::bell::{Bell, Ring, futex};
use super::cgroups::Tree;
use crate::burn::Rate;
use crate::clock;
use crate::cpus::CpuList;
use anyhow::{Result, bail};
use scx_fulcrum::sim::stats::GroupStats;
use scx_fulcrum::sim::workload::program::{Channel, Mutex as Handover, Step};
use scx_fulcrum::sim::workload::{Change, Group, Source, Workload};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// How long threads may take to get ready or to end. Not a measurement: only
/// a starved thread takes that long.
const GUARD_NS: u64 = 60_000_000_000;

/// A thread as the others see it.
pub struct Slot {
    pub bell: Bell,
    group: usize,
    thread: AtomicI32,
    /// CPU time before its program began, ns.
    before: AtomicU64,
    /// CPU time of its program, once it has ended or been read, ns.
    ran: AtomicU64,
}

const UNREAD: u64 = u64::MAX;

/// A group and what came of it.
pub struct Cast {
    pub spec: Group,
    pub cpus: Option<CpuList>,
    /// It waits on a channel that is signalled through a pipe.
    sync: bool,
    born: AtomicUsize,
    stats: Mutex<GroupStats>,
}

struct Line {
    sync: bool,
    channel: Mutex<Channel>,
}

pub struct Stage {
    pub groups: Vec<Cast>,
    pub sources: Vec<Source>,
    pub changes: Vec<Change>,
    /// None: the file has no cgroups.
    pub tree: Option<Tree>,
    pub seed: u64,
    pub rate: Rate,
    channels: Vec<Line>,
    mutexes: Vec<Mutex<Handover>>,
    slots: RwLock<Vec<Arc<Slot>>>,
    opened: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
    over: AtomicBool,
    ready: AtomicUsize,
    alive: AtomicUsize,
    problem: Mutex<Option<String>>,
}

/// A thread that panicked has left nothing half-done behind our locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Channels that some program signals SYNC.
fn sync_channels(workload: &Workload) -> Vec<bool> {
    let mut sync = vec![false; workload.channels.len()];
    for step in workload.groups.iter().flat_map(|group| &*group.steps) {
        if let Step::Signal {
            channel,
            sync: true,
            ..
        } = step
            && let Some(flag) = sync.get_mut(*channel)
        {
            *flag = true;
        }
    }
    sync
}

/// The CPUs of a group on a machine whose CPUs are `machine`.
fn cpus(group: &Group, machine: &[usize]) -> Option<CpuList> {
    let numbers: Vec<String> = machine
        .iter()
        .enumerate()
        .filter(|(index, _)| group.cpus.as_ref().is_none_or(|mask| mask.has(*index)))
        .map(|(_, cpu)| cpu.to_string())
        .collect();
    numbers.join(",").parse().ok()
}

impl Stage {
    pub fn build(
        workload: &Workload,
        seed: u64,
        rate: Rate,
        machine: &[usize],
        tree: Option<Tree>,
    ) -> Arc<Self> {
        let sync = sync_channels(workload);
        let waits = |group: &Group| {
            group.steps.iter().any(|step| match step {
                Step::Wait(channel) => sync.get(*channel).copied().unwrap_or(false),
                _ => false,
            })
        };
        let groups = workload.groups.iter().map(|spec| Cast {
            cpus: cpus(spec, machine),
            sync: waits(spec),
            born: AtomicUsize::new(0),
            stats: Mutex::default(),
            spec: spec.clone(),
        });
        let channels = workload
            .channels
            .iter()
            .zip(&sync)
            .map(|(&limit, &sync)| Line {
                sync,
                channel: Mutex::new(Channel {
                    limit,
                    ..Channel::default()
                }),
            });
        Arc::new(Self {
            groups: groups.collect(),
            sources: workload.sources.clone(),
            changes: workload.changes.clone(),
            tree,
            seed,
            rate,
            channels: channels.collect(),
            mutexes: (0..workload.mutexes).map(|_| Mutex::default()).collect(),
            slots: RwLock::default(),
            opened: AtomicU32::new(0),
            start: AtomicU64::new(0),
            end: AtomicU64::new(u64::MAX),
            over: AtomicBool::new(false),
            ready: AtomicUsize::new(0),
            alive: AtomicUsize::new(0),
            problem: Mutex::default(),
        })
    }

    // Threads.

    /// A place for a new thread of the group: its id, its number in the group.
    pub fn enter(&self, group: usize) -> Result<(usize, usize, Arc<Slot>)> {
        let Some(cast) = self.groups.get(group) else {
            bail!("there is no group {group}");
        };
        let slot = Arc::new(Slot {
            bell: Bell::new(cast.sync)?,
            group,
            thread: AtomicI32::new(0),
            before: AtomicU64::new(0),
            ran: AtomicU64::new(UNREAD),
        });
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots.push(Arc::clone(&slot));
        Ok((slots.len() - 1, cast.born.fetch_add(1, Relaxed), slot))
    }

    /// Starts a thread that `close` waits for.
    pub fn spawn(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) -> Result<()> {
        self.alive.fetch_add(1, Relaxed);
        let stage = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .stack_size(128 * 1024)
            .spawn(move || {
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
                    stage.fail("a thread of the workload panicked");
                }
                stage.alive.fetch_sub(1, Release);
            });
        if let Err(error) = spawned {
            self.alive.fetch_sub(1, Relaxed);
            bail!("no more threads ({error}): the file starts more than this machine permits");
        }
        Ok(())
    }

    /// Something that makes the run worthless; the first is reported.
    pub fn fail(&self, why: impl ToString) {
        lock(&self.problem).get_or_insert(why.to_string());
        self.over.store(true, Release);
        // The main thread sleeps until the end or a signal.
        // SAFETY: plain system calls; all our threads block this signal.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    }

    pub fn is_ready(&self) {
        self.ready.fetch_add(1, Release);
    }

    pub fn await_ready(&self, threads: usize) -> Result<()> {
        let guard = clock::now() + GUARD_NS;
        while self.ready.load(Acquire) < threads {
            if self.over() {
                bail!("the threads could not be prepared");
            }
            if clock::now() > guard {
                bail!("a thread was not given a CPU for 60 s");
            }
            clock::sleep_until(clock::now() + 1_000_000);
        }
        Ok(())
    }

    /// Lets all begin.
    pub fn open(&self, start: u64, end: u64) {
        self.start.store(start, Relaxed);
        self.end.store(end, Relaxed);
        self.opened.store(1, Release);
        futex(&self.opened, libc::FUTEX_WAKE, i32::MAX as u32);
    }

    /// Waits for that; the start.
    pub fn await_open(&self) -> u64 {
        while self.opened.load(Acquire) == 0 {
            futex(&self.opened, libc::FUTEX_WAIT, 0);
        }
        self.start.load(Relaxed)
    }

    pub fn over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// When it ends, on the monotonic clock.
    pub fn end(&self) -> u64 {
        self.end.load(Relaxed)
    }

    /// CPU times at the end; of a thread that ended, its last.
    pub fn read_clocks(&self) {
        for slot in self
            .slots
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            if let Some(ns) = thread_clock(slot.thread.load(Acquire)) {
                slot.read(ns);
            }
        }
        self.over.store(true, Release);
    }

    /// Ends all threads and waits for them; the first problem that one had.
    pub fn close(&self) -> Result<()> {
        self.over.store(true, Release);
        if self.opened.load(Relaxed) == 0 {
            self.open(0, 0);
        }
        let guard = clock::now() + GUARD_NS;
        while self.alive.load(Acquire) > 0 {
            for slot in self
                .slots
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
            {
                slot.bell.ring_out();
            }
            if clock::now() > guard {
                bail!("a thread did not end for 60 s: it was not given a CPU");
            }
            clock::sleep_until(clock::now() + 2_000_000);
        }
        match lock(&self.problem).take() {
            Some(why) => bail!(why),
            None => Ok(()),
        }
    }

    /// The threads of these groups that have begun.
    pub fn threads(&self, groups: &[usize]) -> Vec<libc::pid_t> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let members = slots.iter().filter(|slot| groups.contains(&slot.group));
        let threads = members.map(|slot| slot.thread.load(Acquire));
        threads.filter(|thread| *thread != 0).collect()
    }

    // What programs do to one another.

    /// A signal for a request of `released`: wakes a waiter or is kept.
    pub fn signal(&self, channel: usize, all: bool, released: Option<u64>) {
        let Some(line) = self.channels.get(channel) else {
            return;
        };
        let count = if all {
            lock(&line.channel).waiters.len()
        } else {
            1
        };
        for _ in 0..count {
            let at = clock::now();
            let released = released.unwrap_or(at);
            let waiter = lock(&line.channel).signal(released);
            self.ring(waiter, Ring { at, released }, line.sync);
        }
    }

    /// Takes a kept signal (when it came) or makes `task` a waiter.
    pub fn wait(&self, channel: usize, task: usize) -> Option<u64> {
        let mut channel = lock(&self.channels.get(channel)?.channel);
        let kept = channel.signals.pop_front();
        if kept.is_none() {
            channel.waiters.push_back(task);
        }
        kept
    }

    /// Whether waiters of the channel wait at a pipe.
    pub fn is_sync(&self, channel: usize) -> bool {
        self.channels.get(channel).is_some_and(|line| line.sync)
    }

    /// True: `task` has the mutex; false: it will be rung for.
    pub fn lock(&self, mutex: usize, task: usize) -> bool {
        self.mutexes
            .get(mutex)
            .is_none_or(|mutex| lock(mutex).lock(task))
    }

    pub fn unlock(&self, mutex: usize) {
        let next = self
            .mutexes
            .get(mutex)
            .and_then(|mutex| lock(mutex).unlock());
        let at = clock::now();
        self.ring(next, Ring { at, released: at }, false);
    }

    fn ring(&self, task: Option<usize>, ring: Ring, sync: bool) {
        let slot = task.and_then(|task| {
            let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
            slots.get(task).cloned()
        });
        if let Some(slot) = slot {
            slot.bell.ring(ring, sync);
        }
    }

    // Figures.

    /// Adds a thread's figures to its group's.
    pub fn note(&self, group: usize, stats: &GroupStats) {
        if let Some(cast) = self.groups.get(group) {
            lock(&cast.stats).merge(stats);
        }
    }

    /// How many threads the group had, and their figures.
    pub fn figures(&self, group: usize) -> (usize, GroupStats) {
        let Some(cast) = self.groups.get(group) else {
            return (0, GroupStats::default());
        };
        let mut stats = lock(&cast.stats).clone();
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let ran = |slot: &Arc<Slot>| match slot.ran.load(Acquire) {
            UNREAD => 0,
            ns => ns,
        };
        stats.ran = slots
            .iter()
            .filter(|slot| slot.group == group)
            .map(ran)
            .sum();
        (cast.born.load(Relaxed), stats)
    }
}

impl Slot {
    /// The thread begins its program.
    pub fn begin(&self) {
        self.before.store(clock::thread_cpu(), Relaxed);
        // SAFETY: no preconditions.
        self.thread.store(unsafe { libc::gettid() }, Release);
    }

    /// The thread ends.
    pub fn finish(&self) {
        self.read(clock::thread_cpu());
    }

    /// Only the first reading counts: that at the end of the run, or of the thread.
    fn read(&self, ns: u64) {
        let ran = ns.saturating_sub(self.before.load(Relaxed));
        let _ = self.ran.compare_exchange(UNREAD, ran, Release, Relaxed);
    }
}

/// CPU time of a thread of this process, if it lives.
fn thread_clock(thread: libc::pid_t) -> Option<u64> {
    if thread == 0 {
        return None;
    }
    // The kernel's MAKE_THREAD_CPUCLOCK(thread, CPUCLOCK_SCHED).
    clock::read((!thread << 3) | 6)
}
