// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler did: counters, figures made of them, and the ways in
//! which they reach people and tools.

pub mod counters;
pub mod describe;
pub mod fields;
pub mod frame;
pub mod histogram;
pub mod limits;
pub mod look;
pub mod metrics;
pub mod monitor;
pub mod observer;
pub mod openmetrics;
pub mod reports;
pub mod sample;
pub mod server;
pub mod shares;

/// The socket on which every scx scheduler serves its statistics.
pub const SOCKET: &str = "/var/run/scx/root/stats";
