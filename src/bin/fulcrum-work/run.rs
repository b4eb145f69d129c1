// SPDX-License-Identifier: GPL-2.0-only
//! `run`: what a workload file of the simulator says, done by real threads.
//!
//! The programs are the simulator's own, step by step and with the same random
//! numbers; only what interprets the steps differs. So the figures of both can
//! be laid side by side (`scripts/calibrate`). A `Run` is CPU time by the
//! thread's own clock; CPUs are those that this process may use, in order.

mod actor;
mod bell;
mod calibration;
mod cgroups;
mod changes;
mod compare;
mod page;
mod report;
mod source;
mod stage;

use crate::burn::Rate;
use crate::clock;
use crate::cpus::{self, CpuList};
use anyhow::{Context, Result, bail};
use cgroups::Tree;
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
    let tree = match workload.cgroups.as_slice() {
        [] => None,
        cgroups => Some(Tree::make(cgroups).with_context(|| args.file.display().to_string())?),
    };
    let stage = Stage::build(workload, scenario.config.seed, rate, &machine, tree);
    let played = play(&stage, scenario.duration);
    let ended = stage.close();
    let removed = stage.tree.as_ref().map_or(Ok(()), Tree::remove);
    // Why a thread stopped it says more than that it was stopped.
    ended?;
    played?;
    removed?;
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
    let signals = Signals::block();
    let actors = actor::cast(stage)?;
    let helpers = source::start(stage)? + changes::start(stage)?;
    stage.await_ready(actors + helpers)?;
    // After the actors' threads were made: they would inherit it.
    cpus::become_observer();
    let start = clock::now() + SETTLE_NS;
    stage.open(start, start + duration);
    signals.sleep_until(start + duration)?;
    stage.read_clocks();
    Ok(())
}

/// The signals that end a run early, and yet in order.
struct Signals(libc::sigset_t);

impl Signals {
    /// Keeps them from this thread and from those that it will start.
    fn block() -> Self {
        // SAFETY: the set is initialised before it is used; plain calls on it.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Self(set)
        }
    }

    /// Sleeps; an error if one comes.
    fn sleep_until(&self, due: u64) -> Result<()> {
        loop {
            let left = due.saturating_sub(clock::now());
            if left == 0 {
                return Ok(());
            }
            let left = libc::timespec {
                tv_sec: (left / 1_000_000_000) as libc::time_t,
                tv_nsec: (left % 1_000_000_000) as libc::c_long,
            };
            // SAFETY: set and time are valid; nobody wants the details.
            let signal = unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &left) };
            if signal > 0 {
                bail!("stopped by signal {signal}");
            }
        }
    }
}
