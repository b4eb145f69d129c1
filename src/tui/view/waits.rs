// SPDX-License-Identifier: GPL-2.0-only
//! Histograms of waits: one line of cells, or a bar for each range.

use crate::stats::histogram::Histogram;
use crate::tui::canvas::Canvas;
use crate::tui::look::{Look, Role};
use crate::tui::units;

/// Cells of a small histogram: each stands for four times the wait of the one
/// before; the first is all below 4 us.
pub const SMALL: usize = 11;

/// What stands above it: where a microsecond, a millisecond and a second are.
pub const SCALE: &str = "us   ms   s";

/// Counts of waits in `cells` ranges of `factor_bits` octaves each; the first
/// ends at 2^`first` nanoseconds.
fn ranges(waits: &Histogram, cells: usize, first: u32, factor_bits: u32) -> Vec<u64> {
    let mut counts = vec![0_u64; cells];
    for &(below, count) in &waits.buckets {
        // No bucket reaches over a power of two.
        let octave = 64 - below.saturating_sub(1).leading_zeros();
        let at = octave.saturating_sub(first).div_ceil(factor_bits.max(1)) as usize;
        if let Some(slot) = counts.get_mut(at.min(cells.saturating_sub(1))) {
            *slot = slot.saturating_add(count);
        }
    }
    counts
}

/// A histogram in [`SMALL`] cells of one line.
pub fn small(waits: &Histogram, look: Look) -> String {
    let counts = ranges(waits, SMALL, 12, 2);
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let cells = counts.iter().map(|&count| look.level(count as f64 / most));
    cells.collect()
}

/// A histogram with a bar for each range of waits, as many as there are lines.
pub fn tall(canvas: &mut Canvas<'_>, title: &str, waits: &Histogram) {
    canvas.text(0, 0, u16::MAX, title, Role::Head);
    let lines = canvas.height().saturating_sub(1);
    if waits.count() == 0 {
        canvas.text(0, 1, u16::MAX, "none in this interval", Role::Dim);
        return;
    }
    // 2 us to 4 s are 22 octaves.
    let bits = if lines >= 23 { 1 } else { 2 };
    let cells = 22 / bits as usize + 1;
    let counts = ranges(waits, cells, 11, bits);
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let all = waits.count().max(1) as f64;
    let look = canvas.look;
    let width = canvas.width();
    for (at, (y, &count)) in (1..=lines).zip(&counts).enumerate().take(last + 1) {
        let below_us = (2048_u64 << (at as u32 * bits)) as f64 / 1000.0;
        let label = format!("<{}", units::time(below_us, look));
        canvas.ending(7, y, &label, Role::Dim);
        let part = 100.0 * count as f64 / all;
        let text = if count > 0 && part < 0.05 {
            "<0.1%".to_string()
        } else {
            format!("{part:.1}%")
        };
        canvas.ending(14, y, &text, Role::Plain);
        let bar = look.bar(count as f64 / most, width.saturating_sub(15));
        let role = if below_us > 100_000.0 {
            Role::Warn
        } else {
            Role::Accent
        };
        canvas.text(15, y, u16::MAX, &bar, role);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram::{BUCKETS, below_ns};

    const ASCII: Look = Look {
        colour: false,
        unicode: false,
    };

    #[test]
    fn every_wait_is_in_one_range() {
        for bucket in 0..BUCKETS {
            let waits = Histogram {
                buckets: vec![(below_ns(bucket), 7)],
            };
            for (cells, first, bits) in [(SMALL, 12, 2), (12, 11, 2), (23, 11, 1)] {
                let counts = ranges(&waits, cells, first, bits);
                assert_eq!(counts.iter().sum::<u64>(), 7);
            }
            assert_eq!(small(&waits, ASCII).len(), SMALL);
        }
    }

    #[test]
    fn short_waits_are_left_and_long_ones_right() {
        let cell = |below_ns: u64| {
            let waits = Histogram {
                buckets: vec![(below_ns, 1)],
            };
            small(&waits, ASCII).find('#')
        };
        assert_eq!(cell(1024), Some(0));
        assert_eq!(cell(4096), Some(0));
        assert_eq!(cell(5120), Some(1));
        assert_eq!(cell(1 << 20), Some(4));
        assert_eq!(cell(u64::MAX), Some(10));
        assert_eq!(small(&Histogram::default(), ASCII).trim(), "");
    }
}
