// SPDX-License-Identifier: GPL-2.0-only
//! Which CPUs share a cache: the machine cut into domains.
//!
//! Invariant: every possible CPU, online or not, is in exactly one domain;
//! a domain holds 1 to 64 CPUs of one last-level cache and one node; domains
//! are numbered by node. Whatever sysfs lacks or garbles costs locality at
//! most, and is noted: no input makes this fail.
//!
//! Not scx_utils' `Topology`: that holds online CPUs only, while a CPU that
//! comes online later must have its place already, and it panics or gives up
//! where sysfs is incomplete.

use std::collections::BTreeMap;
use std::fs;

use super::capacity::{self, Kind};
use super::cpulist;
use super::view::SystemView;

/// CPU numbers that the BPF program has room for: `FULCRUM_MAX_CPUS`.
pub const MAX_CPUS: usize = 4096;
/// Domains that it has room for: `FULCRUM_MAX_DOMAINS`.
pub const MAX_DOMAINS: usize = 512;
/// CPUs a domain: one bit each in a word.
pub const DOMAIN_CPUS: usize = 64;

const CPU_FOLDER: &str = "/sys/devices/system/cpu";
const NODE_FOLDER: &str = "/sys/devices/system/node";

/// CPUs that share a last-level cache, at most [`DOMAIN_CPUS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The kernel's number of their NUMA node.
    pub node: usize,
    /// The CPUs; a CPU's position is its bit in the domain's words. First
    /// threads of all cores come before second ones, so that the lowest bit
    /// of a set of idle CPUs prefers whole cores.
    pub cpus: Vec<usize>,
}

/// The machine's CPUs in domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// All domains, those of a node next to each other.
    pub domains: Vec<Domain>,
    /// Number of last-level caches.
    pub llcs: usize,
    /// Number of NUMA nodes with CPUs.
    pub nodes: usize,
    /// Number of CPUs that are online.
    pub online: usize,
    /// CPUs by speed, the fastest first; none if all are alike.
    pub kinds: Vec<Kind>,
    /// Cores of several threads, if there are kinds.
    pub cores: Vec<Vec<usize>>,
    /// What was missing, odd or worth knowing, in sentences.
    pub notes: Vec<String>,
}

/// What sysfs says of one CPU.
#[derive(Clone, Copy, Debug)]
struct CpuInfo {
    cpu: usize,
    node: Option<usize>,
    /// Lowest CPU that shares the last-level cache.
    llc: Option<usize>,
    /// Lowest CPU of the same core.
    core: usize,
    /// Position among the threads of its core.
    thread: usize,
}

/// A last-level cache, or what stands in for one, within a node.
type GroupKey = (usize, usize);

impl Topology {
    /// Read the topology that `view` shows.
    pub fn read(view: &SystemView) -> Self {
        let mut notes = Vec::new();
        let possible = possible_cpus(view, &mut notes);
        let online_cpus = cpu_set(view, "online").unwrap_or_else(|| possible.clone());
        let online = online_cpus.len();
        let nodes = node_of_cpus(view);
        let infos: Vec<_> = possible
            .iter()
            .map(|&cpu| cpu_info(view, cpu, nodes.get(&cpu).copied()))
            .collect();
        let groups = group(&infos, &mut notes);
        let kinds = capacity::kinds(view, (&possible, MAX_CPUS), &online_cpus, &mut notes);
        let cores = if kinds.is_empty() {
            Vec::new()
        } else {
            threaded_cores(&infos)
        };
        let mut topology = Self::cut(&groups, online, notes);
        if topology.domains.len() > MAX_DOMAINS {
            let count = topology.domains.len();
            let note =
                format!("{count} caches are more than {MAX_DOMAINS}: CPUs are grouped by number");
            let all = BTreeMap::from([((0, 0), infos)]);
            topology = Self::cut(&all, online, vec![note]);
        }
        topology.kinds = kinds;
        topology.cores = cores;
        topology
    }

    fn cut(groups: &BTreeMap<GroupKey, Vec<CpuInfo>>, online: usize, notes: Vec<String>) -> Self {
        let domains: Vec<_> = groups
            .iter()
            .flat_map(|(&(node, _), cpus)| cut_group(node, cpus))
            .collect();
        let mut nodes: Vec<_> = domains.iter().map(|domain| domain.node).collect();
        nodes.dedup();
        Self {
            domains,
            llcs: groups.len(),
            nodes: nodes.len(),
            online,
            kinds: Vec::new(),
            cores: Vec::new(),
            notes,
        }
    }
}

fn cpu_set(view: &SystemView, file: &str) -> Option<Vec<usize>> {
    let text = view.read(&format!("{CPU_FOLDER}/{file}")).ok()?;
    cpulist::parse(&text, MAX_CPUS).filter(|cpus| !cpus.is_empty())
}

fn possible_cpus(view: &SystemView, notes: &mut Vec<String>) -> Vec<usize> {
    if let Some(cpus) = cpu_set(view, "possible") {
        return cpus;
    }
    notes.push(format!(
        "{CPU_FOLDER}/possible is unreadable: room is kept for {MAX_CPUS} CPUs"
    ));
    (0..MAX_CPUS).collect()
}

/// The node of each CPU that sysfs places in one.
fn node_of_cpus(view: &SystemView) -> BTreeMap<usize, usize> {
    let mut nodes = BTreeMap::new();
    let Ok(entries) = fs::read_dir(view.path(NODE_FOLDER)) else {
        return nodes;
    };
    for entry in entries.flatten() {
        let Some(node) = numbered(&entry.file_name(), "node") else {
            continue;
        };
        let list = view
            .read(&format!("{NODE_FOLDER}/node{node}/cpulist"))
            .unwrap_or_default();
        for cpu in cpulist::parse(&list, MAX_CPUS).unwrap_or_default() {
            nodes.insert(cpu, node);
        }
    }
    nodes
}

fn numbered(name: &std::ffi::OsStr, prefix: &str) -> Option<usize> {
    name.to_str()?.strip_prefix(prefix)?.parse().ok()
}

fn cpu_info(view: &SystemView, cpu: usize, node: Option<usize>) -> CpuInfo {
    let folder = format!("{CPU_FOLDER}/cpu{cpu}");
    // Node lists name online CPUs only; the link in the CPU's folder stays.
    let node = node.or_else(|| {
        let entries = fs::read_dir(view.path(&folder)).ok()?;
        entries
            .flatten()
            .find_map(|entry| numbered(&entry.file_name(), "node"))
    });
    let siblings = view
        .read(&format!("{folder}/topology/thread_siblings_list"))
        .ok();
    let siblings = siblings
        .and_then(|list| set_around(cpu, &list))
        .unwrap_or_else(|| vec![cpu]);
    let thread = siblings
        .iter()
        .position(|&sibling| sibling == cpu)
        .unwrap_or(0);
    let core = siblings.first().copied().unwrap_or(cpu);
    CpuInfo {
        cpu,
        node,
        llc: last_cache(view, &folder, cpu),
        core,
        thread,
    }
}

/// The CPUs of a list, if it holds the CPU that it is about.
fn set_around(cpu: usize, list: &str) -> Option<Vec<usize>> {
    cpulist::parse(list, MAX_CPUS).filter(|cpus| cpus.contains(&cpu))
}

/// The CPUs of each core that has several.
fn threaded_cores(infos: &[CpuInfo]) -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for info in infos {
        cores.entry(info.core).or_default().push(info.cpu);
    }
    cores.into_values().filter(|cpus| cpus.len() > 1).collect()
}

/// Lowest CPU that shares the highest level of data cache with `cpu`.
fn last_cache(view: &SystemView, folder: &str, cpu: usize) -> Option<usize> {
    let caches = fs::read_dir(view.path(&format!("{folder}/cache"))).ok()?;
    let shared = caches.flatten().filter_map(|entry| {
        let index = numbered(&entry.file_name(), "index")?;
        let read = |file: &str| {
            view.read(&format!("{folder}/cache/index{index}/{file}"))
                .ok()
        };
        if read("type").is_some_and(|kind| kind == "Instruction") {
            return None;
        }
        let level: u32 = read("level")?.parse().ok()?;
        Some((
            level,
            set_around(cpu, &read("shared_cpu_list")?)?
                .first()
                .copied()?,
        ))
    });
    shared
        .max_by_key(|&(level, _)| level)
        .map(|(_, first)| first)
}

/// Sort CPUs into caches. A CPU of which nothing is known, as an offline one,
/// joins its neighbour in number: caches usually span runs of numbers.
fn group(infos: &[CpuInfo], notes: &mut Vec<String>) -> BTreeMap<GroupKey, Vec<CpuInfo>> {
    let first_known = infos
        .iter()
        .find_map(|info| info.llc.map(|llc| (info.node.unwrap_or(0), llc)));
    if first_known.is_none() {
        notes.push("no cache information: CPUs of a node count as sharing one".to_string());
    }
    let mut groups: BTreeMap<GroupKey, Vec<CpuInfo>> = BTreeMap::new();
    let mut neighbour = first_known.unwrap_or((0, 0));
    for &info in infos {
        let node = info.node.unwrap_or(neighbour.0);
        let key = match info.llc {
            Some(llc) => (node, llc),
            None if node == neighbour.0 => neighbour,
            None => (node, 0),
        };
        neighbour = key;
        groups.entry(key).or_default().push(info);
    }
    if lone_cores(&groups) {
        notes.push(
            "every core has its last cache to itself: CPUs of a node are grouped".to_string(),
        );
        let mut by_node: BTreeMap<GroupKey, Vec<CpuInfo>> = BTreeMap::new();
        for ((node, _), cpus) in groups {
            by_node.entry((node, 0)).or_default().extend(cpus);
        }
        return by_node;
    }
    groups
}

/// Whether there are several cores and none shares its cache with another.
/// Some virtual machines say so; domains of one core would be of no use.
fn lone_cores(groups: &BTreeMap<GroupKey, Vec<CpuInfo>>) -> bool {
    let one_core = |cpus: &Vec<CpuInfo>| cpus.iter().all(|c| cpus.iter().all(|d| c.core == d.core));
    groups.len() > 1 && groups.values().all(one_core)
}

/// Cut a cache's CPUs into domains of about equal size, threads of a core
/// together.
fn cut_group(node: usize, cpus: &[CpuInfo]) -> Vec<Domain> {
    let mut cores: BTreeMap<usize, Vec<CpuInfo>> = BTreeMap::new();
    for &info in cpus {
        cores.entry(info.core).or_default().push(info);
    }
    let target = cpus.len().div_ceil(cpus.len().div_ceil(DOMAIN_CPUS).max(1));
    let mut parts: Vec<Vec<CpuInfo>> = Vec::new();
    for threads in cores.into_values() {
        // A core of more threads than a domain holds does not exist, but a
        // garbled sibling list may say so.
        for threads in threads.chunks(DOMAIN_CPUS) {
            match parts.last_mut() {
                Some(part) if part.len() < target && part.len() + threads.len() <= DOMAIN_CPUS => {
                    part.extend_from_slice(threads);
                }
                _ => parts.push(threads.to_vec()),
            }
        }
    }
    parts
        .into_iter()
        .map(|mut part| {
            part.sort_by_key(|info| (info.thread, info.cpu));
            Domain {
                node,
                cpus: part.into_iter().map(|info| info.cpu).collect(),
            }
        })
        .collect()
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
