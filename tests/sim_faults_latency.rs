//! Faults in latency that schedulers in the field have shown, each as a test;
//! docs/faults.md says what each number stands for.

mod sim_common;

use scx_fulcrum::sim::workload::program::Step;
use scx_fulcrum::sim::workload::{Group, Policy};
use sim_common::programs::{MS, US, frames, longest, repeat, setup};

/// Frames beside twice as many compilers as CPUs, and a SCHED_IDLE hog. Its
/// clock is far ahead of all others; where it had run alone, wakers came last
/// for 120 ms.
#[test]
fn fault_c66_an_idle_policy_hog_spoils_no_frames() {
    for cpus in [2, 4, 8] {
        let (mut late, mut total, mut wait) = (0, 0, 0);
        for seed in 1..=6 {
            let mut backup = Group::hogs("backup", 1);
            backup.policy = Policy::Idle;
            let input = vec![Step::RunExp(200 * US), Step::SleepExp(5 * MS)];
            let groups = vec![
                Group::hogs("compiler", 2 * cpus),
                frames("frames", cpus / 2, 16_667 * US, 4 * MS),
                repeat("input", 4, input),
                backup,
            ];
            let machine = setup(&cpus.to_string(), 3.0, groups).seed(seed).run();
            late += machine.stats.groups[1].misses;
            total += machine.stats.groups[1].response.count();
            wait = wait.max(longest(&machine, 1));
        }
        println!(
            "{cpus} CPUs: {late} of {total} frames late, longest wait {} ms",
            wait / MS
        );
        assert!(
            late * 200 <= total && wait < 25 * MS,
            "{cpus}: {late} of {total}, {wait}"
        );
    }
}
