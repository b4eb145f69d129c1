// SPDX-License-Identifier: GPL-2.0-only
//! Whether the rows can fail: for each, the scheduler that does it badly. A
//! row at which nobody does badly would show nothing.

use super::result::{Outcome, Series};
use super::rows::{CASES, Figure, Part, Target};
use super::words::{OURS, cell};
use std::fmt::Write;

/// Somebody who misses a target.
struct Witness<'a> {
    run: &'a Outcome,
    series: &'a Series,
    target: Target,
    /// Named in the row as known to be bad at it.
    named: bool,
    /// How many times as bad as what is wanted.
    by: f64,
}

/// How many times as bad as the target a figure is.
fn excess(target: Target, value: f64, ratio: f64) -> f64 {
    // Without a miss nothing can be divided by: more than none is enough.
    let times = |value: f64, bound: f64| {
        if bound > 0.0 {
            value / bound
        } else {
            1.0 + value
        }
    };
    match target {
        Target::AtMost(bound) => times(value, bound),
        Target::AtLeast(bound) => times(bound, value),
        Target::RatioAtMost(bound) => times(ratio, bound),
        Target::RatioAtLeast(bound) => times(bound, ratio),
    }
}

fn witness<'a>(run: &'a Outcome, series: &'a Series, figure: &Figure) -> Option<Witness<'a>> {
    let target = figure.target(run.cpus)?;
    // EEVDF is what ratios are to.
    let ratio = series.ratio.unwrap_or(1.0);
    let bad = target.met(series.median, Some(ratio)) == Some(false);
    bad.then(|| Witness {
        run,
        series,
        target,
        named: figure.bad.contains(&series.scheduler.as_str()),
        by: excess(target, series.median, ratio),
    })
}

/// The one to show: of those that are known to be bad the worst, else the worst
/// of all. Our default policy is not one of them.
fn shown_for<'a>(runs: &[&'a Outcome], figure: &Figure) -> Option<Witness<'a>> {
    runs.iter()
        .flat_map(|run| run.series.iter().map(move |series| (*run, series)))
        .filter(|(_, series)| series.key == figure.key())
        .filter(|(_, series)| series.scheduler != OURS)
        .filter_map(|(run, series)| witness(run, series, figure))
        .max_by(|a, b| {
            (a.named, a.by)
                .partial_cmp(&(b.named, b.by))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
}

/// Who a column is: in the run of the policies, each is ours with one of them.
fn who(run: &Outcome, scheduler: &str) -> String {
    match run.header.part {
        Part::Policies if scheduler != super::record::EEVDF => format!("our policy {scheduler}"),
        _ => scheduler.to_string(),
    }
}

/// One table over all runs.
pub fn table(runs: &[&Outcome]) -> String {
    let mut text = String::from(
        "| row | known to be bad | who is shown to be | its figure | CPUs | the target |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let (mut shown, mut all) = (0, 0);
    for case in CASES.iter().filter(|c| c.part == Part::Targets) {
        for figure in case.figures {
            if !runs.iter().any(|run| run.keys().contains(&figure.key())) {
                continue;
            }
            all += 1;
            _ = write!(text, "| {} | {} | ", figure.key(), figure.bad.join(", "));
            match shown_for(runs, figure) {
                Some(w) => {
                    shown += 1;
                    let cell = cell(figure, Some(w.series));
                    let who = who(w.run, &w.series.scheduler);
                    _ = writeln!(text, "{who} | {cell} | {} | {} |", w.run.cpus, w.target);
                }
                None => {
                    text.push_str("**nobody measured here** | | | |\n");
                }
            }
        }
    }
    _ = writeln!(
        text,
        "\n{shown} of {all} rows have somebody who is bad at them."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::run_of;
    use super::*;

    #[test]
    fn who_misses_the_target_is_named_and_we_are_not() {
        let text = table(&[&run_of("F1 error", [99.0, 99.0])]);
        assert!(
            text.contains("| EEVDF | 12.0 ± 4.00 | 2 | ≤ 0.001 |"),
            "{text}"
        );
        assert!(text.contains("1 of 1 rows"), "{text}");
    }

    #[test]
    fn a_row_that_nobody_misses_is_said_to_show_nothing() {
        let mut run = run_of("F1 error", [0.0, 0.0]);
        for series in &mut run.series {
            series.median = 0.0;
        }
        let text = table(&[&run]);
        assert!(text.contains("**nobody measured here**"), "{text}");
        assert!(text.contains("0 of 1 rows"), "{text}");
    }

    #[test]
    fn who_is_known_to_be_bad_comes_before_who_happens_to_be_worse() {
        let mut run = run_of("F3 error", [0.0, 0.0]);
        let mut other = run.series[0].clone();
        (other.scheduler, other.median) = ("scx_x".to_string(), 1000.0);
        run.series.push(other);
        let named = |text: &str| text.contains("| EEVDF | EEVDF | ");
        assert!(named(&table(&[&run])));
        run.series.retain(|s| s.scheduler != "EEVDF");
        assert!(table(&[&run]).contains("| EEVDF | scx_x | "));
    }

    #[test]
    fn distances_to_targets_of_all_kinds() {
        assert_eq!(excess(Target::AtMost(2.0), 6.0, 1.0), 3.0);
        assert_eq!(excess(Target::AtMost(0.0), 0.5, 1.0), 1.5);
        assert_eq!(excess(Target::AtLeast(6.0), 2.0, 1.0), 3.0);
        assert_eq!(excess(Target::RatioAtMost(0.5), 9.0, 1.0), 2.0);
        assert_eq!(excess(Target::RatioAtLeast(1.0), 9.0, 0.5), 2.0);
    }
}
