// SPDX-License-Identifier: GPL-2.0-only
//! Whether a new result got worse than the committed one.

use super::result::{Outcome, Series};
use super::rows::{self, Better, Figure, Kind};
use super::stats::{median, spread};

/// How much worse than the committed median plus its spread is allowed: a
/// part of the ratio, or an amount of a share.
const SLACK: f64 = 0.03;
const SHARE_SLACK: f64 = 0.002;

/// What is compared of a series: ratios to EEVDF's of the same boot. Shares
/// are compared as they are, because EEVDF's error can be near 0; so is what
/// EEVDF has none of.
fn compared<'a>(figure: &Figure, series: &'a Series) -> &'a [f64] {
    match figure.kind {
        Kind::Share => &series.values,
        _ if series.ratios.is_empty() => &series.values,
        Kind::Throughput | Kind::Latency => &series.ratios,
    }
}

/// All that a committed run knows of a figure, its second run's values too:
/// boots differ, and so what two boots had belongs to its spread.
fn known(committed: &Outcome, figure: &Figure, scheduler: &str) -> Vec<f64> {
    [Some(committed), committed.again.as_deref()]
        .into_iter()
        .flatten()
        .filter_map(|run| run.series(&figure.key(), scheduler))
        .flat_map(|series| compared(figure, series).iter().copied())
        .collect()
}

/// A line if `now` is worse than what is known by more than its spread and the
/// slack.
fn verdict(figure: &Figure, known: &[f64], now: f64) -> Option<String> {
    let (before, spread) = (median(known)?, spread(known));
    let by = match figure.better {
        Better::Less => now - before,
        Better::More => before - now,
    };
    let (what, slack) = match figure.kind {
        Kind::Share => ("", SHARE_SLACK),
        Kind::Throughput | Kind::Latency => ("ratio to EEVDF ", SLACK * before),
    };
    (by > spread + slack).then(|| {
        format!(
            "{}: {what}was {before:.4} (spread {spread:.4}), now {now:.4}",
            figure.key()
        )
    })
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
        let known = known(committed, figure, scheduler);
        if known.is_empty() {
            continue;
        }
        count += 1;
        let series = now.series(&key, scheduler);
        match series.and_then(|s| median(compared(figure, s))) {
            None => lines.push(format!("{key}: no longer measured")),
            Some(now) => lines.extend(verdict(figure, &known, now)),
        }
    }
    (lines, count)
}

#[cfg(test)]
mod tests {
    use super::super::record::EEVDF;
    use super::super::result::tests::run_of;
    use super::*;

    /// A run of ours with these ratios to EEVDF's, which are its values too.
    fn with(key: &str, ratios: &[f64]) -> Outcome {
        let mut run = run_of(key, [11.0, 13.0]);
        for series in run.series.iter_mut().filter(|s| s.scheduler == "fulcrum") {
            series.ratios = ratios.to_vec();
            series.values = ratios.to_vec();
        }
        run
    }

    fn found(key: &str, before: &[f64], now: f64) -> usize {
        let (lines, count) = worse(&with(key, &[now]), &with(key, before), "fulcrum");
        assert_eq!(count, 1);
        lines.len()
    }

    #[test]
    fn worse_than_spread_and_slack_is_found() {
        // Median .9, spread .02, slack .027.
        let before = [0.89, 0.9, 0.91];
        for (now, worse) in [(0.5, 0), (0.946, 0), (0.948, 1), (2.0, 1)] {
            assert_eq!(found("T1 trip", &before, now), worse, "{now}");
            assert_eq!(found("L1 p99", &before, now), worse, "{now}");
        }
    }

    #[test]
    fn more_is_better_where_the_row_says_so() {
        let before = [1.0, 1.0, 1.0];
        let all = [2.0, 0.971, 0.969].map(|now| found("T5 loops", &before, now));
        assert_eq!(all, [0, 0, 1]);
    }

    #[test]
    fn shares_are_compared_as_they_are() {
        let committed = run_of("F1 error", [0.001, 0.001]);
        let of = |e| worse(&run_of("F1 error", [e, e]), &committed, "fulcrum").0;
        assert_eq!(of(0.0029).len(), 0);
        assert_eq!(of(0.0031).len(), 1);
    }

    #[test]
    fn what_a_second_boot_had_belongs_to_the_spread() {
        let mut committed = with("L1 p50", &[0.2, 0.2]);
        let now = with("L1 p50", &[0.28]);
        assert_eq!(worse(&now, &committed, "fulcrum").0.len(), 1);
        committed.again = Some(Box::new(with("L1 p50", &[0.3, 0.2])));
        assert_eq!(worse(&now, &committed, "fulcrum").0.len(), 0);
    }

    #[test]
    fn a_figure_that_is_gone_is_worse() {
        let committed = run_of("T1 trip", [10.0, 12.0]);
        let mut now = committed.clone();
        now.series.retain(|s| s.scheduler == EEVDF);
        assert_eq!(worse(&now, &committed, "fulcrum").0.len(), 1);
    }
}
