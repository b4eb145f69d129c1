// SPDX-License-Identifier: GPL-2.0-only
//! Judges of what tasks may gain, and clocks lose, by odd habits: light tasks
//! that run alone, naps, short lives; and of cgroups that come and go.
#![allow(dead_code)]

use std::path::Path;

use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{CgroupSpec, ChangeSpec, Does, File, GroupSpec};
use scx_fulcrum::sim::workload::program::Step;
use scx_fulcrum::sim::workload::{Group, Policy};

use super::judge::{judge, verdict};
use super::programs::{MS, Setup, US, cpus_used, frames, longest, repeat, setup};
use super::{check, file, group};

type Verdict = (Result<(), String>, Variant);

/// Compilers, two for each CPU, frames, input, and a SCHED_IDLE hog.
pub fn desktop(cpus: usize) -> Setup {
    let mut backup = Group::hogs("backup", 1);
    backup.policy = Policy::Idle;
    let input = vec![Step::RunExp(200 * US), Step::SleepExp(5 * MS)];
    let groups = vec![
        Group::hogs("compiler", 2 * cpus),
        frames("frames", cpus / 2, 16_667 * US, 4 * MS),
        repeat("input", 4, input),
        backup,
    ];
    setup(&cpus.to_string(), 3.0, groups)
}

/// A light task's clock is far ahead of all others. Where one had run alone,
/// wakers came last for 120 ms.
pub fn light_tasks(mut variant: Variant) -> Verdict {
    let mut late = 0;
    for seed in 1..=4 {
        let (result, back) = desktop(4).seed(seed).judge(variant, |machine| {
            late += machine.stats.groups[1].misses;
            let wait = longest(machine, 1);
            verdict(wait < 25 * MS, || {
                format!("a frame waited for {} ms", wait / MS)
            })
        });
        variant = back;
        if result.is_err() {
            return (result, variant);
        }
    }
    let verdict = verdict(late <= 8, || format!("{late} frames were late"));
    (verdict, variant)
}

/// A task that goes on beside a waiting light one leaves no clock behind; the
/// bounds of the run itself judge.
pub fn clock_goes_on(variant: Variant) -> Verdict {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workloads/known/clock-stood-still.json");
    let file = File::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    judge(&file, variant, |_| Ok(()))
}

/// A hog that is mostly alone, beside a task that wakes now and then.
pub fn nearly_alone(nice: i32) -> Setup {
    let mut hog = Group::hogs("hog", 1);
    hog.nice = nice;
    let naps = vec![Step::Timer(37_300 * US), Step::Run(200 * US)];
    setup("1", 20.0, vec![hog, repeat("sleeper", 1, naps)])
}

/// Who runs alone makes way at once, though its ticks moved the clock far beyond
/// what it was due at.
pub fn makes_way(variant: Variant) -> Verdict {
    nearly_alone(10).judge(variant, |machine| {
        let wait = machine.stats.groups[1].wakeup.percentile(0.99);
        verdict(wait < 100 * US, || format!("woke after {} us", wait / US))
    })
}

/// Two hogs beside three that sleep before their slices end, on two CPUs.
pub fn nappers() -> Setup {
    let naps = vec![Step::Run(2900 * US), Step::Sleep(100 * US)];
    setup(
        "2",
        4.0,
        vec![Group::hogs("hog", 2), repeat("napper", 3, naps)],
    )
}

/// A hog beside a chain in which each starts the next and exits.
pub fn chain(run: u64) -> Setup {
    let chain = Group::new("chain", 1, vec![Step::Run(run), Step::Fork(1)]);
    setup("1", 3.0, vec![Group::hogs("hog", 1), chain])
}

/// Neither naps nor short lives get more than a fair share.
pub fn games(variant: Variant) -> Verdict {
    let (result, variant) = nappers().judge(variant, |machine| {
        let hogs = cpus_used(machine)[0];
        let wait = longest(machine, 0).max(longest(machine, 1));
        verdict(hogs > 0.78 && wait < 30 * MS, || {
            format!(
                "2 hogs beside 3 nappers: {hogs:.3} CPUs, longest wait {} ms",
                wait / MS
            )
        })
    });
    if result.is_err() {
        return (result, variant);
    }
    chain(MS).judge(variant, |machine| {
        let hog = cpus_used(machine)[0];
        verdict((0.48..0.53).contains(&hog), || {
            format!("a hog beside a chain of short lives: {hog:.3}")
        })
    })
}

/// A hog, and frames in a cgroup that was idle, was removed and was made anew:
/// "old" lived in the first, "new" lives in the second.
fn remade_cgroup() -> File {
    let within = |name: &str, start_us, period_us, work_us| -> GroupSpec {
        let mut group = group(name, 1, 0, Does::Frame { period_us, work_us });
        group.cgroup = Some("a".to_string());
        group.start_us = start_us;
        group
    };
    let moved = ChangeSpec {
        at_us: 100_000,
        moves: Some("old".to_string()),
        to: Some("/".to_string()),
        ..ChangeSpec::default()
    };
    // By then the old one is forgotten, and no solution looks at it any more.
    let remade = ChangeSpec {
        at_us: 1_500_000,
        cgroup: Some("a".to_string()),
        remade: Some(true),
        ..ChangeSpec::default()
    };
    let groups = vec![
        group("hog", 1, 0, Does::Hog {}),
        within("old", 0, 200_000, 100),
        within("new", 1_600_000, 700, 30),
    ];
    File {
        cgroups: vec![CgroupSpec {
            path: "a".to_string(),
            weight: 100,
            idle: true,
        }],
        changes: vec![moved, remade],
        ..file("1", 1.606, groups)
    }
}

/// A slot is used again by the next cgroup, which is not idle because the last
/// one was: its tasks interrupt at once.
pub fn new_cgroups(mut variant: Variant) -> Verdict {
    for seed in 1..=6 {
        let mut file = remade_cgroup();
        file.seed = Some(seed);
        let (result, back) = check(&file, variant, |machine| machine.stats.groups[2].misses);
        variant = back;
        let result = result.and_then(|late| {
            verdict(late == 0, || {
                format!("{late} frames were late in a new cgroup")
            })
        });
        if result.is_err() {
            return (result, variant);
        }
    }
    (Ok(()), variant)
}
