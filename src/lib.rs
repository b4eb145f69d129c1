//! scx_fulcrum: a fair, low-latency CPU scheduler for Linux's sched_ext.
//!
//! The scheduler itself is the BPF program under `bpf/`; this library is the
//! agent around it: it checks the machine ([`kernel::preflight`]), loads and
//! attaches the program ([`kernel::scheduler`]), tells what it does
//! ([`stats`]) and detaches it again ([`agent`]).

#![deny(missing_docs)]

pub mod agent;
pub mod cli;
pub mod exit;
pub mod kernel;
pub mod log;
pub mod stats;

/// Version, commit and target of this build: what `--version` prints and what
/// the name in `/sys/kernel/sched_ext/root/ops` ends with.
pub const BUILD_ID: &str = env!("FULCRUM_BUILD_ID");
