// SPDX-License-Identifier: GPL-2.0-only
//! Histograms of waits as the BPF program counts them (`bpf/hist.h`): 16
//! buckets of 1,024 ns, then 8 to an octave, so that a bucket's width is at
//! most an eighth of what is in it. The last one holds all from 4.0 s on.

use serde::{Deserialize, Serialize};

/// Buckets of a histogram.
pub const BUCKETS: usize = 160;

const LINEAR: usize = 16;
const LINEAR_BITS: u32 = 10;
const PER_OCTAVE: usize = 8;

/// The time in nanoseconds below which bucket `index` lies; `u64::MAX` for the
/// last, which has no end.
pub const fn below_ns(index: usize) -> u64 {
    if index + 1 >= BUCKETS {
        return u64::MAX;
    }
    if index < LINEAR {
        return (index as u64 + 1) << LINEAR_BITS;
    }
    let octave = (index - LINEAR) / PER_OCTAVE;
    let step = (index - LINEAR) % PER_OCTAVE;
    ((PER_OCTAVE + step + 1) as u64) << (LINEAR_BITS + 1 + octave as u32)
}

/// Waits by length. Only buckets that hold something are kept, shortest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    /// Pairs: a time in nanoseconds, and how many waits were shorter than it
    /// but no shorter than the bucket before (see [`below_ns`]).
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// From one count per bucket, as the BPF program keeps them.
    pub fn of(counts: &[u64]) -> Self {
        let filled = counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        Self {
            buckets: filled.map(|(at, &count)| (below_ns(at), count)).collect(),
        }
    }

    /// Waits counted.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The time in microseconds that the part `q` (0 to 1) of all waits did
    /// not exceed: the upper end of the bucket. 0 if nothing was counted.
    pub fn quantile_us(&self, q: f64) -> f64 {
        let wanted = (self.count() as f64 * q.clamp(0.0, 1.0)).ceil().max(1.0);
        let mut seen = 0.0;
        for &(below, count) in &self.buckets {
            seen += count as f64;
            if seen >= wanted {
                return end_us(below);
            }
        }
        0.0
    }

    /// The upper end of the last bucket that holds something, in microseconds.
    pub fn max_us(&self) -> f64 {
        self.buckets.last().map_or(0.0, |&(below, _)| end_us(below))
    }

    /// With the waits of `other` too.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = std::collections::BTreeMap::new();
        for &(below, count) in self.buckets.iter().chain(&other.buckets) {
            let entry = sum.entry(below).or_insert(0_u64);
            *entry = entry.saturating_add(count);
        }
        Self {
            buckets: sum.into_iter().collect(),
        }
    }
}

/// The last bucket has no end: its beginning is what is known.
fn end_us(below_ns: u64) -> f64 {
    let ns = if below_ns == u64::MAX {
        self::below_ns(BUCKETS - 2)
    } else {
        below_ns
    };
    (ns as f64 / 100.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::variants::Variant;

    #[test]
    fn the_program_counts_a_wait_in_the_bucket_that_is_said_to_hold_it() {
        let variant = Variant::lease();
        let bucket = variant.arithmetic().hist_bucket;
        let fits = |wait: u32| {
            let index = bucket(wait) as usize;
            let ns = u64::from(wait) << LINEAR_BITS;
            let begins = index.checked_sub(1).map_or(0, below_ns);
            assert!(index < BUCKETS, "{wait}");
            assert!(begins <= ns && ns < below_ns(index), "{wait}: {index}");
        };
        (0..1 << 17).for_each(fits);
        for bit in 17..32 {
            for eighth in 0..8 {
                let edge = (8 + eighth) << (bit - 3);
                (edge - 2..=edge + 2).for_each(fits);
            }
        }
        fits(u32::MAX);
    }

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        assert_eq!(below_ns(0), 1024);
        assert_eq!(below_ns(15), 16_384);
        assert_eq!(below_ns(16), 18_432);
        let mut start = 0;
        for index in 0..BUCKETS - 1 {
            let end = below_ns(index);
            assert!(end > start);
            assert!(
                index < LINEAR || end - start <= start.div_ceil(8),
                "{index}"
            );
            start = end;
        }
        assert_eq!(start, 15 << 28);
        assert_eq!(below_ns(BUCKETS - 1), u64::MAX);
    }

    #[test]
    fn quantiles_are_bucket_ends() {
        let mut counts = [0; BUCKETS];
        counts[1] = 98;
        counts[16] = 1;
        counts[BUCKETS - 1] = 1;
        let histogram = Histogram::of(&counts);
        assert_eq!(histogram.count(), 100);
        assert_eq!(histogram.quantile_us(0.5), 2.0);
        assert_eq!(histogram.quantile_us(0.99), 18.4);
        assert_eq!(histogram.max_us(), 4_026_531.8);
        assert_eq!(Histogram::default().quantile_us(0.5), 0.0);
        let double = histogram.plus(&histogram);
        assert_eq!(double.count(), 200);
        assert_eq!(double.quantile_us(0.99), 18.4);
    }
}
