// SPDX-License-Identifier: GPL-2.0-only
//! Cgroups: shares in trees of them, while weights change, tasks move, and
//! cgroups are idle.

mod sim_common;

use scx_fulcrum::sim::machine::simulate;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{CgroupSpec, ChangeSpec, Does, File};
use sim_common::judge::{CGROUP_ERROR, apart_from_ideal, cgroup_tree, ran};
use sim_common::{check, file, group};

/// Two hogs in cgroups a and b of these weights on one CPU.
fn pair(a: u32, b: u32) -> File {
    let cgroup = |path: &str, weight| CgroupSpec {
        path: path.to_string(),
        weight,
        idle: false,
    };
    let hog = |name: &str| {
        let mut hog = group(name, 1, 0, Does::Hog {});
        hog.cgroup = Some(name.to_string());
        hog
    };
    File {
        cgroups: vec![cgroup("a", a), cgroup("b", b)],
        ..file("1", 4.0, vec![hog("a"), hog("b")])
    }
}

fn apart(file: &File) -> f64 {
    let (result, _) = check(file, Variant::lease(), |machine| {
        apart_from_ideal(file, machine)
    });
    result.unwrap_or_else(|text| panic!("{text}"))
}

#[test]
fn two_cgroups_share_by_weight() {
    for (a, b) in [(100, 300), (100, 100), (1, 100), (10_000, 100)] {
        let error = apart(&pair(a, b));
        println!("cpu.weight {a}:{b}: off by {error:.4} CPUs");
        assert!(error < 0.01, "{a}:{b}: {error}");
    }
}

/// One task in a cgroup that weighs ten times as much as the cgroup of all others.
#[test]
fn who_cannot_use_its_part_has_a_cpu() {
    for (cpus, parent, others) in [("2", "", 3), ("2", "t/", 3), ("4", "", 7), ("8", "t/", 9)] {
        let mut file = pair(1000, 100);
        file.topology = Some(cpus.to_string());
        for cgroup in &mut file.cgroups {
            cgroup.path.insert_str(0, parent);
        }
        for group in &mut file.groups {
            group.cgroup = group.cgroup.as_ref().map(|path| format!("{parent}{path}"));
        }
        file.groups[1].count = others;
        for seed in 1..=5 {
            file.seed = Some(seed);
            let error = apart(&file);
            println!("1 of 1000 beside {others} of 100 on {cpus} CPUs: off by {error:.4} CPUs");
            assert!(error < 0.01, "{cpus}, {others}: {error}");
        }
    }
}

#[test]
fn trees_changes_and_moves_follow_the_ideal() {
    let error = apart(&cgroup_tree("1"));
    println!("a tree on 1 CPU: off by {error:.4} CPUs");
    assert!(error < CGROUP_ERROR, "{error}");
}

#[test]
fn an_idle_cgroup_gets_what_the_policy_idle_would() {
    let mut file = pair(100, 100);
    file.cgroups[1].idle = true;
    let (result, _) = check(&file, Variant::lease(), ran);
    let ran = result.unwrap_or_else(|text| panic!("{text}"));
    assert!(ran[1] < ran[0] * 0.02, "{ran:?}");
    // ... until it is idle no more.
    file.changes = vec![ChangeSpec {
        at_us: 2_000_000,
        cgroup: Some("b".to_string()),
        idle: Some(false),
        ..ChangeSpec::default()
    }];
    let error = apart(&file);
    println!("idle for the first half: off by {error:.4} CPUs");
    assert!(error < 0.05, "{error}");
}

#[test]
fn the_same_seed_gives_the_same_decisions_with_cgroups() {
    let hash = |seed| {
        let mut file = cgroup_tree("1x2x2x1");
        file.faults.cgroup_us = 500;
        file.seconds = Some(0.5);
        file.seed = Some(seed);
        let scenario = file.scenario().unwrap();
        let machine = simulate(
            scenario.config,
            Variant::lease(),
            &scenario.workload,
            scenario.duration,
        )
        .unwrap();
        assert_eq!(machine.failure, None);
        machine.log.hash()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}
