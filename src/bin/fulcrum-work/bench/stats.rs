// SPDX-License-Identifier: GPL-2.0-only
//! Medians and spreads of a few repeats.

/// The middle value, or the mean of the two in the middle. None of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some((lower + upper) / 2.0)
}

/// From the least to the greatest. 0 of fewer than two.
pub fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (most - least).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn spreads_are_from_end_to_end() {
        assert_eq!(spread(&[]), 0.0);
        assert_eq!(spread(&[3.0]), 0.0);
        assert_eq!(spread(&[3.0, 1.0, 2.5]), 2.0);
    }
}
