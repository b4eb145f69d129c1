// SPDX-License-Identifier: GPL-2.0-only
//! What each task ought to get: the kernel's nice weights, ideal shares of
//! several CPUs, and how far a measured share is from its ideal.

/// The kernel's weight of each nice level, from nice -20 to nice 19
/// (`sched_prio_to_weight`).
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

pub fn weight(nice: i32) -> u32 {
    WEIGHTS[(nice.clamp(-20, 19) + 20) as usize]
}

/// How many CPUs each of some endless tasks ought to get: by weight, except
/// that no task can use more than one CPU; what it can't use goes to the
/// others, again by weight.
pub fn ideal_cpus(weights: &[u32], cpus: usize) -> Vec<f64> {
    let mut ideal = vec![0.0; weights.len()];
    let mut open: Vec<usize> = (0..weights.len()).collect();
    let mut left = cpus.min(weights.len()) as f64;
    loop {
        let sum: f64 = open.iter().map(|&i| f64::from(weights[i])).sum();
        let part = |i: usize| left * f64::from(weights[i]) / sum;
        let (full, rest): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|&&i| part(i) > 1.0 + 1e-12);
        if full.is_empty() {
            for i in open {
                ideal[i] = part(i);
            }
            return ideal;
        }
        for &i in &full {
            ideal[i] = 1.0;
        }
        left -= full.len() as f64;
        open = rest;
    }
}

/// Each value as a part of their sum.
pub fn shares(values: &[f64]) -> Vec<f64> {
    let sum: f64 = values.iter().sum();
    let sum = if sum > 0.0 { sum } else { 1.0 };
    values.iter().map(|v| v / sum).collect()
}

/// The largest |share / ideal - 1|.
pub fn worst_error(shares: &[f64], ideals: &[f64]) -> f64 {
    shares
        .iter()
        .zip(ideals)
        .map(|(s, i)| (s / i - 1.0).abs())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_nice_level_is_about_a_quarter() {
        assert_eq!(weight(0), 1024);
        assert_eq!(weight(-20), 88761);
        assert_eq!(weight(19), 15);
        for nice in -20..19 {
            let ratio = f64::from(weight(nice)) / f64::from(weight(nice + 1));
            assert!((1.17..1.30).contains(&ratio), "nice {nice}: {ratio}");
        }
    }

    #[test]
    fn one_cpu_is_divided_by_weight() {
        let ideal = ideal_cpus(&[3121, 1024, 335, 110], 1);
        assert!((ideal.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((ideal[0] - 3121.0 / 4590.0).abs() < 1e-9);
    }

    #[test]
    fn no_task_gets_more_than_a_cpu() {
        // The heavy one would be due 1.9 of the 2 CPUs.
        assert_eq!(ideal_cpus(&[88761, 1024, 1024], 2), vec![1.0, 0.5, 0.5]);
        assert_eq!(ideal_cpus(&[1024, 1024], 8), vec![1.0, 1.0]);
        let thirds = ideal_cpus(&[1024; 3], 2);
        assert!(thirds.iter().all(|c| (c - 2.0 / 3.0).abs() < 1e-9));
    }

    #[test]
    fn a_scheduler_without_weights_is_found_out() {
        let ideal = shares(&ideal_cpus(&[weight(0), weight(5)], 1));
        assert!(worst_error(&[0.5, 0.5], &ideal) > 0.9);
        assert!(worst_error(&ideal, &ideal) < 1e-12);
    }

    #[test]
    fn a_starved_task_is_an_error_of_one() {
        let ideal = shares(&ideal_cpus(&[1024, 1024], 1));
        assert_eq!(worst_error(&[1.0, 0.0], &ideal), 1.0);
        assert_eq!(shares(&[0.0, 0.0]), vec![0.0, 0.0]);
    }
}
