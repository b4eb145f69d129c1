// SPDX-License-Identifier: GPL-2.0-only
//! Results as Markdown: `docs/benchmarks.md` is what this prints of
//! `docs/benchmarks.json`, and nothing else.

use super::cost;
use super::record::{Cost, EEVDF};
use super::repeats::repeats;
use super::result::{Document, Outcome, Series};
use super::rows::{self, CASES, Case, Figure, Part, Target};
use super::witness;
use super::words::{OURS, cell, shown, with_unit};
use std::collections::BTreeMap;
use std::fmt::Write;

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

- \"per wakeup\" in the tables of costs: kernel and BPF programs were asked to account for themselves there, which costs time too
  (not so in the line of all code, which is row T1). While only one CPU is busy (1 pair), the clock's 2 ns are one instruction;
  where N are busy, a CPU's ns are up to N times its own work. What the verifier counts is in `verifier.json`.
- F5 crowd: EEVDF of kernel 7.3 by default counts a group once for each CPU that it could fill (debugfs, `sched/cgroup_mode`);
  the ideal here is by `cpu.weight` alone, which is what EEVDF of 7.2 does, and of 7.3 with the mode `up`.
- F5 change: the shares of 100 ms must be right, so less than that can't be measured; 1500 ms is when the wait is given up.
- L rows: an ordinary task's sleep is 50 us longer than asked for (timer slack), which is in each wakeup delay.
";

const WITNESSES: &str = "\
A row at which nobody does badly would show nothing. For each target, a scheduler that misses it: one that is known to be bad at
it where that one was measured, else the worst. Ratios are to EEVDF, whose own is 1.
";

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
    let keys = run.keys();
    let measured = |case: &&Case| case.figures.iter().any(|f| keys.contains(&f.key()));
    let line = |case: &Case| format!("- {}: {}\n", case.rows().join(", "), case.what);
    CASES.iter().filter(measured).map(line).collect()
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

/// The row in which one CPU is busy at a time, so that times are instructions.
const ONE_PAIR_TRIP: &str = "T1 trip";
const WAKEUPS_A_TRIP: f64 = 2.0;

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
        let mut line = |row: &str, of: &dyn Fn(&str) -> Option<f64>| {
            let cell = |name: &&str| of(name).map_or_else(|| "-".to_string(), shown);
            let cells: Vec<String> = names.iter().map(cell).collect();
            _ = writeln!(text, "| {row} | {} |", cells.join(" | "));
        };
        if rows::figure(ONE_PAIR_TRIP).is_some_and(|(case, _)| *about == cost::about(case)) {
            line("instructions of all code, the pipes' too", &|name| {
                let trip = run.series(ONE_PAIR_TRIP, name)?;
                Some(trip.median * 1000.0 / cost::NS_PER_INSTRUCTION / WAKEUPS_A_TRIP)
            });
        }
        for row in rows {
            line(row, &|name| {
                by_scheduler.get(name)?.values.get(row).copied()
            });
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
        Part::Policies => ", policies",
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
        Part::More | Part::Policies => section("what the rows are", explained(run)),
    }
    match &run.peers {
        Some(peers) => {
            let note = "They were measured beside ours of an earlier revision; nothing of theirs has changed since.\n\n";
            let tables = format!("{}\n{}", everybody(peers), costs(peers));
            let text = format!("{note}{}\n{tables}", header(peers));
            section("all schedulers", text);
        }
        None => section("all schedulers", everybody(run)),
    }
    section("what failed", failures(run));
    section("what scheduling itself costs", costs(run));
    if let Some(again) = &run.again {
        section("does it repeat?", repeats(run, again).0);
    }
    text
}

/// Each target's verdict on every number of CPUs.
fn at_a_glance(runs: &[&Outcome]) -> String {
    let cpus: Vec<String> = runs.iter().map(|r| format!("{} CPUs", r.cpus)).collect();
    let mut text = format!("| row | {} |\n", cpus.join(" | "));
    _ = writeln!(text, "|{}", " --- |".repeat(runs.len() + 1));
    let mut met = vec![(0, 0); runs.len()];
    for figure in CASES.iter().flat_map(|c| c.figures) {
        let mut cells = Vec::new();
        for (run, (met, all)) in runs.iter().zip(&mut met) {
            let ours = run.series(&figure.key(), OURS);
            let target = figure.target(run.cpus);
            cells.push(match ours.zip(target) {
                None => "-".to_string(),
                Some((series, target)) => {
                    let is_met = target.met(series.median, series.ratio) == Some(true);
                    *all += 1;
                    *met += usize::from(is_met);
                    let verdict = if is_met { "met" } else { "**missed**" };
                    format!("{verdict}: {}, {target}", brief(figure, target, series))
                }
            });
        }
        if cells.iter().any(|c| c != "-") {
            _ = writeln!(text, "| {} | {} |", figure.key(), cells.join(" | "));
        }
    }
    let sums = met.iter().map(|(met, all)| format!("{met} of {all}"));
    _ = writeln!(text, "| met | {} |", sums.collect::<Vec<_>>().join(" | "));
    text
}

/// A figure in the terms of its target.
fn brief(figure: &Figure, target: Target, series: &Series) -> String {
    match (target, series.ratio) {
        (Target::RatioAtMost(_) | Target::RatioAtLeast(_), Some(ratio)) => format!("{ratio:.3} x"),
        _ => with_unit(series.median, figure.unit),
    }
}

/// All of `docs/benchmarks.md`.
pub fn document(document: &Document) -> String {
    let (targets, more) = (document.of(Part::Targets), document.of(Part::More));
    let mut text = PREFACE.to_string();
    _ = write!(
        text,
        "\n## Targets at a glance\n\n{}",
        at_a_glance(&targets)
    );
    let mut all: Vec<&Outcome> = [&targets[..], &document.of(Part::Policies)].concat();
    all.extend(targets.iter().filter_map(|run| run.peers.as_deref()));
    _ = write!(
        text,
        "\n## Can the rows fail?\n\n{WITNESSES}\n{}",
        witness::table(&all)
    );
    text.extend(targets.into_iter().chain(more).map(run));
    text
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
    fn targets_at_a_glance_have_all_numbers_of_cpus() {
        let two = run_of("T1 trip", [9.0, 12.0]);
        let mut four = run_of("T1 trip", [11.0, 13.0]);
        four.cpus = 4;
        let text = at_a_glance(&[&two, &four]);
        let line = "| T1 trip | met: 0.871 x, ≤ 0.90 x | **missed**: 1.000 x, ≤ 0.90 x |";
        assert!(text.contains(line), "{text}");
        assert!(text.ends_with("| met | 1 of 1 | 0 of 1 |\n"), "{text}");
    }
}
