// SPDX-License-Identifier: GPL-2.0-only
//! Two results compared: whether a new one got worse than the committed one,
//! and whether two runs of the same agree.

use super::record::EEVDF;
use super::result::{Outcome, Series};
use super::rows::{self, Better, Figure, Kind};
use super::table::shown;
use std::fmt::Write;

/// How much worse than the committed median plus its spread is allowed: a
/// part of the ratio, or an amount of a share.
const SLACK: f64 = 0.03;
const SHARE_SLACK: f64 = 0.002;

/// What is compared: shares as they are, because EEVDF's error can be near 0;
/// all else as the ratio to EEVDF of the same boot.
fn compared(figure: &Figure, series: &Series) -> Option<(f64, f64)> {
    match figure.kind {
        Kind::Share => Some((series.median, series.spread)),
        _ => Some((series.ratio?, series.ratio_spread?)),
    }
}

/// What got worse since `committed`, a line each; and how many figures were
/// compared.
pub fn worse(now: &Outcome, committed: &Outcome, scheduler: &str) -> (Vec<String>, usize) {
    let mut lines = Vec::new();
    let mut count = 0;
    for key in now.keys() {
        let Some((_, figure)) = rows::figure(&key) else {
            continue;
        };
        let of = |run: &Outcome| {
            run.series(&key, scheduler)
                .and_then(|s| compared(figure, s))
        };
        let Some((before, spread)) = of(committed) else {
            continue;
        };
        let Some((after, _)) = of(now) else {
            lines.push(format!("{key}: was {}, now nothing", shown(before)));
            continue;
        };
        count += 1;
        let slack = match figure.kind {
            Kind::Share => SHARE_SLACK,
            _ => SLACK * before,
        };
        let by = match figure.better {
            Better::Less => after - before,
            Better::More => before - after,
        };
        if by > spread + slack {
            lines.push(format!(
                "{key}: was {before:.4} (spread {spread:.4}), now {after:.4}: worse by more than spread and {slack:.4}"
            ));
        }
    }
    (lines, count)
}

/// How far two runs of the same may be apart.
fn tolerance(kind: Kind) -> (f64, &'static str) {
    match kind {
        Kind::Share => (0.002, "0.002"),
        Kind::Throughput => (0.02, "2 %"),
        Kind::Latency => (0.10, "10 %"),
    }
}

/// The medians of two runs beside each other, as a table, and whether all are
/// as near as they should be.
pub fn repeats(one: &Outcome, two: &Outcome) -> (String, bool) {
    let mut text = String::from(
        "| row | scheduler | first run | second run | apart | allowed | |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut all = true;
    for series in &one.series {
        let Some((_, figure)) = rows::figure(&series.key) else {
            continue;
        };
        let Some(other) = two.series(&series.key, &series.scheduler) else {
            continue;
        };
        // Ratios for throughput: what the boot does to both cancels out.
        let (a, b) = match (figure.kind, series.ratio, other.ratio) {
            (Kind::Throughput, Some(a), Some(b)) => (a, b),
            _ => (series.median, other.median),
        };
        let (allowed, text_of) = tolerance(figure.kind);
        let apart = match figure.kind {
            Kind::Share => (a - b).abs(),
            _ => (a - b).abs() / a.max(b),
        };
        let fine = apart <= allowed;
        // EEVDF's own fairness and delays vary; ours are asked for.
        all &= fine || series.scheduler == EEVDF;
        let shown_apart = match figure.kind {
            Kind::Share => format!("{apart:.4}"),
            _ => format!("{:.1} %", apart * 100.0),
        };
        _ = writeln!(
            text,
            "| {} | {} | {} | {} | {shown_apart} | {text_of} | {} |",
            series.key,
            series.scheduler,
            shown(a),
            shown(b),
            if fine { "yes" } else { "**no**" },
        );
    }
    (text, all)
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::run_of;
    use super::*;

    #[test]
    fn worse_than_spread_and_slack_is_found() {
        // Ratios .909 and .923: median .916, spread .014, slack .027.
        let committed = run_of("T1 trip", [10.0, 12.0]);
        let same = worse(&run_of("T1 trip", [10.4, 12.4]), &committed, "fulcrum");
        assert_eq!(same, (vec![], 1));
        let (lines, _) = worse(&run_of("T1 trip", [10.7, 12.7]), &committed, "fulcrum");
        assert_eq!(lines.len(), 1, "{lines:?}");
        let better = worse(&run_of("T1 trip", [5.0, 6.0]), &committed, "fulcrum");
        assert_eq!(better, (vec![], 1));
    }

    #[test]
    fn more_is_better_where_the_row_says_so() {
        let committed = run_of("T5 loops", [11.0, 13.0]);
        let (lines, _) = worse(&run_of("T5 loops", [10.0, 12.0]), &committed, "fulcrum");
        assert_eq!(lines.len(), 1);
        let better = worse(&run_of("T5 loops", [20.0, 20.0]), &committed, "fulcrum");
        assert_eq!(better.0.len(), 0);
    }

    #[test]
    fn shares_are_compared_as_they_are() {
        let committed = run_of("F1 error", [0.001, 0.001]);
        let of = |e| worse(&run_of("F1 error", [e, e]), &committed, "fulcrum").0;
        assert_eq!(of(0.0029).len(), 0);
        assert_eq!(of(0.0031).len(), 1);
    }

    #[test]
    fn a_figure_that_is_gone_is_worse() {
        let committed = run_of("T1 trip", [10.0, 12.0]);
        let mut now = committed.clone();
        now.series.retain(|s| s.scheduler == EEVDF);
        assert_eq!(worse(&now, &committed, "fulcrum").0.len(), 1);
    }

    #[test]
    fn runs_that_differ_are_found() {
        let one = run_of("T1 trip", [10.0, 12.0]);
        assert!(repeats(&one, &run_of("T1 trip", [10.1, 12.1])).1);
        assert!(!repeats(&one, &run_of("T1 trip", [10.5, 12.5])).1);
    }
}
