// SPDX-License-Identifier: GPL-2.0-only
//! Workload files: JSON (comments allowed), checked, and turned into programs.
//!
//! `docs/simulator.md` describes the format. A mistake is one line with the
//! place and the reason; nothing is guessed.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use super::cgroups::{CgroupSpec, ChangeSpec};
pub use super::does::Does;

use super::cgroups::{self, Paths};
use super::comments::without_comments;
use super::does::one;
use super::{Group, Policy, Workload};
use crate::control::settings::{Policy as Named, Settings};
use crate::kernel::cpulist;
use crate::kernel::topology::MAX_CPUS;
use crate::sim::config::{Config, Faults, RELEASES};
use crate::sim::ffi::CpuMask;
use crate::sim::topology::Topology;

const MAX_TASKS: usize = 100_000;

/// A workload file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// For people.
    pub name: String,
    /// `CPUS` or `NODESxCACHESxCORESxTHREADS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// How long to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The kernel whose functions and enums there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The scheduler's policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Decides what the kernel leaves open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What goes wrong, how often.
    pub faults: FaultSpec,
    /// Where clocks start.
    pub clocks: Clocks,
    /// The cgroups besides the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<CgroupSpec>,
    /// The tasks.
    pub groups: Vec<GroupSpec>,
    /// What is done to cgroups and tasks while they run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeSpec>,
}

/// Faults: once in so many microseconds on average; 0 = never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultSpec {
    /// A task gets another CPU mask.
    pub affinity_us: u64,
    /// A task gets another nice level.
    pub renice_us: u64,
    /// A running task enters a migration-disabled section.
    pub migrate_disable_us: u64,
    /// A CPU goes away for a while.
    pub hotplug_us: u64,
    /// A higher scheduling class takes a CPU for up to 3 ms.
    pub higher_us: u64,
    /// Bypass mode for up to 20 ms.
    pub bypass_us: u64,
    /// A task moves to another cgroup, or a cgroup changes, comes or goes.
    pub cgroup_us: u64,
    /// Another policy, slice and credit.
    pub knobs_us: u64,
    /// Task storage fails once in so many tasks.
    pub storage_one_in: u64,
}

/// Where clocks start; none: as in life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clocks {
    /// The queues' virtual clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_ns: Option<u64>,
    /// The scheduler's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_ns: Option<u64>,
    /// CPU time of new tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time_ns: Option<u64>,
}

/// Equal tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// For people.
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub count: usize,
    /// -20..=19
    #[serde(default)]
    pub nice: i32,
    /// `normal`, `batch`, `idle` or `fifo`.
    #[serde(default)]
    pub policy: PolicySpec,
    /// A list such as `0-3,8`; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// When the first starts.
    #[serde(default)]
    pub start_us: u64,
    /// How much later each next one.
    #[serde(default)]
    pub stagger_us: u64,
    /// Kernel threads.
    #[serde(default)]
    pub kthread: bool,
    /// The cgroup that they are born in; none: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// What they do.
    pub does: Does,
}

/// A scheduling policy's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicySpec {
    /// `SCHED_OTHER`
    #[default]
    Normal,
    /// `SCHED_BATCH`
    Batch,
    /// `SCHED_IDLE`
    Idle,
    /// `SCHED_FIFO`
    Fifo,
}

/// A checked file.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The set-up that the file asks for.
    pub config: Config,
    /// Its workload.
    pub workload: Workload,
    /// How long to run, ns.
    pub duration: u64,
}

impl File {
    /// Parses JSON text.
    ///
    /// # Errors
    ///
    /// The place (`line:column`) and what is wrong there.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(&without_comments(text)).map_err(|error| {
            let full = error.to_string();
            let reason = full.split(" at line ").next().unwrap_or(&full);
            format!("{}:{}: {reason}", error.line(), error.column())
        })
    }

    /// Checks everything and makes programs of it.
    ///
    /// # Errors
    ///
    /// The member and what is wrong with it.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let topology = match &self.topology {
            Some(text) => Topology::parse(text).map_err(|why| format!("topology: {why}"))?,
            None => Topology::of(2),
        };
        let seconds = self.seconds.unwrap_or(2.0);
        if !(0.001..=3600.0).contains(&seconds) {
            return Err(format!("seconds: {seconds} is not in 0.001..=3600"));
        }
        let mut config = Config::new(topology.clone(), self.seed.unwrap_or(1));
        if let Some(kernel) = &self.kernel {
            config.release = release(kernel).map_err(|why| format!("kernel: {why}"))?;
        }
        if let Some(name) = &self.policy {
            let policy = Named::named(name).map_err(|why| format!("policy: {name} is {why}"))?;
            config.settings = Settings::of(policy);
        }
        config.faults = self.faults.rates();
        config.storage_fails_one_in = self.faults.storage_one_in;
        config.vtime_base = self.clocks.virtual_ns;
        config.clock_base = self.clocks.kernel_ns.unwrap_or(config.clock_base);
        config.exec_base = self.clocks.cpu_time_ns.unwrap_or(0);
        Ok(Scenario {
            config,
            workload: self.workload(&topology)?,
            duration: (seconds * 1e9) as u64,
        })
    }

    fn workload(&self, topology: &Topology) -> Result<Workload, String> {
        let mut workload = Workload {
            name: self.name.clone(),
            ..Workload::default()
        };
        let paths = cgroups::add(&self.cgroups, &mut workload)?;
        if self.groups.is_empty() {
            return Err("groups: there are none".to_string());
        }
        let mut members: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, spec) in self.groups.iter().enumerate() {
            let first = workload.groups.len();
            spec.add_to(&mut workload, topology, &paths)
                .map_err(|why| format!("groups[{index}].{why}"))?;
            let all = members.entry(&spec.name).or_default();
            all.extend(first..workload.groups.len());
        }
        cgroups::add_changes(&self.changes, &paths, &members, &mut workload)?;
        let tasks: usize = workload.groups.iter().map(|group| group.count).sum();
        if tasks > MAX_TASKS {
            return Err(format!("groups: {tasks} tasks are more than {MAX_TASKS}"));
        }
        Ok(workload)
    }
}

/// The number of a kernel release's name.
///
/// # Errors
///
/// The releases that there are.
pub fn release(name: &str) -> Result<u32, String> {
    RELEASES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, number)| *number)
        .ok_or_else(|| format!("{name:?} is none of 6.16, 6.18, 7.1, 7.3"))
}

impl FaultSpec {
    fn rates(self) -> Faults {
        Faults {
            affinity: self.affinity_us * 1000,
            renice: self.renice_us * 1000,
            migrate_disable: self.migrate_disable_us * 1000,
            hotplug: self.hotplug_us * 1000,
            higher: self.higher_us * 1000,
            bypass: self.bypass_us * 1000,
            cgroup: self.cgroup_us * 1000,
            knobs: self.knobs_us * 1000,
        }
    }
}

impl GroupSpec {
    fn add_to(
        &self,
        workload: &mut Workload,
        topology: &Topology,
        paths: &Paths,
    ) -> Result<(), String> {
        if !(-20..=19).contains(&self.nice) {
            return Err(format!("nice: {} is not in -20..=19", self.nice));
        }
        if self.nice != 0 && self.policy == PolicySpec::Fifo {
            return Err("nice: means nothing to the policy fifo".to_string());
        }
        if self.count == 0 || self.count > MAX_TASKS {
            return Err(format!("count: {} is not in 1..={MAX_TASKS}", self.count));
        }
        let mut group = Group::new(&self.name, self.count, Vec::new()).nice(self.nice);
        group.policy = match self.policy {
            PolicySpec::Normal => Policy::Normal,
            PolicySpec::Batch => Policy::Batch,
            PolicySpec::Idle => Policy::Idle,
            PolicySpec::Fifo => Policy::Fifo,
        };
        group.start = self.start_us * 1000;
        group.stagger = self.stagger_us * 1000;
        group.kthread = self.kthread;
        if let Some(list) = &self.cpus {
            group.cpus = Some(mask(list, topology)?);
        }
        if let Some(path) = &self.cgroup {
            group.cgroup = paths.find(path).map_err(|why| format!("cgroup: {why}"))?;
        }
        self.does.add_to(workload, group)
    }
}

/// The CPUs of a list such as `0-3,8`.
pub(super) fn mask(list: &str, topology: &Topology) -> Result<CpuMask, String> {
    let cpus = cpulist::parse(list, MAX_CPUS)
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| format!("cpus: {list:?} is no list of CPUs"))?;
    let mut mask = CpuMask::empty();
    for cpu in cpus {
        if cpu >= topology.cpus {
            return Err(format!(
                "cpus: there is no CPU {cpu} among {}",
                topology.cpus
            ));
        }
        mask.set(cpu);
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match File::parse(text) {
            Ok(file) => file.scenario().map(|_| ()).unwrap_err(),
            Err(error) => error,
        }
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, expected) in [
            ("{", "1:1: EOF"),
            ("{\"x\": 1}", "1:4: unknown field `x`"),
            ("// a\n{\"seconds\": \"b\"}", "2:15: invalid type"),
            ("{}", "groups: there are none"),
            ("{\"seconds\": 0}", "seconds: 0 is not in"),
            ("{\"kernel\": \"5.4\"}", "kernel: \"5.4\" is none of"),
            ("{\"topology\": \"0\"}", "topology: \"0\" is neither"),
            (
                r#"{"groups": [{"name": "a", "nice": 20, "does": {"hog": {}}}]}"#,
                "groups[0].nice: 20 is not in -20..=19",
            ),
            (
                r#"{"groups": [{"name": "a", "cpus": "2", "does": {"hog": {}}}]}"#,
                "groups[0].cpus: there is no CPU 2 among 2",
            ),
            (
                r#"{"groups": [{"name": "a", "does": {"frame": {"period_us": 0, "work_us": 1}}}]}"#,
                "groups[0].does.period_us: 0 is not in",
            ),
            (
                r#"{"groups": [{"name": "a", "count": 0, "does": {"hog": {}}}]}"#,
                "groups[0].count: 0 is not in",
            ),
            (
                r#"{"groups": [{"name": "a", "cgroup": "x", "does": {"hog": {}}}]}"#,
                "groups[0].cgroup: there is no cgroup \"x\"",
            ),
            (
                r#"{"cgroups": [{"path": "a"}, {"path": "/a"}]}"#,
                "cgroups[1].path: \"/a\" is not of the form",
            ),
            (
                r#"{"cgroups": [{"path": "a/b"}, {"path": "a"}, {"path": "a"}]}"#,
                "cgroups[2].path: \"a\" is there twice",
            ),
            (
                r#"{"cgroups": [{"path": "a", "weight": 0}]}"#,
                "cgroups[0].weight: 0 is not in 1..=10000",
            ),
            (
                "{\"cgroups\": [{\"path\": \"a\", \"x\": 1}]}",
                "1:30: unknown field",
            ),
        ] {
            let found = problem(text);
            assert!(found.starts_with(expected), "{text}: {found}");
            assert_eq!(found.lines().count(), 1);
        }
    }

    #[test]
    fn mistakes_in_changes_are_named() {
        let groups = r#""groups": [{"name": "g", "does": {"hog": {}}}]"#;
        let cgroups = r#""cgroups": [{"path": "a/b", "weight": 300}, {"path": "i", "idle": true}]"#;
        for (change, expected) in [
            (r#"{"at_us": 1}"#, "changes[0]: expected cgroup with"),
            (r#"{"cgroup": "a"}"#, "1:150: missing field `at_us`"),
            (
                r#"{"at_us": 1, "cgroup": "b", "weight": 5}"#,
                "changes[0].cgroup: there is no cgroup \"b\"",
            ),
            (
                r#"{"at_us": 1, "cgroup": "a", "weight": 10001}"#,
                "changes[0].weight: 10001 is not in",
            ),
            (
                r#"{"at_us": 1, "cgroup": "a"}"#,
                "changes[0]: a cgroup needs one of",
            ),
            (
                r#"{"at_us": 1, "cgroup": "/", "weight": 5}"#,
                "changes[0].cgroup: the root",
            ),
            (
                r#"{"at_us": 1, "cgroup": "i", "weight": 5}"#,
                "changes[0].weight: the kernel refuses",
            ),
            (
                r#"{"at_us": 1, "move": "x", "to": "a"}"#,
                "changes[0].move: there is no group \"x\"",
            ),
            (
                r#"{"at_us": 1, "move": "g", "to": "c"}"#,
                "changes[0].to: there is no cgroup \"c\"",
            ),
        ] {
            let text = format!("{{{groups}, {cgroups}, \"changes\": [{change}]}}");
            let found = problem(&text);
            assert!(found.starts_with(expected), "{text}: {found}");
        }
        let change = r#"{"at_us": 1, "move": "g", "to": "a/b"}"#;
        let text = format!("{{{groups}, {cgroups}, \"changes\": [{change}]}}");
        let workload = File::parse(&text).unwrap().scenario().unwrap().workload;
        // "a" came with "a/b".
        assert_eq!(
            (workload.cgroups[0].weight, workload.cgroups[1].weight),
            (100, 300)
        );
        assert_eq!(workload.cgroups[1].parent, 1);
        assert_eq!(workload.changes.len(), 1);
    }

    #[test]
    fn comments_keep_places_and_strings() {
        let text = "{/* a\n*/ \"name\": \"http://x /* y\" // z\n}";
        assert_eq!(File::parse(text).unwrap().name, "http://x /* y");
        assert_eq!(without_comments(text).len(), text.len());
    }
}
