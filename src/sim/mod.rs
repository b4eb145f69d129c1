// SPDX-License-Identifier: GPL-2.0-only
//! The simulator: a machine of any size, exact time, from a seed, scheduled
//! by the very C that the kernel runs.
//!
//! `platform/` compiles `bpf/` for the host, [`ffi`] mirrors its structs,
//! `kfuncs.rs` answers its kernel functions. `sched.rs`, `pick.rs`, `wake.rs`
//! and `change.rs` do what the kernel's scheduling class does around them, and
//! `run.rs` is the workload. `audit.rs` checks the properties.

pub mod agent;
pub mod arithmetic;
mod audit;
mod bounds;
mod calls;
pub mod cgroups;
mod change;
pub mod command;
pub mod config;
pub mod costs;
pub mod dsq;
pub mod eevdf;
pub mod ffi;
mod fill;
pub mod fluid;
mod idle;
mod kfuncs;
mod load;
pub mod log;
pub mod machine;
pub mod mask;
mod pick;
mod rates;
pub mod report;
pub mod rng;
mod rt;
mod run;
mod sched;
pub mod stats;
pub mod summary;
pub mod tasks;
mod tick;
pub mod topology;
mod trace;
pub mod variants;
mod wake;
pub mod workload;

pub use audit::{WORK_BOUND_FAR, WORK_BOUND_NEAR};
