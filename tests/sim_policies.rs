// SPDX-License-Identifier: GPL-2.0-only
//! Each policy keeps the properties that none may break, and has the character
//! that its header promises. The figures in comments are today's.

mod sim_common;

use proptest::test_runner::{Config as ProptestConfig, RngSeed, TestCaseError, TestRunner};
use scx_fulcrum::control::settings::POLICIES;
use scx_fulcrum::sim::ffi::{Ask, Contest, moment};
use scx_fulcrum::sim::machine::Machine;
use scx_fulcrum::sim::stats::GroupStats;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{Does, File, PolicySpec};
use sim_common::judge::{MIXED_ERROR, mixed_hogs, ran, share_error};
use sim_common::policies::answers;
use sim_common::{check, file, group, scenarios};

/// Random scenarios for each policy, and for all of them mixed.
const CASES: u32 = 60;

/// Whoever has waited for 3 s runs at the next slice's end, whatever the
/// policy; a slice of mlfq's last level is 8 ms.
const LONGEST_WAIT: u64 = 4_500_000_000;

/// With any slice that can be set, mlfq's last level is 400 ms, and two tasks
/// that have waited for 3 s take turns of a second each.
const LONGEST_WAIT_AT_ANY_SLICE: u64 = 5_500_000_000;

fn run<R>(file: &File, look: impl FnOnce(&Machine) -> R) -> R {
    let (result, _) = check(file, Variant::lease(), look);
    result.unwrap_or_else(|text| panic!("{text}"))
}

/// Runs `file` under `policy`; the figures of each group.
fn under(policy: &str, file: &File) -> Vec<GroupStats> {
    let mut file = file.clone();
    file.policy = Some(policy.to_string());
    run(&file, |machine| machine.stats.groups.clone())
}

fn properties(adjust: impl Fn(&mut File)) {
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 300,
        rng_seed: RngSeed::Fixed(5),
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(&scenarios(), |mut file| {
        adjust(&mut file);
        let (result, _) = check(&file, Variant::lease(), |_| ());
        result.map_err(TestCaseError::fail)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn every_property_holds_under_every_policy() {
    for policy in POLICIES {
        properties(|file| file.policy = Some(policy.name.to_string()));
    }
}

/// Tasks queued under one policy wait beside tasks queued under another.
#[test]
fn every_property_holds_while_the_knobs_change() {
    for every_us in [300, 3000] {
        properties(|file| file.faults.knobs_us = every_us);
    }
}

/// A crowd that wants more than the machine, and tasks of least weight.
fn crowd() -> File {
    let short = Does::Sleeper {
        run_us: 400,
        sleep_us: 2000,
    };
    let mut idle = group("idle", 1, 0, Does::Hog {});
    idle.policy = PolicySpec::Idle;
    let groups = vec![
        group("short", 12, -10, short),
        group("hog", 2, 0, Does::Hog {}),
        group("light", 1, 19, Does::Hog {}),
        idle,
    ];
    file("1", 20.0, groups)
}

#[test]
fn nobody_starves() {
    for policy in POLICIES {
        for group in under(policy.name, &crowd()) {
            let longest = group.wait.max();
            println!("{}: {} ms", policy.name, longest / 1_000_000);
            assert!(longest < LONGEST_WAIT, "{}: {longest}", policy.name);
            assert!(group.ran > 0, "{}", policy.name);
        }
    }
}

#[test]
fn nobody_starves_while_the_knobs_change() {
    let mut file = crowd();
    file.faults.knobs_us = 5000;
    for group in run(&file, |machine| machine.stats.groups.clone()) {
        let longest = group.wait.max();
        assert!(longest < LONGEST_WAIT_AT_ANY_SLICE, "{longest}");
    }
}

/// 0.005, 0.005 and 0.014. Why the bound is not tighter: see `MIXED_ERROR`;
/// batch's slices are four times as long.
#[test]
fn weights_hold_where_they_are_promised() {
    for (policy, bound) in [
        ("fair", MIXED_ERROR),
        ("latency", MIXED_ERROR),
        ("batch", 0.12),
    ] {
        let (mut file, weights) = mixed_hogs();
        file.policy = Some(policy.to_string());
        let error = share_error(&run(&file, ran), &weights);
        println!("{policy}: {error:.4}");
        assert!(error < bound, "{policy}: {error}");
    }
}

/// And where they are not, everybody is equal.
#[test]
fn mlfq_and_fifo_ignore_nice() {
    for policy in ["mlfq", "fifo"] {
        let (mut file, _) = mixed_hogs();
        file.policy = Some(policy.to_string());
        let error = share_error(&run(&file, ran), &[1.0; 4]);
        println!("{policy}: {error:.4}");
        assert!(error < 0.05, "{policy}: {error}");
    }
}

fn desktop() -> File {
    let interactive = Does::Sleeper {
        run_us: 2000,
        sleep_us: 6000,
    };
    let groups = vec![
        group("hog", 4, 0, Does::Hog {}),
        group("interactive", 4, 0, interactive),
    ];
    file("2", 4.0, groups)
}

/// Preemptions 1,970, 2,180 and 440; wakeups at the 99th percentile 11.8, 4.3
/// and 26 ms.
#[test]
fn batch_preempts_less_and_latency_wakes_sooner() {
    let figures = |policy| {
        let groups = under(policy, &desktop());
        let p99 = groups[1].wakeup.percentile(0.99);
        println!(
            "{policy}: p99 {} us, {} preemptions",
            p99 / 1000,
            groups[0].preemptions
        );
        (p99, groups[0].preemptions)
    };
    let (fair, latency, batch) = (figures("fair"), figures("latency"), figures("batch"));
    assert!(batch.1 * 3 < fair.1);
    assert!(latency.0 * 3 < fair.0 * 2);
    assert!(fair.0 * 3 < batch.0 * 2);
}

/// Short tasks that are new come before hogs, which have fallen.
#[test]
fn mlfq_runs_a_fresh_short_task_before_hogs() {
    let storm = Does::ForkStorm {
        every_us: 20_000,
        child_us: 400,
    };
    let groups = vec![
        group("hog", 4, 0, Does::Hog {}),
        group("fresh", 1, 0, storm),
    ];
    let file = file("1", 4.0, groups);
    let wait = |policy| {
        let groups = under(policy, &file);
        let p95 = groups[1]
            .wakeup
            .percentile(0.95)
            .max(groups[1].wait.percentile(0.95));
        println!("{policy}: fresh tasks wait {} us", p95 / 1000);
        p95
    };
    let (mlfq, fifo) = (wait("mlfq"), wait("fifo"));
    assert!(mlfq < 5_000_000, "{mlfq}");
    assert!(mlfq * 3 < fifo, "{mlfq} {fifo}");
}

/// Requests, deadlines, levels, who interrupts and who gives way.
#[test]
fn each_policy_answers_as_its_header_says() {
    let (verdict, _) = answers(Variant::lease());
    assert_eq!(verdict, Ok(()));
}

#[test]
fn fifo_keeps_the_order_of_arrival_and_never_interrupts() {
    let groups = vec![
        group("hog", 2, -20, Does::Hog {}),
        group(
            "short",
            2,
            19,
            Does::Sleeper {
                run_us: 200,
                sleep_us: 3000,
            },
        ),
    ];
    let groups = under("fifo", &file("1", 3.0, groups));
    // Nobody waits for more than a turn of the others.
    assert!(groups.iter().all(|group| group.wait.max() < 30_000_000));
}

fn contest(clock: u64) -> Contest {
    Contest {
        v: clock,
        deadline: clock,
        clock,
        curr_deadline: clock + (1 << 40),
        slice: 3_000_000,
    }
}

/// Whatever is asked, of any policy and of numbers that are none, requests are
/// 50 us to 400 ms, deadlines near, and where clocks stand does not matter.
#[test]
fn answers_are_bounded_wherever_the_clocks_are() {
    let variant = Variant::lease();
    let a = variant.arithmetic();
    let clocks = [0, 1 << 40, (1 << 63) - 1, u64::MAX - 1000];
    for policy in (0..POLICIES.len() as u32 + 2).chain([u32::MAX]) {
        for (nice, slice, burst) in [
            (0, 100_000, 0),
            (-20, 100_000_000, 6_000_000),
            (19, 100_000, 6_000_000),
            (19, 100_000_000, 50_000),
        ] {
            for (level, moment) in [
                (0, moment::WAKES),
                (3, moment::WAKES),
                (255, moment::USED_UP),
            ] {
                let answers = clocks.map(|clock: u64| {
                    let mut ask = Ask {
                        v: clock.wrapping_sub(30_000_000),
                        clock,
                        burst,
                        request: 0,
                        slice,
                        weight: (a.weight)(120 + nice, 0),
                        level,
                        mixed: 0,
                    };
                    let due = (a.answer)(policy, &mut ask, moment);
                    assert!((50_000..=400_000_000).contains(&ask.request), "{ask:?}");
                    assert!(ask.level < 256);
                    (due.wrapping_sub(clock) as i64, ask.request, ask.level)
                });
                assert!(answers.iter().all(|answer| *answer == answers[0]));
                let distance = answers[0].0;
                assert!(
                    (-30_000_000..15_000_000_000).contains(&distance),
                    "{policy}: {distance}"
                );
            }
        }
        let fought = clocks.map(|clock| {
            let mut contest = contest(clock);
            contest.deadline = clock.wrapping_add(1);
            contest.curr_deadline = clock.wrapping_add(40_000_000);
            let way = (a.gives_way)(policy, clock, clock.wrapping_add(5));
            ((a.preempts)(policy, &contest), way)
        });
        assert!(fought.iter().all(|outcome| *outcome == fought[0]));
    }
}
