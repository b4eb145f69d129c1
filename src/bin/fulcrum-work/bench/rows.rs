// SPDX-License-Identifier: GPL-2.0-only
//! The rows of the benchmark: what each runs, what is read from it, and what is
//! wanted. The one place that knows; guest and tables both go by it.

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

/// Which of the two sets of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Rows with a target
    Targets,
    /// Rows nearer to what people run, and public tools; for comparison only
    More,
}

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
    /// Who does badly at it, for a table that shows that it can be seen
    pub bad: &'static [&'static str],
    pub figures: &'static [Figure],
}

use Better::{Less, More};
use Kind::{Latency, Share, Throughput};
use Target::{AtLeast, AtMost, RatioAtLeast, RatioAtMost};

const fn share(
    row: &'static str,
    name: &'static str,
    at: &'static str,
    targets: &'static [(usize, Target)],
) -> Figure {
    Figure {
        row,
        name,
        at,
        unit: "",
        better: Less,
        kind: Share,
        targets,
    }
}

const fn time(
    row: &'static str,
    name: &'static str,
    at: &'static str,
    unit: &'static str,
    targets: &'static [(usize, Target)],
) -> Figure {
    Figure {
        row,
        name,
        at,
        unit,
        better: Less,
        kind: Throughput,
        targets,
    }
}

const fn delay(
    row: &'static str,
    name: &'static str,
    at: &'static str,
    targets: &'static [(usize, Target)],
) -> Figure {
    Figure {
        row,
        name,
        at,
        unit: "us",
        better: Less,
        kind: Latency,
        targets,
    }
}

const NO_WEIGHTS: &[&str] = &["scx_bpfland", "scx_cosmos", "scx_rusty", "scx_rustland"];
const NO_GROUPS: &[&str] = &["scx_bpfland", "scx_cosmos", "scx_flash", "scx_rustland"];

/// All cases, in the order in which they are run and shown.
pub const CASES: &[Case] = &[
    Case {
        what: "2 hogs, nice 0 and 5, one CPU: worst relative error of the share",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("hogs --nice=0,5 --cpus 0 --warmup-ms 200 --seconds 2"),
        times: 1,
        check: true,
        bad: NO_WEIGHTS,
        figures: &[share("F1", "error", "/worst_error", &[(1, AtMost(0.001))])],
    },
    Case {
        what: "4 hogs, nice -5, 0, 5 and 10, one CPU: worst relative error of the share",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("hogs --nice=-5,0,5,10 --cpus 0 --warmup-ms 200 --seconds 2"),
        times: 1,
        check: true,
        bad: NO_WEIGHTS,
        figures: &[share("F2", "error", "/worst_error", &[(1, AtMost(0.004))])],
    },
    Case {
        what: "N + 1 equal hogs, 2 s: worst relative error of the share, loops done",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("hogs --each {n+1} --warmup-ms 200 --seconds 2"),
        times: 1,
        check: true,
        bad: &["EEVDF"],
        figures: &[
            share("F3", "error", "/worst_error", &[(1, AtMost(0.002))]),
            Figure {
                row: "T5",
                name: "loops",
                at: "/loops",
                unit: "",
                better: More,
                kind: Throughput,
                targets: &[(1, RatioAtLeast(1.0))],
            },
        ],
    },
    Case {
        what: "2 cgroups, cpu.weight 100 and 300, a hog each, one CPU: worst error of the share",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("groups --group a:100:1 --group b:300:1 --seconds 1.5"),
        times: 1,
        check: true,
        bad: NO_GROUPS,
        figures: &[share("F4", "error", "/worst_error", &[(1, AtMost(0.002))])],
    },
    Case {
        what: "2 cgroups of equal weight, 1 hog against 10, one CPU: worst error of the share; \
               then weight 100 becomes 300: time until the shares follow",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("groups --group a:100:1 --group b:100:10 --change a:300 --seconds 1.5"),
        times: 1,
        check: false,
        bad: NO_GROUPS,
        figures: &[
            share("F5", "crowd", "/worst_error", &[(1, AtMost(0.01))]),
            Figure {
                row: "F5",
                name: "change",
                at: "/settled_ms",
                unit: "ms",
                better: Less,
                kind: Latency,
                targets: &[(1, AtMost(200.0))],
            },
        ],
    },
    Case {
        what: "nested cgroups, (100: 100 and 300) against 100, one CPU: worst error of the share",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own(
            "groups --group a:100:0 --group a/x:100:1 --group a/y:300:1 --group b:100:1 --seconds 1.5",
        ),
        times: 1,
        check: false,
        bad: NO_GROUPS,
        figures: &[share("F5", "nested", "/worst_error", &[(1, AtMost(0.01))])],
    },
    Case {
        what: "2 tasks that only yield and 1 hog, one CPU: the hog's share",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("yielders --seconds 1.5"),
        times: 1,
        check: true,
        bad: &["scx_bpfland", "scx_cosmos", "scx_rustland", "scx_flash"],
        figures: &[Figure {
            row: "F6",
            name: "share",
            at: "/hog_share",
            unit: "",
            better: More,
            kind: Share,
            targets: &[(1, AtLeast(0.33))],
        }],
    },
    Case {
        what: "1 pair passes a byte through pipes: round trip",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("pipe --seconds 0.5"),
        times: 3,
        check: true,
        bad: &["scx_rustland", "scx_bpfland", "scx_cosmos"],
        figures: &[time(
            "T1",
            "trip",
            "/us_per_round_trip",
            "us",
            &[(1, RatioAtMost(0.90))],
        )],
    },
    Case {
        what: "2N pairs at once: round trip",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("pipe --pairs {2n} --seconds 1"),
        times: 2,
        check: true,
        bad: &["scx_rustland", "scx_bpfland", "scx_cosmos"],
        figures: &[time(
            "T2",
            "trip",
            "/us_per_round_trip",
            "us",
            &[(1, RatioAtMost(0.96))],
        )],
    },
    Case {
        what: "hackbench -g 2 -l 50",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Timed("hackbench -g 2 -l 50"),
        times: 3,
        check: true,
        bad: &["EEVDF", "scx_rustland"],
        figures: &[time(
            "T3",
            "time",
            "/seconds",
            "s",
            &[(1, RatioAtMost(0.86))],
        )],
    },
    Case {
        what: "fork, exit and wait",
        part: Part::Targets,
        mode: Mode::Plain,
        run: Run::Own("forks --seconds 0.7"),
        times: 2,
        check: true,
        bad: &["scx_rustland", "scx_flash"],
        figures: &[time(
            "T4",
            "fork",
            "/us_per_fork",
            "us",
            &[(1, RatioAtMost(0.98))],
        )],
    },
    Case {
        what: "4 sleepers (each 5 ms, 200 us of work) beside 2N hogs: wakeup delay",
        part: Part::Targets,
        mode: Mode::Metronome,
        run: Run::Own("sleepers --clocked --hogs {2n} --seconds 3"),
        times: 1,
        check: true,
        bad: &["EEVDF"],
        figures: &[
            delay(
                "L1",
                "p50",
                "/wakeup/p50_us",
                &[(1, AtMost(75.0)), (4, AtMost(95.0))],
            ),
            delay(
                "L1",
                "p99",
                "/wakeup/p99_us",
                &[(1, AtMost(110.0)), (4, AtMost(180.0))],
            ),
        ],
    },
    Case {
        what: "the same without hogs",
        part: Part::Targets,
        mode: Mode::Metronome,
        run: Run::Own("sleepers --clocked --seconds 2"),
        times: 1,
        check: false,
        bad: &["scx_rustland"],
        figures: &[
            delay("L2", "p50", "/wakeup/p50_us", &[(1, RatioAtMost(1.0))]),
            delay("L2", "p99", "/wakeup/p99_us", &[(1, RatioAtMost(1.0))]),
        ],
    },
    Case {
        what: "2 frame tasks (each 16.67 ms, 4 ms of work) beside 2N hogs: response, missed frames",
        part: Part::Targets,
        mode: Mode::Metronome,
        run: Run::Own("frames --clocked --hogs {2n} --seconds 4"),
        times: 1,
        check: true,
        bad: &["EEVDF"],
        figures: &[
            Figure {
                row: "L3",
                name: "p99",
                at: "/response/p99_us",
                unit: "us",
                better: Less,
                kind: Latency,
                targets: &[(1, AtMost(4200.0)), (4, AtMost(4300.0))],
            },
            Figure {
                row: "L3",
                name: "missed",
                at: "/miss_pct",
                unit: "%",
                better: Less,
                kind: Share,
                targets: &[(1, AtMost(0.0))],
            },
        ],
    },
    Case {
        what: "L1 with hogs of nice 19: wakeup delay",
        part: Part::Targets,
        mode: Mode::Metronome,
        run: Run::Own("sleepers --clocked --hogs {2n} --hog-nice 19 --seconds 3"),
        times: 1,
        check: false,
        bad: &["EEVDF"],
        figures: &[
            delay("L4", "p50", "/wakeup/p50_us", &[(1, AtMost(75.0))]),
            delay("L4", "p99", "/wakeup/p99_us", &[(1, AtMost(110.0))]),
        ],
    },
    Case {
        what: "2 tasks that want 90 % of a CPU each (4.5 ms of work, 0.5 ms of sleep) beside 2N hogs: \
               relative error of the hogs' CPU time",
        part: Part::Targets,
        mode: Mode::Metronome,
        run: Run::Own(
            "sleepers --clocked --tasks 2 --work-us 4500 --rest-us 500 --hogs {2n} --seconds 2",
        ),
        times: 1,
        check: false,
        bad: &["EEVDF"],
        figures: &[share("L4", "hogs", "/hogs_error", &[(1, AtMost(0.02))])],
    },
    Case {
        what: "web server, 8 workers a CPU, requests of 0.5 and 5.5 ms at random times, 50 % load: response",
        part: Part::More,
        mode: Mode::Metronome,
        run: Run::Own("web --load 0.5 --seconds 3"),
        times: 1,
        check: false,
        bad: &[],
        figures: &[
            delay("W1", "p50", "/response/p50_us", &[]),
            delay("W1", "p99", "/response/p99_us", &[]),
            delay("W1", "p99.9", "/response/p999_us", &[]),
        ],
    },
    Case {
        what: "web server, 8 workers a CPU, requests of 0.5 and 5.5 ms at random times, 80 % load: response",
        part: Part::More,
        mode: Mode::Metronome,
        run: Run::Own("web --load 0.8 --seconds 3"),
        times: 1,
        check: false,
        bad: &[],
        figures: &[
            delay("W2", "p50", "/response/p50_us", &[]),
            delay("W2", "p99", "/response/p99_us", &[]),
            delay("W2", "p99.9", "/response/p999_us", &[]),
        ],
    },
    Case {
        what: "web server, 8 workers a CPU, requests of 0.5 and 5.5 ms at random times, 95 % load: response",
        part: Part::More,
        mode: Mode::Metronome,
        run: Run::Own("web --load 0.95 --seconds 3"),
        times: 1,
        check: false,
        bad: &[],
        figures: &[
            delay("W3", "p50", "/response/p50_us", &[]),
            delay("W3", "p99", "/response/p99_us", &[]),
            delay("W3", "p99.9", "/response/p999_us", &[]),
        ],
    },
    Case {
        what: "make -j of 24 C files with 2 frame tasks beside it: time of the build, response of frames",
        part: Part::More,
        mode: Mode::Metronome,
        run: Run::Own("build --clocked --seconds 60"),
        times: 1,
        check: false,
        bad: &[],
        figures: &[
            time("W4", "build", "/build_s", "s", &[]),
            delay("W4", "frame p99", "/frames/response/p99_us", &[]),
            Figure {
                row: "W4",
                name: "missed",
                at: "/frames/miss_pct",
                unit: "%",
                better: Less,
                kind: Share,
                targets: &[],
            },
        ],
    },
    Case {
        what: "readers, writers around one lock, compaction of nice 10 that takes it too: response of reads and writes",
        part: Part::More,
        mode: Mode::Metronome,
        run: Run::Own("store --seconds 3"),
        times: 1,
        check: false,
        bad: &[],
        figures: &[
            delay("W5", "read p99", "/read/p99_us", &[]),
            delay("W5", "write p99", "/write/p99_us", &[]),
        ],
    },
    Case {
        what: "pipeline of 5 processes, 4 KiB blocks: time for a block",
        part: Part::More,
        mode: Mode::Plain,
        run: Run::Own("chain --seconds 1.5"),
        times: 1,
        check: false,
        bad: &[],
        figures: &[time("W6", "block", "/us_per_block", "us", &[])],
    },
    Case {
        what: "perf bench sched messaging -g 2 -l 50 (threads)",
        part: Part::More,
        mode: Mode::Plain,
        run: Run::Timed("perf bench sched messaging -t -g 2 -l 50"),
        times: 3,
        check: false,
        bad: &[],
        figures: &[time("P1", "time", "/seconds", "s", &[])],
    },
    Case {
        what: "perf bench sched pipe -l 20000",
        part: Part::More,
        mode: Mode::Plain,
        run: Run::Timed("perf bench sched pipe -l 20000"),
        times: 1,
        check: false,
        bad: &[],
        figures: &[time("P2", "time", "/seconds", "s", &[])],
    },
    Case {
        what: "stress-ng --futex 2 --futex-ops 1500",
        part: Part::More,
        mode: Mode::Plain,
        run: Run::Timed("stress-ng -q --temp-path /tmp --futex 2 --futex-ops 1500"),
        times: 1,
        check: false,
        bad: &[],
        figures: &[time("P3", "time", "/seconds", "s", &[])],
    },
    Case {
        what: "cyclictest (SCHED_OTHER, each 2 ms) beside 2N stress-ng CPU loops: wakeup delay",
        part: Part::More,
        mode: Mode::Metronome,
        run: Run::Shell(
            "stress-ng -q --temp-path /tmp -c {2n} -t 5 & sleep 1; \
             cyclictest -q -t 1 -i 2000 -D 3 --policy=other --json=/tmp/cyclictest >/dev/null; \
             wait; cat /tmp/cyclictest",
        ),
        times: 1,
        check: false,
        bad: &[],
        figures: &[
            delay("P4", "mean", "/thread/0/avg", &[]),
            delay("P4", "max", "/thread/0/max", &[]),
        ],
    },
];

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
        self.part == choice.part
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
