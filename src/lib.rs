// SPDX-License-Identifier: GPL-2.0-only
//! scx_fulcrum: a fair, low-latency CPU scheduler for Linux's sched_ext.
//!
//! The scheduler itself is the BPF program under `bpf/`; this library is the
//! agent around it: it checks the machine ([`kernel::preflight`]), loads and
//! attaches the program ([`kernel::scheduler`]), tells what it does
//! ([`stats`]), changes it while it runs ([`control`]) and detaches it again
//! ([`agent`]).

#![deny(missing_docs)]

pub mod agent;
pub mod cli;
pub mod control;
pub mod exit;
pub mod kernel;
pub mod log;
pub mod sim;
pub mod stats;
pub mod tui;
pub mod wake;

use std::sync::LazyLock;

/// Version and commit of this build.
pub const VERSION: &str = env!("FULCRUM_VERSION");

/// Version, commit and target: what `--version` prints and, spelled for the
/// kernel, what the name in `/sys/kernel/sched_ext/root/ops` ends with.
pub fn build_id() -> &'static str {
    static BUILD_ID: LazyLock<String> =
        LazyLock::new(|| scx_utils::build_id::full_version(VERSION));
    &BUILD_ID
}
