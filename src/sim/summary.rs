// SPDX-License-Identifier: GPL-2.0-only
//! What a run comes to: figures per group of tasks, beside the ideal ones.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::costs::{Cost, Decision};
use super::fluid::Ideal;
use super::machine::Machine;
use super::stats::{GroupStats, Histogram};
use crate::agent::balancer::Figures;

/// A run in figures. Times are microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The workload's name.
    pub workload: String,
    /// The seed that repeats the run.
    pub seed: u64,
    /// CPUs of the machine.
    pub cpus: usize,
    /// Simulated seconds.
    pub seconds: f64,
    /// Groups of the same name are one.
    pub groups: Vec<GroupSummary>,
    /// Cgroups with all below them; empty if the workload names none.
    pub cgroups: Vec<CgroupSummary>,
    /// What the agent did; absent: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Figures>,
    /// What the decisions cost.
    pub cost: CostSummary,
    /// Over all decisions: equal for equal runs.
    pub trace_hash: String,
    /// Events handled.
    pub events: u64,
}

/// A group of tasks. Shares are CPUs: 0.5 is half of one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GroupSummary {
    /// Its name.
    pub name: String,
    /// Tasks that it had.
    pub tasks: usize,
    /// CPUs used.
    pub share: f64,
    /// CPUs that the ideal machine gives.
    pub ideal: f64,
    /// CPUs that plain EEVDF gives.
    pub eevdf: f64,
    /// From waking to running.
    pub wakeup: Times,
    /// The same under plain EEVDF.
    pub wakeup_eevdf: Times,
    /// The longest wait of any kind.
    pub wait_max_us: f64,
    /// From a request's arrival to its completion.
    pub response: Times,
    /// Requests that took longer than their period.
    pub misses: u64,
    /// Moves between CPUs.
    pub migrations: u64,
    /// Taken off the CPU while runnable.
    pub preemptions: u64,
}

/// A cgroup and all below it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CgroupSummary {
    /// Its path; `/` is the root.
    pub path: String,
    /// `cpu.weight` at the end.
    pub weight: u32,
    /// `cpu.idle` at the end.
    pub idle: bool,
    /// CPUs used.
    pub share: f64,
    /// CPUs that the ideal machine gives.
    pub ideal: f64,
    /// CPUs that plain EEVDF gives.
    pub eevdf: f64,
}

/// Percentiles, us.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
}

/// What one decision of a kind costs on average.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PerDecision {
    /// How many there were.
    pub count: u64,
    /// Kernel functions called.
    pub calls: f64,
    /// Locks of dispatch queues and foreign run queues.
    pub locks: f64,
    /// Writes to lines that CPUs share.
    pub shared_writes: f64,
    /// Full barriers.
    pub barriers: f64,
}

impl PerDecision {
    fn new(count: u64, cost: Cost) -> Self {
        Self {
            count,
            calls: per(cost.calls, count),
            locks: per(cost.locks, count),
            shared_writes: per(cost.shared_writes, count),
            barriers: per(cost.barriers, count),
        }
    }
}

/// Averages of what the scheduler's decisions cost.
#[derive(Clone, Debug, Serialize)]
pub struct CostSummary {
    /// Wakeups.
    pub wakeups: u64,
    /// Calls of ops.dispatch().
    pub dispatches: u64,
    /// Moves between run queues.
    pub migrations: u64,
    /// A wakeup, from the choice of a CPU to the queue there.
    pub wakeup: PerDecision,
    /// A round of ops.dispatch() that moved no task between run queues.
    pub dispatch: PerDecision,
    /// A round of ops.dispatch() that did.
    pub migration: PerDecision,
    /// Kernel functions called by everything, a wakeup or dispatch.
    pub calls: f64,
    /// Locks of dispatch queues and foreign run queues, likewise.
    pub locks: f64,
    /// Atomic writes to shared words, and any to other CPUs' words, likewise.
    pub shared_writes: f64,
    /// Full barriers, likewise.
    pub barriers: f64,
    /// Part of the wakeups that found an idle CPU if there was one.
    pub idle_found: f64,
    /// Calls of each kernel function.
    pub by_function: BTreeMap<String, u64>,
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

impl From<&Histogram> for Times {
    fn from(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            p50_us: us(histogram.percentile(0.5)),
            p99_us: us(histogram.percentile(0.99)),
            max_us: us(histogram.max()),
        }
    }
}

fn per(value: u64, of: u64) -> f64 {
    value as f64 / of.max(1) as f64
}

impl Summary {
    /// From a finished run, the ideal one and, if there was one, EEVDF's.
    #[must_use]
    pub fn new(name: &str, machine: &Machine, ideal: &Ideal, eevdf: Option<&Machine>) -> Self {
        let mut groups: Vec<GroupSummary> = Vec::new();
        for label in labels(machine) {
            let mut line = group(&label, machine, &ideal.ran);
            if let Some(eevdf) = eevdf {
                let other = group(&label, eevdf, &ideal.ran);
                line.eevdf = other.share;
                line.wakeup_eevdf = other.wakeup;
            }
            groups.push(line);
        }
        Self {
            workload: name.to_string(),
            seed: machine.cfg.seed,
            cpus: machine.cfg.topology.cpus,
            seconds: machine.now as f64 / 1e9,
            groups,
            cgroups: cgroups(machine, ideal, eevdf),
            agent: machine.cfg.agent.then(|| machine.agent_figures()),
            cost: cost(machine),
            trace_hash: format!("{:016x}", machine.log.hash()),
            events: machine.stats.events,
        }
    }

    /// The summary as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{}: {} CPUs, {} s, seed {}, trace {}\n\n{:<16} {:>6} {:>8} {:>8} {:>8}  {:>26} {:>20} {:>10} {:>10} {:>7} {:>8} {:>8}\n",
            self.workload,
            self.cpus,
            self.seconds,
            self.seed,
            self.trace_hash,
            "group",
            "tasks",
            "CPUs",
            "ideal",
            "eevdf",
            "wakeup us p50/p99/max",
            "eevdf p50/p99",
            "wait max",
            "resp. p99",
            "misses",
            "moves",
            "preempt",
        );
        for group in &self.groups {
            let _ = writeln!(
                text,
                "{:<16} {:>6} {:>8.3} {:>8.3} {:>8.3}  {:>26} {:>20} {:>10.0} {:>10.0} {:>7} {:>8} {:>8}",
                group.name,
                group.tasks,
                group.share,
                group.ideal,
                group.eevdf,
                format!(
                    "{:.0} / {:.0} / {:.0}",
                    group.wakeup.p50_us, group.wakeup.p99_us, group.wakeup.max_us
                ),
                format!(
                    "{:.0} / {:.0}",
                    group.wakeup_eevdf.p50_us, group.wakeup_eevdf.p99_us
                ),
                group.wait_max_us,
                group.response.p99_us,
                group.misses,
                group.migrations,
                group.preemptions,
            );
        }
        self.cgroup_table(&mut text);
        if let Some(agent) = &self.agent {
            let _ = writeln!(
                text,
                "\nagent: {} rounds, {} hints: {} tasks moved, {} hints refused, {} expired",
                agent.rounds, agent.hints, agent.moved, agent.refused, agent.expired
            );
        }
        self.cost_table(&mut text);
        text
    }

    fn cost_table(&self, text: &mut String) {
        let cost = &self.cost;
        let _ = writeln!(
            text,
            "\n{:<32} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "one of", "count", "calls", "locks", "shared", "barriers"
        );
        for (name, kind) in [
            ("wakeup", cost.wakeup),
            ("dispatch", cost.dispatch),
            ("dispatch with a migration", cost.migration),
        ] {
            let _ = writeln!(
                text,
                "{name:<32} {:>8} {:>8.2} {:>8.2} {:>8.2} {:>8.2}",
                kind.count, kind.calls, kind.locks, kind.shared_writes, kind.barriers
            );
        }
        let _ = writeln!(
            text,
            "\n{} moves in all; all kernel calls, a wakeup or dispatch: {:.2}; idle CPU found {:.2} %",
            cost.migrations,
            cost.calls,
            cost.idle_found * 100.0,
        );
    }

    fn cgroup_table(&self, text: &mut String) {
        if self.cgroups.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "\n{:<32} {:>6} {:>8} {:>8} {:>8}",
            "cgroup", "weight", "CPUs", "ideal", "eevdf"
        );
        for cgroup in &self.cgroups {
            let weight = if cgroup.idle {
                "idle".to_string()
            } else {
                cgroup.weight.to_string()
            };
            let _ = writeln!(
                text,
                "{:<32} {:>6} {:>8.3} {:>8.3} {:>8.3}",
                cgroup.path, weight, cgroup.share, cgroup.ideal, cgroup.eevdf
            );
        }
    }
}

/// Each cgroup of the workload, with what is below it.
fn cgroups(machine: &Machine, ideal: &Ideal, eevdf: Option<&Machine>) -> Vec<CgroupSummary> {
    let known = ideal.cgroups.len();
    if known < 2 {
        return Vec::new();
    }
    let below = |machine: &Machine, outer: usize| {
        let within = |(inner, _): &(usize, &u64)| machine.cgroups().within(*inner, outer);
        let all = machine.stats.cgroups.iter().enumerate();
        all.filter(within).map(|(_, ran)| *ran).sum::<u64>() as f64 / machine.now as f64
    };
    (0..known)
        .map(|outer| {
            let cgroup = &machine.cgroups()[outer];
            let parts = ideal.cgroups.iter().enumerate();
            let within = parts.filter(|(inner, _)| machine.cgroups().within(*inner, outer));
            CgroupSummary {
                path: if outer == 0 {
                    "/".to_string()
                } else {
                    cgroup.path.clone()
                },
                weight: cgroup.weight,
                idle: cgroup.idle,
                share: below(machine, outer),
                ideal: within.map(|(_, ran)| ran).sum::<f64>() / machine.now as f64,
                eevdf: eevdf.map_or(0.0, |eevdf| below(eevdf, outer)),
            }
        })
        .collect()
}

/// Names of the groups, each once.
fn labels(machine: &Machine) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for spec in machine.groups() {
        if !labels.contains(&spec.name) {
            labels.push(spec.name.clone());
        }
    }
    labels
}

fn group(label: &str, machine: &Machine, ideal: &[f64]) -> GroupSummary {
    let mut sum = GroupStats::default();
    let mut line = GroupSummary {
        name: label.to_string(),
        ..GroupSummary::default()
    };
    let members = machine.groups().iter().enumerate();
    for (index, _) in members.filter(|(_, spec)| spec.name == label) {
        let stats = &machine.stats.groups[index];
        sum.merge(stats);
        line.ideal += ideal.get(index).copied().unwrap_or(0.0) / machine.now as f64;
        line.tasks += machine.members(index);
    }
    line.share = sum.ran as f64 / machine.now as f64;
    line.wakeup = Times::from(&sum.wakeup);
    line.response = Times::from(&sum.response);
    line.wait_max_us = us(sum.wait.max());
    line.misses = sum.misses;
    line.migrations = sum.migrations;
    line.preemptions = sum.preemptions;
    line
}

fn cost(machine: &Machine) -> CostSummary {
    let all = machine.cost();
    let moving = machine.rounds_with_a_move();
    let one = |count, decision| PerDecision::new(count, machine.cost_of(decision));
    let stats = &machine.stats;
    let decisions = stats.wakeups + stats.dispatches;
    CostSummary {
        wakeups: stats.wakeups,
        dispatches: stats.dispatches,
        migrations: stats.migrations,
        wakeup: one(stats.wakeups, Decision::Wakeup),
        dispatch: one(stats.dispatches - moving, Decision::Dispatch),
        migration: one(moving, Decision::Migration),
        calls: per(all.calls, decisions),
        locks: per(all.locks, decisions),
        shared_writes: per(all.shared_writes, decisions),
        barriers: per(all.barriers, decisions),
        idle_found: if stats.idle_existed == 0 {
            1.0
        } else {
            per(stats.idle_taken, stats.idle_existed)
        },
        by_function: machine.calls_by_function().into_iter().collect(),
    }
}
