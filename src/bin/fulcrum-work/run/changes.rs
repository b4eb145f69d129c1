// SPDX-License-Identifier: GPL-2.0-only
//! The changes that a workload file makes to its cgroups while it runs.

use super::cgroups::Tree;
use super::stage::Stage;
use crate::clock;
use anyhow::Result;
use scx_fulcrum::sim::workload::Changed;
use std::sync::Arc;

/// Starts the thread that carries out the file's changes, if there are any;
/// how many threads.
pub fn start(stage: &Arc<Stage>) -> Result<usize> {
    if stage.changes.is_empty() {
        return Ok(0);
    }
    let own = Arc::clone(stage);
    stage.spawn(move || {
        if let Err(error) = carry_out(&own) {
            own.fail(format!("{error:#}"));
        }
    })?;
    Ok(1)
}

fn carry_out(stage: &Stage) -> Result<()> {
    crate::cpus::become_observer();
    stage.is_ready();
    let start = stage.await_open();
    for change in &stage.changes {
        let at = start + change.at;
        if at >= stage.end() {
            break;
        }
        clock::sleep_until(at);
        if stage.over() {
            break;
        }
        if let Some(tree) = &stage.tree {
            make(stage, tree, &change.what)?;
        }
    }
    Ok(())
}

fn make(stage: &Stage, tree: &Tree, what: &Changed) -> Result<()> {
    match what {
        Changed::Weight { cgroup, weight } => tree.set(*cgroup, "cpu.weight", *weight),
        Changed::Idle { cgroup, idle } => tree.set(*cgroup, "cpu.idle", u32::from(*idle)),
        Changed::Remade { cgroup } => tree.remake(*cgroup),
        Changed::Move { groups, to } => {
            for thread in stage.threads(groups) {
                // It may have ended meanwhile.
                let _ = tree.admit(thread, *to);
            }
            Ok(())
        }
    }
}
