// SPDX-License-Identifier: GPL-2.0-only
//! Faults in latency that schedulers in the field have shown, each as a test;
//! docs/faults.md says what each number stands for.

mod sim_common;

use scx_fulcrum::sim::machine::Machine;
use scx_fulcrum::sim::mask::CpuMask;
use scx_fulcrum::sim::workload::program::Step;
use scx_fulcrum::sim::workload::{Group, Policy};
use sim_common::habits::desktop;
use sim_common::programs::{MS, US, cpus_used, frames, longest, repeat, setup};

/// Frames beside twice as many compilers as CPUs, and a SCHED_IDLE hog. Its
/// clock is far ahead of all others; where it had run alone, wakers came last
/// for 120 ms.
#[test]
fn fault_c66_an_idle_policy_hog_spoils_no_frames() {
    for cpus in [2, 4, 8] {
        let (mut late, mut total, mut wait) = (0, 0, 0);
        for seed in 1..=6 {
            let machine = desktop(cpus).seed(seed).run();
            late += machine.stats.groups[1].misses;
            total += machine.stats.groups[1].response.count();
            wait = wait.max(longest(&machine, 1));
        }
        println!(
            "{cpus} CPUs: {late} of {total} frames late, longest wait {} ms",
            wait / MS
        );
        assert!(
            late * 200 <= total && wait < 50 * MS,
            "{cpus}: {late} of {total}, {wait}"
        );
    }
}

fn short(run: u64, sleep: u64) -> Vec<Step> {
    vec![Step::RunExp(run), Step::SleepExp(sleep)]
}

/// A thread of a CPU that the kernel works in: wakes often, runs briefly.
fn kernel_thread(cpu: usize, run: u64, sleep: u64) -> Group {
    let mut thread = repeat("kthread", 1, short(run, sleep)).on(CpuMask::one(cpu));
    thread.kthread = true;
    thread
}

/// A wakeup that is due interrupts at once, not at the next tick of 4 ms.
#[test]
fn fault_c58_wakeups_do_not_wait_for_the_tick() {
    for release in [616, 618, 703] {
        let groups = vec![
            Group::hogs("hog", 4),
            repeat("timer", 4, vec![Step::Sleep(MS), Step::Run(20 * US)]),
        ];
        let mut setup = setup("2", 2.0, groups);
        setup.config.release = release;
        let machine = setup.run();
        let wakeup = &machine.stats.groups[1].wakeup;
        println!("{release}: p99 {} us", wakeup.percentile(0.99) / US);
        assert!(wakeup.percentile(0.99) < 150 * US);
    }
}

/// At most one wakeup in twenty interrupts, of many.
fn interrupt_rarely(machine: &Machine, cpus: usize) {
    let kicks: u64 = (0..cpus)
        .map(|cpu| machine.cpu_state(cpu).stats.preempt_kicks)
        .sum();
    let wakeups = machine.stats.wakeups;
    println!("{kicks} interruptions for {wakeups} wakeups");
    assert!(
        wakeups > 10_000 && kicks * 20 < wakeups,
        "{kicks} {wakeups}"
    );
}

/// Tasks that wake each other all the time interrupt rarely.
#[test]
fn fault_c59_wakeups_do_not_storm() {
    let steps = |from: usize, to: usize| {
        let signal = Step::Signal {
            channel: to,
            all: false,
            sync: true,
        };
        vec![signal, Step::Run(20 * US), Step::Wait(from)]
    };
    let mut groups = Vec::new();
    for pair in 0..8 {
        groups.push(repeat("left", 1, steps(2 * pair, 2 * pair + 1)));
        groups.push(repeat("right", 1, steps(2 * pair + 1, 2 * pair)));
    }
    let mut setup = setup("4", 1.0, groups);
    setup.workload.channels = vec![16; 16];
    let machine = setup.run();
    interrupt_rarely(&machine, 4);
}

/// Many tasks that run briefly and sleep don't interrupt each other.
#[test]
fn fault_c59_short_tasks_let_each_other_finish() {
    let groups = vec![repeat(
        "nap",
        32,
        vec![Step::Run(40 * US), Step::Sleep(200 * US)],
    )];
    let machine = setup("2", 1.0, groups).run();
    interrupt_rarely(&machine, 2);
}

/// Kernel threads come next, but a flood of them is charged like anybody.
#[test]
fn fault_c60_c61_a_flood_of_kernel_threads_leaves_room() {
    let mut flood = kernel_thread(0, 100 * US, US);
    flood.count = 3;
    let groups = vec![flood, Group::hogs("hog", 1).on(CpuMask::one(0))];
    let machine = setup("1", 2.0, groups).run();
    let hog = cpus_used(&machine)[1];
    println!(
        "the hog has {hog:.3}, waits for {} ms at most",
        longest(&machine, 1) / MS
    );
    assert!(hog > 0.15 && longest(&machine, 1) < 120 * MS, "{hog}");
}

/// ... and those that need little run within a slice.
#[test]
fn fault_c62_kernel_threads_run_within_a_slice() {
    let mut groups: Vec<Group> = (0..2)
        .map(|cpu| kernel_thread(cpu, 50 * US, 500 * US))
        .collect();
    groups.push(Group::hogs("hog", 8));
    let machine = setup("2", 2.0, groups).run();
    let p99 = machine.stats.groups[0].wakeup.percentile(0.99);
    println!("p99 {} us", p99 / US);
    assert!(p99 < 4500 * US, "{p99}");
}

/// Sixteen busy loops on four CPUs: pointer, video and game go on smoothly.
#[test]
fn fault_c64_c67_c69_frames_beside_busy_loops() {
    let groups = vec![
        Group::hogs("loop", 16),
        frames("video", 2, 16_667 * US, 2 * MS),
        frames("game", 1, 8333 * US, 1500 * US),
        frames("pointer", 1, 8 * MS, 100 * US),
    ];
    let setup = setup("4", 4.0, groups);
    let machine = setup.run();
    let plain = setup.under_eevdf();
    for group in 1..4 {
        let name = &["video", "game", "pointer"][group - 1];
        let (ours, theirs) = (&machine.stats.groups[group], &plain.stats.groups[group]);
        println!(
            "{name}: {} late, under EEVDF {}",
            ours.misses, theirs.misses
        );
        assert!(
            ours.misses * 100 <= ours.response.count(),
            "{name}: {}",
            ours.misses
        );
    }
}

/// A real-time loop feeds a task of ours each 5 ms, which must be done before
/// the next.
#[test]
fn fault_c68_what_real_time_audio_feeds_is_in_time() {
    let mut source = repeat(
        "source",
        1,
        vec![
            Step::Timer(5 * MS),
            Step::Run(200 * US),
            Step::Signal {
                channel: 0,
                all: false,
                sync: false,
            },
        ],
    );
    source.policy = Policy::Fifo;
    let groups = vec![
        Group::hogs("cc", 8),
        source,
        repeat("mixer", 1, vec![Step::Wait(0), Step::Run(500 * US)]),
    ];
    let mut setup = setup("2", 4.0, groups);
    setup.workload.channels = vec![4];
    let machine = setup.run();
    let wakeup = &machine.stats.groups[2].wakeup;
    println!(
        "the mixer starts after {} us (p99), {} us at most",
        wakeup.percentile(0.99) / US,
        wakeup.max() / US
    );
    assert!(wakeup.percentile(0.99) < MS && wakeup.max() < 4500 * US);
}

/// A virtual CPU works for long, sleeps rarely: beside a build it has its fair
/// share, and its guest no pauses.
#[test]
fn fault_c70_long_running_but_not_a_hog() {
    let groups = vec![Group::hogs("cc", 4), frames("vcpu", 1, 20 * MS, 6 * MS)];
    let machine = setup("2", 4.0, groups).run();
    let vcpu = &machine.stats.groups[1];
    println!(
        "{} of {} late, longest wait {} ms",
        vcpu.misses,
        vcpu.response.count(),
        longest(&machine, 1) / MS
    );
    assert!(vcpu.misses * 100 <= vcpu.response.count());
    assert!(longest(&machine, 1) < 25 * MS);
}

/// Beside the same load, wakeups are no slower than under EEVDF.
#[test]
fn fault_c71_no_slower_than_eevdf_under_load() {
    let groups = vec![
        Group::hogs("hog", 6),
        repeat("database", 8, short(300 * US, 2 * MS)),
    ];
    let setup = setup("4", 4.0, groups);
    let p99 = |machine: &Machine| machine.stats.groups[1].wakeup.percentile(0.99) / US;
    let (ours, theirs) = (p99(&setup.run()), p99(&setup.under_eevdf()));
    println!("p99 {ours} us, under EEVDF {theirs} us");
    assert!(ours <= theirs + 100);
}

/// Who is interrupted while it holds a lock comes back soon.
#[test]
fn fault_c73_lock_holders_come_back() {
    let groups = vec![
        Group::hogs("hog", 4),
        repeat(
            "locker",
            6,
            vec![
                Step::SleepExp(2 * MS),
                Step::Lock(0),
                Step::Run(200 * US),
                Step::Unlock(0),
            ],
        ),
    ];
    let mut setup = setup("2", 4.0, groups);
    setup.workload.mutexes = 1;
    let machine = setup.run();
    println!(
        "lockers: {:.3} CPUs, longest wait {} ms",
        cpus_used(&machine)[1],
        longest(&machine, 1) / MS
    );
    assert!(longest(&machine, 1) < 30 * MS);
    assert!(cpus_used(&machine)[1] > 0.3);
}
