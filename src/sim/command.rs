// SPDX-License-Identifier: GPL-2.0-only
//! `scx_fulcrum sim`: runs a workload file and tells what came of it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::config::Config;
use super::machine::{Machine, simulate};
use super::summary::Summary;
use super::topology::Topology;
use super::variants::Variant;
use super::workload::file::{self, Scenario};
use super::{eevdf, fluid, report, trace, workload};
use crate::control::settings::{Policy, Settings};
use crate::exit::{ExitCode, Failure, Outcome, printed};
use crate::kernel::topology::MAX_CPUS;

/// How often `--check` looks at the whole machine, ns.
const AUDIT: u64 = 50_000;

/// Flags of `scx_fulcrum sim`.
#[derive(Args, Clone, Debug)]
pub struct SimArgs {
    /// The workload: our own JSON format (docs/simulator.md) or rt-app's
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Seed of everything that the kernel leaves open [default: the file's, else 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Number of CPUs (1 to 4096) [default: the file's, else 2]
    #[arg(long, value_name = "N", conflicts_with = "topology", value_parser = clap::value_parser!(u32).range(1..=MAX_CPUS as i64))]
    pub cpus: Option<u32>,

    /// NODESxCACHESxCORESxTHREADS: caches of a node, cores of a cache, threads of a core
    #[arg(long, value_name = "SHAPE")]
    pub topology: Option<String>,

    /// Kernel to simulate: 6.16, 6.18, 7.1 or 7.3 [default: the file's, else 7.3]
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,

    /// The scheduler's policy: fair, latency, batch, mlfq or fifo [default: the file's, else fair]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,

    /// Simulated seconds (0.001 to 3600) [default: the file's, else 2]
    #[arg(long, value_name = "SEC")]
    pub seconds: Option<f64>,

    /// With the agent, which balances across caches
    #[arg(long)]
    pub agent: bool,

    /// Check the properties throughout and fail on the first that doesn't hold
    #[arg(long)]
    pub check: bool,

    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,

    /// Write all decisions in the format of Chrome's and Perfetto's trace viewers
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// Runs the command; the summary goes to `out`.
///
/// # Errors
///
/// A bad file or flag ([`ExitCode::Usage`]), or the run's failure with the
/// seed, the last decisions and the command that repeats it.
pub fn run(args: &SimArgs, out: &mut impl Write) -> Outcome<ExitCode> {
    let scenario = scenario(args)?;
    let trace_file = args.trace.as_deref().map(begin_trace).transpose()?;
    let mut config = scenario.config.clone();
    config.trace = args.trace.is_some();
    config.agent = args.agent;
    config.audit_period = if args.check { AUDIT } else { 0 };
    let machine = start(config, Variant::lease(), &scenario)?;
    if machine.failure.is_some() {
        let text = report::failure(&machine, &repeat(args, &machine));
        return Err(Failure::new(ExitCode::Unexpected, text));
    }
    if let (Some(path), Some(file)) = (&args.trace, trace_file) {
        let mut file = io::BufWriter::new(file);
        trace::write(&machine, &mut file)
            .and_then(|()| file.flush())
            .map_err(|error| unwritable(path, &error))?;
    }
    let cpus = scenario.config.topology.cpus;
    let ideal = fluid::run(
        &scenario.workload,
        cpus,
        scenario.config.seed,
        scenario.duration,
    );
    let plain = start(scenario.config.clone(), eevdf::variant(), &scenario)?;
    let plain = Some(plain).filter(|machine| machine.failure.is_none());
    let summary = Summary::new(&scenario.workload.name, &machine, &ideal, plain.as_ref());
    let text = if args.json {
        serde_json::to_string_pretty(&summary)
            .map_err(|error| Failure::new(ExitCode::Unexpected, format!("summary: {error}")))?
            + "\n"
    } else {
        summary.table()
    };
    printed(out, &text)?;
    Ok(ExitCode::Ok)
}

fn start(config: Config, variant: Variant, scenario: &Scenario) -> Outcome<Machine> {
    simulate(config, variant, &scenario.workload, scenario.duration)
        .map_err(|error| Failure::new(ExitCode::Unexpected, error))
}

/// Before the run: it would be in vain.
fn begin_trace(path: &Path) -> Outcome<fs::File> {
    fs::File::create(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!(
        "--trace {}: {error}: name a file that can be written",
        path.display()
    );
    Failure::new(ExitCode::Usage, message)
}

/// The file with the flags over it.
fn scenario(args: &SimArgs) -> Outcome<Scenario> {
    let usage = |why: String| Failure::new(ExitCode::Usage, why);
    let shape = args.cpus.map(|cpus| cpus.to_string());
    let shape = args.topology.clone().or(shape);
    if let Some(shape) = &shape {
        Topology::parse(shape).map_err(|why| usage(format!("--topology: {why}")))?;
    }
    let mut scenario = workload::load(&args.file, shape.as_deref()).map_err(usage)?;
    flags_over(args, &mut scenario).map_err(usage)?;
    Ok(scenario)
}

fn flags_over(args: &SimArgs, scenario: &mut Scenario) -> Result<(), String> {
    if let Some(seed) = args.seed {
        scenario.config.seed = seed;
    }
    if let Some(kernel) = &args.kernel {
        scenario.config.release =
            file::release(kernel).map_err(|why| format!("--kernel: {why}"))?;
    }
    if let Some(policy) = &args.policy {
        let policy = Policy::named(policy).map_err(|why| format!("--policy {policy}: {why}"))?;
        scenario.config.settings = Settings::of(policy);
    }
    if let Some(seconds) = args.seconds {
        if !(0.001..=3600.0).contains(&seconds) {
            return Err(format!("--seconds: {seconds} is not in 0.001..=3600"));
        }
        scenario.duration = (seconds * 1e9) as u64;
    }
    Ok(())
}

/// The command line that repeats a run.
fn repeat(args: &SimArgs, machine: &Machine) -> String {
    let mut line = format!("scx_fulcrum sim --seed {}", machine.cfg.seed);
    if let Some(cpus) = args.cpus {
        line += &format!(" --cpus {cpus}");
    }
    if let Some(shape) = &args.topology {
        line += &format!(" --topology {shape}");
    }
    if let Some(kernel) = &args.kernel {
        line += &format!(" --kernel {kernel}");
    }
    if let Some(policy) = &args.policy {
        line += &format!(" --policy {policy}");
    }
    if let Some(seconds) = args.seconds {
        line += &format!(" --seconds {seconds}");
    }
    if args.agent {
        line += " --agent";
    }
    if args.check {
        line += " --check";
    }
    line + &format!(" {}", args.file.display())
}
