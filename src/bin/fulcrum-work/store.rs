// SPDX-License-Identifier: GPL-2.0-only
//! `store`: something like a database: readers, writers that take turns at a
//! log's lock, and a compaction in the background that takes that lock as well.

use crate::burn::Amount;
use crate::clock;
use crate::cpus::CpuList;
use crate::crew::{Crew, Desk, Member};
use crate::report::{self, Report};
use crate::spread::Spread;
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const WARMUP_MS: u64 = 300;
const READ_EVERY_NS: u64 = 4_000_000;
const READ: Amount = Amount::CpuTime(400_000);
const WRITE_EVERY_NS: u64 = 10_000_000;
const PREPARE: Amount = Amount::CpuTime(200_000);
/// With the lock held.
const APPEND: Amount = Amount::CpuTime(100_000);
const COMPACT: Amount = Amount::CpuTime(5_000_000);
/// With the lock held.
const SWITCH_OVER: Amount = Amount::CpuTime(300_000);
const COMPACTION_NICE: i32 = 10;
const WRITERS: usize = 4;
/// Readers for each CPU.
const READERS: usize = 4;

#[derive(Args)]
pub struct StoreArgs {
    /// Seconds to measure
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

#[derive(Serialize)]
pub struct StoreReport {
    seconds: f64,
    readers: usize,
    writers: usize,
    read: Spread,
    write: Spread,
    compactions: u64,
}

/// A lock between processes: 0 free, 1 held, 2 held and somebody sleeps.
struct Lock(&'static AtomicU32);

impl Lock {
    fn with(&self, work: impl FnOnce()) {
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            while self.0.swap(2, Acquire) != 0 {
                crate::crew::futex(self.0, libc::FUTEX_WAIT, 2);
            }
        }
        work();
        if self.0.swap(0, Release) == 2 {
            crate::crew::futex(self.0, libc::FUTEX_WAKE, 1);
        }
    }
}

/// Do something at fixed times; note when it was done, from when it was due.
fn at_times(desk: &Desk, phase_ns: u64, every_ns: u64, work: impl Fn()) {
    let mut due = desk.start_ns() + phase_ns;
    while !desk.stopped() {
        clock::sleep_until(due);
        work();
        desk.note(clock::now().saturating_sub(due));
        due += every_ns;
    }
}

fn compaction(desk: &Desk, lock: &Lock) {
    while !desk.stopped() {
        COMPACT.spend();
        lock.with(|| SWITCH_OVER.spend());
        desk.count();
    }
}

fn members(seconds: f64, readers: usize, lock: &'static AtomicU32) -> Vec<Member> {
    let member = |nice, samples: f64, work: Box<dyn Fn(&Desk)>| Member {
        nice,
        cpus: None,
        samples: samples as usize,
        work,
    };
    let samples = |every_ns: u64| (seconds + 1.0) * 1e9 / every_ns as f64;
    let mut members = Vec::new();
    for i in 0..readers as u64 {
        let phase = READ_EVERY_NS * i / readers as u64;
        let work = move |desk: &Desk| at_times(desk, phase, READ_EVERY_NS, || READ.spend());
        members.push(member(0, samples(READ_EVERY_NS), Box::new(work)));
    }
    for i in 0..WRITERS as u64 {
        let phase = WRITE_EVERY_NS * i / WRITERS as u64 / 8;
        let work = move |desk: &Desk| {
            at_times(desk, phase, WRITE_EVERY_NS, || {
                PREPARE.spend();
                Lock(lock).with(|| APPEND.spend());
            });
        };
        members.push(member(0, samples(WRITE_EVERY_NS), Box::new(work)));
    }
    let compact = move |desk: &Desk| compaction(desk, &Lock(lock));
    members.push(member(COMPACTION_NICE, 0.0, Box::new(compact)));
    members
}

pub fn store(args: &StoreArgs) -> Result<StoreReport> {
    let readers = READERS * CpuList::allowed()?.len();
    let lock = crate::crew::shared_word()?;
    let mut crew = Crew::muster(&members(args.seconds, readers, lock))?;
    let window = crew.observe(WARMUP_MS, args.seconds)?;
    crew.stop()?;
    let of = |range: std::ops::Range<usize>| {
        let all = range.flat_map(|i| crew.samples(i, &window)).collect();
        Spread::of(all).context("nothing was done in the time given")
    };
    Ok(StoreReport {
        seconds: window.ns as f64 / 1e9,
        readers,
        writers: WRITERS,
        read: of(0..readers)?,
        write: of(readers..readers + WRITERS)?,
        compactions: window.counts.last().copied().unwrap_or(0),
    })
}

impl fmt::Display for StoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "store: {} readers, {} writers, {:.2} s, {} compactions",
            self.readers, self.writers, self.seconds, self.compactions
        )?;
        writeln!(f, "  read   {}", self.read)?;
        write!(f, "  write  {}", self.write)
    }
}

impl Report for StoreReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("store", self)
    }
}
