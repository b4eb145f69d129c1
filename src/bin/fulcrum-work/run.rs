// SPDX-License-Identifier: GPL-2.0-only
//! `run`: what a workload file of the simulator says, done by real threads.
//!
//! The programs are the simulator's own, step by step and with the same random
//! numbers; only what interprets the steps differs. So the figures of both can
//! be laid side by side (`scripts/calibrate`). A `Run` is CPU time by the
//! thread's own clock; CPUs are those that this process may use, in order.

mod actor;
mod bell;
mod compare;
mod page;
mod report;
mod source;
mod stage;

use crate::burn::Rate;
use crate::clock;
use crate::cpus::{self, CpuList};
use anyhow::{Result, bail};
use clap::Args;
use scx_fulcrum::sim::config::Faults;
use scx_fulcrum::sim::workload::file::Scenario;
use scx_fulcrum::sim::workload::{self, Workload};
use stage::Stage;
use std::path::PathBuf;
use std::sync::Arc;

pub use compare::{CompareArgs, compare};
pub use report::RunReport;

/// As many threads as an ordinary machine gives without asking.
const MAX_THREADS: usize = 4096;

/// From "all are ready" to the start: everybody must be asleep by then.
const SETTLE_NS: u64 = 30_000_000;

#[derive(Args)]
pub struct RunArgs {
    /// The workload: the simulator's JSON format (docs/simulator.md) or rt-app's
    file: PathBuf,
    /// How long [default: the file's]
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Use the first N CPUs, as `scx_fulcrum sim --cpus N` does [default: the file's]
    #[arg(long, value_name = "N")]
    cpus: Option<usize>,
    /// Seed of the programs' random numbers, the simulator's for the same seed
    /// [default: the file's, else 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("not in 0.001 to 3600".to_string()),
    }
}

/// Runs a file to its end.
pub fn run(args: &RunArgs, rate: Rate) -> Result<RunReport> {
    let scenario = load(args)?;
    let machine = machine(args, &scenario)?;
    let workload = &scenario.workload;
    let stage = Stage::build(workload, scenario.config.seed, rate, &machine);
    let played = play(&stage, scenario.duration);
    let ended = stage.close();
    played?;
    ended?;
    Ok(RunReport::new(&scenario, &stage))
}

fn load(args: &RunArgs) -> Result<Scenario> {
    let shape = args.cpus.map(|cpus| cpus.to_string());
    let mut scenario = workload::load(&args.file, shape.as_deref()).map_err(anyhow::Error::msg)?;
    if let Some(seconds) = args.seconds {
        scenario.duration = (seconds * 1e9) as u64;
    }
    if let Some(seed) = args.seed {
        scenario.config.seed = seed;
    }
    let place = args.file.display();
    if !scenario.workload.cgroups.is_empty() || !scenario.workload.changes.is_empty() {
        bail!("{place}: cgroups: real threads run without; remove them or use the simulator");
    }
    if scenario.config.faults != Faults::default() || scenario.config.storage_fails_one_in > 0 {
        bail!(
            "{place}: faults: a real kernel can't be told to fail; remove them or use the simulator"
        );
    }
    if let Some(group) = scenario.workload.groups.iter().find(|group| group.kthread) {
        bail!(
            "{place}: {:?} are kernel threads, which no program can make",
            group.name
        );
    }
    if !scenario.workload.cgroups.is_empty() {
        bail!("{place}: cgroups: they are only simulated so far");
    }
    let threads = threads(&scenario.workload);
    if threads > MAX_THREADS {
        bail!("{place}: {threads} tasks are more than the {MAX_THREADS} threads that are run here");
    }
    Ok(scenario)
}

fn threads(workload: &Workload) -> usize {
    workload.groups.iter().map(|group| group.count).sum()
}

/// The machine's CPUs that stand for the file's, in order.
fn machine(args: &RunArgs, scenario: &Scenario) -> Result<Vec<usize>> {
    let wanted = scenario.config.topology.cpus;
    let mut allowed = CpuList::allowed()?.to_vec();
    if allowed.len() < wanted {
        bail!(
            "{}: it is for {wanted} CPUs, this machine has {}: run it on fewer with --cpus",
            args.file.display(),
            allowed.len()
        );
    }
    allowed.truncate(wanted);
    Ok(allowed)
}

/// From the first thread to the readings at the end.
fn play(stage: &Arc<Stage>, duration: u64) -> Result<()> {
    let actors = actor::cast(stage)?;
    let sources = source::start(stage)?;
    stage.await_ready(actors + sources)?;
    // After the actors' threads were made: they would inherit it.
    cpus::become_observer();
    let start = clock::now() + SETTLE_NS;
    stage.open(start, start + duration);
    clock::sleep_until(start + duration);
    stage.read_clocks();
    Ok(())
}
