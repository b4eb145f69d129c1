// SPDX-License-Identifier: GPL-2.0-only
//! Whether two runs of the same command agree: what a benchmark must do before
//! a difference between two schedulers means anything.

use super::record::EEVDF;
use super::result::{Outcome, Series};
use super::rows::{self, Figure, Kind};
use super::words::shown;
use std::fmt::Write;

/// How far two runs of the same may be apart: of a share in itself, of anything
/// else as a part.
pub fn tolerance(kind: Kind) -> (f64, &'static str) {
    match kind {
        Kind::Share => (0.002, "0.002"),
        Kind::Throughput => (0.02, "2 %"),
        Kind::Latency => (0.10, "10 %"),
    }
}

/// How far two figures are apart, in the terms of `tolerance()`.
pub fn apart(figure: &Figure, a: f64, b: f64) -> f64 {
    let distance = (a - b).abs();
    match figure.kind {
        _ if distance == 0.0 => 0.0,
        // A percentage is a share too.
        Kind::Share if figure.unit == "%" => distance / 100.0,
        Kind::Share => distance,
        Kind::Throughput | Kind::Latency => distance / a.abs().max(b.abs()),
    }
}

/// Two medians of one figure under one scheduler.
struct Pair<'a> {
    figure: &'a Figure,
    scheduler: &'a str,
    a: f64,
    b: f64,
}

impl<'a> Pair<'a> {
    fn of(one: &'a Series, two: &Outcome) -> Option<Self> {
        let (_, figure) = rows::figure(&one.key)?;
        let other = two.series(&one.key, &one.scheduler)?;
        // Ratios for throughput: what the boot does to both cancels out.
        let (a, b) = match (figure.kind, one.ratio, other.ratio) {
            (Kind::Throughput, Some(a), Some(b)) => (a, b),
            _ => (one.median, other.median),
        };
        Some(Self {
            figure,
            scheduler: &one.scheduler,
            a,
            b,
        })
    }

    fn agrees(&self) -> bool {
        apart(self.figure, self.a, self.b) <= tolerance(self.figure.kind).0
    }

    fn line(&self) -> String {
        let (key, scheduler) = (self.figure.key(), self.scheduler);
        let apart = apart(self.figure, self.a, self.b);
        let apart = match self.figure.kind {
            Kind::Share => format!("{apart:.4}"),
            Kind::Throughput | Kind::Latency => format!("{:.1} %", apart * 100.0),
        };
        format!(
            "| {key} | {scheduler} | {} | {} | {apart} | {} | {} |",
            shown(self.a),
            shown(self.b),
            tolerance(self.figure.kind).1,
            if self.agrees() { "yes" } else { "**no**" },
        )
    }
}

/// The medians of two runs beside each other, as a table, and whether all are
/// as near as they should be. EEVDF's own fairness and delays are a matter of
/// chance in some rows; they are shown and counted, and not asked for.
pub fn repeats(one: &Outcome, two: &Outcome) -> (String, bool) {
    let pairs: Vec<Pair<'_>> = one
        .series
        .iter()
        .filter_map(|series| Pair::of(series, two))
        .collect();
    let mut text = format!(
        "Medians of the run above and of a second one in boots of its own, `{}` at {}.\n\
         Throughput as a ratio to EEVDF's. All of ours must agree; what EEVDF does is in some rows a matter of chance.\n\n\
         | row | scheduler | first run | second run | apart | allowed | agree |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
        two.header.command, two.header.revision
    );
    for pair in &pairs {
        _ = writeln!(text, "{}", pair.line());
    }
    let mut fine = true;
    let mut counts = Vec::new();
    for scheduler in two.schedulers() {
        let of: Vec<bool> = pairs
            .iter()
            .filter(|p| p.scheduler == scheduler)
            .map(Pair::agrees)
            .collect();
        let agree = of.iter().filter(|agrees| **agrees).count();
        fine &= agree == of.len() || scheduler == EEVDF;
        counts.push(format!("{agree} of {} figures of {scheduler}", of.len()));
    }
    _ = writeln!(text, "\nThey agree in {}.", counts.join(", in "));
    (text, fine && !pairs.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::run_of;
    use super::*;

    #[test]
    fn runs_that_differ_are_found() {
        let one = run_of("T1 trip", [10.0, 12.0]);
        let (text, fine) = repeats(&one, &run_of("T1 trip", [10.1, 12.1]));
        assert!(fine && text.contains("1 of 1 figures of fulcrum"), "{text}");
        let (text, fine) = repeats(&one, &run_of("T1 trip", [10.5, 12.5]));
        assert!(
            !fine && text.contains("0 of 1 figures of fulcrum"),
            "{text}"
        );
    }

    #[test]
    fn nothing_in_common_is_no_agreement() {
        let one = run_of("T1 trip", [10.0, 12.0]);
        assert!(!repeats(&one, &run_of("T2 trip", [10.0, 12.0])).1);
    }

    #[test]
    fn distances_are_of_the_kind_of_the_row() {
        let of = |key: &str, a, b| apart(rows::figure(key).unwrap().1, a, b);
        assert_eq!(of("F1 error", 0.25, 0.5), 0.25);
        assert_eq!(of("T3 time", 0.5, 1.0), 0.5);
        assert_eq!(of("L3 missed", 0.0, 1.0), 0.01);
        assert_eq!(of("L1 p50", 0.0, 0.0), 0.0);
    }
}
