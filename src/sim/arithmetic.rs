// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's pure arithmetic, its policies and its histograms, for tests
//! of them alone.

/// `struct weight`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// 2^32 / weight.
    pub inv: u64,
    /// 1024 = nice 0.
    pub weight: u32,
    /// Always 0.
    pub pad: u32,
}

/// `struct ask`: what a policy is asked.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Ask {
    pub v: u64,
    pub clock: u64,
    pub burst: u64,
    pub request: u64,
    pub slice: u64,
    pub weight: Weight,
    pub level: u32,
    pub mixed: u32,
}

/// `struct contest`: a task that wakes against the one that runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Contest {
    pub v: u64,
    pub deadline: u64,
    pub clock: u64,
    pub curr_deadline: u64,
    pub slice: u64,
}

/// The moments at which a policy is asked: `enum ask_moment`.
#[allow(missing_docs)]
pub mod moment {
    pub const WAKES: u32 = 0;
    pub const USED_UP: u32 = 1;
    pub const AGAIN: u32 = 2;
}

/// `struct sim_arithmetic`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Arithmetic {
    pub weight: extern "C" fn(i32, u32) -> Weight,
    pub scale: extern "C" fn(u64, u64) -> u64,
    pub before: extern "C" fn(u64, u64) -> bool,
    pub max: extern "C" fn(u64, u64) -> u64,
    pub bound: extern "C" fn(u64, u64, u64, u64) -> u64,
    pub carry: extern "C" fn(u64, u64) -> i64,
    pub reweight: extern "C" fn(u64, u64, Weight, Weight) -> u64,
    pub burst: extern "C" fn(u64, u64) -> u64,
    pub answer: extern "C" fn(u32, &mut Ask, u32) -> u64,
    pub preempts: extern "C" fn(u32, &Contest) -> bool,
    pub gives_way: extern "C" fn(u32, u64, u64) -> bool,
    pub hist_bucket: extern "C" fn(u32) -> u32,
}
