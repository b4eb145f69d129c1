// SPDX-License-Identifier: GPL-2.0-only
//! Scenarios for the simulator's tests: random ones, and how to run them.
#![allow(dead_code)]

pub mod caches;
pub mod habits;
pub mod hybrid;
pub mod judge;
pub mod policies;
pub mod programs;

use std::path::PathBuf;

use proptest::prelude::*;
use scx_fulcrum::sim::machine::{Machine, simulate};
use scx_fulcrum::sim::report;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{
    CgroupSpec, ChangeSpec, Clocks, Does, FaultSpec, File, GroupSpec, PolicySpec,
};

/// How often the properties are checked, ns: half of the tightest bound.
pub const AUDIT: u64 = 50_000;

/// A group of `count` tasks.
pub fn group(name: &str, count: usize, nice: i32, does: Does) -> GroupSpec {
    GroupSpec {
        name: name.to_string(),
        count,
        nice,
        policy: PolicySpec::Normal,
        cpus: None,
        start_us: 0,
        stagger_us: 0,
        kthread: false,
        cgroup: None,
        does,
    }
}

/// A file with these groups on `topology`.
pub fn file(topology: &str, seconds: f64, groups: Vec<GroupSpec>) -> File {
    File {
        topology: Some(topology.to_string()),
        seconds: Some(seconds),
        groups,
        ..File::default()
    }
}

/// Runs `file` with all properties checked; the scheduler is `variant`.
///
/// The answer of `look`, or the failure in words; the file is kept where they
/// say. The scheduler comes back in any case.
pub fn check<R>(
    file: &File,
    variant: Variant,
    look: impl FnOnce(&Machine) -> R,
) -> (Result<R, String>, Variant) {
    let mut scenario = file.scenario().unwrap();
    scenario.config.audit_period = AUDIT;
    let machine = simulate(
        scenario.config,
        variant,
        &scenario.workload,
        scenario.duration,
    )
    .unwrap();
    if machine.failure.is_none() {
        let answer = look(&machine);
        return (Ok(answer), machine.into_variant());
    }
    let kept = keep(file, machine.cfg.seed);
    let command = format!("scx_fulcrum sim --check {}", kept.display());
    let text = report::failure(&machine, &command);
    (Err(text), machine.into_variant())
}

/// Writes `file` where it outlives the test.
fn keep(file: &File, seed: u64) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("failed-{seed:x}.json"));
    let text = serde_json::to_string_pretty(file).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        4 => Just(Does::Hog {}),
        4 => (20u64..3000, 100u64..10_000)
            .prop_map(|(run_us, sleep_us)| Does::Sleeper { run_us, sleep_us }),
        2 => (1000u64..17_000, 100u64..5000)
            .prop_map(|(period_us, work_us)| Does::Frame { period_us, work_us }),
        2 => (2usize..5, 10u64..500, 100u64..3000)
            .prop_map(|(stages, run_us, sleep_us)| Does::Pipeline { stages, run_us, sleep_us }),
        2 => (50u64..2000, 1usize..8, 20u64..1000)
            .prop_map(|(every_us, burst, service_us)| Does::Server { every_us, burst, service_us }),
        1 => (200u64..3000, 50u64..2000)
            .prop_map(|(every_us, child_us)| Does::ForkStorm { every_us, child_us }),
        1 => (20u64..500, 50u64..1000)
            .prop_map(|(hold_us, think_us)| Does::Convoy { hold_us, think_us }),
        1 => (5u64..500).prop_map(|run_us| Does::Yielder { run_us }),
    ]
}

/// Paths of cgroups: a tree of up to three levels.
const PATHS: [&str; 6] = ["a", "b", "a/c", "a/d", "a/c/e", "b/f"];

/// Mostly none; else some of the tree, any weights.
fn cgroups() -> impl Strategy<Value = Vec<CgroupSpec>> {
    let weight = prop_oneof![2 => Just(100u32), 2 => 10u32..1000, 1 => 1u32..=10_000];
    let one = (weight, prop::bool::weighted(0.1));
    let all = prop::collection::vec(one, 1..=PATHS.len()).prop_map(|specs| {
        let named = specs.into_iter().zip(PATHS);
        let spec = |((weight, idle), path): ((u32, bool), &str)| CgroupSpec {
            path: path.to_string(),
            weight,
            idle,
        };
        named.map(spec).collect()
    });
    prop_oneof![1 => Just(Vec::new()), 1 => all]
}

/// Weights, idleness and moves while `file` runs.
fn changes(file: &File, picks: Vec<(u64, usize, usize, u32)>) -> Vec<ChangeSpec> {
    let nr = file.cgroups.len();
    if nr == 0 {
        return Vec::new();
    }
    let change = |(at_us, what, which, weight): (u64, usize, usize, u32)| {
        let cgroup = &file.cgroups[which % nr];
        let path = Some(cgroup.path.clone());
        let change = ChangeSpec {
            at_us,
            ..ChangeSpec::default()
        };
        match what {
            0 if !cgroup.idle => ChangeSpec {
                cgroup: path,
                weight: Some(weight),
                ..change
            },
            _ => ChangeSpec {
                moves: Some(format!("group{}", which % file.groups.len())),
                to: path,
                ..change
            },
        }
    };
    picks.into_iter().map(change).collect()
}

fn groups(cpus: usize) -> impl Strategy<Value = GroupSpec> {
    let most = (cpus * 2).clamp(3, 200);
    let pinned = prop_oneof![
        3 => Just(None),
        1 => (0..cpus).prop_map(|cpu| Some(cpu.to_string())),
        1 => (0..cpus, 0..cpus).prop_map(|(a, b)| Some(format!("{}-{}", a.min(b), a.max(b)))),
    ];
    let nice = prop_oneof![3 => Just(0), 2 => -20i32..20];
    let policy = prop_oneof![
        8 => Just(PolicySpec::Normal),
        1 => Just(PolicySpec::Batch),
        1 => Just(PolicySpec::Idle),
        1 => Just(PolicySpec::Fifo),
    ];
    let rest = (0u64..30_000, 0u64..500, prop::bool::weighted(0.1));
    (1..most, nice, policy, pinned, rest, does()).prop_map(
        |(count, nice, policy, cpus, (start_us, stagger_us, kthread), does)| GroupSpec {
            name: "group".to_string(),
            count,
            nice: if policy == PolicySpec::Fifo { 0 } else { nice },
            policy,
            cpus,
            start_us,
            stagger_us,
            kthread,
            cgroup: None,
            does,
        },
    )
}

/// A rate: mostly never, else once in some milliseconds.
fn rate(least_us: u64) -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => least_us..least_us * 20]
}

fn faults() -> impl Strategy<Value = FaultSpec> {
    let storage = prop_oneof![9 => Just(0u64), 1 => 2u64..20];
    (
        rate(500),
        rate(500),
        rate(500),
        rate(4000),
        rate(2000),
        rate(20_000),
        rate(300),
        storage,
    )
        .prop_map(
            |(
                affinity_us,
                renice_us,
                migrate_disable_us,
                hotplug_us,
                higher_us,
                bypass_us,
                cgroup_us,
                storage_one_in,
            )| FaultSpec {
                affinity_us,
                renice_us,
                migrate_disable_us,
                hotplug_us,
                higher_us,
                bypass_us,
                cgroup_us,
                knobs_us: 0,
                storage_one_in,
            },
        )
}

fn clocks() -> impl Strategy<Value = Clocks> {
    let near_end = prop_oneof![
        4 => Just(None),
        1 => (0u64..200_000_000).prop_map(|before| Some(u64::MAX - before)),
        1 => (0u64..200_000_000).prop_map(|before| Some((1 << 63) - before)),
    ];
    (near_end.clone(), near_end.clone(), near_end).prop_map(
        |(virtual_ns, kernel_ns, cpu_time_ns)| Clocks {
            virtual_ns,
            kernel_ns,
            cpu_time_ns,
        },
    )
}

/// Machines of 1 to 512 CPUs, small ones more often.
fn topology() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (1usize..9).prop_map(|cpus| cpus.to_string()),
        4 => (1usize..3, 1usize..4, 1usize..5, 1usize..3)
            .prop_map(|(n, l, c, t)| format!("{n}x{l}x{c}x{t}")),
        1 => (1usize..5, 1usize..9, 1usize..9, 1usize..3)
            .prop_map(|(n, l, c, t)| format!("{n}x{l}x{c}x{t}")),
    ]
}

/// Any scenario, with faults or without.
pub fn scenarios() -> impl Strategy<Value = File> {
    let kernel = prop::sample::select(vec!["6.16", "6.18", "7.1", "7.3"]);
    (topology(), kernel, any::<u64>(), faults(), clocks()).prop_flat_map(
        |(topology, kernel, seed, faults, clocks)| {
            let cpus = scx_fulcrum::sim::topology::Topology::parse(&topology)
                .unwrap()
                .cpus;
            let parts = (
                prop::collection::vec((groups(cpus), 0usize..8), 1..4),
                cgroups(),
                prop::collection::vec((0u64..80_000, 0usize..2, 0usize..8, 1u32..=1000), 0..4),
            );
            parts.prop_map(move |(groups, cgroups, picks)| {
                let homes = cgroups.len() + 1;
                let place = |(index, (mut group, home)): (usize, (GroupSpec, usize))| {
                    let cgroup: Option<&CgroupSpec> = cgroups.get(home % homes);
                    group.cgroup = cgroup.map(|cgroup| cgroup.path.clone());
                    group.name = format!("group{index}");
                    group
                };
                let mut file = File {
                    name: "property".to_string(),
                    topology: Some(topology.clone()),
                    seconds: Some(0.08),
                    kernel: Some(kernel.to_string()),
                    seed: Some(seed),
                    faults,
                    clocks,
                    groups: groups.into_iter().enumerate().map(place).collect(),
                    cgroups,
                    ..File::default()
                };
                file.changes = changes(&file, picks);
                file
            })
        },
    )
}
