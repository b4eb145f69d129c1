// SPDX-License-Identifier: GPL-2.0-only
//! Sets of CPUs, laid out as C's `struct cpumask`.

/// 64-bit words of a CPU mask: 4,096 CPUs.
pub const MASK_WORDS: usize = 64;

/// `struct cpumask`.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuMask {
    /// One bit a CPU.
    pub bits: [u64; MASK_WORDS],
}

impl CpuMask {
    /// No CPU.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            bits: [0; MASK_WORDS],
        }
    }

    /// CPUs 0 to `n` - 1.
    #[must_use]
    pub fn first(n: usize) -> Self {
        let mut mask = Self::empty();
        (0..n).for_each(|cpu| mask.set(cpu));
        mask
    }

    /// Exactly `cpu`.
    #[must_use]
    pub fn one(cpu: usize) -> Self {
        let mut mask = Self::empty();
        mask.set(cpu);
        mask
    }

    /// Is `cpu` in it?
    #[must_use]
    pub const fn has(&self, cpu: usize) -> bool {
        self.bits[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// Adds `cpu`.
    pub const fn set(&mut self, cpu: usize) {
        self.bits[cpu / 64] |= 1 << (cpu % 64);
    }

    /// Removes `cpu`.
    pub const fn clear(&mut self, cpu: usize) {
        self.bits[cpu / 64] &= !(1 << (cpu % 64));
    }

    /// How many CPUs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bits
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.bits.iter().enumerate().flat_map(|(index, &word)| {
            std::iter::successors(Some(word), |rest| Some(rest & (rest - 1)))
                .take_while(|rest| *rest != 0)
                .map(move |rest| index * 64 + rest.trailing_zeros() as usize)
        })
    }
}

/// Every union of masks: which masks lie within it, and its CPUs.
pub(super) fn unions(masks: &[CpuMask]) -> Vec<(Vec<usize>, f64)> {
    (1u32..1 << masks.len())
        .map(|set| {
            let mut all = CpuMask::empty();
            for (index, mask) in masks.iter().enumerate() {
                if set >> index & 1 != 0 {
                    all.bits
                        .iter_mut()
                        .zip(&mask.bits)
                        .for_each(|(a, b)| *a |= b);
                }
            }
            let within = |mask: &CpuMask| mask.bits.iter().zip(&all.bits).all(|(m, a)| m & !a == 0);
            let members = (0..masks.len())
                .filter(|&index| within(&masks[index]))
                .collect();
            (members, all.count() as f64)
        })
        .collect()
}
