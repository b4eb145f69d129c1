// SPDX-License-Identifier: GPL-2.0-only
//! What happened: a hash over all decisions, the last ones in words, and all
//! of them if a trace is wanted.

use std::collections::VecDeque;

use super::dsq::TaskId;
use super::rng::mix;

/// A kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// A task was woken; argument: the CPU chosen.
    Wake,
    /// A task joined a queue; argument: the queue's id, shortened.
    Insert,
    /// A task starts to run; argument: its slice.
    Run,
    /// A task is taken off its CPU; argument: its slice left.
    Preempt,
    /// A task goes to sleep.
    Sleep,
    /// The running task goes on; argument: its slice.
    Keep,
    /// A CPU goes idle.
    Idle,
    /// A task moved to this CPU; argument: from.
    Migrate,
    /// A CPU is kicked; argument: flags.
    Kick,
    /// A task was created.
    Birth,
    /// A task exited.
    Exit,
    /// Something was done to task or CPU; argument: which fault.
    Fault,
    /// The run failed.
    Failure,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When, ns.
    pub time: u64,
    /// On which CPU.
    pub cpu: u32,
    /// Which task; `u32::MAX` = none.
    pub task: u32,
    /// What.
    pub what: What,
    /// See [`What`].
    pub argument: u64,
}

/// Decisions that are kept for the report of a failure.
const LAST: usize = 64;

/// The log of a run.
pub struct Log {
    hash: u64,
    count: u64,
    last: VecDeque<Decision>,
    all: Option<Vec<Decision>>,
}

impl Log {
    /// An empty log that keeps all decisions if `trace`.
    #[must_use]
    pub fn new(trace: bool) -> Self {
        Self {
            hash: 0,
            count: 0,
            last: VecDeque::with_capacity(LAST),
            all: trace.then(Vec::new),
        }
    }

    /// Adds a decision.
    pub fn record(
        &mut self,
        time: u64,
        cpu: usize,
        task: Option<TaskId>,
        what: What,
        argument: u64,
    ) {
        let decision = Decision {
            time,
            cpu: cpu as u32,
            task: task.map_or(u32::MAX, |task| task as u32),
            what,
            argument,
        };
        let word = u64::from(decision.task) << 32 | u64::from(decision.cpu) << 8 | what as u64;
        self.hash = mix(self.hash ^ time).rotate_left(17) ^ mix(word ^ mix(argument));
        self.count += 1;
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(decision);
        if let Some(all) = &mut self.all {
            all.push(decision);
        }
    }

    /// Equal for equal runs, decision by decision.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// How many decisions.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The last decisions, oldest first.
    pub fn last(&self) -> impl Iterator<Item = &Decision> {
        self.last.iter()
    }

    /// All, if they were kept.
    #[must_use]
    pub fn all(&self) -> &[Decision] {
        self.all.as_deref().unwrap_or_default()
    }
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:>14.3} us  cpu {:<4} {:<8}",
            self.time as f64 / 1000.0,
            self.cpu,
            format!("{:?}", self.what).to_lowercase()
        )?;
        if self.task != u32::MAX {
            write!(f, " task {:<5}", self.task)?;
        }
        write!(f, " {:#x}", self.argument)
    }
}
