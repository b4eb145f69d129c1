// SPDX-License-Identifier: GPL-2.0-only
//! Results as Markdown: `docs/benchmarks.md` is what this prints of
//! `docs/benchmarks.json`, and nothing else.

use super::check;
use super::record::{Cost, EEVDF};
use super::result::{Document, Outcome, Series};
use super::rows::{self, Better, Figure, Kind, Part};
use std::collections::BTreeMap;
use std::fmt::Write;

const OURS: &str = "fulcrum";

const PREFACE: &str = "\
# Benchmarks

Made by `scripts/bench --save` from `docs/benchmarks.json`, which has every single value; not written by hand.

All figures come from a VM whose clock counts instructions ([vm.md](vm.md)): what else the machine does changes nothing, and
nothing here says anything about real caches. Compare columns, not tables: CPUs take turns on one clock, so each busy CPU is
slower the more there are. In one boot, EEVDF runs first, between any two rounds, and last; a ratio is to the mean of
EEVDF's figures before and after. Each figure is the median of the repeats, \"±\" is the distance from the least to the greatest.
F and T rows run with a plain instruction-count clock, L rows under the metronome; they never share a boot.
Kinds of rows: F fairness, L latency, T throughput and overhead.

How to read some of them:

- \"per wakeup\" in the tables of costs: kernel and BPF programs were asked to account for themselves there, which costs time too.
  While only one CPU is busy (1 pair), 2 ns are one instruction; where N are busy, a CPU's ns are up to N times its own work.
- F5 crowd: EEVDF of kernel 7.3 by default counts a group once for each CPU that it could fill (debugfs, `sched/cgroup_mode`);
  the ideal here is by `cpu.weight` alone, which is what EEVDF of 7.2 does, and of 7.3 with the mode `up`.
- F5 change: the shares of 100 ms must be right, so less than that can't be measured; 1500 ms is when the wait is given up.
- L rows: an ordinary task's sleep is 50 us longer than asked for (timer slack), which is in each wakeup delay.
";

/// Three digits that mean something.
pub fn shown(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => shown(value),
        unit => format!("{} {unit}", shown(value)),
    }
}

/// A scheduler's cell: its value, and its ratio where one says something.
fn cell(figure: &Figure, series: Option<&Series>) -> String {
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

/// Targets: number, ours, EEVDF's, met or missed.
fn targets(run: &Outcome) -> String {
    let mut text = String::from(
        "| row | what | target | fulcrum | EEVDF | |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let (mut met, mut all) = (0, 0);
    for key in run.keys() {
        let Some((case, figure)) = rows::figure(&key) else {
            continue;
        };
        let ours = run.series(&key, OURS);
        let Some(target) = figure.target(run.cpus) else {
            continue;
        };
        let verdict = match ours.and_then(|s| target.met(s.median, s.ratio)) {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "**not measured**",
        };
        all += 1;
        met += usize::from(verdict == "met");
        _ = writeln!(
            text,
            "| {key} | {} | {target} | {} | {} | {verdict} |",
            case.what,
            cell(figure, ours),
            cell(figure, run.series(&key, EEVDF)),
        );
    }
    _ = writeln!(text, "\n{met} of {all} met.");
    text
}

/// What rows without targets are.
fn explained(run: &Outcome) -> String {
    let mut text = String::new();
    for key in run.keys() {
        if let Some((case, _)) = rows::figure(&key) {
            _ = writeln!(text, "- {key}: {}", case.what);
        }
    }
    text
}

/// Everybody beside everybody.
fn everybody(run: &Outcome) -> String {
    let schedulers = run.schedulers();
    let mut text = format!("| row | {} |\n", schedulers.join(" | "));
    _ = writeln!(text, "|{}", " --- |".repeat(schedulers.len() + 1));
    for key in run.keys() {
        let Some((_, figure)) = rows::figure(&key) else {
            continue;
        };
        let cells: Vec<String> = schedulers
            .iter()
            .map(|s| cell(figure, run.series(&key, s)))
            .collect();
        _ = writeln!(text, "| {key} | {} |", cells.join(" | "));
    }
    text
}

/// For each figure, who does worst: a row at which nobody does badly would
/// show nothing.
fn can_fail(run: &Outcome) -> String {
    let mut text = String::from(
        "| row | known to be bad | worst here | against the target |\n| --- | --- | --- | --- |\n",
    );
    for key in run.keys() {
        let Some((case, figure)) = rows::figure(&key) else {
            continue;
        };
        let worse = |a: &&Series, b: &&Series| match figure.better {
            Better::Less => a.median.total_cmp(&b.median),
            Better::More => b.median.total_cmp(&a.median),
        };
        let others = run
            .series
            .iter()
            .filter(|s| s.key == key && s.scheduler != OURS);
        let Some(worst) = others.max_by(worse) else {
            continue;
        };
        // EEVDF is what ratios are to.
        let ratio = worst.ratio.or(Some(1.0));
        let target = figure.target(run.cpus);
        let verdict = match target.and_then(|t| t.met(worst.median, ratio)) {
            Some(false) => "shown to be bad",
            Some(true) => "**nobody measured here is bad at it**",
            None => "no target",
        };
        _ = writeln!(
            text,
            "| {key} | {} | {}: {} | {verdict} |",
            case.bad.join(", "),
            worst.scheduler,
            cell(figure, Some(worst)),
        );
    }
    text
}

fn header(run: &Outcome) -> String {
    let mut text = String::new();
    _ = writeln!(text, "- machine: {}", run.header.machine);
    _ = writeln!(text, "- kernel: {}", run.kernel);
    _ = writeln!(text, "- CPUs: {}", run.header.topology);
    _ = writeln!(text, "- revision: {}", run.header.revision);
    for (name, version) in &run.versions {
        _ = writeln!(text, "- {name}: {version}");
    }
    _ = writeln!(text, "- command: `{}`", run.header.command);
    text
}

fn failures(run: &Outcome) -> String {
    let mut text = String::new();
    for failed in &run.failed {
        let rows = match failed.rows.as_str() {
            "" => "loading",
            rows => rows,
        };
        let line = format!("- {}, {rows}: {}\n", failed.scheduler, failed.reason);
        if !text.contains(&line) {
            text.push_str(&line);
        }
    }
    text
}

/// What scheduling costs. The process' figures are those of its last visit.
fn costs(run: &Outcome) -> String {
    let mut by_about: BTreeMap<&str, BTreeMap<&str, &Cost>> = BTreeMap::new();
    for cost in &run.costs {
        let of = by_about.entry(&cost.about).or_default();
        of.insert(&cost.scheduler, cost);
    }
    let mut text = String::new();
    for (about, by_scheduler) in by_about.iter().rev() {
        let mut names: Vec<&str> = by_scheduler.keys().copied().collect();
        names.sort_by_key(|name| (*name != EEVDF, *name != OURS));
        let mut rows: Vec<&str> = Vec::new();
        for cost in names.iter().filter_map(|n| by_scheduler.get(n)) {
            let new = cost.values.keys().map(String::as_str);
            // Programs have names of their own: only ours are shown one by one.
            let new = new.filter(|k| cost.scheduler == OURS || !k.contains(" of "));
            for row in new {
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
        if names.is_empty() {
            continue;
        }
        _ = writeln!(text, "| {about} | {} |", names.join(" | "));
        _ = writeln!(text, "|{}", " --- |".repeat(names.len() + 1));
        for row in rows {
            let value = |name: &&str| {
                let value = by_scheduler.get(name).and_then(|c| c.values.get(row));
                value.map_or_else(|| "-".to_string(), |v| shown(*v))
            };
            let cells: Vec<String> = names.iter().map(value).collect();
            _ = writeln!(text, "| {row} | {} |", cells.join(" | "));
        }
        text.push('\n');
    }
    text.trim_end().to_string() + if text.is_empty() { "" } else { "\n" }
}

/// One run as a section.
pub fn run(run: &Outcome) -> String {
    let title = match run.header.part {
        Part::Targets => "",
        Part::More => ", rows without targets",
    };
    let mut text = format!(
        "\n## {} CPUs ({}){title}\n\n",
        run.cpus, run.header.topology
    );
    text.push_str(&header(run));
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            _ = write!(text, "\n### {}: {title}\n\n{body}", run.cpus);
        }
    };
    match run.header.part {
        Part::Targets => section("targets", targets(run)),
        Part::More => section("what the rows are", explained(run)),
    }
    section("all schedulers", everybody(run));
    section("what failed", failures(run));
    section("what scheduling itself costs", costs(run));
    if run.header.part == Part::Targets {
        section("can the rows fail?", can_fail(run));
    }
    if let Some(again) = &run.again {
        section("does it repeat?", check::repeats(run, again).0);
    }
    text
}

/// All of `docs/benchmarks.md`.
pub fn document(document: &Document) -> String {
    let runs: Vec<String> = document.runs.iter().map(run).collect();
    format!("{PREFACE}{}", runs.concat())
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::run_of;
    use super::*;

    #[test]
    fn a_target_missed_is_shown_as_missed() {
        let text = run(&run_of("T1 trip", [9.0, 12.0]));
        let line = text.lines().find(|l| l.starts_with("| T1 trip")).unwrap();
        // Ratios 9/11 and 12/13; the median is .871, within .90.
        assert!(line.contains("10.5 us, 0.871 x ± 0.105"), "{line}");
        assert!(line.contains("| met |"), "{line}");
        assert!(line.contains("≤ 0.90 x"), "{line}");
        assert!(text.contains("1 of 1 met"));
        let text = run(&run_of("T1 trip", [11.0, 13.0]));
        assert!(
            text.contains("**missed**") && text.contains("0 of 1 met"),
            "{text}"
        );
    }

    #[test]
    fn the_worst_of_the_others_is_named() {
        let text = can_fail(&run_of("F1 error", [0.0, 0.0]));
        assert!(
            text.contains("EEVDF: 12.0 ± 4.00 | shown to be bad"),
            "{text}"
        );
    }

    #[test]
    fn digits_fit_the_value() {
        let all: Vec<String> = [0.0, 0.00084, 0.25, 1.0, 38.46, 12543.2].map(shown).into();
        assert_eq!(all, ["0.00", "0.0008", "0.2500", "1.00", "38.5", "12543"]);
    }
}
