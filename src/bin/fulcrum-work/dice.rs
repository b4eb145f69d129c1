// SPDX-License-Identifier: GPL-2.0-only
//! Pseudo-random numbers (splitmix64) that are the same in each run.

/// Seeded by what the caller likes.
pub struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A side from 0 on.
    pub fn roll(&mut self, sides: usize) -> usize {
        (self.next() % sides.max(1) as u64) as usize
    }

    /// The time to the next of events that come at random, `mean` apart.
    pub fn wait(&mut self, mean: f64) -> f64 {
        // From 2^-53 to 1, so that the logarithm is finite.
        let part = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -part.ln() * mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_show_every_side() {
        let mut dice = Dice(1);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[dice.roll(5)] += 1;
        }
        assert!(seen.iter().all(|n| (100..300).contains(n)), "{seen:?}");
    }

    #[test]
    fn waits_have_the_mean_asked_for() {
        let mut dice = Dice(1);
        let sum: f64 = (0..10_000).map(|_| dice.wait(3.0)).sum();
        assert!((2.8..3.2).contains(&(sum / 10_000.0)), "{sum}");
    }
}
