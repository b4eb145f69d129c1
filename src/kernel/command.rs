// SPDX-License-Identifier: GPL-2.0-only
//! What an agent can tell the BPF program (`bpf/seat.h`), as the words that are
//! sent. Pure: `steer` sends them.

use std::time::Duration;

use plain::Plain;

use super::skeleton::types::agent_command;
use crate::agent::planner::Move;
use crate::control::settings::Settings;

/// `FULCRUM_EVENT_CALL`.
pub const EVENT_CALL: u32 = 2;

const TAKES_SEAT: u32 = 1;
const SETS_KNOBS: u32 = 2;
const HINTS: u32 = 3;
const ANSWERS: u32 = 4;

// SAFETY: integers without padding (the size is asserted in bpf/abi.h), so any
// bytes are a value of it.
unsafe impl Plain for agent_command {}

/// A command without its number.
#[derive(Clone, Copy, Debug)]
pub struct Command(agent_command);

/// The command that gives an epoch: as its result, or a negative error.
pub fn take_seat() -> agent_command {
    agent_command {
        kind: TAKES_SEAT,
        ..agent_command::default()
    }
}

impl Command {
    /// `hint` is good for `valid`.
    pub fn hint(hint: Move, valid: Duration) -> Self {
        Self(agent_command {
            kind: HINTS,
            cpu: hint.to as u32,
            from: hint.from as u32,
            tasks: hint.tasks,
            valid_ns: valid.as_nanos() as u64,
            ..agent_command::default()
        })
    }

    /// The agent lives and has heard `call`; it wants no other within `quiet`.
    pub fn answer(call: u32, quiet: Duration) -> Self {
        Self(agent_command {
            kind: ANSWERS,
            answer: call,
            valid_ns: quiet.as_nanos() as u64,
            ..agent_command::default()
        })
    }

    /// The knobs, as their generation `generation`.
    pub fn knobs(settings: &Settings, generation: u32) -> Self {
        Self(agent_command {
            kind: SETS_KNOBS,
            policy: settings.policy().number(),
            slice_ns: settings.slice_us() * 1000,
            credit_ns: settings.credit_us() * 1000,
            knobs_generation: generation,
            ..agent_command::default()
        })
    }

    /// What is sent: command `generation` of `epoch`.
    pub fn numbered(self, epoch: u32, generation: u32) -> agent_command {
        agent_command {
            epoch,
            generation,
            ..self.0
        }
    }
}

/// The seat that this process took, and how many commands it has given since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seated {
    pub(super) epoch: u32,
    pub(super) generation: u32,
}
