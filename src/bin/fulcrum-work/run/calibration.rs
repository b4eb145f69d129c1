// SPDX-License-Identifier: GPL-2.0-only
//! What comparing real runs with the simulator's gives, and the rules by which
//! it is judged.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Shares may differ by this part of the whole machine.
pub const SHARE_BOUND: f64 = 0.01;
/// Percentiles may differ by this factor, once both are raised to the floor.
pub const FACTOR: f64 = 3.0;
/// A percentile of fewer values than this a run is not judged.
pub const ENOUGH: u64 = 100;

/// Why a row may differ.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    pub file: String,
    /// None: every group of the file.
    pub group: Option<String>,
    /// As in [`Group::differs`].
    pub row: String,
    pub reason: String,
}

/// A figure of both sides; over several runs: the mean of shares, the median
/// of percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    pub vm: f64,
    pub sim: f64,
}

/// A group of a file as both sides saw it. Times are microseconds.
#[derive(Debug, Serialize)]
pub struct Group {
    pub file: String,
    pub group: String,
    pub cpus: usize,
    pub tasks: usize,
    pub share: Pair,
    /// Difference of the shares, as a part of the whole machine.
    pub share_error: f64,
    /// Rows with enough values, by name.
    pub times: BTreeMap<&'static str, Pair>,
    pub misses: Pair,
    /// Wakeups of a run in the VM, if there were enough.
    pub wakeups: Option<f64>,
    /// CPU time that the group took more there, a wakeup, us.
    pub excess_us_a_wakeup: Option<f64>,
    /// Rows that differ by more than the rules permit.
    pub differs: Vec<&'static str>,
}

/// Everything that the page shows.
#[derive(Serialize)]
pub struct Calibration {
    pub made_with: String,
    pub kernel: String,
    pub seeds: Vec<u64>,
    pub share_bound: f64,
    pub factor: f64,
    /// p99 of real-time sleepers' lateness, us, by number of CPUs.
    pub floor_us: BTreeMap<usize, f64>,
    pub groups: Vec<Group>,
}

/// The reason for a row that differs.
pub fn reason<'a>(reasons: &'a [Reason], group: &Group, row: &str) -> Option<&'a Reason> {
    reasons.iter().find(|reason| {
        reason.file == group.file
            && reason.row == row
            && reason
                .group
                .as_ref()
                .is_none_or(|name| *name == group.group)
    })
}
