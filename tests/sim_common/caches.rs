// SPDX-License-Identifier: GPL-2.0-only
//! Clocks that other work drove apart: one hog more than CPUs over two caches, a task
//! that weighs more than it can use, a crowd that may not leave its CPU.
#![allow(dead_code)]

use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{Does, File, GroupSpec};

use super::judge::{judge, ran, share_error, verdict};
use super::{file, group};

const TWO_CACHES: &str = "1x2x2x2";
const CPUS: usize = 8;

fn hogs(start_us: u64) -> impl Iterator<Item = GroupSpec> {
    (0..=CPUS).map(move |_| {
        let mut hog = group("hog", 1, 0, Does::Hog {});
        hog.start_us = start_us;
        hog
    })
}

/// One task alone has run in one of the caches before the hogs start: its clock is
/// far ahead of the other's.
pub fn far_apart(seed: u64) -> File {
    let does = Does::Sleeper {
        run_us: 500_000,
        sleep_us: 40_000_000,
    };
    let mut before = group("before", 1, 0, does);
    before.cpus = Some("0".to_string());
    let mut groups = vec![before];
    groups.extend(hogs(2_000_000));
    let mut file = file(TWO_CACHES, 4.0, groups);
    file.seed = Some(seed);
    file
}

/// The mean over some seeds of the hogs' worst error, or what went wrong.
pub fn mean_error(build: fn(u64) -> File, mut variant: Variant) -> (Result<f64, String>, Variant) {
    const SEEDS: u64 = 4;
    let mut sum = 0.0;
    for seed in 1..=SEEDS {
        let (result, back) = judge(&build(seed), variant, |machine| {
            let ran = ran(machine);
            let hogs = &ran[ran.len() - CPUS - 1..];
            sum += share_error(hogs, &[1.0; CPUS + 1]);
            Ok(())
        });
        variant = back;
        if let Err(text) = result {
            return (Err(text), variant);
        }
    }
    (Ok(sum / SEEDS as f64), variant)
}

/// Was 0.066 when no busy CPU's clock joined that of another cache; now 0.0023.
pub const FAR_APART_ERROR: f64 = 0.004;

/// The judge.
pub fn two_caches(variant: Variant) -> (Result<(), String>, Variant) {
    let (error, variant) = mean_error(far_apart, variant);
    let judged = error.and_then(|error| {
        verdict(error < FAR_APART_ERROR, || {
            format!("shares are off by {error:.4}")
        })
    });
    (judged, variant)
}

/// A hog that weighs far more than three others, on two CPUs.
pub fn heavy() -> File {
    let hog = |nice| group("hog", 1, nice, Does::Hog {});
    file("2", 4.0, vec![hog(-20), hog(0), hog(0), hog(0)])
}

/// It has one of them. Was .07 off, at worst.
pub fn heavy_has_a_cpu(variant: Variant) -> (Result<(), String>, Variant) {
    judge(&heavy(), variant, |machine| {
        let lacks = 1.0 - ran(machine)[0] / machine.now as f64;
        verdict(lacks < 0.01, || format!("it lacks {lacks:.4} CPUs"))
    })
}

/// Six hogs that may run on one of four CPUs only, and four that may run on all.
pub fn pinned_crowd() -> File {
    let mut groups = vec![group("crowd", 6, 0, Does::Hog {})];
    groups[0].cpus = Some("0".to_string());
    groups.push(group("free", 4, 0, Does::Hog {}));
    file("4", 4.0, groups)
}

/// The crowd has that CPU, as the others have more elsewhere. Was .60 to .66.
pub fn crowd_keeps_its_cpu(variant: Variant) -> (Result<(), String>, Variant) {
    judge(&pinned_crowd(), variant, |machine| {
        let crowd = ran(machine)[0] / machine.now as f64;
        verdict((crowd - 1.0).abs() < 0.02, || {
            format!("the crowd has {crowd:.4} CPUs")
        })
    })
}
