// SPDX-License-Identifier: GPL-2.0-only
//! The simulated machine itself: it runs, and repeats decision by decision.

use scx_fulcrum::sim::config::{Config, Faults};
use scx_fulcrum::sim::machine::simulate;
use scx_fulcrum::sim::topology::Topology;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::program::Step;
use scx_fulcrum::sim::workload::{Group, Workload};

const SECOND: u64 = 1_000_000_000;

/// Hogs, and sleepers that wake one another, with things going wrong: the hash
/// over all decisions.
fn run(seed: u64, names: [&str; 2], pid_base: i32) -> u64 {
    let mut cfg = Config::new(Topology::parse("1x2x2x2").unwrap(), seed);
    cfg.pid_base = pid_base;
    cfg.faults = Faults {
        affinity: 5_000_000,
        renice: 5_000_000,
        higher: 20_000_000,
        ..Faults::default()
    };
    let again = Step::Loop {
        start: 0,
        times: u64::MAX,
    };
    let signal = Step::Signal {
        channel: 0,
        all: false,
        sync: true,
    };
    let pairs = vec![Step::RunExp(300_000), signal, Step::Wait(0), again];
    let workload = Workload {
        groups: vec![
            Group::hogs(names[0], 5),
            Group::new(names[1], 6, pairs).nice(-5),
        ],
        channels: vec![1],
        ..Workload::default()
    };
    let machine = simulate(cfg, Variant::lease(), &workload, SECOND / 2).unwrap();
    assert_eq!(machine.failure, None);
    assert!(machine.log.count() > 10_000, "{}", machine.log.count());
    machine.log.hash()
}

#[test]
fn the_same_seed_gives_the_same_decisions() {
    let [first, second] = [(); 2].map(|()| run(7, ["hog", "pair"], 1000));
    assert_eq!(first, second);
    assert_ne!(first, run(8, ["hog", "pair"], 1000));
}

#[test]
fn names_and_process_ids_change_nothing() {
    let here = run(7, ["hog", "pair"], 1000);
    let there = run(7, ["x", "a name too long"], 3_000_000);
    assert_eq!(here, there);
}
