// SPDX-License-Identifier: GPL-2.0-only
//! The policies of ours beside each other: the measured part of
//! `docs/policies.md`.

use super::record::EEVDF;
use super::repeats::{apart, tolerance};
use super::result::{Outcome, Series};
use super::rows::{self, Better, Figure, Kind};
use super::words::{cell, with_unit};
use anyhow::{Context, Result};
use std::cmp::Ordering;
use std::fmt::Write;

const BEGIN: &str =
    "<!-- From here to the end mark: made by scripts/bench --policies --save. -->\n";
const END: &str = "<!-- end of what the script made -->\n";

/// What the others are compared with.
const DEFAULT: &str = "fair";

/// The number that says it: a ratio to EEVDF's where it takes the boot out.
fn number(figure: &Figure, series: &Series) -> f64 {
    match figure.kind {
        Kind::Throughput => series.ratio.unwrap_or(series.median),
        Kind::Share | Kind::Latency => series.median,
    }
}

/// Which of two is better, if they are further apart than two runs may be.
fn compare(figure: &Figure, a: f64, b: f64) -> Ordering {
    if apart(figure, a, b) <= tolerance(figure.kind).0 {
        return Ordering::Equal;
    }
    match figure.better {
        Better::Less => b.total_cmp(&a),
        Better::More => a.total_cmp(&b),
    }
}

fn names(run: &Outcome) -> Vec<String> {
    let ours = |name: &String| name != EEVDF;
    run.schedulers().into_iter().filter(ours).collect()
}

/// Rows by columns; the best of ours, and who is as good, in bold.
fn beside(run: &Outcome) -> String {
    let names = names(run);
    let mut text = format!("| row | what | {EEVDF} | {} |\n", names.join(" | "));
    _ = writeln!(text, "|{}", " --- |".repeat(names.len() + 3));
    for key in run.keys() {
        let Some((case, figure)) = rows::figure(&key) else {
            continue;
        };
        let of = |name: &str| run.series(&key, name);
        let numbers = names.iter().filter_map(|n| of(n));
        let numbers: Vec<f64> = numbers.map(|s| number(figure, s)).collect();
        let best = |s: &Series| {
            let x = number(figure, s);
            numbers.iter().all(|y| compare(figure, x, *y).is_ge())
        };
        let cells: Vec<String> = names
            .iter()
            .map(|name| match of(name) {
                Some(series) if best(series) => format!("**{}**", cell(figure, Some(series))),
                other => cell(figure, other),
            })
            .collect();
        let eevdf = cell(figure, of(EEVDF));
        _ = writeln!(
            text,
            "| {key} | {} | {eevdf} | {} |",
            case.what,
            cells.join(" | ")
        );
    }
    text
}

/// Where a policy is better or worse than the default one.
fn against(run: &Outcome, policy: &str, wanted: Ordering) -> String {
    let mut all = Vec::new();
    for key in run.keys() {
        let of = |name: &str| run.series(&key, name);
        let (Some((_, figure)), Some(it), Some(fair)) =
            (rows::figure(&key), of(policy), of(DEFAULT))
        else {
            continue;
        };
        if compare(figure, number(figure, it), number(figure, fair)) == wanted {
            let shown = |s: &Series| match (figure.kind, s.ratio) {
                (Kind::Throughput, Some(ratio)) => format!("{ratio:.3} x"),
                _ => with_unit(s.median, figure.unit),
            };
            all.push(format!("{key} {} (not {})", shown(it), shown(fair)));
        }
    }
    match all.is_empty() {
        true => "-".to_string(),
        false => all.join("; "),
    }
}

/// Tables of a run of all policies.
pub fn tables(run: &Outcome) -> String {
    let mut text = format!(
        "`{}` on {} CPUs, kernel {}, revision {}. Figures as in\n\
         [benchmarks.md](benchmarks.md): with \"x\" a ratio to {EEVDF}'s of the same boot; bold is the best of ours, and what is no\n\
         further from it than two runs of the same may be (shares 0.002, throughput 2 %, latencies 10 %).\n\n",
        run.header.command, run.header.topology, run.kernel, run.header.revision
    );
    text += &beside(run);
    _ = write!(
        text,
        "\n| policy | where it is better than `{DEFAULT}` | what that costs: where it is worse |\n| --- | --- | --- |\n"
    );
    for policy in names(run).iter().filter(|n| *n != DEFAULT) {
        let (better, worse) = (
            against(run, policy, Ordering::Greater),
            against(run, policy, Ordering::Less),
        );
        _ = writeln!(text, "| `{policy}` | {better} | {worse} |");
    }
    text
}

/// A page with the tables between its two marks.
pub fn put_into(page: &str, run: &Outcome) -> Result<String> {
    let lacks = || format!("the page lacks the line {BEGIN:?} or {END:?}");
    let (before, rest) = page.split_once(BEGIN).with_context(lacks)?;
    let (_, after) = rest.split_once(END).with_context(lacks)?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", tables(run)))
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::run_of;
    use super::*;

    /// Two policies with these values of a figure.
    fn policies(key: &str, fair: f64, fifo: f64) -> Outcome {
        let mut run = run_of(key, [1.0, 1.0]);
        run.series.truncate(1);
        for (name, median) in [("fair", fair), ("fifo", fifo)] {
            let mut series = run.series[0].clone();
            (series.scheduler, series.median, series.values) =
                (name.to_string(), median, vec![median]);
            run.series.push(series);
        }
        run
    }

    #[test]
    fn what_a_policy_wins_and_costs_is_told_from_chance() {
        let text = tables(&policies("L1 p50", 100.0, 120.0));
        assert!(text.contains("| **100 us** | 120 us |"), "{text}");
        assert!(
            text.contains("| `fifo` | - | L1 p50 120 us (not 100 us) |"),
            "{text}"
        );
        let text = tables(&policies("L1 p50", 100.0, 109.0));
        assert!(text.contains("| **100 us** | **109 us** |"), "{text}");
        assert!(text.contains("| `fifo` | - | - |"), "{text}");
        let text = tables(&policies("F6 share", 0.3, 0.5));
        assert!(
            text.contains("| `fifo` | F6 share 0.5000 (not 0.3000) | - |"),
            "{text}"
        );
    }

    #[test]
    fn the_rest_of_a_page_stays() {
        let run = policies("L1 p50", 100.0, 120.0);
        let page = format!("a\n{BEGIN}former\n{END}b\n");
        let new = put_into(&page, &run).unwrap();
        assert!(new.starts_with("a\n") && new.ends_with("b\n") && !new.contains("former"));
        assert_eq!(put_into(&new, &run).unwrap(), new);
        assert!(put_into("a page", &run).is_err());
    }
}
