// SPDX-License-Identifier: GPL-2.0-only
//! Broken schedulers are caught: each mutant fails a judge, by name.

mod mutants;
mod sim_common;

use mutants::{MUTANTS, broken};
use scx_fulcrum::sim::variants::Variant;
use sim_common::judge::JUDGES;

/// Who convicts this scheduler, and of what.
fn convict(mut variant: Variant) -> Option<(&'static str, String)> {
    for (name, judge) in JUDGES {
        let (result, back) = judge(variant);
        variant = back;
        if let Err(reason) = result {
            let first = reason.lines().next().unwrap_or_default().to_string();
            return Some((name, first));
        }
    }
    None
}

fn is_killed(name: &str) {
    let mutant = MUTANTS.iter().find(|mutant| mutant.name == name).unwrap();
    let verdict = convict(broken(mutant));
    let (judge, reason) = verdict.unwrap_or_else(|| panic!("{name} survives all judges"));
    println!("{name}: killed by \"{judge}\": {reason}");
}

macro_rules! killed {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                is_killed(stringify!($name));
            }
        )*

        #[test]
        fn every_mutant_has_a_test() {
            let tested = [$(stringify!($name)),*];
            let listed: Vec<_> = MUTANTS.iter().map(|mutant| mutant.name).collect();
            assert_eq!(tested.as_slice(), listed);
        }
    };
}

killed! {
    dropped_idle_kick
    lost_work_bit
    no_second_look_before_idle
    unbounded_lag
    missing_affinity_check
    unsigned_compare
    slice_refilled_in_running
    clock_goes_back
    no_exchange_at_slice_end
    weight_ignored
    sleep_not_noted
    runtime_not_charged_at_stop
    no_preemption_at_wakeup
    left_behind_a_real_time_task
    nobody_rescued
    queued_counts_as_blocked
    ends_not_counted
    parents_weight_ignored
    inverted_cgroup_weight
    cgroup_move_not_followed
    waiting_not_counted_in_cgroups
    clock_not_carried
    busy_clocks_never_join
    far_clocks_take_from_anybody
    reused_slot_stays_idle
    clock_stands_still
    clock_moved_by_exits_is_owed
    nappers_stay_where_they_are
    lone_task_leaves_its_deadline
    preemptor_blamed_again
    fair_slices_without_weight
    fair_owed_nothing_interrupts
    fair_never_gives_way
    latency_is_only_fair
    latency_stays_urgent
    batch_asks_for_little
    batch_interrupts_like_fair
    mlfq_never_falls
    mlfq_never_rises
    mlfq_does_not_age
    fifo_by_fairness
    fifo_interrupts
    nobody_goes_over
    fast_cpus_not_preferred
    threads_taken_for_cores
}

#[test]
fn the_real_scheduler_is_acquitted() {
    assert_eq!(convict(Variant::lease()), None);
}
