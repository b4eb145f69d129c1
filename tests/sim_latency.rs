// SPDX-License-Identifier: GPL-2.0-only
//! Waits where tasks of all kinds meet and no CPU is full: what one needs must
//! not keep another from what it is owed.

mod sim_common;

use scx_fulcrum::sim::machine::Machine;
use scx_fulcrum::sim::workload::Group;
use scx_fulcrum::sim::workload::program::Step;
use sim_common::habits::nearly_alone;
use sim_common::programs::{MS, Setup, US, repeat, setup};

/// Starts after `phase`, then does these steps in each `period`.
fn phased(name: &str, phase: u64, period: u64, mut work: Vec<Step>) -> Group {
    let mut steps = vec![Step::Sleep(phase + 1), Step::Timer(period)];
    steps.append(&mut work);
    steps.push(Step::Loop {
        start: 1,
        times: u64::MAX,
    });
    Group::new(name, 1, steps)
}

/// Readers and writers around one lock, on two CPUs, and a compaction of nice 10
/// that takes it too.
fn store() -> Setup {
    let locked = |work| vec![Step::Lock(0), Step::Run(work), Step::Unlock(0)];
    let mut groups: Vec<Group> = (0..8)
        .map(|i| phased("reader", i * 500 * US, 4 * MS, vec![Step::Run(400 * US)]))
        .collect();
    for i in 0..4 {
        let mut write = vec![Step::Run(200 * US)];
        write.append(&mut locked(100 * US));
        groups.push(phased("writer", i * 312 * US, 10 * MS, write));
    }
    let mut compact = vec![Step::Run(5 * MS)];
    compact.append(&mut locked(300 * US));
    let mut compaction = repeat("compaction", 1, compact);
    compaction.nice = 10;
    groups.push(compaction);
    let mut setup = setup("2", 4.0, groups);
    setup.workload.mutexes = 1;
    setup
}

/// The worst 99th percentile of the responses of these groups, ns.
fn worst(machine: &Machine, groups: std::ops::Range<usize>) -> u64 {
    groups
        .map(|group| machine.stats.groups[group].response.percentile(0.99))
        .max()
        .unwrap()
}

#[test]
fn readers_do_not_wait_beside_a_compaction() {
    let machine = store().run();
    let plain = store().under_eevdf();
    let (reads, writes) = (worst(&machine, 0..8), worst(&machine, 8..12));
    println!(
        "reads {} us (EEVDF {}), writes {} us (EEVDF {})",
        reads / US,
        worst(&plain, 0..8) / US,
        writes / US,
        worst(&plain, 8..12) / US
    );
    assert!(reads < 1500 * US && writes < 1500 * US, "{reads} {writes}");
}

/// Who runs alone is asked rarely; the clock that its ticks move leaves its
/// deadline behind. A waker must not count as due later for it.
#[test]
fn a_lone_task_makes_way_at_once() {
    for nice in [-5, 0, 10] {
        let machine = nearly_alone(nice).run();
        let wait = machine.stats.groups[1].wakeup.percentile(0.99);
        println!("nice {nice}: 99 % within {} us", wait / US);
        assert!(wait < 100 * US, "nice {nice}: {wait}");
    }
}
