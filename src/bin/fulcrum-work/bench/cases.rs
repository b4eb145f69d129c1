// SPDX-License-Identifier: GPL-2.0-only
//! The rows themselves, as data.

use super::rows::{
    Better::{Less, More},
    Case, Figure,
    Kind::{Latency, Share, Throughput},
    Mode, Part,
    Run::{self, Own, Shell, Timed},
    Target::{self, AtLeast, AtMost, RatioAtLeast, RatioAtMost},
};

/// A row with a target: an instruction-count clock, run once. The methods
/// below say what is different.
const fn row(what: &'static str, run: Run, figures: &'static [Figure]) -> Case {
    Case {
        what,
        part: Part::Targets,
        mode: Mode::Plain,
        run,
        times: 1,
        check: false,
        figures,
    }
}

/// The same under the metronome.
const fn late(what: &'static str, run: Run, figures: &'static [Figure]) -> Case {
    let mut case = row(what, run, figures);
    case.mode = Mode::Metronome;
    case
}

impl Case {
    const fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// `--check` runs it.
    const fn checked(mut self) -> Self {
        self.check = true;
        self
    }

    /// It is for comparison only.
    const fn more(mut self) -> Self {
        self.part = Part::More;
        self
    }
}

const fn figure(row: &'static str, name: &'static str, at: &'static str) -> Figure {
    Figure {
        row,
        name,
        at,
        unit: "",
        better: Less,
        kind: Share,
        targets: &[],
        bad: &[],
    }
}

const fn time(
    row: &'static str,
    name: &'static str,
    at: &'static str,
    unit: &'static str,
) -> Figure {
    let mut figure = figure(row, name, at);
    figure.kind = Throughput;
    figure.unit = unit;
    figure
}

const fn delay(row: &'static str, name: &'static str, at: &'static str) -> Figure {
    let mut figure = figure(row, name, at);
    figure.kind = Latency;
    figure.unit = "us";
    figure
}

impl Figure {
    const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    const fn more_is_better(mut self) -> Self {
        self.better = More;
        self
    }

    /// Who does badly at it.
    const fn bad(mut self, who: &'static [&'static str]) -> Self {
        self.bad = who;
        self
    }

    /// Targets, each from so many CPUs on.
    const fn to(mut self, targets: &'static [(usize, Target)]) -> Self {
        self.targets = targets;
        self
    }
}

const NO_WEIGHTS: &[&str] = &["scx_bpfland", "scx_cosmos", "scx_rusty", "scx_rustland"];
const NO_GROUPS: &[&str] = &["scx_bpfland", "scx_cosmos", "scx_flash", "scx_rustland"];
const SLOW_PIPES: &[&str] = &["scx_rustland", "scx_bpfland", "scx_cosmos"];

/// All cases, in the order in which they are run and shown.
pub const CASES: &[Case] = &[
    row(
        "2 hogs, nice 0 and 5, one CPU: worst relative error of the share",
        Own("hogs --nice=0,5 --cpus 0 --warmup-ms 200 --seconds 2"),
        &[figure("F1", "error", "/worst_error")
            .bad(NO_WEIGHTS)
            .to(&[(1, AtMost(0.001))])],
    ),
    row(
        "4 hogs, nice -5, 0, 5 and 10, one CPU: worst relative error of the share",
        Own("hogs --nice=-5,0,5,10 --cpus 0 --warmup-ms 200 --seconds 2"),
        &[figure("F2", "error", "/worst_error")
            .bad(NO_WEIGHTS)
            .to(&[(1, AtMost(0.004))])],
    )
    .checked(),
    row(
        "N + 1 equal hogs, 2 s: worst relative error of the share, loops done",
        Own("hogs --each {n+1} --warmup-ms 200 --seconds 2"),
        &[
            figure("F3", "error", "/worst_error")
                .bad(&["EEVDF"])
                .to(&[(1, AtMost(0.002))]),
            time("T5", "loops", "/loops", "")
                .more_is_better()
                .bad(&["scx_bpfland", "scx_rustland"])
                .to(&[(1, RatioAtLeast(1.0))]),
        ],
    )
    .checked(),
    row(
        "2 cgroups, cpu.weight 100 and 300, a hog each, one CPU: worst error of the share",
        Own("groups --group a:100:1 --group b:300:1 --seconds 1.5"),
        &[figure("F4", "error", "/worst_error")
            .bad(NO_GROUPS)
            .to(&[(1, AtMost(0.002))])],
    )
    .checked(),
    row(
        "2 cgroups of equal weight, 1 hog against 10, one CPU: worst error of the share; \
         then weight 100 becomes 300: time until the shares follow",
        Own("groups --group a:100:1 --group b:100:10 --change a:300 --seconds 1.5"),
        &[
            figure("F5", "crowd", "/worst_error")
                .bad(NO_GROUPS)
                .to(&[(1, AtMost(0.01))]),
            delay("F5", "change", "/settled_ms")
                .unit("ms")
                .bad(NO_GROUPS)
                .to(&[(1, AtMost(200.0))]),
        ],
    ),
    row(
        "nested cgroups, (100: 100 and 300) against 100, one CPU: worst error of the share",
        Own(
            "groups --group a:100:0 --group a/x:100:1 --group a/y:300:1 --group b:100:1 \
             --seconds 1.5",
        ),
        &[figure("F5", "nested", "/worst_error")
            .bad(NO_GROUPS)
            .to(&[(1, AtMost(0.01))])],
    ),
    row(
        "2 tasks that only yield and 1 hog, one CPU: the hog's share",
        Own("yielders --seconds 1.5"),
        &[figure("F6", "share", "/hog_share")
            .more_is_better()
            .bad(&["scx_bpfland", "scx_cosmos", "scx_rustland", "scx_flash"])
            .to(&[(1, AtLeast(0.33))])],
    ),
    row(
        "1 pair passes a byte through pipes: round trip",
        Own("pipe --seconds 0.5"),
        &[time("T1", "trip", "/us_per_round_trip", "us")
            .bad(SLOW_PIPES)
            .to(&[(1, RatioAtMost(0.90))])],
    )
    .times(3)
    .checked(),
    row(
        "2N pairs at once: round trip",
        Own("pipe --pairs {2n} --seconds 1"),
        &[time("T2", "trip", "/us_per_round_trip", "us")
            .bad(SLOW_PIPES)
            .to(&[(1, RatioAtMost(0.96))])],
    )
    .times(2)
    .checked(),
    row(
        "hackbench -g 2 -l 50",
        Timed("hackbench -g 2 -l 50"),
        &[time("T3", "time", "/seconds", "s")
            .bad(&["EEVDF", "scx_bpfland", "scx_cosmos"])
            .to(&[(1, RatioAtMost(0.86))])],
    )
    .times(3)
    .checked(),
    row(
        "fork, exit and wait",
        Own("forks --seconds 0.7"),
        &[time("T4", "fork", "/us_per_fork", "us")
            .bad(&["scx_rustland", "scx_flash"])
            .to(&[(1, RatioAtMost(0.98))])],
    )
    .times(2),
    // Three runs, because delays depend on how the sleepers happen to fall on
    // ticks and CPUs, which one run keeps.
    late(
        "4 sleepers (each 5 ms, 200 us of work) beside 2N hogs: wakeup delay",
        Own("sleepers --clocked --hogs {2n} --seconds 1"),
        &[
            delay("L1", "p50", "/wakeup/p50_us")
                .bad(&["EEVDF"])
                .to(&[(1, AtMost(75.0)), (4, AtMost(95.0))]),
            delay("L1", "p99", "/wakeup/p99_us")
                .bad(&["EEVDF"])
                .to(&[(1, AtMost(110.0)), (4, AtMost(180.0))]),
        ],
    )
    .times(3)
    .checked(),
    late(
        "the same without hogs",
        Own("sleepers --clocked --seconds 2"),
        &[
            delay("L2", "p50", "/wakeup/p50_us")
                .bad(&["scx_bpfland", "scx_rustland"])
                .to(&[(1, RatioAtMost(1.0))]),
            delay("L2", "p99", "/wakeup/p99_us")
                .bad(&["scx_bpfland", "scx_rustland"])
                .to(&[(1, RatioAtMost(1.0))]),
        ],
    ),
    late(
        "2 frame tasks (each 16.67 ms, 4 ms of work) beside 2N hogs: response, missed frames",
        Own("frames --clocked --hogs {2n} --seconds 4"),
        &[
            delay("L3", "p99", "/response/p99_us")
                .bad(&["EEVDF"])
                .to(&[(1, AtMost(4200.0)), (4, AtMost(4300.0))]),
            figure("L3", "missed", "/miss_pct")
                .unit("%")
                .bad(&["fifo"])
                .to(&[(1, AtMost(0.0))]),
        ],
    )
    .checked(),
    late(
        "L1 with hogs of nice 19: wakeup delay",
        Own("sleepers --clocked --hogs {2n} --hog-nice 19 --seconds 1"),
        &[
            delay("L4", "p50", "/wakeup/p50_us")
                .bad(&["EEVDF"])
                .to(&[(1, AtMost(75.0))]),
            delay("L4", "p99", "/wakeup/p99_us")
                .bad(&["EEVDF"])
                .to(&[(1, AtMost(110.0))]),
        ],
    )
    .times(3),
    late(
        "2 tasks that want 90 % of a CPU each (4.5 ms of work, 0.5 ms of sleep) beside 2N \
         hogs: relative error of the hogs' CPU time",
        Own("sleepers --clocked --tasks 2 --work-us 4500 --rest-us 500 --hogs {2n} --seconds 2"),
        &[figure("L4", "hogs", "/hogs_error")
            .bad(&["scx_bpfland", "scx_cosmos", "scx_rustland"])
            .to(&[(1, AtMost(0.02))])],
    ),
    late(
        "web server, 8 workers a CPU, requests of 0.5 and 5.5 ms at random times, 50 % load: \
         response",
        Own("web --load 0.5 --seconds 3"),
        &[
            delay("W1", "p50", "/response/p50_us"),
            delay("W1", "p99", "/response/p99_us"),
            delay("W1", "p99.9", "/response/p999_us"),
        ],
    )
    .more(),
    late(
        "the same, 80 % load",
        Own("web --load 0.8 --seconds 3"),
        &[
            delay("W2", "p50", "/response/p50_us"),
            delay("W2", "p99", "/response/p99_us"),
            delay("W2", "p99.9", "/response/p999_us"),
        ],
    )
    .more(),
    late(
        "the same, 95 % load",
        Own("web --load 0.95 --seconds 3"),
        &[
            delay("W3", "p50", "/response/p50_us"),
            delay("W3", "p99", "/response/p99_us"),
            delay("W3", "p99.9", "/response/p999_us"),
        ],
    )
    .more(),
    late(
        "make -j of 24 C files with 2 frame tasks beside it: time of the build, response of \
         frames",
        Own("build --clocked --seconds 60"),
        &[
            time("W4", "build", "/build_s", "s"),
            delay("W4", "frame p99", "/frames/response/p99_us"),
            figure("W4", "missed", "/frames/miss_pct").unit("%"),
        ],
    )
    .more(),
    late(
        "readers, writers around one lock, compaction of nice 10 that takes it too: response of \
         reads and writes",
        Own("store --seconds 3"),
        &[
            delay("W5", "read p99", "/read/p99_us"),
            delay("W5", "write p99", "/write/p99_us"),
        ],
    )
    .more(),
    row(
        "pipeline of 5 processes, 4 KiB blocks: time for a block",
        Own("chain --seconds 1.5"),
        &[time("W6", "block", "/us_per_block", "us")],
    )
    .more(),
    row(
        "perf bench sched messaging -g 2 -l 50 (threads)",
        Timed("perf bench sched messaging -t -g 2 -l 50"),
        &[time("P1", "time", "/seconds", "s")],
    )
    .times(3)
    .more(),
    row(
        "perf bench sched pipe -l 20000",
        Timed("perf bench sched pipe -l 20000"),
        &[time("P2", "time", "/seconds", "s")],
    )
    .more(),
    row(
        "stress-ng --futex 2 --futex-ops 1500",
        Timed("stress-ng -q --temp-path /tmp --futex 2 --futex-ops 1500"),
        &[time("P3", "time", "/seconds", "s")],
    )
    .more(),
    late(
        "cyclictest (SCHED_OTHER, each 2 ms) beside 2N stress-ng CPU loops: wakeup delay",
        Shell(
            "stress-ng -q --temp-path /tmp -c {2n} -t 5 & sleep 1; \
             cyclictest -q -t 1 -i 2000 -D 3 --policy=other --json=/tmp/cyclictest >/dev/null; \
             wait; cat /tmp/cyclictest",
        ),
        &[
            delay("P4", "mean", "/thread/0/avg"),
            delay("P4", "max", "/thread/0/max"),
        ],
    )
    .more(),
];
