// SPDX-License-Identifier: GPL-2.0-only
//! What the tasks of a workload file do, as programs.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::program::Step;
use super::{Arrivals, Group, Source, Workload};

const FOREVER: u64 = u64::MAX;
const MAX_STAGES: usize = 64;
/// A thousand seconds, in us.
const TIMES: RangeInclusive<u64> = 1..=1_000_000_000;

/// What a task does; times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Does {
    /// Uses the CPU for ever.
    Hog {},
    /// Runs and sleeps, both exponentially distributed.
    Sleeper {
        /// Mean CPU time between sleeps.
        run_us: u64,
        /// Mean sleep.
        sleep_us: u64,
    },
    /// Has to do its work once a period.
    Frame {
        /// The period.
        period_us: u64,
        /// CPU time a period.
        work_us: u64,
    },
    /// A chain of tasks: each works and wakes the next; the first sleeps between.
    Pipeline {
        /// Tasks in a chain.
        stages: usize,
        /// CPU time of each.
        run_us: u64,
        /// The first one's sleep.
        sleep_us: u64,
    },
    /// Workers that serve requests, which arrive whatever they do.
    Server {
        /// Mean time between arrivals.
        every_us: u64,
        /// Requests an arrival.
        #[serde(default = "one")]
        burst: usize,
        /// Mean CPU time of a request.
        service_us: u64,
    },
    /// Starts a child every so often that works and exits.
    ForkStorm {
        /// How often.
        every_us: u64,
        /// Mean CPU time of a child.
        child_us: u64,
    },
    /// All tasks of the group want one mutex.
    Convoy {
        /// CPU time with the mutex.
        hold_us: u64,
        /// Mean sleep without it.
        think_us: u64,
    },
    /// Works and yields.
    Yielder {
        /// CPU time between yields.
        run_us: u64,
    },
}

pub(super) const fn one() -> usize {
    1
}

fn time(name: &str, us: u64) -> Result<u64, String> {
    if TIMES.contains(&us) {
        Ok(us * 1000)
    } else {
        Err(format!("does.{name}: {us} is not in 1..=1000000000"))
    }
}

fn again(start: usize) -> Step {
    Step::Loop {
        start,
        times: FOREVER,
    }
}

fn wake(channel: usize) -> Step {
    Step::Signal {
        channel,
        all: false,
        sync: true,
    }
}

impl Does {
    pub(super) fn add_to(self, workload: &mut Workload, mut group: Group) -> Result<(), String> {
        let steps = match self {
            Self::Hog {} => vec![Step::Run(1_000_000_000), again(0)],
            Self::Sleeper { run_us, sleep_us } => vec![
                Step::RunExp(time("run_us", run_us)?),
                Step::SleepExp(time("sleep_us", sleep_us)?),
                again(0),
            ],
            Self::Frame { period_us, work_us } => vec![
                Step::Timer(time("period_us", period_us)?),
                Step::Run(time("work_us", work_us)?),
                again(0),
            ],
            Self::Pipeline {
                stages,
                run_us,
                sleep_us,
            } => return pipeline(workload, &group, stages, [run_us, sleep_us]),
            Self::Server {
                every_us,
                burst,
                service_us,
            } => {
                let every = time("every_us", every_us)?;
                let channel = workload.channels.len();
                workload.channels.push(1 << 20);
                let arrivals = match burst {
                    0 => return Err("does.burst: 0 requests never arrive".to_string()),
                    1 => Arrivals::Poisson(every),
                    size => Arrivals::Bursts(size as u64, every),
                };
                workload.sources.push(Source { channel, arrivals });
                let service = time("service_us", service_us)?;
                vec![Step::Wait(channel), Step::RunExp(service), again(0)]
            }
            Self::ForkStorm { every_us, child_us } => {
                let every = time("every_us", every_us)?;
                let child = workload.groups.len();
                let steps = vec![Step::RunExp(time("child_us", child_us)?)];
                let mut children = group.clone();
                children.name = format!("{}/child", group.name);
                children.count = 0;
                children.steps = steps.into();
                workload.groups.push(children);
                vec![Step::SleepExp(every), Step::Fork(child), again(0)]
            }
            Self::Convoy { hold_us, think_us } => {
                let mutex = workload.mutexes;
                workload.mutexes += 1;
                vec![
                    Step::SleepExp(time("think_us", think_us)?),
                    Step::Lock(mutex),
                    Step::Run(time("hold_us", hold_us)?),
                    Step::Unlock(mutex),
                    again(0),
                ]
            }
            Self::Yielder { run_us } => {
                vec![Step::Run(time("run_us", run_us)?), Step::Yield, again(0)]
            }
        };
        group.steps = steps.into();
        workload.groups.push(group);
        Ok(())
    }
}

fn pipeline(
    workload: &mut Workload,
    group: &Group,
    stages: usize,
    [run_us, sleep_us]: [u64; 2],
) -> Result<(), String> {
    if !(2..=MAX_STAGES).contains(&stages) {
        return Err(format!("does.stages: {stages} is not in 2..={MAX_STAGES}"));
    }
    let run = Step::Run(time("run_us", run_us)?);
    let sleep = Step::Sleep(time("sleep_us", sleep_us)?);
    for chain in 0..group.count {
        let first = workload.channels.len();
        workload
            .channels
            .extend(std::iter::repeat_n(1 << 10, stages - 1));
        for stage in 0..stages {
            let wait = match stage {
                0 => sleep.clone(),
                _ => Step::Wait(first + stage - 1),
            };
            let mut steps = vec![wait, run.clone()];
            if stage + 1 < stages {
                steps.push(wake(first + stage));
            }
            steps.push(again(0));
            let mut task = group.clone();
            task.count = 1;
            task.start += group.stagger * chain as u64;
            task.name = format!("{}/{stage}", group.name);
            task.steps = steps.into();
            workload.groups.push(task);
        }
    }
    Ok(())
}
