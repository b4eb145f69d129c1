// SPDX-License-Identifier: GPL-2.0-only
//! Judges of machines whose CPUs differ in speed.
#![allow(dead_code)]

use scx_fulcrum::sim::machine::Machine;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::Group;
use scx_fulcrum::sim::workload::program::Step;

use super::judge::verdict;
use super::programs::{MS, Setup, US, repeat, setup};

type Verdict = (Result<(), String>, Variant);

/// Four fast CPUs and four that do 0.44 of their work.
pub const FAST_AND_SLOW: &str = "8:4x1024,4x446";
/// Two fast and two slow cores of two threads each.
pub const THREADS: &str = "1x1x4x2:4x1024,4x446";
/// Three kinds, each with a cache of its own.
pub const THREE_CACHES: &str = "1x3x2x1:2x1024,2x871,2x446";

/// A busy task goes over at a tick; then it takes a moment.
pub const SOON: u64 = 9 * MS;

/// A group's CPU time, ns: all, and on CPUs of the fastest kind.
pub fn fast_part(machine: &Machine, group: usize) -> (u64, u64) {
    let tasks = (0..machine.nr_tasks()).map(|task| machine.task(task));
    tasks
        .filter(|task| task.group == group)
        .fold((0, 0), |(all, fast), task| {
            (all + task.ran, fast + task.ran_fast)
        })
}

/// Fails unless all but `slack` ns of a group's time were on the fastest CPUs.
fn all_fast(machine: &Machine, group: usize, slack: u64) -> Result<(), String> {
    let (all, fast) = fast_part(machine, group);
    let name = &machine.groups()[group].name;
    verdict(fast + slack >= all && all > 0, || {
        format!(
            "{name} ran for {} ms, {} of them on slow CPUs",
            all / MS,
            (all - fast) / MS
        )
    })
}

/// These hogs for a second.
fn hogs(topology: &str, count: usize) -> Setup {
    setup(topology, 1.0, vec![Group::hogs("hog", count)])
}

/// Hogs that exit after half a second, and one that came later than they.
fn leavers(topology: &str, count: usize) -> Setup {
    let leavers = Group::new("leaver", count, vec![Step::Run(500 * MS)]);
    let mut stays = Group::hogs("stays", 1);
    stays.start = 20 * MS;
    setup(topology, 1.0, vec![leavers, stays])
}

/// Runs each of `setups` with some seeds; the first that fails counts.
fn each(
    mut variant: Variant,
    setups: impl IntoIterator<Item = Setup>,
    look: impl Fn(&Machine) -> Result<(), String>,
) -> Verdict {
    for mut setup in setups {
        for seed in 1..=4 {
            setup = setup.seed(seed);
            let (result, back) = setup.judge(variant, &look);
            variant = back;
            if let Err(why) = result {
                let topology = &setup.config.topology;
                let why = format!("{topology:?}, seed {seed}: {why}");
                return (Err(why), variant);
            }
        }
    }
    (Ok(()), variant)
}

/// As many hogs as fast cores, or fewer, have one each, wherever they started.
pub fn hogs_run_fast(variant: Variant) -> Verdict {
    let setups = [
        hogs(FAST_AND_SLOW, 1),
        hogs(FAST_AND_SLOW, 4),
        hogs(THREADS, 2),
        hogs(THREE_CACHES, 2),
    ];
    each(variant, setups, |machine| all_fast(machine, 0, 4 * SOON))
}

/// What lives for less than a tick is put on a fast CPU at once.
pub fn short_lives_run_fast(variant: Variant) -> Verdict {
    let chain = || Group::new("chain", 1, vec![Step::Run(3 * MS), Step::Fork(0)]);
    let setups = [FAST_AND_SLOW, THREADS, THREE_CACHES].map(|at| setup(at, 0.5, vec![chain()]));
    each(variant, setups, |machine| all_fast(machine, 0, 4 * SOON))
}

/// Who runs on a slow CPU goes over once a fast one idles.
pub fn hogs_go_over(variant: Variant) -> Verdict {
    let setups = [
        leavers(FAST_AND_SLOW, 4),
        leavers(THREADS, 2),
        leavers(THREE_CACHES, 2),
    ];
    // The leavers have had a CPU each: half a second of work, and their switches.
    each(variant, setups, |machine| {
        all_fast(machine, 0, 4 * SOON)?;
        all_fast(machine, 1, 480 * MS + SOON)?;
        let (all, fast) = fast_part(machine, 1);
        verdict(all - fast >= 470 * MS, || {
            format!("it was slow for {} ms only", (all - fast) / MS)
        })
    })
}

/// More hogs than fast cores: slow ones work too, threads beside busy ones last.
pub fn nothing_idles(variant: Variant) -> Verdict {
    let (result, variant) = each(variant, [hogs(FAST_AND_SLOW, 6)], |machine| {
        let (all, fast) = fast_part(machine, 0);
        verdict(all > 5_970 * MS && fast > 3_970 * MS, || {
            format!("{} ms in all, {} on fast CPUs", all / MS, fast / MS)
        })
    });
    if result.is_err() {
        return (result, variant);
    }
    // Two on fast cores, the third on a slow core, not beside one of them.
    each(variant, [hogs(THREADS, 3)], |machine| {
        let (all, fast) = fast_part(machine, 0);
        // A core that is shared is left after some ticks.
        let two = 1_970 * MS..2_060 * MS;
        verdict(all > 2_970 * MS && two.contains(&fast), || {
            format!("{} ms in all, {} on fast CPUs", all / MS, fast / MS)
        })
    })
}

/// Hogs that go over take no wakeup's time.
pub fn sleepers_wake(variant: Variant) -> Verdict {
    let naps = || vec![Step::RunExp(200 * US), Step::SleepExp(3 * MS)];
    let setups = [
        (FAST_AND_SLOW, 4, 8),
        (FAST_AND_SLOW, 6, 8),
        (THREADS, 4, 8),
    ]
    .map(|(topology, hogs, sleepers)| {
        let groups = vec![
            Group::hogs("hog", hogs),
            repeat("sleeper", sleepers, naps()),
        ];
        setup(topology, 2.0, groups)
    });
    each(variant, setups, |machine| {
        let wait = machine.stats.groups[1].wakeup.percentile(0.99);
        verdict(wait < 100 * US, || format!("woke after {} us", wait / US))
    })
}

/// All of them, the quickest first.
pub fn all(variant: Variant) -> Verdict {
    let judges = [
        hogs_run_fast,
        short_lives_run_fast,
        hogs_go_over,
        nothing_idles,
        sleepers_wake,
    ];
    let mut variant = variant;
    for judge in judges {
        let (result, back) = judge(variant);
        variant = back;
        if result.is_err() {
            return (result, variant);
        }
    }
    (Ok(()), variant)
}
