// SPDX-License-Identifier: GPL-2.0-only
//! `sleepers`, `frames` and `pin`: tasks that wake by the clock, work a little
//! and sleep again, alone or beside hogs.
//!
//! When a task is due is fixed beforehand: one that is late is measured from
//! when it should have begun, and the next due time doesn't move. Otherwise a
//! scheduler that delays everything would be asked less often (coordinated
//! omission). `--rest-us` gives that up, for rows about shares.

use crate::burn::{Amount, Rate};
use crate::clock;
use crate::cpus::CpuList;
use crate::crew::{Crew, Desk, Member, Window};
use crate::fair;
use crate::hogs;
use crate::report::{self, Report};
use crate::spread::Spread;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use std::fmt;

const WARMUP_MS: u64 = 500;

#[derive(Args)]
pub struct SleepersArgs {
    /// Periodic tasks
    #[arg(long, default_value_t = 4)]
    tasks: usize,
    /// Microseconds from one wakeup to the next
    #[arg(long, default_value_t = 5000)]
    period_us: u64,
    /// Microseconds of CPU time to use after each wakeup
    #[arg(long, default_value_t = 200)]
    work_us: u64,
    /// Sleep at least that long after the work, even if the next is overdue:
    /// who is late then skips instead of catching up
    #[arg(long, default_value_t = 0)]
    rest_us: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct FramesArgs {
    /// Tasks that draw frames
    #[arg(long, default_value_t = 2)]
    tasks: usize,
    /// Microseconds from one frame to the next
    #[arg(long, default_value_t = 16667)]
    period_us: u64,
    /// Microseconds of CPU time that a frame takes
    #[arg(long, default_value_t = 4000)]
    work_us: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct PinArgs {
    /// Microseconds from one wakeup to the next
    #[arg(long, default_value_t = 5000)]
    period_us: u64,
    /// Microseconds of CPU time to use after each wakeup
    #[arg(long, default_value_t = 200)]
    work_us: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Common {
    /// Nice value of the periodic tasks
    #[arg(long, allow_hyphen_values = true, default_value_t = 0)]
    nice: i32,
    /// Hogs beside them
    #[arg(long, default_value_t = 0)]
    hogs: usize,
    /// Nice value of the hogs
    #[arg(long, allow_hyphen_values = true, default_value_t = 0)]
    hog_nice: i32,
    /// Confine all to these CPUs [default: no limit]
    #[arg(long)]
    cpus: Option<CpuList>,
    /// Measure out the work by each task's CPU clock instead of by calibrated
    /// rounds: for machines whose CPUs share one clock (docs/vm.md)
    #[arg(long)]
    clocked: bool,
    /// Seconds to measure
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
}

/// One periodic task's timetable.
#[derive(Clone, Copy)]
struct Beat {
    period_ns: u64,
    /// Offset of the first due time, so that tasks don't all wake together.
    phase_ns: u64,
    work: Amount,
    rest_ns: u64,
}

/// What the kernel adds to a sleep of an ordinary task. Set, because a process
/// that was started by a real-time one has none.
const TIMER_SLACK_NS: libc::c_ulong = 50_000;

/// Notes two samples a period: delay until it ran, time until it was done.
fn tick_along(desk: &Desk, beat: Beat) {
    // SAFETY: plain system call on the calling task.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    }
    let mut due = desk.start_ns() + beat.phase_ns;
    while !desk.stopped() {
        clock::sleep_until(due);
        desk.note(clock::now().saturating_sub(due));
        beat.work.spend();
        let done = clock::now();
        desk.note(done.saturating_sub(due));
        due += beat.period_ns;
        if beat.rest_ns > 0 {
            due = due.max(done + beat.rest_ns);
        }
    }
}

struct Plan<'a> {
    workload: &'static str,
    period_us: u64,
    work_us: u64,
    rest_us: u64,
    /// One task for each entry, on the CPUs that it names.
    homes: Vec<Option<CpuList>>,
    common: &'a Common,
}

#[derive(Serialize)]
pub struct PeriodicReport {
    #[serde(skip)]
    workload: &'static str,
    tasks: usize,
    period_us: u64,
    work_us: u64,
    seconds: f64,
    periods: usize,
    wakeup: Spread,
    response: Spread,
    misses: usize,
    miss_pct: f64,
    tasks_cpus: f64,
    hogs: usize,
    hogs_cpus: f64,
    /// How far the hogs are from what they would get if the periodic tasks
    /// were hogs as well, as a part of that. Says something only if they ask
    /// for more than their share.
    hogs_error: f64,
}

pub fn sleepers(args: &SleepersArgs, rate: Rate) -> Result<PeriodicReport> {
    let plan = Plan {
        workload: "sleepers",
        period_us: args.period_us,
        work_us: args.work_us,
        rest_us: args.rest_us,
        homes: vec![args.common.cpus.clone(); args.tasks],
        common: &args.common,
    };
    plan.run(rate)
}

fn frames_plan(args: &FramesArgs) -> Plan<'_> {
    Plan {
        workload: "frames",
        period_us: args.period_us,
        work_us: args.work_us,
        rest_us: 0,
        homes: vec![args.common.cpus.clone(); args.tasks],
        common: &args.common,
    }
}

pub fn frames(args: &FramesArgs, rate: Rate) -> Result<PeriodicReport> {
    frames_plan(args).run(rate)
}

/// Frames for as long as some work takes, `--seconds` at most.
pub fn frames_during(
    args: &FramesArgs,
    rate: Rate,
    work: impl FnOnce() -> Result<()>,
) -> Result<PeriodicReport> {
    let plan = frames_plan(args);
    let mut crew = Crew::muster(&plan.members(rate))?;
    let window = crew.observe_during(WARMUP_MS, work)?;
    crew.stop()?;
    plan.report(&crew, &window, rate)
}

pub fn pin(args: &PinArgs, rate: Rate) -> Result<PeriodicReport> {
    let cpus = match &args.common.cpus {
        Some(cpus) => cpus.clone(),
        None => CpuList::allowed()?,
    };
    let home = |cpu| Some(CpuList::one(cpu));
    let plan = Plan {
        workload: "pin",
        period_us: args.period_us,
        work_us: args.work_us,
        rest_us: 0,
        homes: cpus.to_vec().into_iter().map(home).collect(),
        common: &args.common,
    };
    plan.run(rate)
}

impl Plan<'_> {
    fn beat(&self, i: usize, rate: Rate) -> Beat {
        let period_ns = self.period_us * 1000;
        Beat {
            period_ns,
            phase_ns: period_ns * i as u64 / self.homes.len() as u64,
            work: match self.common.clocked {
                true => Amount::CpuTime(self.work_us * 1000),
                false => rate.rounds(self.work_us),
            },
            rest_ns: self.rest_us * 1000,
        }
    }

    fn members(&self, rate: Rate) -> Vec<Member> {
        let periods = (self.common.seconds * 1e6 / self.period_us as f64) as usize
            + (WARMUP_MS * 1000 / self.period_us) as usize;
        let mut members = Vec::new();
        for (i, home) in self.homes.iter().enumerate() {
            let beat = self.beat(i, rate);
            members.push(Member {
                nice: self.common.nice,
                cpus: home.clone(),
                samples: 2 * (periods + 16),
                work: Box::new(move |desk| tick_along(desk, beat)),
            });
        }
        let hog = || hogs::hog(self.common.hog_nice, self.common.cpus.clone());
        members.extend((0..self.common.hogs).map(|_| hog()));
        members
    }

    fn run(&self, rate: Rate) -> Result<PeriodicReport> {
        ensure!(
            self.period_us > 0 && self.work_us < self.period_us,
            "--work-us must be less than --period-us"
        );
        let mut crew = Crew::muster(&self.members(rate))?;
        let window = crew.observe(WARMUP_MS, self.common.seconds)?;
        crew.stop()?;
        self.report(&crew, &window, rate)
    }

    /// Delays and responses of the window. Who is a whole period late at its
    /// end counts with the time so far: a starved task must not look good
    /// because it had nothing to note.
    fn times(&self, crew: &Crew, window: &Window, rate: Rate) -> (Vec<u64>, Vec<u64>) {
        let (mut delays, mut responses) = (Vec::new(), Vec::new());
        for i in 0..self.homes.len() {
            let first = window.first[i];
            let notes = crew.samples(i, window);
            // Notes alternate: the delay of a period, then its response.
            for (k, note) in (first..).zip(&notes) {
                match k % 2 {
                    0 => delays.push(*note),
                    _ => responses.push(*note),
                }
            }
            // A task that rests moves its timetable, so nothing can be overdue.
            if self.rest_us > 0 {
                continue;
            }
            let beat = self.beat(i, rate);
            let noted = first + window.counts[i];
            let mut due = crew.start_ns() + beat.phase_ns + noted / 2 * beat.period_ns;
            let mut begun = noted % 2 == 1;
            while due + beat.period_ns < window.end_ns {
                if !begun {
                    delays.push(window.end_ns - due);
                }
                responses.push(window.end_ns - due);
                begun = false;
                due += beat.period_ns;
            }
        }
        (delays, responses)
    }

    /// CPUs that the hogs would get if the periodic tasks were hogs as well.
    fn hogs_due(&self) -> Result<f64> {
        let cpus = match &self.common.cpus {
            Some(cpus) => cpus.len(),
            None => CpuList::allowed()?.len(),
        };
        let mut weights = vec![fair::weight(self.common.nice); self.homes.len()];
        weights.extend(vec![fair::weight(self.common.hog_nice); self.common.hogs]);
        Ok(fair::ideal_cpus(&weights, cpus)
            .iter()
            .skip(self.homes.len())
            .sum())
    }

    fn report(&self, crew: &Crew, window: &Window, rate: Rate) -> Result<PeriodicReport> {
        let tasks = self.homes.len();
        let (delays, responses) = self.times(crew, window, rate);
        let limit = self.period_us * 1000;
        let none =
            "no task ever ran within the window: they were starved, or --seconds is too short";
        let cpus = |ns: &[u64]| ns.iter().sum::<u64>() as f64 / window.ns as f64;
        let misses = responses.iter().filter(|r| **r > limit).count();
        let hogs_cpus = cpus(&window.cpu_ns[tasks..]);
        let hogs_due = self.hogs_due()?;
        Ok(PeriodicReport {
            workload: self.workload,
            tasks,
            period_us: self.period_us,
            work_us: self.work_us,
            seconds: window.ns as f64 / 1e9,
            periods: responses.len(),
            misses,
            miss_pct: 100.0 * misses as f64 / responses.len().max(1) as f64,
            wakeup: Spread::of(delays).context(none)?,
            response: Spread::of(responses).context(none)?,
            tasks_cpus: cpus(&window.cpu_ns[..tasks]),
            hogs: self.common.hogs,
            hogs_cpus,
            hogs_error: match hogs_due > 0.0 {
                true => (hogs_cpus / hogs_due - 1.0).abs(),
                false => 0.0,
            },
        })
    }
}

impl fmt::Display for PeriodicReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} tasks every {} us, {} us of work, {} hogs, {:.2} s",
            self.workload, self.tasks, self.period_us, self.work_us, self.hogs, self.seconds
        )?;
        writeln!(f, "  wakeup delay  {}", self.wakeup)?;
        writeln!(f, "  response      {}", self.response)?;
        write!(
            f,
            "  {} periods, {} missed; CPUs used: tasks {:.3}, hogs {:.3}",
            self.periods, self.misses, self.tasks_cpus, self.hogs_cpus
        )
    }
}

impl Report for PeriodicReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object(self.workload, self)
    }
}
