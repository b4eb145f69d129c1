// SPDX-License-Identifier: GPL-2.0-only
//! Faults in shares of CPU time that schedulers in the field have shown, each
//! as a test; docs/faults.md says what each number stands for.

mod sim_common;

use scx_fulcrum::sim::machine::Machine;
use scx_fulcrum::sim::mask::CpuMask;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{CgroupSpec, Does, File, PolicySpec};
use scx_fulcrum::sim::workload::program::Step;
use scx_fulcrum::sim::workload::{Cgroup, Group};
use sim_common::habits::{chain, nappers};
use sim_common::judge::{ran, share_error};
use sim_common::programs::{MS, US, cpus_used, frames, longest, pinned, repeat, setup};
use sim_common::{check, file, group};

#[test]
fn fault_b35_nice_levels_get_their_shares() {
    let groups = vec![
        Group::hogs("up", 1).nice(-5),
        Group::hogs("down", 1).nice(5),
    ];
    let cpus = cpus_used(&setup("1", 4.0, groups).run());
    println!("nice -5 and 5: {cpus:.4?}");
    assert!((cpus[0] - 3121.0 / 3456.0).abs() < 0.005, "{cpus:?}");
}

/// What a task yields it does not get back.
#[test]
fn fault_b36_yielders_gain_nothing() {
    for (every, count) in [(5 * US, 1), (5 * US, 8), (100 * US, 4), (MS, 2)] {
        let groups = vec![
            Group::hogs("hog", 1),
            repeat("yielder", count, vec![Step::Run(every), Step::Yield]),
        ];
        let machine = setup("1", 2.0, groups).run();
        let hog = cpus_used(&machine)[0];
        println!(
            "{count} that yield every {} us: the hog has {hog:.3}",
            every / US
        );
        assert!(hog >= 0.98 / (count + 1) as f64, "{count}: {hog}");
        // A turn of each.
        assert!(longest(&machine, 1) < (count as u64 + 1) * 6 * MS);
    }
}

/// A hog that sleeps just before its slice ends, with any rhythm and beside any
/// number of hogs, has no more than its share.
#[test]
fn fault_b36_naps_before_the_slice_ends_gain_nothing() {
    for (runs, naps) in [
        (900, 100),
        (2900, 100),
        (2950, 50),
        (3900, 100),
        (5900, 100),
    ] {
        let groups = vec![
            Group::hogs("hog", 1),
            repeat(
                "napper",
                1,
                vec![Step::Run(runs * US), Step::Sleep(naps * US)],
            ),
        ];
        let hog = cpus_used(&setup("1", 4.0, groups).run())[0];
        println!("beside {runs} us of work and {naps} us of sleep: {hog:.4}");
        assert!(hog > 0.498, "{runs}: {hog}");
    }
}

/// On two CPUs tasks that never use up a slice would stay where they are, three
/// here and two there: .772 of .816 CPUs, and waits of 200 ms.
#[test]
fn fault_b36_nappers_rotate_like_hogs() {
    for seed in 1..=4 {
        let machine = nappers().seed(seed).run();
        let hogs = cpus_used(&machine)[0];
        let wait = longest(&machine, 0).max(longest(&machine, 1));
        println!(
            "2 hogs beside 3 nappers: {hogs:.4} CPUs, longest wait {} ms",
            wait / MS
        );
        assert!(hogs > 0.78, "{hogs}");
        assert!(wait < 30 * MS, "{wait}");
    }
}

/// A light task that has had an idle CPU for long pays nothing for it, and
/// stands in nobody's way.
#[test]
fn fault_b38_a_light_task_alone_for_long() {
    let mut late = Group::hogs("late", 2);
    late.start = 20_000 * MS;
    let groups = vec![Group::hogs("light", 1).nice(19), late];
    let machine = setup("1", 30.0, groups).run();
    let wait = [longest(&machine, 0) / MS, longest(&machine, 1) / MS];
    println!("longest waits, light and late: {wait:?} ms");
    assert!(wait[0] < 1000 && wait[1] < 50, "{wait:?}");
    let late = machine.stats.groups[1].ran as f64 / 10e9;
    assert!((late - 2048.0 / 2063.0).abs() < 0.005, "{late}");
}

/// Clocks near 0, near the sign's change and near the end of 64 bits, with
/// tasks that come and go.
#[test]
fn fault_b39_clocks_that_wrap() {
    for start in [0, 1 << 63, u64::MAX] {
        let storm = Does::ForkStorm {
            every_us: 3000,
            child_us: 300,
        };
        let groups = vec![
            group("up", 1, -5, Does::Hog {}),
            group("down", 1, 5, Does::Hog {}),
            group("storm", 1, 0, storm),
        ];
        let mut file = file("1", 2.0, groups);
        file.clocks.virtual_ns = Some(start.wrapping_sub(400 * MS));
        file.clocks.kernel_ns = Some(start.wrapping_sub(900 * MS));
        file.clocks.cpu_time_ns = Some(start.wrapping_sub(50 * MS));
        let (result, _) = check(&file, Variant::lease(), ran);
        let ran = result.unwrap_or_else(|text| panic!("{text}"));
        let error = share_error(&ran[..2], &[3121.0, 335.0]);
        assert!(error < 0.06, "{start}: {error}");
    }
}

/// Clocks of CPUs differ; a task that is sent from one to the other every
/// millisecond is charged what it ran.
#[test]
fn fault_b40_hopping_between_clocks() {
    for kernel in ["6.16", "7.3"] {
        let mut file = file("4", 2.0, vec![group("hopper", 8, 0, Does::Hog {})]);
        file.faults.affinity_us = 250;
        file.kernel = Some(kernel.to_string());
        let (result, _) = check(&file, Variant::lease(), |machine| {
            (ran(machine)[0], machine.stats.groups[0].wait.max())
        });
        let (ran, wait) = result.unwrap_or_else(|text| panic!("{text}"));
        println!(
            "{kernel}: {:.3} CPUs, longest wait {} ms",
            ran / 2e9,
            wait / MS
        );
        // Some masks leave CPUs without work.
        assert!(ran > 5e9 && wait < 250 * MS, "{ran} {wait}");
    }
}

/// Weights from the least to the greatest: everybody runs now and then.
#[test]
fn fault_b41_extreme_weights_wait_for_seconds_at_most() {
    let cgroup = |path: &str, weight| CgroupSpec {
        path: path.to_string(),
        weight,
        idle: false,
    };
    let within = |name: &str, nice| {
        let mut hogs = group(name, 1, nice, Does::Hog {});
        hogs.cgroup = Some(name.to_string());
        hogs
    };
    let groups = vec![
        within("least", 19),
        within("most", -20),
        group("hog", 4, 0, Does::Hog {}),
    ];
    let file = File {
        cgroups: vec![cgroup("least", 1), cgroup("most", 10_000)],
        ..file("1", 20.0, groups)
    };
    let (result, _) = check(&file, Variant::lease(), |machine| {
        machine
            .stats
            .groups
            .iter()
            .map(|g| g.wait.max() / MS)
            .collect::<Vec<_>>()
    });
    let waits = result.unwrap_or_else(|text| panic!("{text}"));
    println!("longest waits: {waits:?} ms");
    assert!(waits.iter().all(|wait| *wait < 4500), "{waits:?}");
}

/// nice 19 beside four times as many hogs as CPUs.
#[test]
fn fault_b41_nice_19_beside_a_crowd() {
    let groups = vec![Group::hogs("light", 1).nice(19), Group::hogs("hog", 8)];
    let machine = setup("2", 20.0, groups).run();
    println!("nice 19 waits for {} ms at most", longest(&machine, 0) / MS);
    assert!(longest(&machine, 0) < 4000 * MS);
    assert!(machine.stats.groups[0].ran > 0);
}

/// From a queue with little to one with much competition and back: lag goes
/// along, so neither the task nor the others wait for it to catch up.
#[test]
fn fault_b42_moving_between_slow_and_fast_clocks() {
    let mut hopper = group("hopper", 1, 0, Does::Hog {});
    hopper.cpus = Some("0-1".to_string());
    let fixed = |name, count, cpu: &str| {
        let mut hogs = group(name, count, 0, Does::Hog {});
        hogs.cpus = Some(cpu.to_string());
        hogs
    };
    let groups = vec![hopper, fixed("alone", 1, "0"), fixed("crowd", 8, "1")];
    let (result, _) = check(&file("2", 4.0, groups), Variant::lease(), |machine| {
        machine
            .stats
            .groups
            .iter()
            .map(|g| g.wait.max() / MS)
            .collect::<Vec<_>>()
    });
    let waits = result.unwrap_or_else(|text| panic!("{text}"));
    println!("longest waits: {waits:?} ms");
    assert!(waits.iter().all(|wait| *wait < 80), "{waits:?}");
}

#[test]
fn fault_b43_sleepers_leave_a_hog_its_share() {
    let sleeper = Does::Sleeper {
        run_us: 500,
        sleep_us: 4500,
    };
    // 20 times 10 % of a CPU: they want twice what there is.
    let groups = vec![
        group("hog", 1, 0, Does::Hog {}),
        group("sleeper", 20, 0, sleeper),
    ];
    let (result, _) = check(&file("1", 4.0, groups), Variant::lease(), |machine| {
        (ran(machine)[0] / 4e9, machine.stats.groups[0].wait.max())
    });
    let (hog, wait) = result.unwrap_or_else(|text| panic!("{text}"));
    println!(
        "a hog behind 20 sleepers: {hog:.4}, longest wait {} ms",
        wait / MS
    );
    assert!(hog > 0.9 / 21.0 && wait < 200 * MS, "{hog} {wait}");
}

/// What runs briefly and regularly stays ahead of a build.
#[test]
fn fault_b45_short_tasks_keep_their_lead() {
    let groups = vec![Group::hogs("cc", 8), frames("audio", 2, 5 * MS, 300 * US)];
    let machine = setup("2", 4.0, groups).run();
    let audio = &machine.stats.groups[1];
    println!(
        "audio: response p99 {} us, misses {}",
        audio.response.percentile(0.99) / US,
        audio.misses
    );
    assert_eq!(audio.misses, 0);
    assert!(audio.response.percentile(0.99) < MS);
}

/// Eight times as much work as CPUs, all of it woken by others.
#[test]
fn fault_b46_overload_delays_everybody_alike() {
    let chain = Does::Pipeline {
        stages: 4,
        run_us: 100,
        sleep_us: 50,
    };
    let groups = vec![
        group("chain", 40, 0, chain),
        group("hog", 2, 0, Does::Hog {}),
    ];
    let (result, _) = check(&file("2", 2.0, groups), Variant::lease(), |machine| {
        machine.stats.groups.iter().map(|g| g.wait.max()).max()
    });
    let wait = result.unwrap_or_else(|text| panic!("{text}")).unwrap();
    println!("longest wait {} ms", wait / MS);
    assert!(wait < 1000 * MS, "{wait}");
}

/// Each of a chain starts the next and exits. Was .33 for the hog: a new task
/// was owed what had passed while its parent was not yet accounted for.
#[test]
fn fault_b47_a_chain_of_short_lives_gains_nothing() {
    for run in [100 * US, 500 * US, MS, 3 * MS, 10 * MS] {
        let setup = chain(run);
        let ours = cpus_used(&setup.run())[0];
        let plain = cpus_used(&setup.under_eevdf())[0];
        println!(
            "lives of {} us: the hog has {ours:.3}, under EEVDF {plain:.3}",
            run / US
        );
        assert!((0.48..0.53).contains(&ours), "{run}: {ours}");
    }
}

/// ... nor two of them on two CPUs.
#[test]
fn fault_b47_chains_on_two_cpus() {
    for seed in 1..=3 {
        let chain = Group::new("chain", 2, vec![Step::Run(MS), Step::Fork(1)]);
        let groups = vec![Group::hogs("hog", 2), chain];
        let hogs = cpus_used(&setup("2", 3.0, groups).seed(seed).run())[0];
        println!("2 hogs beside 2 chains: {hogs:.3} CPUs");
        assert!((0.95..1.25).contains(&hogs), "{hogs}");
    }
}

/// A shell that runs short commands beside hogs: each is done soon.
#[test]
fn fault_b47_short_commands_are_quick() {
    let command = vec![
        Step::Run(300 * US),
        Step::Signal {
            channel: 0,
            all: false,
            sync: false,
        },
    ];
    let groups = vec![
        Group::hogs("hog", 4),
        repeat(
            "shell",
            1,
            vec![Step::Sleep(10 * MS), Step::Fork(2), Step::Wait(0)],
        ),
        Group::new("command", 0, command),
    ];
    let mut setup = setup("2", 4.0, groups);
    setup.workload.channels.push(16);
    let machine = setup.run();
    let waits = &machine.stats.groups[2].wakeup;
    println!(
        "a new task starts after {} us (p95)",
        waits.percentile(0.95) / US
    );
    assert!(waits.percentile(0.95) < 6 * MS);
}

/// What a fork costs does not depend on how many children there are.
#[test]
fn fault_b48_a_fork_costs_the_same_with_many_children() {
    let calls = |children: u64| {
        let groups = vec![
            Group::new(
                "parent",
                1,
                vec![
                    Step::Fork(1),
                    Step::Run(20 * US),
                    Step::Loop {
                        start: 0,
                        times: children,
                    },
                ],
            ),
            Group::new(
                "child",
                0,
                vec![Step::Run(10 * US), Step::Sleep(100_000 * MS)],
            ),
        ];
        let machine = setup("2", 0.2, groups).run();
        machine.cost().calls as f64 / children as f64
    };
    let (few, many) = (calls(1500), calls(6000));
    println!("kernel calls a fork: {few:.1} with 1,500 children, {many:.1} with 6,000");
    assert!(many < few * 1.1, "{few} {many}");
}

/// A session's crowd in its own cgroup takes its cgroup's part, not a part for
/// each of its tasks.
#[test]
fn fault_b52_sessions_in_cgroups() {
    let late = |seconds| {
        let mut crowd = Group::hogs("crowd", 64).within(1);
        crowd.start = 10 * MS;
        let desktop = frames("desktop", 2, 16_667 * US, 4 * MS).within(2);
        let mut setup = setup("2", seconds, vec![crowd, desktop]);
        let cgroup = |path: &str| Cgroup {
            path: path.to_string(),
            parent: 0,
            weight: 100,
            idle: false,
        };
        setup.workload.cgroups = vec![cgroup("crowd"), cgroup("desktop")];
        setup.run().stats.groups[1].misses
    };
    // At first the crowd's tasks count as one each.
    let (first, later) = (late(0.5), late(4.0));
    println!(
        "beside 64 hogs {first} frames late in the first half second, then {}",
        later - first
    );
    assert!(first <= 50 && later <= first + 4, "{first} {later}");
}

/// Twelve hogs on eight CPUs of two caches: everybody gets two thirds.
#[test]
fn fault_b53_b56_two_caches_are_evenly_loaded() {
    let groups = (0..12).map(|_| Group::hogs("hog", 1)).collect();
    let machine = setup("1x2x4x1", 4.0, groups).run();
    let cpus = cpus_used(&machine);
    let error = share_error(&cpus, &[1.0; 12]);
    println!("12 hogs on 8 CPUs: shares are off by {error:.3}");
    assert!(error < 0.2, "{cpus:?}");
}

/// CPUs that are pinned full are nobody else's: the rest is shared evenly.
#[test]
fn fault_b53_pinned_crowds() {
    let groups = vec![
        pinned("crowd", 6, 0),
        Group::hogs("free", 3).on(CpuMask::first(4)),
    ];
    let machine = setup("4", 4.0, groups).run();
    let free = cpus_used(&machine)[1];
    println!("3 free hogs beside a pinned crowd on one of 4 CPUs: {free:.3} CPUs");
    assert!(free > 2.9, "{free}");
}

/// SCHED_IDLE takes what nobody wants: 3/1024 beside a hog.
#[test]
fn fault_b41_idle_policy_takes_what_is_left() {
    let mut idle = group("idle", 1, 0, Does::Hog {});
    idle.policy = PolicySpec::Idle;
    let groups = vec![group("hog", 1, 0, Does::Hog {}), idle];
    let (result, _) = check(&file("1", 10.0, groups), Variant::lease(), ran);
    let ran = result.unwrap_or_else(|text| panic!("{text}"));
    let share = ran[1] / (ran[0] + ran[1]);
    println!("SCHED_IDLE beside a hog: {share:.4}");
    assert!(share > 0.001 && share < 0.02, "{share}");
}

/// The machine's books close: what ran is what the CPUs had.
#[test]
fn fault_b55_no_counter_goes_back() {
    let mut file = file("4", 1.0, vec![group("hog", 8, 0, Does::Hog {})]);
    file.faults.hotplug_us = 20_000;
    let (result, _) = check(&file, Variant::lease(), |machine: &Machine| {
        (0..4)
            .map(|cpu| machine.cpu_state(cpu).stats.run_ns)
            .sum::<u64>()
    });
    let charged = result.unwrap_or_else(|text| panic!("{text}"));
    assert!(charged > 2_000 * MS && charged <= 4_000 * MS, "{charged}");
}

/// Core scheduling asks which of two tasks on different CPUs comes first: who
/// is owed more CPU time, wherever the clocks of their queues are.
#[test]
fn fault_d88_core_scheduling_goes_by_what_is_owed() {
    let groups = vec![
        Group::hogs("hog", 3).on(CpuMask::one(0)),
        Group::hogs("light", 3).nice(10).on(CpuMask::one(1)),
    ];
    let mut machine = setup("2", 1.0, groups).run();
    let owed: Vec<f64> = (0..6)
        .map(|task| {
            let view = machine.view(task);
            let lag = view.clock.wrapping_sub(view.vruntime) as i64;
            lag as f64 * f64::from(view.weight) / 1024.0
        })
        .collect();
    for a in 0..6 {
        for b in 0..6 {
            // A nanosecond is rounded.
            if (owed[a] - owed[b]).abs() > 1000.0 || a == b {
                let before = machine.core_sched_before(a, b);
                assert_eq!(before, Some(owed[a] > owed[b]), "{a} {b}: {owed:?}");
            }
        }
    }
}
