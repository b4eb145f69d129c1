// SPDX-License-Identifier: GPL-2.0-only
//! What the agent does while it schedules, besides serving clients: rounds of the
//! balancer, answers to calls, and word of tasks that wait too long and of leaks.
//! Each happens because the BPF program asked for it, or as the agent is awake for
//! something else, so an idle machine has none of it.

use std::time::{Duration, Instant};

use super::balancer::{Balancer, Dealt, Figures, HINT_VALID};
use super::diagnosis::Waits;
use super::leaks::Leaks;
use super::ledger::Shape;
use crate::kernel::command::Command;
use crate::kernel::events::Heard;
use crate::kernel::scheduler::Scheduler;
use crate::kernel::topology::Topology;
use crate::stats::frame::Decision;
use crate::stats::reports::{Reports, unix_ms};

/// The agent's own work, over one life of the scheduler.
pub struct Rounds {
    balancer: Balancer,
    waits: Waits,
    leaks: Leaks,
    start: Instant,
    due: Option<Instant>,
}

impl Rounds {
    /// Nothing done yet, on this machine.
    pub fn new(topology: &Topology) -> Self {
        Self {
            balancer: Balancer::new(Shape::of(topology)),
            waits: Waits::default(),
            leaks: Leaks::default(),
            start: Instant::now(),
            due: None,
        }
    }

    /// When to come back, heard or not.
    pub fn deadline(&self) -> Option<Instant> {
        self.due.into_iter().chain(self.leaks.deadline()).min()
    }

    /// What the balancer has done.
    pub const fn figures(&self) -> Figures {
        self.balancer.figures()
    }

    /// Do what there is to do after `heard`.
    pub fn serve(&mut self, scheduler: &mut Scheduler<'_>, heard: Heard, reports: &mut Reports) {
        let now = Instant::now();
        if heard.wait {
            let waits = scheduler.waits_after(self.waits.seen());
            if let Some(line) = self.waits.take(waits, now) {
                log::warn!("{line}");
                reports.happened("warning", line);
            }
        }
        if self.leaks.is_due(now) {
            let tally = scheduler.tally();
            log::debug!("leaks: {tally:?}");
            if let Some(line) = self.leaks.look(tally, now) {
                log::warn!("{line}");
                reports.happened("warning", line);
            }
        }
        reports.warnings = self.waits.news(now);
        reports.warnings.extend_from_slice(self.leaks.news());
        if heard.call || self.due.is_some_and(|due| due <= now) {
            self.balance(scheduler, now.duration_since(self.start), reports);
        }
    }

    fn balance(&mut self, scheduler: &mut Scheduler<'_>, now: Duration, reports: &mut Reports) {
        let call = scheduler.calls();
        let samples = scheduler.samples(self.balancer.cpus());
        let round = self.balancer.round(now, &samples);
        if !round.moves.is_empty() {
            log::debug!("balance: {} hints; {:?}", round.moves.len(), self.figures());
        }
        for dealt in &round.dealt {
            reports.decided(decision(dealt));
        }
        for hint in round.moves {
            // Refused: another agent steers, which will do it.
            if let Some(number) = scheduler.steer(Command::hint(hint, HINT_VALID)) {
                self.balancer.sent(now, hint, number);
            }
        }
        scheduler.steer(Command::answer(call, round.quiet));
        self.due = round.again.map(|again| self.start + again);
    }
}

fn decision(dealt: &Dealt) -> Decision {
    Decision {
        time_ms: unix_ms(),
        kind: "move".to_string(),
        from_cpu: dealt.from as i32,
        to_cpu: dealt.to as i32,
        count: dealt.moved.into(),
        outcome: dealt.outcome.to_string(),
    }
}
