// SPDX-License-Identifier: GPL-2.0-only
//! Frames of looks that are made up.

use super::*;

fn cpu(number: usize, run_ns: u64, waits: u64) -> CpuView {
    let mut wakeup = vec![0; BUCKETS];
    let mut other = vec![0; BUCKETS];
    wakeup[2] = waits;
    other[40] = waits / 10;
    CpuView {
        cpu: number,
        domain: number / 2,
        online: true,
        pid: 7,
        waiting: 3,
        counters: Counters {
            run_ns,
            waits,
            steals_near: waits / 5,
            exchanges: waits / 5,
            ..Counters::default()
        },
        wakeup,
        other,
    }
}

fn group(slot: usize, weight: u32, ran_ns: u64, waits: u32) -> GroupView {
    GroupView {
        slot,
        id: (100 * slot as u64).max(1),
        depth: u32::from(slot > 0),
        cpu_weight: weight,
        weight: weight * 1024 / 100,
        busy: if slot > 0 { 2.0 } else { 0.0 },
        load: if slot > 0 { 2048.0 } else { 0.0 },
        ran_ns,
        waits: vec![waits; BUCKETS],
        ..GroupView::default()
    }
}

fn look(seconds: u64, waits: u64) -> Look {
    let ns = seconds * 1_000_000_000;
    Look {
        at: Duration::from_secs(seconds),
        cpus: vec![cpu(0, ns, waits), cpu(1, ns / 2, waits), cpu(2, 0, 0)],
        groups: vec![
            group(0, 0, 0, 0),
            group(1, 100, ns / 2, 5),
            group(2, 300, ns, waits as u32),
        ],
    }
}

#[test]
fn figures_are_those_of_the_interval() {
    let (earlier, now, none) = (look(10, 100), look(12, 300), Look::default());
    let between = Between::new(&earlier, &now, &none);
    assert_eq!(between.interval_ms(), 2000);
    assert_eq!(between.totals().busy_pct, 50.0);
    let waits = between.waits();
    assert_eq!(waits.wakeup.count(), 400);
    assert_eq!(waits.queue.count(), 440);
    assert_eq!((waits.wakeup_p50_us, waits.wakeup_p99_us), (3.1, 3.1));
    assert!(waits.queue_p99_us > 100.0);
    let cpus = between.cpus(|domain| domain + 5);
    assert_eq!((cpus[0].busy_pct, cpus[1].busy_pct), (100.0, 50.0));
    assert_eq!((cpus[2].llc, cpus[2].node), (1, 6));
    assert_eq!((cpus[0].switches, cpus[0].steals), (100.0, 40.0));
    assert_eq!(cpus[2].wait_max_us, 0.0);
}

#[test]
fn a_restarted_scheduler_and_a_first_look_count_from_the_start() {
    let (earlier, now, none) = (look(100, 5000), look(1, 20), Look::default());
    for before in [&earlier, &none] {
        let between = Between::new(before, &now, &none);
        assert_eq!(between.interval_ms(), 1000);
        assert_eq!(between.waits().wakeup.count(), 40);
    }
    let never = Between::new(&none, &none, &none);
    assert_eq!(never.waits(), Waits::default());
    assert!(never.groups(|_| String::new()).is_empty());
}

#[test]
fn groups_have_what_they_got_and_what_they_are_owed() {
    let (earlier, now, none) = (look(10, 100), look(12, 300), Look::default());
    let groups = Between::new(&earlier, &now, &none).groups(|id| format!("/{id}"));
    let paths: Vec<_> = groups.iter().map(|group| group.path.as_str()).collect();
    assert_eq!(paths, ["/1", "/100", "/200"]);
    let shares: Vec<_> = groups.iter().map(|g| (g.got_pct, g.owed_pct)).collect();
    assert_eq!(shares, [(100.0, 100.0), (33.33, 25.0), (66.67, 75.0)]);
    assert_eq!(groups[1].waits.count(), 0);
    assert_eq!(groups[2].waits.count(), 200 * BUCKETS as u64);
}

#[test]
fn a_task_is_shown_in_cpu_time() {
    let view = TaskView {
        inv: 4_194_304 * 2,
        lag: 3_000_000,
        waits: 5000,
        last_wait: 1000,
        state: 3,
        policy: 5,
        ..TaskView::default()
    };
    let shown = task(&view);
    // Half of nice 0's weight: virtual time runs twice as fast.
    assert_eq!((shown.weight, shown.lag_us), (512.0, 1500.0));
    assert_eq!((shown.waits_since_us, shown.last_wait_us), (5.0, 1024.0));
    assert_eq!(
        (shown.state.as_str(), shown.policy.as_str()),
        ("queued", "idle")
    );
    assert!((0..=8).map(way).all(|text| !text.is_empty()));
}
