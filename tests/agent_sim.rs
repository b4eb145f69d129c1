//! Skewed machines, with and without the agent: the same C, the same ledger and
//! planner as on a real one.

use scx_fulcrum::sim::config::Config;
use scx_fulcrum::sim::ffi::CpuMask;
use scx_fulcrum::sim::machine::Machine;
use scx_fulcrum::sim::topology::Topology;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::Does;

#[path = "sim_common/mod.rs"]
mod sim_common;

use sim_common::{file, group};

const MS: u64 = 1_000_000;

/// When the crowd's affinity is lifted.
const LIFTED: u64 = 300 * MS;

/// A crowd of `count` hogs that may use the first cache only, one hog on each
/// CPU of the others; then all may run anywhere.
fn crowd(shape: &str, count: usize, nice: i32, agent: bool) -> Machine {
    let topology = Topology::parse(shape).unwrap();
    let (cpus, llc) = (topology.cpus, topology.llc_cpus);
    let mut crowd = group("crowd", count, nice, Does::Hog {});
    crowd.cpus = Some(format!("0-{}", llc - 1));
    let mut rest = group("rest", cpus - llc, 0, Does::Hog {});
    rest.cpus = Some(format!("{}-{}", llc, cpus - 1));
    let scenario = file(shape, 1.0, vec![crowd, rest]).scenario().unwrap();
    let mut config = Config::new(topology, 7);
    config.agent = agent;
    let mut machine = Machine::new(config, Variant::lease()).unwrap();
    machine.start(&scenario.workload);
    machine.run_until(LIFTED);
    let all = CpuMask::first(cpus);
    for task in 0..machine.nr_tasks() {
        machine.set_affinity(task, 0, &all);
    }
    machine
}

/// How long it takes until the crowd gets 90 % of the CPUs that it should, ms.
fn convergence(machine: &mut Machine, ideal: f64) -> u64 {
    const STEP: u64 = 10 * MS;
    let mut before = machine.stats.groups[0].ran;
    for step in 1..=500 {
        machine.run_until(LIFTED + step * STEP);
        assert_eq!(machine.failure, None);
        let ran = machine.stats.groups[0].ran;
        if (ran - before) as f64 >= 0.9 * ideal * STEP as f64 {
            return step * 10;
        }
        before = ran;
    }
    u64::MAX
}

#[test]
fn a_crowd_spreads_five_times_as_fast() {
    for (shape, count) in [("2x16x8x1", 256), ("4x16x8x1", 512), ("8x8x16x1", 1024)] {
        let topology = Topology::parse(shape).unwrap();
        let (cpus, rest) = (topology.cpus, topology.cpus - topology.llc_cpus);
        let ideal = (cpus * count) as f64 / (count + rest) as f64;
        let without = convergence(&mut crowd(shape, count, 0, false), ideal);
        let mut machine = crowd(shape, count, 0, true);
        let with = convergence(&mut machine, ideal);
        println!(
            "{cpus} CPUs, {} caches, {count} hogs from one: {without} ms without the agent, \
             {with} ms with it; {:?}",
            cpus / topology.llc_cpus,
            machine.agent_figures()
        );
        assert!(with * 5 <= without, "{cpus} CPUs: {with} and {without} ms");
    }
}

#[test]
fn a_balanced_machine_never_wakes_the_agent() {
    for shape in ["1x2x4x1", "2x16x8x1"] {
        let topology = Topology::parse(shape).unwrap();
        let short = Does::Sleeper {
            run_us: 200,
            sleep_us: 3000,
        };
        let cpus = topology.cpus;
        let groups = vec![
            group("hog", 2 * cpus, 0, Does::Hog {}),
            group("short", cpus, 0, short),
        ];
        let scenario = file(shape, 1.0, groups).scenario().unwrap();
        let mut config = Config::new(topology, 3);
        config.agent = true;
        let mut machine = Machine::new(config, Variant::lease()).unwrap();
        machine.start(&scenario.workload);
        // Everybody arrives at once; after that there is nothing to balance.
        machine.run_until(500 * MS);
        let settled = machine.agent_figures();
        machine.run_until(3000 * MS);
        println!("{shape}: {settled:?}, {:?}", machine.agent_figures());
        assert_eq!(machine.failure, None);
        assert_eq!(machine.agent_figures().hints, settled.hints);
        assert!(machine.agent_figures().rounds <= settled.rounds + 1);
    }
}
