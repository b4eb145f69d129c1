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

/// What is compared: a median and its spread, and what more is allowed.
struct Compared {
    median: f64,
    spread: f64,
    slack: f64,
}

/// The figure itself and, except for shares, its ratio to EEVDF's of the same
/// boot. Not for shares because EEVDF's error can be near 0; and both for the
/// rest, because EEVDF's latencies are not the same from boot to boot.
fn compared(figure: &Figure, series: &Series) -> Vec<Compared> {
    // A few repeats can show less spread than there is between boots.
    let least = match figure.kind {
        Kind::Latency => tolerance(figure.kind).0,
        _ => 0.0,
    };
    let of = |median: f64, spread: f64| Compared {
        median,
        spread: spread.max(least * median),
        slack: match figure.kind {
            Kind::Share => SHARE_SLACK,
            _ => SLACK * median,
        },
    };
    let mut all = vec![of(series.median, series.spread)];
    if figure.kind != Kind::Share {
        let ratio = series.ratio.zip(series.ratio_spread);
        all.extend(ratio.map(|(median, spread)| of(median, spread)));
    }
    all
}

/// Whether `after` is worse than `before` by more than its spread and slack.
fn is_worse(figure: &Figure, before: &Compared, after: &Compared) -> bool {
    let by = match figure.better {
        Better::Less => after.median - before.median,
        Better::More => before.median - after.median,
    };
    by > before.spread + before.slack
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
            let series = run.series(&key, scheduler);
            series.map_or_else(Vec::new, |s| compared(figure, s))
        };
        let (before, after) = (of(committed), of(now));
        if before.is_empty() {
            continue;
        }
        count += 1;
        let pairs = || before.iter().zip(&after);
        if after.len() < before.len() {
            lines.push(format!("{key}: no longer measured"));
        } else if pairs().all(|(b, a)| is_worse(figure, b, a)) {
            let text = |(b, a): (&Compared, &Compared)| {
                format!(
                    "was {:.4} (spread {:.4}), now {:.4}",
                    b.median, b.spread, a.median
                )
            };
            let all: Vec<String> = pairs().map(text).collect();
            lines.push(format!("{key}: {}", all.join("; ratio to EEVDF ")));
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

    /// A run in which ours has this median and ratio, with spreads of 0.1 and
    /// 0.01.
    fn steady(key: &str, median: f64, ratio: f64) -> Outcome {
        let mut run = run_of(key, [11.0, 13.0]);
        for series in run.series.iter_mut().filter(|s| s.scheduler == "fulcrum") {
            (series.median, series.spread) = (median, 0.1);
            (series.ratio, series.ratio_spread) = (Some(ratio), Some(0.01));
        }
        run
    }

    #[test]
    fn worse_than_spread_and_slack_is_found() {
        let committed = steady("T1 trip", 10.0, 0.9);
        let of = |median, ratio| {
            let now = steady("T1 trip", median, ratio);
            let (lines, count) = worse(&now, &committed, "fulcrum");
            assert_eq!(count, 1);
            lines.len()
        };
        assert_eq!((of(10.3, 0.93), of(5.0, 0.4)), (0, 0));
        assert_eq!(of(10.6, 0.95), 1);
    }

    #[test]
    fn latencies_may_differ_as_boots_do() {
        let committed = steady("L1 p50", 70.0, 0.5);
        let of = |median, ratio| {
            let now = steady("L1 p50", median, ratio);
            worse(&now, &committed, "fulcrum").0.len()
        };
        assert_eq!((of(75.0, 0.7), of(80.0, 0.7)), (0, 1));
    }

    #[test]
    fn more_is_better_where_the_row_says_so() {
        let committed = steady("T5 loops", 10.0, 1.0);
        let of = |median, ratio| {
            let now = steady("T5 loops", median, ratio);
            worse(&now, &committed, "fulcrum").0.len()
        };
        assert_eq!((of(9.4, 0.94), of(20.0, 2.0)), (1, 0));
    }

    #[test]
    fn shares_are_compared_as_they_are() {
        let committed = run_of("F1 error", [0.001, 0.001]);
        let of = |e| worse(&run_of("F1 error", [e, e]), &committed, "fulcrum").0;
        assert_eq!(of(0.0029).len(), 0);
        assert_eq!(of(0.0031).len(), 1);
    }

    #[test]
    fn a_lucky_eevdf_alone_is_no_failure() {
        let committed = run_of("L1 p99", [10.0, 12.0]);
        let mut now = committed.clone();
        for series in &mut now.series {
            series.ratio = series.ratio.map(|r| r * 1.5);
        }
        assert_eq!(worse(&now, &committed, "fulcrum"), (vec![], 1));
        for series in &mut now.series {
            series.median *= 1.5;
        }
        assert_eq!(worse(&now, &committed, "fulcrum").0.len(), 1);
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
