//! Size and speed: what a decision costs does not grow with the machine, and
//! the simulator handles 300,000 events a second.

use scx_fulcrum::sim::config::Config;
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
