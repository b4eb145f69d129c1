// SPDX-License-Identifier: GPL-2.0-only
//! Faults by which schedulers in the field have let tasks wait, or CPUs idle,
//! each as a test; docs/faults.md says what each number stands for. All
//! properties are checked throughout, work conservation among them.

mod sim_common;

use scx_fulcrum::control::settings::{POLICIES, Policy as Named, Settings};
use scx_fulcrum::sim::mask::CpuMask;
use scx_fulcrum::sim::workload::program::Step;
use scx_fulcrum::sim::workload::{Group, Policy};
use sim_common::programs::{MS, Setup, US, cpus_used, frames, longest, pinned, repeat, setup};

const KERNELS: [u32; 4] = [616, 618, 701, 703];

/// The longest wait of all groups, ns.
fn longest_of_all(setup: &Setup) -> u64 {
    let machine = setup.run();
    let waits = (0..machine.stats.groups.len()).map(|group| longest(&machine, group));
    waits.max().unwrap()
}

/// Hogs and short tasks, more than there are CPUs.
fn load(cpus: usize) -> Vec<Group> {
    let short = vec![Step::RunExp(200 * US), Step::SleepExp(2 * MS)];
    vec![
        Group::hogs("hog", 2 * cpus),
        repeat("short", 4 * cpus, short),
    ]
}

/// A kernel thread of each CPU that wakes often.
fn kernel_threads(cpus: usize) -> Vec<Group> {
    let steps = vec![Step::RunExp(50 * US), Step::SleepExp(500 * US)];
    (0..cpus)
        .map(|cpu| {
            let mut thread = repeat("kthread", 1, steps.clone()).on(CpuMask::one(cpu));
            thread.kthread = true;
            thread
        })
        .collect()
}

/// Kernel threads of a CPU come next there, whatever happens to masks.
#[test]
fn fault_a01_a15_a18_a20_threads_of_a_cpu_run_soon() {
    for kernel in KERNELS {
        let mut setup = setup("4", 1.0, [load(4), kernel_threads(4)].concat());
        setup.config.release = kernel;
        setup.config.faults.affinity = MS;
        let machine = setup.run();
        let wait = (2..6).map(|group| longest(&machine, group)).max().unwrap();
        println!("{kernel}: {} ms at most", wait / MS);
        // A tick, and a pinned neighbour's request.
        assert!(wait < 12 * MS, "{kernel}: {wait}");
    }
}

/// Masks change while tasks wait; nobody stays where it can't run, nor blocks
/// those behind it.
#[test]
fn fault_a02_a07_a09_masks_change_under_waiting_tasks() {
    for (kernel, topology) in [(616, "4"), (618, "1x2x2x1"), (701, "4"), (703, "2x2x2x1")] {
        let mut setup = setup(topology, 1.0, load(4));
        setup.config.release = kernel;
        setup.config.faults.affinity = 50 * US;
        let wait = longest_of_all(&setup);
        println!("{kernel}, {topology}: {} ms at most", wait / MS);
        assert!(wait < 1000 * MS, "{kernel}: {wait}");
    }
}

/// Two that wake each other all the time leave room for whom they share the
/// CPU with: slices are not refilled when a task starts.
#[test]
fn fault_a03_quick_switching_lets_others_in() {
    let ball = |from, to| {
        let signal = Step::Signal {
            channel: to,
            all: false,
            sync: true,
        };
        vec![Step::Wait(from), Step::Run(100 * US), signal]
    };
    let mut first = ball(0, 1);
    first.insert(
        0,
        Step::Signal {
            channel: 0,
            all: false,
            sync: false,
        },
    );
    let mut setup = setup(
        "1",
        2.0,
        vec![
            Group::hogs("hog", 1),
            Group::new("ping", 1, {
                let mut steps = first;
                steps.push(Step::Loop {
                    start: 1,
                    times: u64::MAX,
                });
                steps
            }),
            repeat("pong", 1, ball(1, 0)),
        ],
    );
    setup.workload.channels = vec![4, 4];
    let machine = setup.run();
    println!(
        "a hog beside ping and pong waits for {} ms at most, has {:.3}",
        longest(&machine, 0) / MS,
        cpus_used(&machine)[0]
    );
    assert!(longest(&machine, 0) < 20 * MS);
    assert!(cpus_used(&machine)[0] > 0.3);
}

/// One pinned and one free hog for each CPU: half a CPU each.
#[test]
fn fault_a04_a11_a29_pinned_and_free_share_alike() {
    let mut groups: Vec<Group> = (0..4).map(|cpu| pinned("pinned", 1, cpu)).collect();
    groups.push(Group::hogs("free", 4));
    let machine = setup("4", 3.0, groups).run();
    let cpus = cpus_used(&machine);
    println!("pinned {:.3?}, free {:.3}", &cpus[..4], cpus[4]);
    assert!(
        cpus[..4].iter().all(|cpus| (0.45..0.55).contains(cpus)),
        "{cpus:?}"
    );
}

/// A hog among tasks that keep every queue busy waits for its turn. Each of the
/// 40 may come before it by its credit once: 480 ms in all, if they meet on one CPU.
#[test]
fn fault_a05_a06_busy_queues_starve_nobody() {
    let chain = vec![Step::RunExp(100 * US), Step::SleepExp(100 * US)];
    let groups = vec![repeat("message", 40, chain), Group::hogs("hog", 1)];
    let machine = setup("2", 2.0, groups).run();
    println!("the hog waits for {} ms at most", longest(&machine, 1) / MS);
    assert!(longest(&machine, 1) < (40 * 12 + 60) * MS);
}

/// CPU sets of a crowd are rewritten again and again.
#[test]
fn fault_a10_rewritten_cpu_sets() {
    let mut setup = setup(
        "8",
        1.0,
        vec![
            Group::hogs("vcpu", 8),
            repeat(
                "io",
                50,
                vec![Step::RunExp(50 * US), Step::SleepExp(3 * MS)],
            ),
        ],
    );
    setup.config.faults.affinity = 20 * US;
    let wait = longest_of_all(&setup);
    println!("{} ms at most", wait / MS);
    assert!(wait < 1000 * MS, "{wait}");
}

/// Every policy, as it starts, under the same.
#[test]
fn fault_a12_every_policy_under_changing_masks() {
    for policy in POLICIES {
        let mut setup = setup("4", 0.5, load(4));
        setup.config.settings = Settings::of(Named::named(policy.name).unwrap());
        setup.config.faults.affinity = 100 * US;
        let wait = longest_of_all(&setup);
        println!("{}: {} ms at most", policy.name, wait / MS);
        assert!(wait < 1000 * MS, "{}: {wait}", policy.name);
    }
}

/// CPUs go idle all the time while others wake: no call is lost.
#[test]
fn fault_a14_a21_a22_no_cpu_idles_beside_work() {
    for (topology, seed) in [("4", 1), ("16", 2), ("1x4x4x1", 3), ("2x2x2x2", 4)] {
        for kernel in KERNELS {
            let short = vec![Step::RunExp(60 * US), Step::SleepExp(150 * US)];
            let groups = vec![repeat("short", 20, short), Group::hogs("hog", 2)];
            let mut setup = setup(topology, 0.3, groups).seed(seed);
            setup.config.release = kernel;
            let machine = setup.run();
            let (existed, taken) = (machine.stats.idle_existed, machine.stats.idle_taken);
            assert!(
                existed - taken <= 2 + existed / 1000,
                "{topology} {kernel}: {taken} of {existed}"
            );
        }
    }
}

/// A minute of everything at once.
#[test]
fn fault_a16_a_long_mixed_run() {
    let mut rt = repeat("rt", 1, vec![Step::Timer(5 * MS), Step::Run(2 * MS)]);
    rt.policy = Policy::Fifo;
    let storm = vec![Step::SleepExp(20 * MS), Step::Fork(5)];
    let groups = vec![
        Group::hogs("hog", 6),
        frames("frame", 2, 16_667 * US, 3 * MS),
        rt,
        repeat(
            "short",
            12,
            vec![Step::RunExp(200 * US), Step::SleepExp(4 * MS)],
        ),
        repeat("parent", 2, storm),
        Group::new("child", 0, vec![Step::RunExp(2 * MS)]),
        Group::hogs("light", 1).nice(19),
    ];
    let mut setup = setup("4", 60.0, groups);
    setup.config.audit_period = MS;
    setup.config.faults.affinity = 20 * MS;
    setup.config.faults.renice = 20 * MS;
    setup.config.faults.migrate_disable = 20 * MS;
    let wait = longest_of_all(&setup);
    println!("{} ms at most", wait / MS);
    assert!(wait < 5000 * MS, "{wait}");
}

/// Sections in which a task must stay on its CPU, begun and ended at any time.
#[test]
fn fault_a23_a24_tasks_that_must_stay() {
    for kernel in KERNELS {
        let mut setup = setup("4", 1.0, load(4));
        setup.config.release = kernel;
        setup.config.faults.migrate_disable = 30 * US;
        setup.config.faults.affinity = 300 * US;
        let wait = longest_of_all(&setup);
        println!("{kernel}: {} ms at most", wait / MS);
        assert!(wait < 500 * MS, "{kernel}: {wait}");
    }
}

/// Short lives beside hogs on every CPU: those that exit are not left behind.
#[test]
fn fault_a25_exiting_tasks_run() {
    let groups = vec![
        Group::hogs("hog", 4),
        repeat("parent", 4, vec![Step::SleepExp(3 * MS), Step::Fork(2)]),
        Group::new("child", 0, vec![Step::RunExp(300 * US)]),
    ];
    let machine = setup("4", 2.0, groups).run();
    println!("a child waits for {} ms at most", longest(&machine, 2) / MS);
    assert!(longest(&machine, 2) < 100 * MS);
}

/// A task alone is asked again before a second comes to wait for it.
#[test]
fn fault_a27_slices_are_finite() {
    let mut late = Group::hogs("late", 1).on(CpuMask::one(0));
    late.start = 1000 * MS + 1;
    let groups = vec![pinned("alone", 1, 0), late];
    let machine = setup("2", 2.0, groups).run();
    let wait = machine.stats.groups[1]
        .wakeup
        .max()
        .max(longest(&machine, 1));
    println!("the second waits for {} ms at most", wait / MS);
    assert!(wait < 12 * MS, "{wait}");
}

/// What waits on a CPU is that CPU's to run, light or not.
#[test]
fn fault_a28_every_queue_is_served() {
    let mut groups: Vec<Group> = (0..4).map(|cpu| pinned("light", 1, cpu).nice(19)).collect();
    groups.extend(kernel_threads(4));
    groups.push(Group::hogs("hog", 8));
    let machine = setup("4", 10.0, groups).run();
    let waits: Vec<u64> = (0..4).map(|group| longest(&machine, group) / MS).collect();
    println!("pinned and nice 19: {waits:?} ms at most");
    assert!(waits.iter().all(|wait| *wait < 4500), "{waits:?}");
}

/// A real-time task for good: what can go elsewhere does, on every kernel.
#[test]
fn fault_a31_a_real_time_hog_stalls_nobody() {
    for kernel in KERNELS {
        let mut rt = pinned("rt", 1, 0);
        rt.policy = Policy::Fifo;
        rt.start = 200 * MS;
        let short = vec![Step::RunExp(200 * US), Step::SleepExp(3 * MS)];
        let groups = vec![rt, Group::hogs("hog", 2), repeat("short", 4, short)];
        let mut setup = setup("2", 3.0, groups);
        setup.config.release = kernel;
        let machine = setup.run();
        let waits = [longest(&machine, 1) / MS, longest(&machine, 2) / MS];
        println!("{kernel}: {waits:?} ms at most");
        assert!(waits.iter().all(|wait| *wait < 100), "{kernel}: {waits:?}");
    }
}

/// To be pushed aside is no new start: two hogs share alike beside a loop of
/// real time.
#[test]
fn fault_a32_real_time_refills_no_slice() {
    let mut rt = repeat("rt", 1, vec![Step::Timer(5 * MS), Step::Run(2 * MS)]);
    rt.policy = Policy::Fifo;
    let groups = vec![rt, Group::hogs("one", 1), Group::hogs("other", 1)];
    let cpus = cpus_used(&setup("1", 3.0, groups).run());
    println!("{:.3} and {:.3} CPUs", cpus[1], cpus[2]);
    assert!((cpus[1] / cpus[2] - 1.0).abs() < 0.05, "{cpus:?}");
}
