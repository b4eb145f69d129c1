// SPDX-License-Identifier: GPL-2.0-only
//! What a task does: steps, and who interprets them.
//!
//! The interpreter knows nothing of scheduling, so that the machine and the
//! ideal model run the very same programs with the very same random numbers.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sim::rng::{Rng, mix};

/// One step of a program. Times are ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Uses the CPU that long.
    Run(u64),
    /// ... exponentially distributed with this mean.
    RunExp(u64),
    /// Sleeps that long.
    Sleep(u64),
    /// ... exponentially distributed with this mean.
    SleepExp(u64),
    /// Sleeps until the next multiple of the period since its first timer.
    Timer(u64),
    /// Waits for a signal on the channel.
    Wait(usize),
    /// Signals the channel: one waiter, or all.
    Signal {
        /// Which.
        channel: usize,
        /// All waiters instead of one.
        all: bool,
        /// The signaller says that it is about to sleep.
        sync: bool,
    },
    /// Takes the mutex.
    Lock(usize),
    /// Gives the mutex back.
    Unlock(usize),
    /// Gives up the CPU without sleeping.
    Yield,
    /// Starts another task of the group.
    Fork(usize),
    /// Goes back to a step that many times; `u64::MAX` = for ever.
    Loop {
        /// Where to.
        start: usize,
        /// How often.
        times: u64,
    },
}

/// What a task wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// CPU time, ns.
    Run(u64),
    /// Sleep, ns.
    Sleep(u64),
    /// Sleep until this moment (in the past: go on), one period after the last.
    Until(u64, u64),
    /// A signal on the channel.
    Wait(usize),
    /// To signal: channel, all, sync.
    Signal(usize, bool, bool),
    /// The mutex.
    Lock(usize),
    /// To give the mutex back.
    Unlock(usize),
    /// To give up the CPU.
    Yield,
    /// To start a task of the group.
    Fork(usize),
    /// Nothing more.
    Exit,
}

/// A task's place in its program.
#[derive(Clone, Debug)]
pub struct Interp {
    steps: Arc<[Step]>,
    at: usize,
    loops: Vec<u64>,
    timer: Option<u64>,
    rng: Rng,
}

impl Interp {
    /// The start of `steps` for instance `instance` of group `group`.
    #[must_use]
    pub fn new(steps: &Arc<[Step]>, seed: u64, group: usize, instance: usize) -> Self {
        let stream = mix(seed ^ mix(group as u64) ^ mix((instance as u64) << 32));
        Self {
            steps: Arc::clone(steps),
            at: 0,
            loops: vec![0; steps.len()],
            timer: None,
            rng: Rng::new(stream),
        }
    }

    /// The next thing that takes effect, at time `now`.
    pub fn next(&mut self, now: u64) -> Action {
        // Empty loops can't hang: each step counts.
        for _ in 0..10_000 {
            let Some(step) = self.steps.get(self.at) else {
                return Action::Exit;
            };
            let at = self.at;
            self.at += 1;
            return match *step {
                Step::Run(ns) => Action::Run(ns),
                Step::RunExp(mean) => Action::Run(self.rng.exponential(mean)),
                Step::Sleep(ns) => Action::Sleep(ns),
                Step::SleepExp(mean) => Action::Sleep(self.rng.exponential(mean)),
                Step::Timer(period) => {
                    let next = self.timer.unwrap_or(now) + period;
                    self.timer = Some(next);
                    Action::Until(next, period)
                }
                Step::Wait(channel) => Action::Wait(channel),
                Step::Signal { channel, all, sync } => Action::Signal(channel, all, sync),
                Step::Lock(mutex) => Action::Lock(mutex),
                Step::Unlock(mutex) => Action::Unlock(mutex),
                Step::Yield => Action::Yield,
                Step::Fork(group) => Action::Fork(group),
                Step::Loop { start, times } => {
                    self.loops[at] += 1;
                    if times == u64::MAX || self.loops[at] <= times {
                        self.at = start;
                    } else {
                        self.loops[at] = 0;
                    }
                    continue;
                }
            };
        }
        Action::Exit
    }
}

/// Something to wait for: signals count up to `limit`, the rest is lost.
#[derive(Clone, Debug, Default)]
pub struct Channel {
    /// When the signals that nobody waited for came.
    pub signals: VecDeque<u64>,
    /// Tasks that wait, longest first.
    pub waiters: VecDeque<usize>,
    /// How many signals are kept.
    pub limit: usize,
}

impl Channel {
    /// A signal at `now`: the task to wake, or it is kept.
    pub fn signal(&mut self, now: u64) -> Option<usize> {
        let waiter = self.waiters.pop_front();
        if waiter.is_none() && self.signals.len() < self.limit {
            self.signals.push_back(now);
        }
        waiter
    }
}

/// A mutex that is handed over in the order of asking.
#[derive(Clone, Debug, Default)]
pub struct Mutex {
    /// Who has it.
    pub owner: Option<usize>,
    /// Who wants it, longest first.
    pub waiters: VecDeque<usize>,
}

impl Mutex {
    /// True: `task` has it now; false: it must sleep.
    pub fn lock(&mut self, task: usize) -> bool {
        if self.owner.is_none() || self.owner == Some(task) {
            self.owner = Some(task);
            return true;
        }
        self.waiters.push_back(task);
        false
    }

    /// The task that has it now and must be woken.
    pub fn unlock(&mut self) -> Option<usize> {
        self.owner = self.waiters.pop_front();
        self.owner
    }
}
