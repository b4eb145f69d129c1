// SPDX-License-Identifier: GPL-2.0-only
//! How figures are written, in every table alike.

use super::result::Series;
use super::rows::{Figure, Kind};

/// What we are called in results.
pub const OURS: &str = "fulcrum";

/// Three digits that mean something.
pub fn shown(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

pub fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => shown(value),
        unit => format!("{} {unit}", shown(value)),
    }
}

/// A scheduler's cell: its value, and its ratio where one says something.
pub fn cell(figure: &Figure, series: Option<&Series>) -> String {
    let Some(series) = series else {
        return "failed".to_string();
    };
    let value = with_unit(series.median, figure.unit);
    let several = series.values.len() > 1;
    let ratio = series.ratio.zip(series.ratio_spread);
    match ratio.filter(|_| figure.kind != Kind::Share) {
        Some((ratio, spread)) if several => format!("{value}, {ratio:.3} x ± {spread:.3}"),
        Some((ratio, _)) => format!("{value}, {ratio:.3} x"),
        None if several => format!("{value} ± {}", shown(series.spread)),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_fit_the_value() {
        let all: Vec<String> = [0.0, 0.00084, 0.25, 1.0, 38.46, 12543.2].map(shown).into();
        assert_eq!(all, ["0.00", "0.0008", "0.2500", "1.00", "38.5", "12543"]);
    }
}
