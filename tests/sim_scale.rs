// SPDX-License-Identifier: GPL-2.0-only
//! Size and speed: what a decision costs does not grow with the machine, and
//! the simulator handles 300,000 events a second.

use scx_fulcrum::sim::config::Config;
use scx_fulcrum::sim::costs::Decision;
use scx_fulcrum::sim::machine::simulate;
use scx_fulcrum::sim::summary::Summary;
use scx_fulcrum::sim::topology::Topology;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::Does;

#[path = "sim_common/mod.rs"]
mod sim_common;

use sim_common::{file, group};

/// Half as many hogs as CPUs, and as many short tasks: some CPUs always idle.
fn costs(cpus: usize, seconds: f64) -> Summary {
    let short = Does::Sleeper {
        run_us: 300,
        sleep_us: 2000,
    };
    let hogs = (cpus / 2).max(1);
    let groups = vec![
        group("hog", hogs, 0, Does::Hog {}),
        group("short", cpus, 0, short),
    ];
    let scenario = file("1", seconds, groups).scenario().unwrap();
    let config = Config::new(Topology::of(cpus), 5);
    let machine = simulate(
        config,
        Variant::lease(),
        &scenario.workload,
        scenario.duration,
    )
    .unwrap();
    assert_eq!(machine.failure, None);
    Summary::new("scale", &machine, &Default::default(), None)
}

#[test]
fn a_decision_costs_the_same_on_a_large_machine() {
    let small = costs(8, 2.0);
    for cpus in [256, 1024, 4096] {
        let large = costs(cpus, 0.05);
        println!(
            "{cpus} CPUs: {:.2} kernel calls a decision (8 CPUs: {:.2}), idle found {:.4}",
            large.cost.calls, small.cost.calls, large.cost.idle_found
        );
        assert!(large.cost.calls < small.cost.calls * 1.1, "{cpus}");
        assert!(large.cost.idle_found >= 0.999, "{cpus}");
    }
}

/// A row of the table: kernel calls a wakeup and a dispatch, the part of the
/// wakeups that found an idle CPU where there was one. All properties are
/// checked: no CPU idles for 100 us beside work of its cache, nor for 1 ms
/// beside any.
fn row(cpus: usize, seconds: f64, audit: u64) -> (f64, f64, f64) {
    let short = Does::Sleeper {
        run_us: 300,
        sleep_us: 2000,
    };
    let groups = vec![
        group("hog", cpus / 2, 0, Does::Hog {}),
        group("short", cpus, 0, short),
    ];
    let scenario = file("1", seconds, groups).scenario().unwrap();
    let mut config = Config::new(Topology::of(cpus), 5);
    config.audit_period = audit;
    let machine = simulate(
        config,
        Variant::lease(),
        &scenario.workload,
        scenario.duration,
    )
    .unwrap();
    assert_eq!(machine.failure, None);
    let per = |decision, count: u64| machine.cost_of(decision).calls as f64 / count as f64;
    let dispatches = machine.stats.dispatches - machine.rounds_with_a_move();
    (
        per(Decision::Wakeup, machine.stats.wakeups),
        per(Decision::Dispatch, dispatches),
        machine.stats.idle_taken as f64 / machine.stats.idle_existed as f64,
    )
}

#[test]
fn wakeups_and_dispatches_cost_the_same_at_any_size() {
    println!("CPUs | calls a wakeup | calls a dispatch | idle CPU found");
    let mut small = None;
    for (cpus, seconds, audit) in [(8, 2.0, 50_000), (512, 0.1, 50_000), (4096, 0.02, 500_000)] {
        let (wakeup, dispatch, found) = row(cpus, seconds, audit);
        println!(
            "{cpus} | {wakeup:.2} | {dispatch:.2} | {:.2} %",
            found * 100.0
        );
        assert!(found >= 0.999, "{cpus}: {found}");
        let (first_wakeup, first_dispatch) = *small.get_or_insert((wakeup, dispatch));
        assert!(wakeup < first_wakeup * 1.1, "{cpus}: {wakeup}");
        assert!(dispatch < first_dispatch * 1.1, "{cpus}: {dispatch}");
    }
}

/// CPU time of this thread, seconds.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns = text.split_whitespace().next().unwrap();
    ns.parse::<f64>().unwrap() / 1e9
}

#[test]
fn three_hundred_thousand_events_a_second() {
    let rate = (0..3)
        .map(|_| {
            let start = cpu_time();
            let summary = costs(64, 0.5);
            summary.events as f64 / (cpu_time() - start)
        })
        .fold(0.0, f64::max);
    println!("{rate:.0} events a second");
    // An unoptimised build is not what the figure is about.
    assert!(cfg!(debug_assertions) || rate > 300_000.0, "{rate}");
}
