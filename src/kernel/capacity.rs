// SPDX-License-Identifier: GPL-2.0-only
//! Which CPUs are faster than others: the machine sorted into kinds.
//!
//! Two sources, neither of which guesses. `cpu_capacity` is the scheduler's own
//! figure (Arm, RISC-V). Intel's hybrids have no such file, but name the CPUs of
//! each kind of core, as each kind has performance counters of its own. Not
//! used: maximum frequencies and `acpi_cppc/highest_perf`, which rank cores of
//! the same make by how well each turned out, so that uniform machines would
//! seem hybrid.
//!
//! Invariant: with more than one kind, every possible CPU is in exactly one. What
//! is missing or odd counts as full speed, and is noted: no input makes this fail.

use super::cpulist;
use super::view::SystemView;

/// Kinds that the BPF program has room for: `FULCRUM_KINDS`.
pub const MAX_KINDS: usize = 4;
/// The capacity of the machine's fastest CPU.
pub const FULL: u32 = 1024;
/// A CPU this much slower, in percent, is of another kind; less is not worth a
/// move, to the kernel's own scheduler neither.
const SLOWER_PERCENT: u32 = 5;
/// The names of Intel's kinds of cores, fastest first.
const INTEL_KINDS: [&str; 3] = ["cpu_core", "cpu_atom", "cpu_lowpower"];

/// CPUs of about the same speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What is known of their speed, for people: `capacity 446`, `cpu_atom`.
    pub name: String,
    /// Ascending.
    pub cpus: Vec<usize>,
}

/// The kinds of the machine that `view` shows, fastest first; none if its CPUs
/// are all alike. `online` tells of whom sysfs must know; numbers are below `limit`.
pub fn kinds(
    view: &SystemView,
    (possible, limit): (&[usize], usize),
    online: &[usize],
    notes: &mut Vec<String>,
) -> Vec<Kind> {
    let told: Vec<_> = possible
        .iter()
        .map(|&cpu| {
            let file = format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
            (cpu, view.read(&file).ok())
        })
        .collect();
    let kinds = if told.iter().any(|(_, text)| text.is_some()) {
        by_capacity(&figures(&told, online, notes))
    } else {
        of_intel(view, (possible, limit), notes)
    };
    if let [fastest, slower @ ..] = kinds.as_slice()
        && !slower.is_empty()
    {
        let list = |kind: &Kind| format!("{} ({})", cpulist::format(&kind.cpus), kind.name);
        let slower: Vec<_> = slower.iter().map(list).collect();
        notes.push(format!(
            "CPUs {} are faster than {}: busy tasks go there first",
            list(fastest),
            slower.join(", ")
        ));
    }
    kinds
}

/// The capacity of each CPU; full where it isn't told in the kernel's terms.
fn figures(
    told: &[(usize, Option<String>)],
    online: &[usize],
    notes: &mut Vec<String>,
) -> Vec<(usize, u32)> {
    let mut odd = Vec::new();
    let figures = told
        .iter()
        .map(|(cpu, text)| {
            let figure = text.as_ref().and_then(|text| text.parse().ok());
            let figure = figure.filter(|figure| (1..=FULL).contains(figure));
            // An offline CPU may have no file.
            if figure.is_none() && (text.is_some() || online.contains(cpu)) {
                odd.push(*cpu);
            }
            (*cpu, figure.unwrap_or(FULL))
        })
        .collect();
    if !odd.is_empty() {
        notes.push(format!(
            "cpu_capacity of CPUs {} is missing or not in 1..={FULL}: they count as full speed",
            cpulist::format(&odd)
        ));
    }
    figures
}

/// CPUs with their capacities, sorted into kinds; none if all are alike.
pub fn by_capacity(figures: &[(usize, u32)]) -> Vec<Kind> {
    let mut sorted = figures.to_vec();
    sorted.sort_by_key(|&(cpu, capacity)| (u32::MAX - capacity, cpu));
    let mut kinds: Vec<(u32, Kind)> = Vec::new();
    for (cpu, capacity) in sorted {
        let slower = |first: u32| capacity * 100 < first * (100 - SLOWER_PERCENT);
        let count = kinds.len();
        match kinds.last_mut() {
            Some((first, kind)) if count == MAX_KINDS || !slower(*first) => kind.cpus.push(cpu),
            _ => {
                let name = format!("capacity {capacity}");
                let cpus = vec![cpu];
                kinds.push((capacity, Kind { name, cpus }));
            }
        }
    }
    if kinds.len() < 2 {
        return Vec::new();
    }
    let kinds = kinds.into_iter().map(|(_, mut kind)| {
        kind.cpus.sort_unstable();
        kind
    });
    kinds.collect()
}

/// Intel's kinds; a CPU that none of them names, as an offline one, counts as of the fastest.
fn of_intel(
    view: &SystemView,
    (possible, limit): (&[usize], usize),
    notes: &mut Vec<String>,
) -> Vec<Kind> {
    let mut slower: Vec<Kind> = Vec::new();
    for name in INTEL_KINDS {
        let Ok(text) = view.read(&format!("/sys/devices/{name}/cpus")) else {
            continue;
        };
        let Some(mut cpus) = cpulist::parse(&text, limit) else {
            notes.push(format!(
                "/sys/devices/{name}/cpus is no list of CPUs: all count as full speed"
            ));
            return Vec::new();
        };
        cpus.retain(|cpu| possible.contains(cpu));
        let name = name.to_string();
        slower.push(Kind { name, cpus });
    }
    let mut fastest = match slower.first() {
        Some(kind) if kind.name == INTEL_KINDS[0] => slower.remove(0),
        _ => return Vec::new(),
    };
    let mut taken: Vec<usize> = Vec::new();
    for kind in &mut slower {
        kind.cpus.retain(|cpu| !taken.contains(cpu));
        taken.extend(&kind.cpus);
    }
    slower.retain(|kind| !kind.cpus.is_empty());
    fastest.cpus = possible.to_vec();
    fastest.cpus.retain(|cpu| !taken.contains(cpu));
    if slower.is_empty() || fastest.cpus.is_empty() {
        return Vec::new();
    }
    slower.insert(0, fastest);
    slower
}

#[cfg(test)]
#[path = "capacity_tests.rs"]
mod tests;
