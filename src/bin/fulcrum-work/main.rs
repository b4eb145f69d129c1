// SPDX-License-Identifier: GPL-2.0-only
//! fulcrum-work: small workloads with known right answers, for the tests on
//! real kernels and for the benchmark.
//!
//! One file a workload; `crew` runs their processes, `burn` is the work that
//! they do. Exit code 1: could not run, or a bound given was not kept.

mod bench;
mod build;
mod burn;
mod chain;
mod clock;
mod cpus;
mod crew;
mod dice;
mod fair;
mod fence;
mod forks;
mod groups;
mod hogs;
mod hop;
mod knobs;
mod metronome;
mod other;
mod periodic;
mod pipe;
mod report;
mod run;
mod spread;
mod store;
mod tour;
mod web;
mod wire;

use anyhow::Result;
use burn::Rate;
use clap::{Parser, Subcommand};
use report::Report;
use std::process::ExitCode;

/// Workloads that show what a CPU scheduler does
#[derive(Parser)]
#[command(name = "fulcrum-work", version)]
struct Cli {
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Rounds of work that make a microsecond, as `calibrate` prints them, so
    /// that runs to be compared do the same work [default: measured at start]
    #[arg(long, global = true, value_name = "N")]
    rounds_per_us: Option<f64>,
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// Print how many rounds of work make a microsecond of CPU time
    Calibrate,
    /// Endless loops of different nice values: the share each gets
    Hogs(hogs::HogsArgs),
    /// Hogs in cgroups of different weights: the share each group gets
    Groups(groups::GroupsArgs),
    /// Tasks that wake by the clock: how late they run
    Sleepers(periodic::SleepersArgs),
    /// Tasks that draw frames: how long each takes, how many are late
    Frames(periodic::FramesArgs),
    /// One periodic task confined to each CPU
    Pin(periodic::PinArgs),
    /// Pairs of processes that pass a byte back and forth
    Pipe(pipe::PipeArgs),
    /// Fork and wait, over and over
    Forks(forks::ForksArgs),
    /// sched_yield loops beside hogs: the share left to the hogs
    Yielders(hogs::YieldersArgs),
    /// Tasks sent to a random CPU every millisecond
    Hop(hop::HopArgs),
    /// A server under open-loop load: how long requests take
    Web(web::WebArgs),
    /// A pipeline of processes
    Chain(chain::ChainArgs),
    /// Readers, writers and a compaction around one lock
    Store(store::StoreArgs),
    /// make -j with frame tasks beside it
    Build(build::BuildArgs),
    /// Random policies and knobs set in the scx_fulcrum that runs
    Knobs(knobs::KnobsArgs),
    /// Two that both take themselves for its agent, at the same time
    Fence(fence::FenceArgs),
    /// Program the PC's timer to keep an instruction-count VM's clock fine
    Metronome(metronome::MetronomeArgs),
    /// What a workload file of the simulator says, by real threads
    Run(run::RunArgs),
    /// Lay such runs beside the simulator's (scripts/calibrate calls it)
    Compare(run::CompareArgs),
    /// A short round of them for scripts/run
    Tour(tour::TourArgs),
    /// Print what two tours have saved, side by side
    Table(tour::TableArgs),
    /// Schedulers compared in a VM, for scripts/bench
    Bench(bench::BenchArgs),
    /// Load another scheduler and hold it until SIGTERM
    Other(other::OtherArgs),
}

fn calibrate(json: bool) {
    let rate = Rate::measure().per_us();
    match json {
        true => println!("{{\"workload\":\"calibrate\",\"rounds_per_us\":{rate:.3}}}"),
        false => println!("{rate:.3}"),
    }
}

fn run(cli: &Cli) -> Result<()> {
    let rate = || match cli.rounds_per_us {
        Some(n) => Rate::given(n),
        None => Rate::measure(),
    };
    let report: Box<dyn Report> = match &cli.workload {
        Workload::Calibrate => {
            calibrate(cli.json);
            return Ok(());
        }
        Workload::Bench(args) => return bench::bench(args),
        Workload::Other(args) => return other::other(args),
        Workload::Compare(args) => return run::compare(args),
        Workload::Tour(args) => return tour::tour(args),
        Workload::Table(args) => return tour::beside(args),
        Workload::Hogs(args) => Box::new(hogs::hogs(args)?),
        Workload::Groups(args) => Box::new(groups::groups(args)?),
        Workload::Yielders(args) => Box::new(hogs::yielders(args)?),
        Workload::Sleepers(args) => Box::new(periodic::sleepers(args, rate())?),
        Workload::Frames(args) => Box::new(periodic::frames(args, rate())?),
        Workload::Pin(args) => Box::new(periodic::pin(args, rate())?),
        Workload::Pipe(args) => Box::new(pipe::pipe(args)?),
        Workload::Forks(args) => Box::new(forks::forks(args)?),
        Workload::Hop(args) => Box::new(hop::hop(args)?),
        Workload::Run(args) => Box::new(run::run(args, rate())?),
        Workload::Web(args) => Box::new(web::web(args)?),
        Workload::Chain(args) => Box::new(chain::chain(args)?),
        Workload::Store(args) => Box::new(store::store(args)?),
        Workload::Build(args) => Box::new(build::build(args, rate())?),
        Workload::Knobs(args) => Box::new(knobs::knobs(args)?),
        Workload::Fence(args) => Box::new(fence::fence(args)?),
        Workload::Metronome(args) => Box::new(metronome::metronome(args)?),
    };
    match cli.json {
        true => println!("{}", report.json()?),
        false => println!("{report}"),
    }
    report.verdict()
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("fulcrum-work: {e:#}");
            ExitCode::FAILURE
        }
    }
}
