// SPDX-License-Identifier: GPL-2.0-only
//! From two looks at the scheduler to a frame. Nothing here touches the
//! kernel, so all of it is tested without one.

use std::collections::HashMap;
use std::time::Duration;

use crate::kernel::inspect::{CpuView, GroupView, TaskView};

use super::counters::{Counters, Snapshot};
use super::frame::{Cpu, Group, Task, Waits};
use super::histogram::{BUCKETS, Histogram};
use super::metrics::Metrics;
use super::shares;

/// The scheduler at one moment; counts are since it was attached.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Time since then.
    pub at: Duration,
    /// Every possible CPU.
    pub cpus: Vec<CpuView>,
    /// The cgroups, the root first; empty if nobody asked.
    pub groups: Vec<GroupView>,
}

impl Look {
    fn snapshot(&self) -> Snapshot {
        let mut counters = Counters::default();
        for cpu in &self.cpus {
            counters.add(&cpu.counters);
        }
        Snapshot {
            at: self.at,
            online: self.cpus.iter().filter(|cpu| cpu.online).count() as u64,
            counters,
        }
    }
}

/// Two looks, and what happened between them.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a> {
    earlier: &'a Look,
    now: &'a Look,
}

impl<'a> Between<'a> {
    /// `earlier` may be empty, or of a former run: then all of this run counts.
    pub fn new(earlier: &'a Look, now: &'a Look, none: &'a Look) -> Self {
        let earlier = if earlier.at > now.at { none } else { earlier };
        Self { earlier, now }
    }

    fn seconds(&self) -> f64 {
        (self.now.at - self.earlier.at).as_secs_f64()
    }

    /// Length of the interval.
    pub fn interval_ms(&self) -> u64 {
        (self.now.at - self.earlier.at).as_millis() as u64
    }

    /// The rates over the machine.
    pub fn totals(&self) -> Metrics {
        Metrics::between(&self.earlier.snapshot(), &self.now.snapshot())
    }

    /// The waits over the machine.
    pub fn waits(&self) -> Waits {
        let (mut wakeup, mut other) = (vec![0; BUCKETS], vec![0; BUCKETS]);
        for cpu in &self.now.cpus {
            let before = self.earlier.cpus.get(cpu.cpu);
            add(&mut wakeup, &cpu.wakeup, before.map(|cpu| &cpu.wakeup));
            add(&mut other, &cpu.other, before.map(|cpu| &cpu.other));
        }
        let wakeup = Histogram::of(&wakeup);
        let queue = wakeup.plus(&Histogram::of(&other));
        Waits {
            wakeup_p50_us: wakeup.quantile_us(0.5),
            wakeup_p99_us: wakeup.quantile_us(0.99),
            wakeup_max_us: wakeup.max_us(),
            wakeup,
            queue_p50_us: queue.quantile_us(0.5),
            queue_p99_us: queue.quantile_us(0.99),
            queue_max_us: queue.max_us(),
            queue,
        }
    }

    /// Every possible CPU; `node_of` knows the node of a domain.
    pub fn cpus(&self, node_of: impl Fn(usize) -> usize) -> Vec<Cpu> {
        self.now
            .cpus
            .iter()
            .map(|cpu| self.cpu(cpu, &node_of))
            .collect()
    }

    fn cpu(&self, cpu: &CpuView, node_of: impl Fn(usize) -> usize) -> Cpu {
        let nothing = Counters::default();
        let before = self.earlier.cpus.get(cpu.cpu);
        let delta = cpu
            .counters
            .since(before.map_or(&nothing, |cpu| &cpu.counters));
        let rate = |count: u64| rounded(count as f64 / self.seconds());
        let mut counts = vec![0; BUCKETS];
        add(&mut counts, &cpu.wakeup, before.map(|cpu| &cpu.wakeup));
        add(&mut counts, &cpu.other, before.map(|cpu| &cpu.other));
        let waits = Histogram::of(&counts);
        let busy = rounded(delta.run_ns as f64 / self.seconds() / 1e7);
        Cpu {
            cpu: cpu.cpu as u32,
            llc: cpu.domain as u32,
            node: node_of(cpu.domain) as u32,
            online: cpu.online,
            busy_pct: busy.min(100.0),
            waiting: cpu.waiting,
            wait_p50_us: waits.quantile_us(0.5),
            wait_p99_us: waits.quantile_us(0.99),
            wait_max_us: waits.max_us(),
            switches: rate(delta.waits),
            steals: rate(delta.steals_near + delta.steals_far + delta.exchanges),
            steal_misses: rate(delta.steal_misses),
            preemptions: rate(delta.preempt_kicks),
            kicks: rate(delta.idle_kicks),
            pid: cpu.pid,
            comm: String::new(),
        }
    }

    /// The cgroups; `path_of` knows the path of an id.
    pub fn groups(&self, path_of: impl Fn(u64) -> String) -> Vec<Group> {
        let before: HashMap<u64, &GroupView> = self
            .earlier
            .groups
            .iter()
            .map(|group| (group.id, group))
            .collect();
        let ran = self.ran_in(&before);
        let shares = shares::shares(&self.now.groups, &ran);
        let ids: HashMap<usize, u64> = self
            .now
            .groups
            .iter()
            .map(|group| (group.slot, group.id))
            .collect();
        let each = self.now.groups.iter().zip(shares);
        let mut groups: Vec<Group> = each
            .map(|(group, share)| {
                let waits = waits_of(group, before.get(&group.id).copied());
                Group {
                    id: group.id,
                    path: path_of(group.id),
                    parent: if group.slot == 0 {
                        0
                    } else {
                        ids.get(&group.parent).copied().unwrap_or(0)
                    },
                    depth: group.depth,
                    weight: if group.slot == 0 {
                        100
                    } else {
                        group.cpu_weight
                    },
                    idle: group.idle,
                    max_pct: 0.0,
                    runnable: rounded(share.runnable),
                    got_pct: rounded(100.0 * share.got),
                    owed_pct: rounded(100.0 * share.owed),
                    wait_p50_us: waits.quantile_us(0.5),
                    wait_p99_us: waits.quantile_us(0.99),
                    wait_max_us: waits.max_us(),
                    waits,
                }
            })
            .collect();
        groups.sort_by(|a, b| a.path.cmp(&b.path));
        groups
    }

    /// CPUs that the own tasks of each cgroup used. The root's are not counted
    /// apart: they are what is left of all.
    fn ran_in(&self, before: &HashMap<u64, &GroupView>) -> Vec<f64> {
        let of = |group: &GroupView| {
            let earlier = before.get(&group.id).map_or(0, |group| group.ran_ns);
            // A new cgroup may have got the id's slot: it counts from 0.
            let ran = group.ran_ns.checked_sub(earlier).unwrap_or(group.ran_ns);
            ran as f64 / 1e9 / self.seconds()
        };
        let mut ran: Vec<f64> = self.now.groups.iter().map(of).collect();
        let delta = self
            .now
            .snapshot()
            .counters
            .since(&self.earlier.snapshot().counters);
        let all = delta.run_ns as f64 / 1e9 / self.seconds();
        let others: f64 = ran.iter().skip(1).sum();
        if let Some(root) = ran.first_mut() {
            *root = (all - others).max(0.0);
        }
        ran
    }
}

fn waits_of(group: &GroupView, before: Option<&GroupView>) -> Histogram {
    let mut counts = vec![0; BUCKETS];
    for (at, (sum, &count)) in counts.iter_mut().zip(&group.waits).enumerate() {
        let earlier = before.and_then(|group| group.waits.get(at)).copied();
        *sum = u64::from(count.wrapping_sub(earlier.unwrap_or(0)));
    }
    Histogram::of(&counts)
}

fn add(sum: &mut [u64], now: &[u64], before: Option<&Vec<u64>>) {
    for (at, (sum, &count)) in sum.iter_mut().zip(now).enumerate() {
        let earlier = before.and_then(|counts| counts.get(at)).copied();
        *sum = sum.wrapping_add(count.wrapping_sub(earlier.unwrap_or(0)));
    }
}

/// As precise as a reader can use; nothing of nothing.
fn rounded(value: f64) -> f64 {
    if value.is_finite() {
        (value * 100.0).round() / 100.0
    } else {
        0.0
    }
}

/// How a task is shown.
pub fn task(view: &TaskView) -> Task {
    // Virtual time runs at CPU time / weight.
    let lag_us = view.lag as f64 * f64::from(1_u32 << 22) / (view.inv.max(1) as f64) / 1e3;
    let units = |count: u32| rounded(f64::from(count) * 1.024);
    let us = |ns: u64| rounded(ns as f64 / 1e3);
    Task {
        pid: view.pid,
        tgid: view.tgid,
        comm: view.comm.clone(),
        group: view.group,
        policy: policy(view.policy).to_string(),
        nice: view.nice,
        weight: rounded(4_294_967_296.0 / view.inv.max(1) as f64),
        cpu: view.cpu,
        cpus_allowed: view.cpus_allowed,
        state: state(view.state).to_string(),
        lag_us: rounded(lag_us),
        burst_us: us(view.burst),
        request_us: us(view.request),
        waits_since_us: us(view.waits),
        last_wait_us: units(view.last_wait),
        max_wait_us: units(view.max_wait),
        woken_by: view.woken_by,
        preempted_by: view.preempted_by,
    }
}

/// The kernel's number of a scheduling policy, as people call it.
pub fn policy(number: u32) -> &'static str {
    match number {
        3 => "batch",
        5 => "idle",
        7 => "ext",
        _ => "normal",
    }
}

/// `enum task_state` of `bpf/task.h`.
fn state(number: u8) -> &'static str {
    match number {
        3 => "queued",
        4 => "running",
        _ => "blocked",
    }
}

/// `enum task_way` of `bpf/recorder.h`, as the answer to "how did it come to
/// run?".
pub fn way(number: u8) -> &'static str {
    match number {
        1 => "woke onto an idle CPU",
        2 => "woke and took over the CPU of its waker",
        3 => "woke and ran right after its waker",
        4 => "woke and interrupted the task that ran",
        5 => "waited its turn in a queue",
        6 => "may not move: waited on its CPU's local queue",
        7 => "went on: nobody who waits was due earlier",
        _ => "was placed by the kernel itself",
    }
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
