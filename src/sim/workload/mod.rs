// SPDX-License-Identifier: GPL-2.0-only
//! Workloads: groups of equal tasks, what they share, and what arrives from
//! outside.

mod cgroups;
mod comments;
mod does;
pub mod file;
pub mod program;
pub mod rtapp;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::ffi::CpuMask;
use super::rng::{Rng, mix};
use super::topology::Topology;
pub use cgroups::DEFAULT_WEIGHT;
use file::{File, Scenario};
use program::Step;

/// How a group's tasks are scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`
    #[default]
    Normal,
    /// `SCHED_BATCH`
    Batch,
    /// `SCHED_IDLE`
    Idle,
    /// `SCHED_FIFO`: above the scheduler.
    Fifo,
}

impl Policy {
    /// The kernel's number.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Normal => 0,
            Self::Batch => 3,
            Self::Idle => 5,
            Self::Fifo => 1,
        }
    }
}

/// Tasks that do the same.
#[derive(Clone, Debug)]
pub struct Group {
    /// For people.
    pub name: String,
    /// How many start by themselves; a fork target may have 0.
    pub count: usize,
    /// -20..=19
    pub nice: i32,
    /// Scheduling policy.
    pub policy: Policy,
    /// CPUs that they may use; none: all.
    pub cpus: Option<CpuMask>,
    /// When the first starts, ns.
    pub start: u64,
    /// How much later each next one starts, ns.
    pub stagger: u64,
    /// They are kernel threads.
    pub kthread: bool,
    /// Their cgroup, counted as [`Cgroup::parent`].
    pub cgroup: usize,
    /// What they do.
    pub steps: Arc<[Step]>,
}

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independently, on average once in so many ns.
    Poisson(u64),
    /// Bursts of so many at once, on average once in so many ns.
    Bursts(u64, u64),
}

/// An open-loop source: signals a channel whatever the tasks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which channel.
    pub channel: usize,
    /// When.
    pub arrivals: Arrivals,
}

/// A cgroup other than the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// `a/b`
    pub path: String,
    /// 0 is the root, n + 1 the one at n in [`Workload::cgroups`].
    pub parent: usize,
    /// `cpu.weight`
    pub weight: u32,
    /// `cpu.idle`
    pub idle: bool,
}

/// Something that somebody does at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When, ns.
    pub at: u64,
    /// What.
    pub what: Changed,
}

/// What is done; cgroups are counted as [`Cgroup::parent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// A cgroup gets another `cpu.weight`.
    Weight {
        /// Which.
        cgroup: usize,
        /// 1..=10000
        weight: u32,
    },
    /// ... another `cpu.idle`.
    Idle {
        /// Which.
        cgroup: usize,
        /// To 1.
        idle: bool,
    },
    /// It is removed and made anew, if nothing is in it.
    Remade {
        /// Which.
        cgroup: usize,
    },
    /// All tasks of these groups move to another cgroup.
    Move {
        /// Whose.
        groups: Vec<usize>,
        /// Where to.
        to: usize,
    },
}

/// A workload.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// For people.
    pub name: String,
    /// Its tasks.
    pub groups: Vec<Group>,
    /// How many signals each channel keeps.
    pub channels: Vec<usize>,
    /// Number of mutexes.
    pub mutexes: usize,
    /// What arrives from outside.
    pub sources: Vec<Source>,
    /// All cgroups but the root, parents first.
    pub cgroups: Vec<Cgroup>,
    /// What is done to them and to the tasks, in this order.
    pub changes: Vec<Change>,
}

/// What to do about a file that is none.
const REMEDY: &str = "name a workload file, as docs/simulator.md describes";

/// Reads a workload file, ours or rt-app's, for a machine of `shape`
/// (see [`Topology::parse`]; none: the file's own, else 2 CPUs).
///
/// # Errors
///
/// One line: the file, the place and what is wrong there.
pub fn load(path: &Path, shape: Option<&str>) -> Result<Scenario, String> {
    let place = path.display();
    let text = fs::read(path).map_err(|error| format!("{place}: {error}: {REMEDY}"))?;
    let text = String::from_utf8(text).map_err(|_| format!("{place}: not a text: {REMEDY}"))?;
    if rtapp::is_one(&text) {
        let topology = Topology::parse(shape.unwrap_or("2"))?;
        return rtapp::parse(&text, &topology).map_err(|why| format!("{place}:{why}"));
    }
    let mut file = File::parse(&text).map_err(|why| format!("{place}:{why}"))?;
    if let Some(shape) = shape {
        file.topology = Some(shape.to_string());
    }
    if file.name.is_empty() {
        file.name = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    }
    for (index, spec) in file.groups.iter().enumerate() {
        let mut others = file.groups.iter().take(index);
        if others.any(|other| other.name == spec.name) {
            let name = &spec.name;
            return Err(format!(
                "{place}: groups[{index}].name: {name:?} is there twice"
            ));
        }
    }
    file.scenario().map_err(|why| format!("{place}: {why}"))
}

/// The random numbers of arrivals, all sources', in the order of arriving.
#[must_use]
pub fn arrivals(seed: u64) -> Rng {
    Rng::new(mix(seed ^ 0xa881))
}

impl Group {
    /// A group of `count` tasks of nice 0 that may run anywhere.
    #[must_use]
    pub fn new(name: &str, count: usize, steps: Vec<Step>) -> Self {
        Self {
            name: name.to_string(),
            count,
            nice: 0,
            policy: Policy::Normal,
            cpus: None,
            start: 0,
            stagger: 0,
            kthread: false,
            cgroup: 0,
            steps: steps.into(),
        }
    }

    /// Endless CPU loops.
    #[must_use]
    pub fn hogs(name: &str, count: usize) -> Self {
        let steps = vec![
            Step::Run(1_000_000_000),
            Step::Loop {
                start: 0,
                times: u64::MAX,
            },
        ];
        Self::new(name, count, steps)
    }

    /// The same with this nice level.
    #[must_use]
    pub fn nice(mut self, nice: i32) -> Self {
        self.nice = nice;
        self
    }

    /// The same in this cgroup (see [`Cgroup::parent`]).
    #[must_use]
    pub fn within(mut self, cgroup: usize) -> Self {
        self.cgroup = cgroup;
        self
    }

    /// The same on these CPUs.
    #[must_use]
    pub fn on(mut self, cpus: CpuMask) -> Self {
        self.cpus = Some(cpus);
        self
    }
}
