// SPDX-License-Identifier: GPL-2.0-only
//! Work that can be asked for by amount: a loop, and how many of its rounds
//! make a microsecond of CPU time.
//!
//! A task that works "until the clock says so" does less work when it is
//! preempted, which would hide exactly what we measure. So an amount is a
//! number of rounds, calibrated against CPU time once; or, where CPUs take
//! turns on one clock and so run at half their speed when both are busy, CPU
//! time by the task's own clock, which stands still while it doesn't run.

use crate::clock;
use std::hint::black_box;

/// Rounds of one chunk of an endless worker: a few ten microseconds at most,
/// so that it sees a stop request soon.
pub const CHUNK: u64 = 10_000;

/// Do `rounds` rounds of work: dependent integer steps that neither the
/// compiler nor the CPU can shorten.
#[inline(never)]
pub fn spin(rounds: u64) -> u64 {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x)
}

/// Rounds between two looks at the CPU clock: a microsecond or two, so that
/// the time asked for is exceeded by less than a hundredth.
const LOOK: u64 = 100;

/// How much work a task does each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Rounds of the loop.
    Rounds(u64),
    /// Nanoseconds of the task's CPU clock.
    CpuTime(u64),
}

impl Amount {
    /// Do it.
    pub fn spend(self) {
        match self {
            Self::Rounds(rounds) => {
                spin(rounds);
            }
            Self::CpuTime(ns) => {
                let end = clock::thread_cpu() + ns;
                while clock::thread_cpu() < end {
                    spin(LOOK);
                }
            }
        }
    }
}

/// Rounds that make one microsecond of CPU time.
#[derive(Clone, Copy, Debug)]
pub struct Rate(f64);

impl Rate {
    /// As given by the caller, who calibrated before: runs that are compared
    /// with one another must do the same work.
    pub fn given(rounds_per_us: f64) -> Self {
        Self(rounds_per_us)
    }

    /// Measured here: the fastest of several passes, because interrupts and a
    /// stolen CPU only ever make a pass slower.
    pub fn measure() -> Self {
        const ROUNDS: u64 = 400_000;
        const PASSES: usize = 15;
        let best = (0..PASSES)
            .map(|_| {
                let began = clock::thread_cpu();
                spin(ROUNDS);
                clock::thread_cpu() - began
            })
            .min()
            .unwrap_or(1)
            .max(1);
        Self(ROUNDS as f64 * 1000.0 / best as f64)
    }

    pub fn per_us(self) -> f64 {
        self.0
    }

    /// Rounds that make `us` microseconds of CPU time.
    pub fn rounds(self, us: u64) -> Amount {
        Amount::Rounds((us as f64 * self.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least of several passes: what interrupts them only makes them longer.
    fn cpu(amount: Amount) -> f64 {
        (0..9)
            .map(|_| {
                let began = clock::thread_cpu();
                amount.spend();
                clock::thread_cpu() - began
            })
            .min()
            .unwrap() as f64
    }

    #[test]
    fn twice_the_rounds_take_twice_the_cpu_time() {
        let ratio = cpu(Amount::Rounds(2_000_000)) / cpu(Amount::Rounds(1_000_000));
        assert!((1.6..2.4).contains(&ratio), "{ratio}");
    }

    #[test]
    fn calibrated_work_uses_the_cpu_time_asked_for() {
        let ratio = cpu(Rate::measure().rounds(2_000)) / 2_000_000.0;
        assert!((0.6..1.6).contains(&ratio), "{ratio}");
    }

    #[test]
    fn clocked_work_uses_the_cpu_time_asked_for() {
        let ratio = cpu(Amount::CpuTime(2_000_000)) / 2_000_000.0;
        assert!((1.0..1.2).contains(&ratio), "{ratio}");
    }
}
