// SPDX-License-Identifier: GPL-2.0-only
//! `hogs` and `yielders`: endless loops of different nice values, and what
//! each got of the CPU beside what it ought to get.

use crate::burn;
use crate::cpus::CpuList;
use crate::crew::{Crew, Desk, Member};
use crate::fair;
use crate::report::{self, Report};
use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;
use std::fmt;

/// Use CPU until told to stop.
pub fn endless(desk: &Desk) {
    while !desk.stopped() {
        burn::spin(burn::CHUNK);
        desk.count();
    }
}

/// A hog of this nice value on these CPUs.
pub fn hog(nice: i32, cpus: Option<CpuList>) -> Member {
    Member {
        nice,
        cpus,
        samples: 0,
        work: Box::new(endless),
    }
}

#[derive(Args)]
pub struct HogsArgs {
    /// Nice values, one hog each
    #[arg(
        long,
        value_delimiter = ',',
        allow_hyphen_values = true,
        default_value = "0"
    )]
    nice: Vec<i32>,
    /// Hogs of each nice value
    #[arg(long, default_value_t = 1)]
    each: usize,
    /// Confine all to these CPUs, for example 0-3,5 [default: no limit]
    #[arg(long)]
    cpus: Option<CpuList>,
    /// Seconds to measure
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Milliseconds to let pass before measuring
    #[arg(long, default_value_t = 500)]
    warmup_ms: u64,
    /// Fail if the worst relative error of a share is above this
    #[arg(long)]
    max_error: Option<f64>,
}

#[derive(Serialize)]
struct Row {
    nice: i32,
    weight: u32,
    cpu_s: f64,
    share: f64,
    ideal: f64,
    loops: u64,
}

#[derive(Serialize)]
pub struct HogsReport {
    cpus: String,
    seconds: f64,
    cpus_used: f64,
    loops: u64,
    worst_error: f64,
    hogs: Vec<Row>,
    #[serde(skip)]
    max_error: Option<f64>,
}

pub fn hogs(args: &HogsArgs) -> Result<HogsReport> {
    ensure!(
        args.nice.iter().all(|n| (-20..=19).contains(n)),
        "--nice takes values from -20 to 19"
    );
    let cpus = match &args.cpus {
        Some(cpus) => cpus.clone(),
        None => CpuList::allowed()?,
    };
    let nice: Vec<i32> = args
        .nice
        .iter()
        .flat_map(|n| std::iter::repeat_n(*n, args.each))
        .collect();
    let members: Vec<Member> = nice.iter().map(|n| hog(*n, args.cpus.clone())).collect();
    let mut crew = Crew::muster(&members)?;
    let window = crew.observe(args.warmup_ms, args.seconds)?;
    crew.stop()?;

    let weights: Vec<u32> = nice.iter().map(|n| fair::weight(*n)).collect();
    let used: Vec<f64> = window.cpu_ns.iter().map(|ns| *ns as f64).collect();
    let shares = fair::shares(&used);
    let ideals = fair::shares(&fair::ideal_cpus(&weights, cpus.len()));
    let rows = (0..nice.len())
        .map(|i| Row {
            nice: nice[i],
            weight: weights[i],
            cpu_s: used[i] / 1e9,
            share: shares[i],
            ideal: ideals[i],
            loops: window.counts[i],
        })
        .collect();
    Ok(HogsReport {
        cpus: cpus.to_string(),
        seconds: window.ns as f64 / 1e9,
        cpus_used: used.iter().sum::<f64>() / window.ns as f64,
        loops: window.counts.iter().sum(),
        worst_error: fair::worst_error(&shares, &ideals),
        hogs: rows,
        max_error: args.max_error,
    })
}

impl fmt::Display for HogsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "hogs: {} on CPU {}, {:.2} s, {:.3} CPUs used, {} loops",
            self.hogs.len(),
            self.cpus,
            self.seconds,
            self.cpus_used,
            self.loops
        )?;
        writeln!(f, "  nice  weight    cpu s   share   ideal    error")?;
        for row in &self.hogs {
            writeln!(
                f,
                "  {:>4}  {:>6}  {:>7.3}  {:.4}  {:.4}  {:>+7.4}",
                row.nice,
                row.weight,
                row.cpu_s,
                row.share,
                row.ideal,
                row.share / row.ideal - 1.0
            )?;
        }
        write!(f, "worst relative error {:.4}", self.worst_error)
    }
}

impl Report for HogsReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("hogs", self)
    }

    fn verdict(&self) -> Result<()> {
        report::at_most("the worst relative error", self.worst_error, self.max_error)
    }
}

#[derive(Args)]
pub struct YieldersArgs {
    /// Tasks that do nothing but sched_yield
    #[arg(long, default_value_t = 2)]
    yielders: usize,
    /// Hogs beside them
    #[arg(long, default_value_t = 1)]
    hogs: usize,
    /// The CPUs that all share
    #[arg(long, default_value = "0")]
    cpus: CpuList,
    /// Seconds to measure
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Fail if the hogs together get less of the used CPU time than this
    #[arg(long)]
    min_hog_share: Option<f64>,
}

#[derive(Serialize)]
pub struct YieldersReport {
    cpus: String,
    seconds: f64,
    hog_share: f64,
    yields: u64,
    loops: u64,
    #[serde(skip)]
    min_hog_share: Option<f64>,
}

fn yielder(desk: &Desk) {
    while !desk.stopped() {
        // SAFETY: no preconditions.
        unsafe { libc::sched_yield() };
        desk.count();
    }
}

pub fn yielders(args: &YieldersArgs) -> Result<YieldersReport> {
    ensure!(args.hogs > 0, "--hogs is at least 1");
    let cpus = Some(args.cpus.clone());
    let mut members: Vec<Member> = (0..args.hogs).map(|_| hog(0, cpus.clone())).collect();
    members.extend((0..args.yielders).map(|_| Member {
        work: Box::new(yielder),
        ..hog(0, cpus.clone())
    }));
    let mut crew = Crew::muster(&members)?;
    let window = crew.observe(500, args.seconds)?;
    crew.stop()?;
    let (hogs, yielders) = window.cpu_ns.split_at(args.hogs);
    let (hogs, yielders): (u64, u64) = (hogs.iter().sum(), yielders.iter().sum());
    let counts = &window.counts;
    Ok(YieldersReport {
        cpus: args.cpus.to_string(),
        seconds: window.ns as f64 / 1e9,
        hog_share: hogs as f64 / (hogs + yielders).max(1) as f64,
        yields: counts[args.hogs..].iter().sum(),
        loops: counts[..args.hogs].iter().sum(),
        min_hog_share: args.min_hog_share,
    })
}

impl fmt::Display for YieldersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "yielders: CPU {}, {:.2} s, hogs' share {:.4}, {} yields, {} loops",
            self.cpus, self.seconds, self.hog_share, self.yields, self.loops
        )
    }
}

impl Report for YieldersReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("yielders", self)
    }

    fn verdict(&self) -> Result<()> {
        report::at_least("the hogs' share", self.hog_share, self.min_hog_share)
    }
}
