// SPDX-License-Identifier: GPL-2.0-only
//! CPUs of different speed: busy tasks on the fast ones, nobody worse off for it.

mod sim_common;

use scx_fulcrum::sim::config::Faults;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::Group;
use scx_fulcrum::sim::workload::program::Step;
use sim_common::hybrid::{
    FAST_AND_SLOW, THREADS, THREE_CACHES, fast_part, hogs_go_over, hogs_run_fast, nothing_idles,
    short_lives_run_fast, sleepers_wake,
};
use sim_common::programs::{MS, US, pinned, repeat, setup};

fn passes(judge: fn(Variant) -> (Result<(), String>, Variant)) {
    let (result, _) = judge(Variant::lease());
    if let Err(why) = result {
        panic!("{why}");
    }
}

#[test]
fn hogs_run_on_fast_cpus() {
    passes(hogs_run_fast);
}

#[test]
fn short_lives_run_on_fast_cpus() {
    passes(short_lives_run_fast);
}

#[test]
fn a_hog_on_a_slow_cpu_goes_over_once_a_fast_one_idles() {
    passes(hogs_go_over);
}

#[test]
fn slow_cpus_work_when_the_fast_ones_are_busy() {
    passes(nothing_idles);
}

#[test]
fn sleepers_beside_hogs_wake_at_once() {
    passes(sleepers_wake);
}

/// The user's wish comes first.
#[test]
fn who_is_bound_to_a_slow_cpu_stays() {
    let machine = setup(FAST_AND_SLOW, 0.5, vec![pinned("bound", 1, 6)]).run();
    assert_eq!(fast_part(&machine, 0).1, 0);
    assert!(fast_part(&machine, 0).0 > 490 * MS);
}

/// A short task keeps its CPU, fast or slow: its data is there.
#[test]
fn a_short_sleeper_stays_where_it_is() {
    let naps = vec![Step::Run(100 * US), Step::Sleep(2 * MS)];
    let machine = setup(FAST_AND_SLOW, 2.0, vec![repeat("sleeper", 3, naps)]).run();
    let moves = machine.stats.groups[0].migrations;
    assert!(moves <= 20, "{moves} moves in some 2,800 wakeups");
}

/// Runs hogs and nappers on each of `machines`, with some seeds and kernels. `strict`: no
/// property may break; else the kernel must not throw the scheduler out.
fn with_faults(machines: &[&str], faults: Faults, strict: bool) {
    for topology in machines {
        for seed in 1..=12 {
            let naps = vec![Step::RunExp(4 * MS), Step::SleepExp(4 * MS)];
            let groups = vec![Group::hogs("hog", 3), repeat("napper", 4, naps)];
            let mut setup = setup(topology, 0.3, groups).seed(seed);
            setup.config.faults = faults;
            setup.config.strict = strict;
            setup.config.release = [616, 618, 701, 703][seed as usize % 4];
            setup.run();
        }
    }
}

/// Whatever else changes, no property breaks while tasks go over.
#[test]
fn changes_break_nothing() {
    let faults = Faults {
        renice: 5 * MS,
        bypass: 40 * MS,
        knobs: 20 * MS,
        ..Faults::default()
    };
    with_faults(&[FAST_AND_SLOW, THREADS], faults, true);
}

/// A CPU may go away, be taken or be forbidden the moment it was chosen: then a task may
/// wait beside an idle CPU for longer than the bound, on machines of equal CPUs too.
#[test]
fn cpus_that_go_away_are_survived() {
    let faults = Faults {
        affinity: 3 * MS,
        renice: 5 * MS,
        migrate_disable: 2 * MS,
        hotplug: 15 * MS,
        higher: 4 * MS,
        bypass: 40 * MS,
        cgroup: 0,
        knobs: 20 * MS,
    };
    with_faults(&[FAST_AND_SLOW, THREADS, THREE_CACHES], faults, false);
}
