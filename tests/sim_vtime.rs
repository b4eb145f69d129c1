// SPDX-License-Identifier: GPL-2.0-only
//! The arithmetic of `vtime.h` and the policy, for any arguments.

use proptest::prelude::*;
use scx_fulcrum::sim::ffi::{Ask, Weight, moment};
use scx_fulcrum::sim::variants::Variant;

const MS: u64 = 1_000_000;
/// The kernel's weights of nice -20..=19, from include/linux/sched/prio.h.
const KERNEL: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

fn weight(nice: i32) -> Weight {
    (Variant::lease().arithmetic().weight)(120 + nice, 0)
}

#[test]
fn weights_are_the_kernels_and_their_inverses_fit() {
    for (index, &expected) in KERNEL.iter().enumerate() {
        let found = weight(index as i32 - 20);
        assert_eq!(found.weight, expected);
        let exact = (1u64 << 32) as f64 / f64::from(expected);
        assert!((found.inv as f64 / exact - 1.0).abs() < 1e-4);
    }
    let idle = (Variant::lease().arithmetic().weight)(120, 5);
    assert_eq!((idle.weight, idle.inv), (3, 1_431_655_765));
    // Real-time and odd priorities count as the nearest nice level.
    assert_eq!(weight(-120).weight, KERNEL[0]);
    assert_eq!(weight(1000).weight, KERNEL[39]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn virtual_time_runs_at_one_over_weight(ns in 0u64..1 << 33, nice in -20i32..20) {
        let weight = weight(nice);
        let scaled = (Variant::lease().arithmetic().scale)(ns, weight.inv) as f64;
        let exact = ns as f64 * 1024.0 / f64::from(weight.weight);
        prop_assert!((scaled - exact).abs() <= exact * 1e-4 + 1.0);
    }

    #[test]
    fn order_holds_wherever_clocks_are(start: u64, apart in 1u64..1 << 63) {
        let variant = Variant::lease();
        let a = variant.arithmetic();
        let later = start.wrapping_add(apart);
        prop_assert!((a.before)(start, later));
        prop_assert!(!(a.before)(later, start));
        prop_assert!(!(a.before)(start, start));
        prop_assert_eq!((a.max)(start, later), later);
        prop_assert_eq!((a.max)(later, start), later);
    }

    #[test]
    fn bounds_hold_across_the_wrap(clock: u64, off in -(1i64 << 60)..1 << 60,
                                   behind in 0u64..1 << 40, ahead in 0u64..1 << 40) {
        let variant = Variant::lease();
        let v = clock.wrapping_add_signed(off);
        let bound = (variant.arithmetic().bound)(v, clock, behind, ahead);
        let found = bound.wrapping_sub(clock) as i64;
        prop_assert_eq!(found, off.clamp(-(behind as i64), ahead as i64));
    }

    #[test]
    fn carry_keeps_the_drift_and_is_odd(from: u64, far in -(1i64 << 61)..1 << 61, bits in 0u32..40) {
        let apart = far >> bits;
        let variant = Variant::lease();
        let carry = variant.arithmetic().carry;
        let to = from.wrapping_add_signed(apart);
        let (drift, strangers) = (12 * MS as i64, 100 * MS as i64);
        let kept = if apart.abs() > strangers { 0 } else { drift };
        let expected = apart - apart.clamp(-kept, kept);
        prop_assert_eq!(carry(from, to), expected);
        prop_assert_eq!(carry(to, from), -expected);
    }

    #[test]
    fn reweight_keeps_the_lag_in_cpu_time(clock: u64, lag_us in -30_000i64..30_000,
                                          from in -20i32..20, to in -20i32..20) {
        let (from, to) = (weight(from), weight(to));
        let variant = Variant::lease();
        let lag = lag_us * 1000 * 1024 / i64::from(from.weight);
        let v = clock.wrapping_add_signed(-lag);
        let after = (variant.arithmetic().reweight)(v, clock, from, to);
        let found = clock.wrapping_sub(after) as i64 as f64;
        let expected = lag as f64 * f64::from(from.weight) / f64::from(to.weight);
        // The inverses are that precise, and times are whole nanoseconds of CPU time.
        let error = expected.abs() * 1e-4 + 1024.0 / f64::from(to.weight);
        prop_assert!((found - expected).abs() <= error + 1.0, "{found} {expected}");
    }

    /// Weights down to 1/16, as cgroups make them.
    #[test]
    fn reweight_is_exact_for_fractions_too(clock: u64, lag_us in -30_000i64..30_000,
                                           from in 1u32..400_000, to in 1u32..400_000) {
        let variant = Variant::lease();
        let a = variant.arithmetic();
        let weight = |sixteenths: u32| Weight {
            inv: (16u64 << 32) / u64::from(sixteenths),
            weight: (sixteenths / 16).max(1),
            pad: 0,
        };
        let lag = (a.scale)(lag_us.unsigned_abs() * 1000, weight(from).inv) as i64 * lag_us.signum();
        let after = (a.reweight)(clock.wrapping_add_signed(-lag), clock, weight(from), weight(to));
        let found = clock.wrapping_sub(after) as i64 as f64;
        let expected = lag as f64 * f64::from(from) / f64::from(to);
        let error = expected.abs() * 0.01 + 16.0 * 1024.0 / f64::from(to);
        prop_assert!((found - expected).abs() <= error + 1.0, "{found} {expected}");
    }

    #[test]
    fn requests_stay_within_their_bounds(estimate in 0u64..1 << 33, burst in 0u64..1 << 33,
                                         slice in 100_000u64..100 * MS, nice in -20i32..20) {
        let weight = weight(nice);
        let variant = Variant::lease();
        let a = variant.arithmetic();
        let burst = (a.burst)(estimate.min(6 * MS), burst);
        let mut ask = Ask { v: 0, clock: 0, burst, request: 0, slice, weight, level: 0, mixed: 0 };
        (a.answer)(0, &mut ask, moment::WAKES);
        prop_assert!((50_000..=6 * MS).contains(&ask.request));
        (a.answer)(0, &mut ask, moment::USED_UP);
        prop_assert!(ask.request >= 100_000 && ask.request <= (2 * slice).max(100_000));
    }
}
