// SPDX-License-Identifier: GPL-2.0-only
//! The agent, simulated: it hears calls a moment later and plans as the real one
//! does, with the same ledger and planner. Its own CPU time is not counted.

use std::time::Duration;

use super::ffi::{agent_command, balance_cpu, cpu_state};
use super::machine::{Happening, Machine, Op};
use crate::agent::balancer::{Balancer, Figures, HINT_VALID};
use crate::agent::ledger::{Sample, Shape};
use crate::kernel::command::{self, Command};

/// From a call to the round that answers it, ns.
const WAKES_AFTER: (u64, u64) = (50_000, 500_000);

/// The agent between its rounds.
pub struct SimAgent {
    balancer: Balancer,
    epoch: u32,
    generation: u32,
    /// A round is on its way.
    due: Option<u64>,
}

impl Machine {
    /// An agent sits down; the one before, if there was one, is gone.
    pub fn seat_agent(&mut self) {
        if self.variant.raw().balance.is_null() {
            return;
        }
        let balancer = Balancer::new(Shape::of(&self.cfg.topology.domains()));
        let epoch = self.steer(&command::take_seat());
        self.agent = Some(SimAgent {
            balancer,
            epoch: u32::try_from(epoch).unwrap_or(0),
            generation: 0,
            due: None,
        });
    }

    /// What the agent's rounds came to.
    #[must_use]
    pub fn agent_figures(&self) -> Figures {
        let figures = self.agent.as_ref().map(|agent| agent.balancer.figures());
        figures.unwrap_or_default()
    }

    /// `fulcrum_steer()`, called by a process.
    pub fn steer(&mut self, command: &agent_command) -> i32 {
        let steer = self.variant.raw().steer;
        let mut command = *command;
        let ctx = self.context(Op::Unlocked, 0, None);
        // SAFETY: the leased variant's function, with a command of its own.
        self.call(ctx, |_| unsafe { steer(&raw mut command) })
    }

    /// The BPF program has sent an event of this kind.
    pub(super) fn agent_hears(&mut self, kind: u32) {
        if kind != command::EVENT_CALL {
            return;
        }
        let late = self.rng_of_agent();
        let at = self.now + late;
        if let Some(agent) = &mut self.agent
            && agent.due.is_none_or(|due| due > at)
        {
            agent.due = Some(at);
            self.push(at, Happening::Agent(at));
        }
    }

    fn rng_of_agent(&mut self) -> u64 {
        let (first, last) = WAKES_AFTER;
        match self.agent {
            Some(_) => self.rng.range(first, last),
            None => 0,
        }
    }

    /// One round, unless another one has come before it.
    pub(super) fn agent_round(&mut self, planned: u64) {
        let Some(mut agent) = self.agent.take() else {
            return;
        };
        if agent.due == Some(planned) {
            agent.due = None;
            self.agent_plans(&mut agent);
            if let Some(at) = agent.due {
                self.push(at, Happening::Agent(at));
            }
        }
        self.agent = Some(agent);
    }

    fn agent_plans(&mut self, agent: &mut SimAgent) {
        let now = Duration::from_nanos(self.now);
        let samples = self.samples(agent.balancer.cpus());
        // SAFETY: the leased variant's word; no callback runs.
        let calls = unsafe { (*self.variant.raw().seat).calls };
        let round = agent.balancer.round(now, &samples);
        let mut send = |machine: &mut Self, command: Command| {
            agent.generation += 1;
            machine.steer(&command.numbered(agent.epoch, agent.generation));
            agent.generation
        };
        let mut sent = Vec::with_capacity(round.moves.len());
        for hint in &round.moves {
            sent.push(send(self, Command::hint(*hint, HINT_VALID)));
        }
        send(self, Command::answer(calls, round.quiet));
        for (hint, generation) in round.moves.iter().zip(sent) {
            agent.balancer.sent(now, *hint, generation);
        }
        agent.due = round.again.map(|at| at.as_nanos() as u64);
    }

    fn samples(&self, cpus: usize) -> Vec<Sample> {
        let raw = self.variant.raw();
        let count = cpus.min(self.cfg.topology.cpus);
        // SAFETY: both arrays have FULCRUM_MAX_CPUS elements; no callback runs.
        let (states, told): (&[cpu_state], &[balance_cpu]) = unsafe {
            (
                std::slice::from_raw_parts(raw.cpus, count),
                std::slice::from_raw_parts(raw.balance, count),
            )
        };
        let samples = states.iter().zip(told);
        samples.map(|(cpu, told)| Sample::read(cpu, told)).collect()
    }
}
