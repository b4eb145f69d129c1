// SPDX-License-Identifier: GPL-2.0-only
//! The guest's side: in one boot, each scheduler in turn, each with all cases
//! of one mode. EEVDF begins and ends every round.

use super::cost::{self, Process};
use super::record::{Boot, Cost, Failed, Measured, Record};
use super::rows::{self, CASES, Case, Choice, Mode, Run};
use super::sched::{Candidate, Loaded};
use super::stats::median;
use crate::cpus::CpuList;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(Args)]
pub struct GuestArgs {
    /// Which rows may be run in this boot
    #[arg(long, value_enum)]
    mode: Mode,
    /// A scheduler to measure as NAME=PROGRAM [ARGUMENT...]; the first is the
    /// one that it is all about (repeatable)
    #[arg(long = "scheduler")]
    schedulers: Vec<Candidate>,
    #[command(flatten)]
    choice: Choice,
    /// Rounds; each has EEVDF at both ends
    #[arg(long, default_value_t = 1)]
    repeat: usize,
    /// Rounds in which schedulers other than the first run [default: all]
    #[arg(long)]
    others: Option<usize>,
}

/// One boot's run.
struct Guest {
    cpus: usize,
    cases: Vec<&'static Case>,
    visit: usize,
    began: Instant,
    /// Whether costs are wanted, which is not so in a short check; and whose
    /// are known.
    costs: bool,
    costed: BTreeSet<String>,
}

/// The rows that the costs of a wakeup explain, and whether only one CPU is busy
/// at a time in them.
const COST_ROWS: [(&str, bool); 2] = [("T1", true), ("T2", false)];

fn emit(record: &Record) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", record.line()?).context("standard output")?;
    out.flush().context("standard output")
}

/// One of our own workloads, in a process of its own.
fn own(arguments: &[String]) -> Result<Value> {
    let output = Command::new(std::env::current_exe().context("where am I")?)
        .arg("--json")
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("starting a workload")?;
    ensure!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).context("a workload's JSON")
}

/// A program, and how long it took.
fn timed(arguments: &[String]) -> Result<Value> {
    let (program, rest) = arguments.split_first().context("no program")?;
    let began = Instant::now();
    let output = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} is not there: run scripts/setup"))?;
    let seconds = began.elapsed().as_secs_f64();
    ensure!(output.status.success(), "{program}: {}", output.status);
    Ok(json!({ "seconds": seconds }))
}

/// A line for the shell that prints JSON.
fn shell(line: &str) -> Result<Value> {
    let output = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("starting sh")?;
    ensure!(output.status.success(), "sh: {}", output.status);
    serde_json::from_slice(&output.stdout).context("no JSON came out: run scripts/setup")
}

/// Run a case once.
fn once(case: &Case, cpus: usize) -> Result<Value> {
    match case.run {
        Run::Own(text) => own(&rows::arguments(text, cpus)),
        Run::Timed(text) => timed(&rows::arguments(text, cpus)),
        Run::Shell(text) => shell(&rows::filled_in(text, cpus)),
    }
}

impl Guest {
    fn say(&self, text: &str) {
        eprintln!("{:7.1} s  {text}", self.began.elapsed().as_secs_f64());
    }

    fn failed(&self, scheduler: &str, rows: &str, error: &anyhow::Error) -> Result<()> {
        self.say(&format!("{scheduler} {rows}: {error:#}"));
        emit(&Record::Failed(Failed {
            visit: self.visit,
            scheduler: scheduler.to_string(),
            rows: rows.to_string(),
            reason: format!("{error:#}"),
        }))
    }

    fn case(&self, case: &Case, scheduler: &str) -> Result<Vec<Measured>> {
        let reports: Vec<Value> = (0..case.times)
            .map(|_| once(case, self.cpus))
            .collect::<Result<_>>()?;
        let mut measured = Vec::new();
        for figure in case.figures {
            let number = |report: &Value| report.pointer(figure.at).and_then(Value::as_f64);
            let values: Vec<f64> = reports.iter().filter_map(number).collect();
            ensure!(
                values.len() == reports.len(),
                "no {} in a report",
                figure.at
            );
            measured.push(Measured {
                visit: self.visit,
                scheduler: scheduler.to_string(),
                key: figure.key(),
                value: median(&values).context("no run")?,
            });
        }
        Ok(measured)
    }

    fn cases(&self, candidate: &Candidate, loaded: &mut Loaded) -> Result<()> {
        for case in &self.cases {
            let done = self.case(case, &candidate.name);
            // What was measured while it was thrown out is EEVDF's in part.
            let kept = loaded.check();
            match (done, &kept) {
                (Ok(figures), Ok(())) => {
                    for figure in figures {
                        self.say(&format!(
                            "{} {}: {:.5}",
                            figure.scheduler, figure.key, figure.value
                        ));
                        emit(&Record::Figure(figure))?;
                    }
                }
                (Err(error), _) => {
                    self.failed(&candidate.name, &case.rows().join(" "), &error)?;
                }
                (Ok(_), Err(error)) => {
                    self.failed(&candidate.name, &case.rows().join(" "), error)?;
                }
            }
            if kept.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// What this scheduler's own work costs; once a boot, beside the rows that
    /// it explains.
    fn cost(&mut self, candidate: &Candidate) -> Result<()> {
        if !self.costs || !self.costed.insert(candidate.name.clone()) {
            return Ok(());
        }
        let cpus = CpuList::allowed()?.to_vec();
        let rows = self.cases.iter().flat_map(|case| {
            let of = move |(row, alone)| case.rows().contains(&row).then_some((case, alone));
            COST_ROWS.into_iter().filter_map(of)
        });
        for (case, alone) in rows {
            match cost::of(&cpus, alone, || once(case, self.cpus).map(drop)) {
                Ok(values) => emit(&Record::Cost(Cost {
                    scheduler: candidate.name.clone(),
                    about: cost::about(case),
                    values,
                }))?,
                Err(error) => self.failed(&candidate.name, "cost", &error)?,
            }
        }
        Ok(())
    }

    /// What the scheduler's process used through the visit.
    fn process_cost(&self, candidate: &Candidate, process: &Process) -> Result<()> {
        emit(&Record::Cost(Cost {
            scheduler: candidate.name.clone(),
            about: "the scheduler's process".to_string(),
            values: process.cost()?,
        }))
    }

    fn measure(&mut self, candidate: &Candidate, loaded: &mut Loaded) -> Result<()> {
        let process = loaded.pid().map(Process::watch).transpose()?;
        self.cases(candidate, loaded)?;
        if loaded.check().is_ok() {
            if let Some(process) = process {
                self.process_cost(candidate, &process)?;
            }
            self.cost(candidate)?;
        }
        Ok(())
    }

    fn visit(&mut self, candidate: &Candidate) -> Result<()> {
        match Loaded::load(candidate) {
            Err(error) => self.failed(&candidate.name, "", &error)?,
            Ok(mut loaded) => {
                self.measure(candidate, &mut loaded)?;
                if let Err(error) = loaded.unload() {
                    self.failed(&candidate.name, "unloading", &error)?;
                }
            }
        }
        self.visit += 1;
        Ok(())
    }
}

/// A boot's first runs are slower: programs come from the host's files then.
fn warm_up(cases: &[&Case], cpus: usize) -> Result<()> {
    for case in cases {
        let programs = matches!(case.run, Run::Timed(_) | Run::Shell(_)) || case.rows() == ["W4"];
        if let (true, Err(error)) = (programs, once(case, cpus)) {
            // It will be reported for each scheduler; the others go on.
            eprintln!("warming up {}: {error:#}", case.rows().join(" "));
        }
    }
    let warm = |text| own(&rows::arguments(text, cpus)).map(drop);
    warm("pipe --seconds 0.3")?;
    warm("forks --seconds 0.3")
}

pub fn guest(args: &GuestArgs) -> Result<()> {
    let cpus = CpuList::allowed()?.len();
    let cases: Vec<&Case> = CASES
        .iter()
        .filter(|c| c.mode == args.mode && c.wanted(&args.choice))
        .collect();
    ensure!(!cases.is_empty(), "no row of this mode was asked for");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("osrelease")?;
    emit(&Record::Boot(Boot {
        mode: args.mode,
        kernel: kernel.trim().to_string(),
        cpus,
    }))?;
    for candidate in &args.schedulers {
        if let Some(version) = candidate.version() {
            let name = candidate.name.clone();
            emit(&Record::Scheduler { name, version })?;
        }
    }
    if args.mode == Mode::Metronome {
        own(&["metronome".to_string()])?;
    }
    warm_up(&cases, cpus)?;
    let mut guest = Guest {
        cpus,
        cases,
        visit: 0,
        began: Instant::now(),
        costs: !args.choice.short,
        costed: BTreeSet::new(),
    };
    guest.visit(&Candidate::eevdf())?;
    for round in 0..args.repeat {
        let others = args.others.is_none_or(|n| round < n);
        let here = if others { args.schedulers.len() } else { 1 };
        for candidate in args.schedulers.iter().take(here) {
            guest.visit(candidate)?;
        }
        guest.visit(&Candidate::eevdf())?;
    }
    Ok(())
}
