// SPDX-License-Identifier: GPL-2.0-only
//! Percentiles of measured times.

use serde::Serialize;

/// Nanoseconds at the usual percentiles (nearest rank), printed as
/// microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

impl Spread {
    /// None of no samples at all.
    pub fn of(mut ns: Vec<u64>) -> Option<Self> {
        ns.sort_unstable();
        let max = *ns.last()?;
        let rank = |q: f64| {
            let at = (q * ns.len() as f64).ceil() as usize;
            us(ns[at.clamp(1, ns.len()) - 1])
        };
        Some(Self {
            p50_us: rank(0.50),
            p90_us: rank(0.90),
            p99_us: rank(0.99),
            p999_us: rank(0.999),
            max_us: us(max),
        })
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "p50 {:.1}  p90 {:.1}  p99 {:.1}  p99.9 {:.1}  max {:.1} us",
            self.p50_us, self.p90_us, self.p99_us, self.p999_us, self.max_us
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let s = Spread::of((1..=1000).rev().map(|n| n * 1000).collect()).unwrap();
        assert_eq!(
            (s.p50_us, s.p90_us, s.p99_us, s.p999_us, s.max_us),
            (500.0, 900.0, 990.0, 999.0, 1000.0)
        );
    }

    #[test]
    fn one_sample_is_every_percentile_and_none_is_none() {
        let s = Spread::of(vec![7_000]).unwrap();
        assert_eq!((s.p50_us, s.p999_us, s.max_us), (7.0, 7.0, 7.0));
        assert_eq!(Spread::of(vec![]), None);
    }
}
