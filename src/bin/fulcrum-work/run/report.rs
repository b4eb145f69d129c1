// SPDX-License-Identifier: GPL-2.0-only
//! What came of a run, under the names of the simulator's summary.

use super::stage::Stage;
use crate::report::Report;
use scx_fulcrum::sim::stats::GroupStats;
use scx_fulcrum::sim::summary::Times;
use scx_fulcrum::sim::workload::file::Scenario;
use serde::Serialize;
use std::fmt;

/// A run in figures. Times are microseconds.
#[derive(Serialize)]
pub struct RunReport {
    pub workload: String,
    pub seed: u64,
    pub cpus: usize,
    pub seconds: f64,
    pub groups: Vec<GroupReport>,
}

/// A group. Shares are CPUs: 0.5 is half of one.
#[derive(Serialize)]
pub struct GroupReport {
    pub name: String,
    pub tasks: usize,
    pub share: f64,
    /// From a timer's due time, or from the signal, to running.
    pub wakeup: Times,
    pub response: Times,
    pub misses: u64,
    pub preemptions: u64,
}

impl RunReport {
    pub fn new(scenario: &Scenario, stage: &Stage) -> Self {
        let mut groups: Vec<GroupReport> = Vec::new();
        for cast in &stage.groups {
            let name = &cast.spec.name;
            if !groups.iter().any(|group| group.name == *name) {
                groups.push(group(name, stage, scenario.duration));
            }
        }
        Self {
            workload: scenario.workload.name.clone(),
            seed: scenario.config.seed,
            cpus: scenario.config.topology.cpus,
            seconds: scenario.duration as f64 / 1e9,
            groups,
        }
    }
}

/// Groups of one name are one.
fn group(name: &str, stage: &Stage, duration: u64) -> GroupReport {
    let (mut sum, mut ran, mut tasks) = (GroupStats::default(), 0, 0);
    for (index, _) in stage
        .groups
        .iter()
        .enumerate()
        .filter(|(_, cast)| cast.spec.name == name)
    {
        let (count, stats) = stage.figures(index);
        tasks += count;
        ran += stats.ran;
        sum.merge(&stats);
    }
    GroupReport {
        name: name.to_string(),
        tasks,
        share: ran as f64 / duration.max(1) as f64,
        wakeup: Times::from(&sum.wakeup),
        response: Times::from(&sum.response),
        misses: sum.misses,
        preemptions: sum.preemptions,
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} CPUs, {} s, seed {}\n\n{:<16} {:>6} {:>8}  {:>26} {:>20} {:>7} {:>8}",
            self.workload,
            self.cpus,
            self.seconds,
            self.seed,
            "group",
            "tasks",
            "CPUs",
            "wakeup us p50/p99/max",
            "response p50/p99",
            "misses",
            "preempt",
        )?;
        for group in &self.groups {
            let (wakeup, response) = (group.wakeup, group.response);
            write!(
                f,
                "\n{:<16} {:>6} {:>8.3}  {:>26} {:>20} {:>7} {:>8}",
                group.name,
                group.tasks,
                group.share,
                format!(
                    "{:.0} / {:.0} / {:.0}",
                    wakeup.p50_us, wakeup.p99_us, wakeup.max_us
                ),
                format!("{:.0} / {:.0}", response.p50_us, response.p99_us),
                group.misses,
                group.preemptions,
            )?;
        }
        Ok(())
    }
}

impl Report for RunReport {
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
