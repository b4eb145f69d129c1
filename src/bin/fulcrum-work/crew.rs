// SPDX-License-Identifier: GPL-2.0-only
//! A crew: worker processes that begin together, are measured from outside
//! and are stopped together.
//!
//! Processes and not threads, because that is what users run: each has its own
//! address space and its own place in cgroups and autogroups. They share one
//! piece of memory, the board, with one desk a member: a counter and a row of
//! samples. Nobody survives the parent.

use crate::clock::{self, CpuClock};
use crate::cpus::{self, CpuList};
use anyhow::{Context, Result, bail};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::{io, ptr, slice};

const WAITING: u32 = 0;
const WORKING: u32 = 1;
const STOPPED: u32 = 2;

/// How long members may take to get ready or to stop. Not a measurement: only
/// a starved task takes that long, and that is an error worth its own message.
const GUARD_NS: u64 = 60_000_000_000;

/// What one member is and does. `work` runs in its own process and should
/// return soon after `Desk::stopped`.
pub struct Member {
    pub nice: i32,
    pub cpus: Option<CpuList>,
    /// Length of its row of samples.
    pub samples: usize,
    pub work: Box<dyn Fn(&Desk)>,
}

#[repr(C, align(128))]
struct Head {
    phase: AtomicU32,
    start_ns: AtomicU64,
}

#[repr(C, align(128))]
struct Counter {
    ready: AtomicU32,
    count: AtomicU64,
}

/// A member's own part of the board.
pub struct Desk {
    head: &'static Head,
    counter: &'static Counter,
    samples: &'static [AtomicU64],
}

impl Desk {
    pub fn stopped(&self) -> bool {
        self.head.phase.load(Relaxed) == STOPPED
    }

    /// When the crew began, on the monotonic clock.
    pub fn start_ns(&self) -> u64 {
        self.head.start_ns.load(Relaxed)
    }

    /// Count one unit of work done. Only the member itself writes.
    pub fn count(&self) {
        let n = self.counter.count.load(Relaxed);
        self.counter.count.store(n + 1, Relaxed);
    }

    /// Note one sample and count it. What doesn't fit was measured after the
    /// window that the row was sized for, and is dropped.
    pub fn note(&self, value: u64) {
        let n = self.counter.count.load(Relaxed);
        if let Some(slot) = self.samples.get(n as usize) {
            slot.store(value, Relaxed);
            self.counter.count.store(n + 1, Release);
        }
    }
}

/// What the outside saw of every member at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    pub at_ns: u64,
    pub cpu_ns: Vec<u64>,
    pub counts: Vec<u64>,
}

/// What happened between two readings.
#[derive(Clone, Debug)]
pub struct Window {
    pub ns: u64,
    /// Its end on the monotonic clock.
    pub end_ns: u64,
    pub cpu_ns: Vec<u64>,
    pub counts: Vec<u64>,
    pub first: Vec<u64>,
}

impl Window {
    fn between(a: &Reading, b: &Reading) -> Self {
        let minus = |b: &[u64], a: &[u64]| -> Vec<u64> {
            b.iter().zip(a).map(|(b, a)| b.saturating_sub(*a)).collect()
        };
        Self {
            ns: (b.at_ns - a.at_ns).max(1),
            end_ns: b.at_ns,
            cpu_ns: minus(&b.cpu_ns, &a.cpu_ns),
            counts: minus(&b.counts, &a.counts),
            first: a.counts.clone(),
        }
    }
}

pub struct Crew {
    head: &'static Head,
    desks: Vec<Desk>,
    pids: Vec<libc::pid_t>,
    clocks: Vec<CpuClock>,
}

/// Memory that parent and members share for the life of the process.
fn share(bytes: usize) -> Result<*mut u8> {
    // SAFETY: a fresh anonymous mapping, zeroed by the kernel.
    let at = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes.max(1),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error())
            .with_context(|| format!("no memory for {bytes} bytes of samples: ask for less time"));
    }
    Ok(at.cast())
}

/// A word that a crew mustered later will share.
pub fn shared_word() -> Result<&'static AtomicU32> {
    // SAFETY: a fresh zeroed page, never unmapped; 0 is a valid word.
    Ok(unsafe { &*share(size_of::<AtomicU32>())?.cast::<AtomicU32>() })
}

fn desks(members: &[Member]) -> Result<Vec<Desk>> {
    // SAFETY: fresh zeroed pages, aligned beyond 128, never unmapped; all-zero
    // is a valid state of atomics, and only atomics are ever shared.
    unsafe {
        let head = &*share(size_of::<Head>())?.cast::<Head>();
        let counters = share(members.len() * size_of::<Counter>())?.cast::<Counter>();
        let mut desks = Vec::new();
        for (i, member) in members.iter().enumerate() {
            let row = share(member.samples * 8)?.cast::<AtomicU64>();
            desks.push(Desk {
                head,
                counter: &*counters.add(i),
                samples: slice::from_raw_parts(row, member.samples),
            });
        }
        Ok(desks)
    }
}

/// Wait on or wake by a word in shared memory.
pub fn futex(word: &AtomicU32, op: i32, value: u32) {
    // SAFETY: the word lives in shared memory that is never unmapped.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            op,
            value,
            ptr::null::<libc::timespec>(),
        );
    }
}

/// The whole life of a member's process.
fn live(member: &Member, desk: &Desk, parent: libc::pid_t) -> Result<()> {
    // SAFETY: plain system calls.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            return Ok(());
        }
    }
    cpus::renice(member.nice)
        .with_context(|| format!("nice {}: be root or ask for nice >= 0", member.nice))?;
    if let Some(cpus) = &member.cpus {
        cpus.confine(0)
            .with_context(|| format!("no online CPU in {cpus}"))?;
    }
    // Page faults belong before the start, not into the first samples.
    for slot in desk.samples.iter().step_by(512) {
        slot.store(0, Relaxed);
    }
    desk.counter.ready.store(1, Release);
    while desk.head.phase.load(Acquire) == WAITING {
        futex(&desk.head.phase, libc::FUTEX_WAIT, WAITING);
    }
    (member.work)(desk);
    Ok(())
}

/// Fork one member. The parent gets its id, the child never returns.
fn spawn(member: &Member, desk: &Desk) -> Result<libc::pid_t> {
    // SAFETY: we are single-threaded, so the child may use everything; it
    // leaves by _exit and runs no destructor of the parent's.
    unsafe {
        let parent = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()).context("fork"),
            0 => {
                let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    live(member, desk, parent)
                }));
                let code = match lived {
                    Ok(Ok(())) => 0,
                    Ok(Err(e)) => {
                        eprintln!("fulcrum-work: {e:#}");
                        1
                    }
                    Err(_) => 101,
                };
                libc::_exit(code)
            }
            pid => Ok(pid),
        }
    }
}

impl Crew {
    /// Start the members' processes and wait until all are ready to begin.
    pub fn muster(members: &[Member]) -> Result<Self> {
        let desks = desks(members)?;
        let Some(first) = desks.first() else {
            bail!("no worker asked for: give at least one");
        };
        let mut crew = Self {
            head: first.head,
            desks,
            pids: Vec::new(),
            clocks: Vec::new(),
        };
        for (i, member) in members.iter().enumerate() {
            let pid = spawn(member, &crew.desks[i])?;
            crew.pids.push(pid);
            crew.clocks.push(CpuClock::of(pid)?);
        }
        crew.await_ready()?;
        Ok(crew)
    }

    fn await_ready(&mut self) -> Result<()> {
        let guard = clock::now() + GUARD_NS;
        while !self
            .desks
            .iter()
            .all(|d| d.counter.ready.load(Acquire) == 1)
        {
            self.check_alive()?;
            if clock::now() > guard {
                bail!("a worker was not given a CPU for 60 s");
            }
            clock::sleep_until(clock::now() + 1_000_000);
        }
        Ok(())
    }

    /// An error when a member has ended, which none does before it is told to.
    fn check_alive(&mut self) -> Result<()> {
        for i in 0..self.pids.len() {
            if self.ended(i) {
                bail!("worker {i} ended by itself");
            }
        }
        Ok(())
    }

    fn ended(&mut self, i: usize) -> bool {
        // SAFETY: reaps a child of ours; no status wanted.
        let rc = unsafe { libc::waitpid(self.pids[i], ptr::null_mut(), libc::WNOHANG) };
        if rc == 0 {
            return false;
        }
        self.pids.swap_remove(i);
        true
    }

    /// Let all begin.
    pub fn start(&self) {
        cpus::become_observer();
        self.head.start_ns.store(clock::now(), Relaxed);
        self.head.phase.store(WORKING, Release);
        futex(&self.head.phase, libc::FUTEX_WAKE, i32::MAX as u32);
    }

    /// Process ids, in the members' order (until the first has ended).
    pub fn pids(&self) -> &[libc::pid_t] {
        &self.pids
    }

    /// When all began, on the monotonic clock.
    pub fn start_ns(&self) -> u64 {
        self.head.start_ns.load(Relaxed)
    }

    pub fn read(&self) -> Result<Reading> {
        let cpu: Result<Vec<u64>> = self.clocks.iter().map(|c| c.read()).collect();
        Ok(Reading {
            at_ns: clock::now(),
            cpu_ns: cpu?,
            counts: self
                .desks
                .iter()
                .map(|d| d.counter.count.load(Acquire))
                .collect(),
        })
    }

    /// Start, let pass the first `warmup_ms`, and measure for `seconds`.
    pub fn observe(&mut self, warmup_ms: u64, seconds: f64) -> Result<Window> {
        self.start();
        let begin = clock::now() + warmup_ms * 1_000_000;
        clock::sleep_until(begin);
        let before = self.read()?;
        clock::sleep_until(begin + (seconds * 1e9) as u64);
        self.since(&before)
    }

    /// Start, let pass the first `warmup_ms`, and measure while `work` is done.
    pub fn observe_during(
        &mut self,
        warmup_ms: u64,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<Window> {
        self.start();
        clock::sleep_until(clock::now() + warmup_ms * 1_000_000);
        let before = self.read()?;
        work()?;
        self.since(&before)
    }

    /// What happened since a reading; an error if a member ended meanwhile.
    pub fn since(&mut self, before: &Reading) -> Result<Window> {
        let after = self.read()?;
        self.check_alive()?;
        Ok(Window::between(before, &after))
    }

    /// Samples that member `i` noted within the window.
    pub fn samples(&self, i: usize, window: &Window) -> Vec<u64> {
        let first = window.first[i] as usize;
        let row = self.desks[i].samples;
        let last = (first + window.counts[i] as usize).min(row.len());
        row[first.min(last)..last]
            .iter()
            .map(|s| s.load(Relaxed))
            .collect()
    }

    /// Tell all to stop and wait until the last one has.
    pub fn stop(&mut self) -> Result<()> {
        self.head.phase.store(STOPPED, Release);
        let guard = clock::now() + GUARD_NS;
        while !self.pids.is_empty() {
            let mut i = 0;
            while i < self.pids.len() {
                if !self.ended(i) {
                    i += 1;
                }
            }
            if clock::now() > guard {
                bail!("a worker did not stop for 60 s: it was not given a CPU");
            }
            clock::sleep_until(clock::now() + 1_000_000);
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for &pid in &self.pids {
            // SAFETY: our own children, not yet reaped.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, ptr::null_mut(), 0);
            }
        }
    }
}
