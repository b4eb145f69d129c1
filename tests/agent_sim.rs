// SPDX-License-Identifier: GPL-2.0-only
//! Skewed machines, with and without the agent: the same C, the same ledger and
//! planner as on a real one.

use std::time::Duration;

use scx_fulcrum::agent::balancer::{Balancer, HINT_VALID};
use scx_fulcrum::agent::ledger::{Load, Sample, Shape};
use scx_fulcrum::agent::planner::Move;
use scx_fulcrum::control::settings::Settings;
use scx_fulcrum::kernel::command::{self, Command};
use scx_fulcrum::sim::config::Config;
use scx_fulcrum::sim::ffi::{CpuMask, balance_cpu, cpu_state};
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
fn crowd(shape: &str, count: usize, seed: u64, agent: bool) -> Machine {
    let topology = Topology::parse(shape).unwrap();
    let (cpus, llc) = (topology.cpus, topology.llc_cpus);
    let mut crowd = group("crowd", count, 0, Does::Hog {});
    crowd.cpus = Some(format!("0-{}", llc - 1));
    let mut rest = group("rest", cpus - llc, 0, Does::Hog {});
    rest.cpus = Some(format!("{}-{}", llc, cpus - 1));
    let scenario = file(shape, 1.0, vec![crowd, rest]).scenario().unwrap();
    let mut config = Config::new(topology, seed);
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
        let without = convergence(&mut crowd(shape, count, 7, false), ideal);
        let mut machine = crowd(shape, count, 7, true);
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

/// A crowd leaves clocks of different caches apart. Once they have come near
/// enough to be compared, which may take minutes, tasks follow the clock that is
/// behind, and a few more hints spread them again: once, in all.
#[test]
fn once_a_crowd_has_spread_the_agent_sleeps() {
    const SECONDS: u64 = 150;
    let mut most = 0;
    for (shape, count) in [("1x2x2x1", 20), ("1x2x2x1", 24), ("2x2x2x1", 48)] {
        for seed in 0..10 {
            let mut machine = crowd(shape, count, seed, true);
            machine.run_until(LIFTED + 3000 * MS);
            let spread = machine.agent_figures();
            let (mut hints, mut busy) = (spread.hints, Vec::new());
            for second in 4..=SECONDS {
                machine.run_until(LIFTED + second * 1000 * MS);
                if machine.agent_figures().hints > hints {
                    busy.push(second);
                }
                hints = machine.agent_figures().hints;
            }
            let case = format!("{shape}, {count}, seed {seed}: {busy:?}");
            assert_eq!(machine.failure, None);
            let bursts = busy.chunk_by(|a, b| a + 1 == *b);
            assert!(bursts.count() <= 1 && busy.len() <= 2, "{case}");
            // Besides, a call every 10 s shows the BPF program that it lives.
            let rounds = machine.agent_figures().rounds - spread.rounds;
            assert!(rounds <= SECONDS / 10 + 8, "{case}, {rounds} rounds");
            most = most.max(hints - spread.hints);
        }
    }
    println!("{most} late hints at most");
    assert!(most <= 12, "{most}");
}

/// The error of a command that is too old.
const STALE: i32 = -libc::ESTALE;

/// Any command.
fn command(random: u64) -> Command {
    let hint = Move {
        to: (random >> 8) as usize % 8,
        from: (random >> 16) as usize % 8,
        tasks: (random >> 24) as u32 % 4,
    };
    match random % 3 {
        0 => Command::hint(hint, HINT_VALID),
        1 => Command::answer(1, Duration::ZERO),
        _ => Command::knobs(&Settings::default(), 1),
    }
}

/// 1,000 races of five agents: each sits down at some moment, and all of them go
/// on giving commands, as one does that was stopped and doesn't know.
#[test]
fn whoever_no_longer_sits_changes_nothing() {
    let topology = Topology::parse("1x2x4x1").unwrap();
    let mut machine = Machine::new(Config::new(topology, 1), Variant::lease()).unwrap();
    let mut random = 88172645463325252_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let (mut latest, mut obeyed, mut refused) = (0, 0, 0);
    for _ in 0..1000 {
        // Epoch and last number of each agent.
        let mut agents = [(0, 0); 5];
        for _ in 0..40 {
            let agent = &mut agents[(next() % 5) as usize];
            if next() % 8 == 0 {
                let epoch = machine.steer(&command::take_seat());
                assert_eq!(epoch, latest + 1, "epochs only grow");
                latest = epoch;
                *agent = (epoch, 0);
                continue;
            }
            // Now and then one repeats its last number.
            agent.1 += u32::from(next() % 8 != 0);
            let before = machine.steer(&command(next()).numbered(agent.0 as u32, agent.1));
            let sits = agent.0 == latest && before != STALE;
            assert!(sits || before == STALE, "{agent:?} of {latest}: {before}");
            obeyed += u32::from(sits);
            refused += u32::from(before == STALE);
        }
    }
    assert!(obeyed > 1000 && refused > 1000, "{obeyed} {refused}");
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns = text.split_whitespace().next().unwrap();
    Duration::from_nanos(ns.parse().unwrap())
}

/// Ten rounds a second on 1,024 CPUs may cost .3 % of one.
#[test]
fn a_round_on_1024_cpus_costs_little() {
    const ROUNDS: u32 = 200;
    let topology = Topology::of(1024);
    let mut balancer = Balancer::new(Shape::of(&topology.domains()));
    let state = vec![cpu_state::default(); 1024];
    let told = vec![balance_cpu::default(); 1024];
    let start = cpu_time();
    let mut hints = 0;
    for round in 0..ROUNDS {
        let both = state.iter().zip(&told).enumerate();
        let samples: Vec<Sample> = both
            .map(|(cpu, (state, told))| Sample {
                load: Load {
                    busy: true,
                    waiting: if cpu < 64 { 40 } else { 0 },
                    weight: 1024.0,
                },
                ..Sample::read(state, told)
            })
            .collect();
        let now = Duration::from_millis(100) * (round + 1);
        let plan = balancer.round(now, &samples);
        for (hint, number) in plan.moves.iter().zip(1..) {
            balancer.sent(now, *hint, number);
        }
        hints += plan.moves.len();
    }
    let each = (cpu_time() - start) / ROUNDS;
    println!(
        "{each:?} a round, {} hints a round",
        hints / ROUNDS as usize
    );
    assert!(hints > 0);
    // An unoptimised build is not what the figure is about.
    assert!(
        cfg!(debug_assertions) || each < Duration::from_micros(300),
        "{each:?}"
    );
}
