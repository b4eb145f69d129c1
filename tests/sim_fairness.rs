// SPDX-License-Identifier: GPL-2.0-only
//! Shares against weights, and the bounds that the core reaches today. Where
//! that is not the 0.5 % that we want, the test says so and why.

mod sim_common;

use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{Does, File, GroupSpec};
use sim_common::caches::{FAR_APART_ERROR, far_apart, mean_error, pinned_crowd};
use sim_common::judge::{MIXED_ERROR, ROTATION_ERROR, ran, share_error};
use sim_common::{check, file, group};

fn hogs(nices: &[i32]) -> Vec<GroupSpec> {
    let hog = |&nice| group("hog", 1, nice, Does::Hog {});
    nices.iter().map(hog).collect()
}

/// The largest relative error over these seeds.
fn worst(topology: &str, seconds: f64, nices: &[i32], weights: &[f64]) -> f64 {
    let errors = (1..=5).map(|seed| {
        let mut file = file(topology, seconds, hogs(nices));
        file.seed = Some(seed);
        let (result, _) = check(&file, Variant::lease(), |machine| {
            share_error(&ran(machine), weights)
        });
        result.unwrap_or_else(|text| panic!("{text}"))
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn equal_hogs_on_one_cpu_are_within_half_a_percent() {
    for count in [2, 3, 5, 8] {
        let error = worst("1", 4.0, &vec![0; count], &vec![1.0; count]);
        println!("{count} equal hogs on 1 CPU: {error:.4}");
        assert!(error < 0.005, "{count}: {error}");
    }
}

/// Today 0.0097 over 4 s: slices end at ticks of 4 ms, a nice-5 hog gets one
/// after three of the other's.
#[test]
fn two_weights_on_one_cpu() {
    let error = worst("1", 4.0, &[0, 5], &[1024.0, 335.0]);
    println!("nice 0 and 5 on 1 CPU: {error:.4}");
    assert!(error < 0.015, "{error}");
}

/// Today 0.038.
#[test]
fn four_weights_on_one_cpu() {
    let error = worst("1", 4.0, &[-5, 0, 5, 10], &[3121.0, 1024.0, 335.0, 110.0]);
    println!("nice -5, 0, 5, 10 on 1 CPU: {error:.4}");
    assert!(error < MIXED_ERROR, "{error}");
}

/// Was 0.25 when a CPU looked at the same other queue at the end of each slice:
/// on 4 CPUs (seeds 3 and 5) two CPUs then kept one hog each for good.
const ROTATION_ON_MORE: f64 = 0.005;

#[test]
fn one_hog_more_than_cpus() {
    let error = worst("2", 4.0, &[0; 3], &[1.0; 3]);
    println!("3 equal hogs on 2 CPUs: {error:.4}");
    assert!(error < ROTATION_ERROR, "2: {error}");
    for cpus in [4, 8] {
        let count = cpus + 1;
        let error = worst(&cpus.to_string(), 4.0, &vec![0; count], &vec![1.0; count]);
        println!("{count} equal hogs on {cpus} CPUs: {error:.4}");
        assert!(error < ROTATION_ON_MORE, "{cpus}: {error}");
    }
}

#[test]
fn one_hog_more_than_cpus_over_two_caches() {
    let (error, _) = mean_error(far_apart, Variant::lease());
    let error = error.unwrap_or_else(|text| panic!("{text}"));
    println!("9 equal hogs on 2 x 4 CPUs, clocks far apart: {error:.4}");
    assert!(error < FAR_APART_ERROR, "{error}");
}

/// CPUs that the first of these hogs lacks of a whole one at worst, over some seeds.
fn lacks(file: &File) -> f64 {
    let lacks = (1..=5).map(|seed| {
        let mut file = file.clone();
        file.seed = Some(seed);
        let (result, _) = check(&file, Variant::lease(), |machine| {
            1.0 - ran(machine)[0] / machine.now as f64
        });
        result.unwrap_or_else(|text| panic!("{text}"))
    });
    lacks.fold(0.0, f64::max)
}

/// Who weighs more than it can use has a CPU, on one cache or three. Was up to .07
/// off: nobody's clock is as slow as that of a heavy task alone, and where clocks are
/// far apart who waited elsewhere came in by turns.
#[test]
fn who_weighs_more_than_it_can_use_has_a_cpu() {
    for (topology, nices) in [
        ("2", [vec![-20], vec![0; 3]].concat()),
        ("2", [vec![-20], vec![10; 3]].concat()),
        ("2", vec![-5, 0, 5, 19]),
        ("4", [vec![-20], vec![0; 7]].concat()),
        ("4", [vec![-2], vec![0; 4]].concat()),
        ("4", [vec![-20, -20], vec![0; 3]].concat()),
        ("8", [vec![-20, -15, -10], vec![0; 9]].concat()),
        ("1x3x2x1", [vec![-20], vec![0; 8]].concat()),
    ] {
        let lacks = lacks(&file(topology, 4.0, hogs(&nices)));
        println!("{nices:?} on {topology}: the first lacks {lacks:.4}");
        assert!(lacks < 0.01, "{nices:?} on {topology}: {lacks}");
    }
}

/// ... also one that comes to what already runs, or may use one CPU only.
#[test]
fn a_heavy_hog_pinned_or_late_has_its_cpu() {
    let mut pinned = hogs(&[-20, 0, 0, 0]);
    pinned[0].cpus = Some("0".to_string());
    let lacked = lacks(&file("2", 4.0, pinned));
    assert!(lacked < 0.01, "pinned: {lacked}");
    let mut late = hogs(&[-20, 0, 0, 0]);
    late[0].start_us = 1_000_000;
    let lacked = lacks(&file("2", 4.0, late)) - 0.25;
    assert!(lacked.abs() < 0.01, "late: {lacked}");
}

/// Was .5 (one of them had a CPU for good): 4 ms of nice 19 are 270 ms of its clock.
#[test]
fn one_light_hog_more_than_cpus() {
    let error = worst("2", 4.0, &[19; 3], &[1.0; 3]);
    println!("3 hogs of nice 19 on 2 CPUs: {error:.4}");
    assert!(error < ROTATION_ERROR, "{error}");
}

/// A crowd that may run nowhere else keeps its CPU: the others have more elsewhere.
/// Was .60 to .66.
#[test]
fn a_pinned_crowd_keeps_its_cpu() {
    for seed in 1..=5 {
        let mut file = pinned_crowd();
        file.seed = Some(seed);
        let (result, _) = check(&file, Variant::lease(), |machine| {
            ran(machine)[0] / machine.now as f64
        });
        let crowd = result.unwrap_or_else(|text| panic!("{text}"));
        println!("6 pinned hogs beside 4 free ones on 4 CPUs: {crowd:.4}");
        assert!((crowd - 1.0).abs() < 0.02, "{crowd}");
    }
}

/// A tick's worth of time for nice 19 is owed to nice -20 for 23 s, and the
/// kernel's watchdog ejects after 30: once the light task has waited 3 s, it
/// runs out of turn.
#[test]
fn the_lightest_beside_the_heaviest_waits_seconds_at_most() {
    let file = file("1", 20.0, hogs(&[-20, 19]));
    let (result, _) = check(&file, Variant::lease(), |machine| {
        (machine.stats.groups[1].wait.max(), ran(machine))
    });
    let (longest, ran) = result.unwrap_or_else(|text| panic!("{text}"));
    println!("nice 19 waited for {} ms at most", longest / 1_000_000);
    assert!(longest < 4_500_000_000, "{longest}");
    // Out of turn, not out of proportion.
    assert!(ran[1] * 100.0 < ran[0], "{ran:?}");
}
