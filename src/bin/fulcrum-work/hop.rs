// SPDX-License-Identifier: GPL-2.0-only
//! `hop`: tasks whose affinity changes to a random CPU every millisecond,
//! changed by themselves, by another process, or both.
//!
//! A scheduler that keeps a task queued for a CPU that it may no longer use
//! either loses it or is thrown out by the kernel. What each task checks is
//! that it runs where it was told once the system call has returned.

use crate::burn;
use crate::clock;
use crate::cpus::CpuList;
use crate::crew::{Crew, Desk, Member};
use crate::dice::Dice;
use crate::report::{self, Report};
use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum By {
    /// Each task moves itself
    Itself,
    /// One real-time process moves them all, running or queued
    Other,
}

#[derive(Args)]
pub struct HopArgs {
    /// Endless tasks that hop
    #[arg(long, default_value_t = 8)]
    tasks: usize,
    /// Who changes their affinity
    #[arg(long, value_enum, default_value_t = By::Itself)]
    by: By,
    /// Milliseconds between two changes
    #[arg(long, default_value_t = 1)]
    every_ms: u64,
    /// Seconds to go on
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
}

#[derive(Serialize)]
pub struct HopReport {
    tasks: usize,
    by: By,
    seconds: f64,
    hops: u64,
    /// CPU time of the task that got least, as a part of an equal share.
    least_share: f64,
}

/// Hop until told to stop. Ends early, which the crew reports, when the kernel
/// runs us elsewhere than we asked.
fn hop_along(desk: &Desk, cpus: &[usize], every_ns: u64) {
    // SAFETY: no preconditions.
    let mut dice = Dice(unsafe { libc::getpid() } as u64);
    while !desk.stopped() {
        let cpu = cpus[dice.roll(cpus.len())];
        if let Err(e) = CpuList::one(cpu).confine(0) {
            eprintln!("fulcrum-work: moving to CPU {cpu}: {e}");
            return;
        }
        // SAFETY: no preconditions.
        let at = unsafe { libc::sched_getcpu() };
        if at != cpu as i32 {
            eprintln!("fulcrum-work: confined to CPU {cpu}, running on CPU {at}");
            return;
        }
        desk.count();
        let until = clock::now() + every_ns;
        while clock::now() < until && !desk.stopped() {
            burn::spin(burn::CHUNK);
        }
    }
}

/// Move all members about until `end`; returns how many moves were made.
fn shove(crew: &Crew, cpus: &[usize], every_ns: u64, end: u64) -> Result<u64> {
    let mut dice = Dice(1);
    let mut hops = 0;
    let mut due = clock::now();
    while clock::now() < end {
        for &pid in crew.pids() {
            let cpu = cpus[dice.roll(cpus.len())];
            if let Err(e) = CpuList::one(cpu).confine(pid) {
                bail!("moving process {pid} to CPU {cpu}: {e}");
            }
            hops += 1;
        }
        due = (due + every_ns).max(clock::now());
        clock::sleep_until(due);
    }
    Ok(hops)
}

pub fn hop(args: &HopArgs) -> Result<HopReport> {
    ensure!(args.every_ms > 0, "--every-ms is at least 1");
    let cpus = CpuList::allowed()?.to_vec();
    let every_ns = args.every_ms * 1_000_000;
    let member = || {
        let cpus = cpus.clone();
        let work: Box<dyn Fn(&Desk)> = match args.by {
            By::Itself => Box::new(move |desk| hop_along(desk, &cpus, every_ns)),
            By::Other => Box::new(crate::hogs::endless),
        };
        Member {
            nice: 0,
            cpus: None,
            samples: 0,
            work,
        }
    };
    let members: Vec<Member> = (0..args.tasks).map(|_| member()).collect();
    let mut crew = Crew::muster(&members)?;
    let (window, hops) = match args.by {
        By::Itself => {
            let window = crew.observe(0, args.seconds)?;
            let hops = window.counts.iter().sum();
            (window, hops)
        }
        By::Other => {
            crew.start();
            let before = crew.read()?;
            let end = before.at_ns + (args.seconds * 1e9) as u64;
            let hops = shove(&crew, &cpus, every_ns, end)?;
            (crew.since(&before)?, hops)
        }
    };
    crew.stop()?;
    let sum: u64 = window.cpu_ns.iter().sum();
    let least = window.cpu_ns.iter().copied().min().unwrap_or(0);
    Ok(HopReport {
        tasks: args.tasks,
        by: args.by,
        seconds: window.ns as f64 / 1e9,
        hops,
        least_share: least as f64 * args.tasks as f64 / sum.max(1) as f64,
    })
}

impl fmt::Display for HopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "hop: {} tasks, {:.2} s, {} hops, the least served got {:.3} of an equal share",
            self.tasks, self.seconds, self.hops, self.least_share
        )
    }
}

impl Report for HopReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("hop", self)
    }

    fn verdict(&self) -> Result<()> {
        // Hops at random even out; a tenth of an equal share is starvation.
        report::at_least("the least served task's part", self.least_share, Some(0.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offline_cpu_is_an_error() {
        let gone = CpuList::one(4095).confine(0).map_err(|e| e.kind());
        assert_eq!(gone, Err(std::io::ErrorKind::InvalidInput));
    }
}
