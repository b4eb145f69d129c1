// SPDX-License-Identifier: GPL-2.0-only
//! Everything that touches the kernel: what it offers, loading the scheduler
//! into it, and what it says when it throws the scheduler out.

pub mod capacity;
pub mod command;
pub mod cpulist;
pub mod doctor;
pub mod events;
pub mod exit_info;
pub mod features;
pub mod inspect;
pub mod libbpf_log;
pub mod lock;
pub mod preflight;
pub mod scheduler;
pub mod seat;
pub(crate) mod skeleton;
pub mod steer;
pub mod tally;
pub mod topology;
pub mod view;

#[cfg(test)]
pub(crate) mod testing;
