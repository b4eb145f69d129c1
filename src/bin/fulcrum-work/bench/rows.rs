// SPDX-License-Identifier: GPL-2.0-only
//! The rows of the benchmark: what each runs, what is read from it, and what is
//! wanted. Guest and tables both go by it; `cases` has the rows themselves.

pub use super::cases::CASES;
use serde::{Deserialize, Serialize};

/// Which clock the VM has while a row is measured (docs/vm.md). Results of two
/// modes are never mixed: rows of both never share a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Instruction-count clock
    Plain,
    /// The same with short turns of the CPUs: for latencies
    Metronome,
}

/// What a case runs. In arguments, `{n}` stands for the number of CPUs, `{n+1}`
/// and `{2n}` for what they say.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// A workload of fulcrum-work; figures are read from its JSON
    Own(&'static str),
    /// A program; its figure is `/seconds` from start to end
    Timed(&'static str),
    /// A line for the shell that prints JSON
    Shell(&'static str),
}

/// Which set of rows.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Rows with a target
    Targets,
    /// Rows nearer to what people run, and public tools; for comparison only
    More,
    /// Those rows with a target that tell one policy of ours from another
    Policies,
}

/// The rows that show a policy's character.
const CHARACTER: [&str; 10] = ["F1", "F3", "F6", "L1", "L3", "T1", "T2", "T3", "T4", "T5"];

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Less,
    More,
}

/// What a figure is, and so by how much two good runs may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A share of CPU time or an error of one
    Share,
    /// Work done in a time, or time for some work
    Throughput,
    /// How late something was
    Latency,
}

/// What is wanted of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// As a part of what EEVDF has in the same boot
    RatioAtMost(f64),
    RatioAtLeast(f64),
}

/// Which rows somebody asks for.
#[derive(Clone, Debug, clap::Args)]
pub struct Choice {
    /// Which set of rows
    #[arg(long, value_enum, default_value_t = Part::Targets)]
    pub part: Part,
    /// Only these rows of it
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only those of the short check
    #[arg(long)]
    pub short: bool,
}

/// One number of a case.
#[derive(Debug)]
pub struct Figure {
    /// The row that it belongs to, as in `--only`
    pub row: &'static str,
    /// Which number of that row
    pub name: &'static str,
    /// Where it is in the JSON
    pub at: &'static str,
    pub unit: &'static str,
    pub better: Better,
    pub kind: Kind,
    /// Targets, each from so many CPUs on
    pub targets: &'static [(usize, Target)],
    /// Who does badly at it, for a table that shows that it can be seen
    pub bad: &'static [&'static str],
}

/// One run that gives one or more figures.
#[derive(Debug)]
pub struct Case {
    pub what: &'static str,
    pub part: Part,
    pub mode: Mode,
    pub run: Run,
    /// Runs in a row of which the median counts: more where one run is short
    pub times: usize,
    /// Whether `--check` runs it
    pub check: bool,
    pub figures: &'static [Figure],
}

impl Target {
    /// Whether a value and its ratio to EEVDF's meet it, to the digits shown.
    pub fn met(self, value: f64, ratio: Option<f64>) -> Option<bool> {
        let shown = |x: f64| (x * 1000.0).round() / 1000.0;
        Some(match self {
            Self::AtMost(bound) => value <= bound * (1.0 + 1e-9),
            Self::AtLeast(bound) => value >= bound * (1.0 - 1e-9),
            Self::RatioAtMost(bound) => shown(ratio?) <= bound,
            Self::RatioAtLeast(bound) => shown(ratio?) >= bound,
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(x) => write!(f, "≤ {x}"),
            Self::AtLeast(x) => write!(f, "≥ {x}"),
            Self::RatioAtMost(x) => write!(f, "≤ {x:.2} x"),
            Self::RatioAtLeast(x) => write!(f, "≥ {x:.2} x"),
        }
    }
}

impl Figure {
    /// Its name in results: `L1 p99`.
    pub fn key(&self) -> String {
        format!("{} {}", self.row, self.name)
    }

    /// The target on this many CPUs.
    pub fn target(&self, cpus: usize) -> Option<Target> {
        let fits = |(from, _): &&(usize, Target)| *from <= cpus;
        self.targets.iter().rev().find(fits).map(|(_, t)| *t)
    }
}

impl Case {
    /// Whether it is one of these.
    pub fn wanted(&self, choice: &Choice) -> bool {
        let named = |f: &Figure| choice.only.iter().any(|o| o.eq_ignore_ascii_case(f.row));
        let in_part = match choice.part {
            Part::Policies => self.figures.iter().any(|f| CHARACTER.contains(&f.row)),
            part => self.part == part,
        };
        in_part
            && (choice.only.is_empty() || self.figures.iter().any(named))
            && (self.check || !choice.short)
    }

    /// Its rows, each once: `F3 T5`.
    pub fn rows(&self) -> Vec<&'static str> {
        let mut rows: Vec<&str> = self.figures.iter().map(|f| f.row).collect();
        rows.dedup();
        rows
    }
}

/// The figure of this key, and its case.
pub fn figure(key: &str) -> Option<(&'static Case, &'static Figure)> {
    CASES
        .iter()
        .flat_map(|c| c.figures.iter().map(move |f| (c, f)))
        .find(|(_, f)| f.key() == key)
}

/// Arguments with the number of CPUs filled in.
pub fn filled_in(text: &str, cpus: usize) -> String {
    text.replace("{n}", &cpus.to_string())
        .replace("{n+1}", &(cpus + 1).to_string())
        .replace("{2n}", &(2 * cpus).to_string())
}

/// The words of that.
pub fn arguments(text: &str, cpus: usize) -> Vec<String> {
    filled_in(text, cpus)
        .split_whitespace()
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Target::{AtLeast, AtMost, RatioAtLeast, RatioAtMost};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_has_a_name_of_its_own_and_a_target_if_it_ought_to() {
        let mut keys = BTreeSet::new();
        for case in CASES {
            for figure in case.figures {
                assert!(keys.insert(figure.key()), "{}", figure.key());
                for cpus in [1, 2, 4, 8, 64] {
                    let has = figure.target(cpus).is_some();
                    assert_eq!(has, case.part == Part::Targets, "{}", figure.key());
                    assert_eq!(has, !figure.bad.is_empty(), "{}", figure.key());
                }
            }
        }
        for row in ["F1", "F2", "F3", "F4", "F5", "F6", "L1", "L2", "L3", "L4"]
            .iter()
            .chain(&["T1", "T2", "T3", "T4", "T5"])
        {
            assert!(keys.iter().any(|k| k.starts_with(row)), "{row}");
        }
    }

    #[test]
    fn latencies_are_measured_under_the_metronome_and_nothing_else_is() {
        for case in CASES.iter().filter(|c| c.part == Part::Targets) {
            for row in case.rows() {
                let latency = row.starts_with('L');
                assert_eq!(latency, case.mode == Mode::Metronome, "{row}");
            }
        }
    }

    #[test]
    fn targets_can_be_missed() {
        assert_eq!(AtMost(0.001).met(0.001, None), Some(true));
        assert_eq!(AtMost(0.001).met(0.0011, None), Some(false));
        assert_eq!(AtLeast(0.33).met(0.3299, None), Some(false));
        assert_eq!(RatioAtMost(0.9).met(1.0, Some(0.9004)), Some(true));
        assert_eq!(RatioAtMost(0.9).met(1.0, Some(0.9006)), Some(false));
        assert_eq!(RatioAtLeast(1.0).met(1.0, Some(0.9994)), Some(false));
        assert_eq!(RatioAtLeast(1.0).met(1.0, None), None);
    }

    #[test]
    fn targets_go_by_the_number_of_cpus() {
        let (_, p99) = figure("L1 p99").unwrap();
        assert_eq!(p99.target(2), Some(AtMost(110.0)));
        assert_eq!(p99.target(4), Some(AtMost(180.0)));
        assert_eq!(p99.target(8), Some(AtMost(180.0)));
    }

    #[test]
    fn arguments_follow_the_number_of_cpus() {
        let all = arguments("x --each {n+1} {2n} {n}", 4);
        assert_eq!(all, ["x", "--each", "5", "8", "4"]);
    }

    #[test]
    fn policies_are_told_apart_by_rows_that_there_are() {
        let choice = Choice {
            part: Part::Policies,
            only: vec![],
            short: false,
        };
        let wanted = CASES.iter().filter(|c| c.wanted(&choice));
        let rows: BTreeSet<&str> = wanted.flat_map(Case::rows).collect();
        assert_eq!(rows, BTreeSet::from(CHARACTER));
    }

    #[test]
    fn only_takes_whole_rows() {
        let only = |row: &str| {
            let choice = Choice {
                part: Part::Targets,
                only: vec![row.to_string()],
                short: false,
            };
            CASES.iter().filter(|c| c.wanted(&choice)).count()
        };
        assert_eq!(
            (only("t5"), only("F5"), only("L"), only("W1")),
            (1, 2, 0, 0)
        );
    }
}
