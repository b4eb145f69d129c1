// SPDX-License-Identifier: GPL-2.0-only
//! What a correct scheduler does, each as a function that says what is wrong.
//! The real one must pass them all; each mutant must fail one.
#![allow(dead_code)]

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use scx_fulcrum::sim::ffi::Arithmetic;
use scx_fulcrum::sim::fluid;
use scx_fulcrum::sim::machine::Machine;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{CgroupSpec, ChangeSpec, Clocks, Does, File, PolicySpec};

use super::{caches, check, file, group, habits, hybrid, policies, scenarios};

/// A judge: what it looks at, and how.
pub type Judge = (&'static str, fn(Variant) -> (Result<(), String>, Variant));

/// All of them, the quickest first.
pub const JUDGES: &[Judge] = &[
    ("arithmetic", arithmetic),
    ("what the policies answer", policies::answers),
    ("weights on one CPU", weights),
    ("weights across the wrap of the clocks", weights_at_the_wrap),
    ("a long sleeper shuts nobody out", long_sleeper),
    ("who sleeps a little pays for what it ran", sleeper_pays),
    ("short tasks wake fast beside hogs", latency),
    ("no CPU idles beside work", work_conservation),
    ("three hogs on two CPUs", rotation),
    (
        "one hog more than CPUs, over two caches",
        caches::two_caches,
    ),
    (
        "who weighs more than it can use has a CPU",
        caches::heavy_has_a_cpu,
    ),
    ("a pinned crowd keeps its CPU", caches::crowd_keeps_its_cpu),
    ("nobody is left behind a real-time task", left_behind),
    ("nobody waits for ever", starvation),
    ("cgroups share by their weights", cgroups),
    ("a new cgroup starts anew", habits::new_cgroups),
    (
        "a queue's clock stands still for nobody",
        habits::clock_goes_on,
    ),
    ("a light task takes no clock along", habits::light_tasks),
    ("short lives and naps gain nothing", habits::games),
    ("who runs alone makes way", habits::makes_way),
    ("busy tasks run on fast CPUs", hybrid::all),
    ("random scenarios", random),
];

/// CPU time by group, in the order of the file.
pub fn ran(machine: &Machine) -> Vec<f64> {
    let groups = machine.stats.groups.iter();
    groups.map(|group| group.ran as f64).collect()
}

/// The largest relative error of `ran` against `weights`.
pub fn share_error(ran: &[f64], weights: &[f64]) -> f64 {
    let (total, sum): (f64, f64) = (ran.iter().sum(), weights.iter().sum());
    ran.iter()
        .zip(weights)
        .map(|(ran, weight)| (ran / total / (weight / sum) - 1.0).abs())
        .fold(0.0, f64::max)
}

/// `good`, or what is wrong.
pub fn verdict(good: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if good { Ok(()) } else { Err(text()) }
}

/// Runs `file` and lets `look` judge.
pub fn judge(
    file: &File,
    variant: Variant,
    look: impl FnOnce(&Machine) -> Result<(), String>,
) -> (Result<(), String>, Variant) {
    let (result, variant) = check(file, variant, look);
    (result.and_then(|verdict| verdict), variant)
}

/// Four hogs of different nice levels on one CPU, and their weights.
pub fn mixed_hogs() -> (File, [f64; 4]) {
    let hog = |name, nice| group(name, 1, nice, Does::Hog {});
    let groups = vec![hog("a", -5), hog("b", 0), hog("c", 5), hog("d", 10)];
    (file("1", 3.0, groups), [3121.0, 1024.0, 335.0, 110.0])
}

/// Three hogs on two CPUs, one of which a real-time task takes for good.
pub fn taken_cpu(kernel: &str, seconds: f64) -> File {
    let mut rt = group("rt", 1, 0, Does::Hog {});
    rt.policy = PolicySpec::Fifo;
    rt.cpus = Some("0".to_string());
    rt.start_us = 300_000;
    let hog = |name| group(name, 1, 0, Does::Hog {});
    let groups = vec![hog("a"), hog("b"), hog("c"), rt];
    let mut file = file("2", seconds, groups);
    file.kernel = Some(kernel.to_string());
    file
}

fn left_behind(variant: Variant) -> (Result<(), String>, Variant) {
    judge(&taken_cpu("6.18", 3.0), variant, |machine| {
        let error = share_error(&ran(machine)[..3], &[1.0; 3]);
        verdict(error < 0.05, || format!("shares are off by {error:.4}"))
    })
}

fn weights(variant: Variant) -> (Result<(), String>, Variant) {
    let (file, weights) = mixed_hogs();
    judge(&file, variant, |machine| weights_hold(machine, &weights))
}

fn weights_hold(machine: &Machine, weights: &[f64]) -> Result<(), String> {
    let error = share_error(&ran(machine), weights);
    verdict(error < MIXED_ERROR, || {
        format!("shares are off by {error:.4}")
    })
}

/// Slices end at ticks of 4 ms, so a nice-10 hog that gets 72 ms in 3 s can't
/// be exact: one tick is 5 % of that.
pub const MIXED_ERROR: f64 = 0.06;

fn weights_at_the_wrap(variant: Variant) -> (Result<(), String>, Variant) {
    let mut first = None;
    let mut variant = variant;
    for start in [u64::MAX, 1 << 63] {
        let (mut file, weights) = mixed_hogs();
        file.clocks = Clocks {
            virtual_ns: Some(start - 300_000_000),
            kernel_ns: Some(start - 1_000_000_000),
            cpu_time_ns: Some(start - 100_000_000),
        };
        let (result, back) = judge(&file, variant, |machine| weights_hold(machine, &weights));
        variant = back;
        first = first.or(result.err());
    }
    (first.map_or(Ok(()), Err), variant)
}

fn long_sleeper(variant: Variant) -> (Result<(), String>, Variant) {
    let sleeper = Does::Frame {
        period_us: 600_000,
        work_us: 250_000,
    };
    let groups = vec![
        group("hog", 2, 0, Does::Hog {}),
        group("sleeper", 1, 0, sleeper),
    ];
    judge(&file("1", 3.0, groups), variant, |machine| {
        let longest = machine.stats.groups[0].wait.max();
        verdict(longest < 35_000_000, || {
            format!("a hog waited for {} ms", longest / 1_000_000)
        })
    })
}

fn sleeper_pays(variant: Variant) -> (Result<(), String>, Variant) {
    let sleeper = Does::Sleeper {
        run_us: 900,
        sleep_us: 100,
    };
    let groups = vec![
        group("hog", 1, 0, Does::Hog {}),
        group("sleeper", 1, 0, sleeper),
    ];
    judge(&file("1", 3.0, groups), variant, |machine| {
        let ran = ran(machine);
        let hog = ran[0] / (ran[0] + ran[1]);
        verdict(hog > 0.45, || {
            format!("the hog got {hog:.3} instead of half of the CPU")
        })
    })
}

/// Two tasks for three CPUs, and short runs: CPUs go idle all the time while
/// others wake.
fn work_conservation(variant: Variant) -> (Result<(), String>, Variant) {
    let short = Does::Sleeper {
        run_us: 60,
        sleep_us: 200,
    };
    let mut result = Ok(());
    let mut variant = variant;
    for (seed, cpus) in [(1, "4"), (2, "8"), (3, "1x2x2x2"), (4, "6")] {
        let groups = vec![
            group("short", 20, 0, short),
            group("hog", 2, 0, Does::Hog {}),
        ];
        let mut file = file(cpus, 0.5, groups);
        file.seed = Some(seed);
        let (verdict, back) = judge(&file, variant, |_| Ok(()));
        variant = back;
        result = result.and(verdict);
    }
    (result, variant)
}

fn latency(variant: Variant) -> (Result<(), String>, Variant) {
    let sleeper = Does::Sleeper {
        run_us: 200,
        sleep_us: 5000,
    };
    let groups = vec![
        group("hog", 4, 0, Does::Hog {}),
        group("sleeper", 4, 0, sleeper),
    ];
    judge(&file("2", 3.0, groups), variant, |machine| {
        let p95 = machine.stats.groups[1].wakeup.percentile(0.95);
        verdict(p95 < 1_000_000, || {
            format!("wakeups took {} us at the 95th percentile", p95 / 1000)
        })
    })
}

fn rotation(variant: Variant) -> (Result<(), String>, Variant) {
    let groups = (0..3).map(|_| group("hog", 1, 0, Does::Hog {})).collect();
    judge(&file("2", 3.0, groups), variant, |machine| {
        let error = share_error(&ran(machine), &[1.0; 3]);
        verdict(error < ROTATION_ERROR, || {
            format!("shares are off by {error:.4}")
        })
    })
}

/// Usually 0.001; where the ticks of the two CPUs fall decides.
pub const ROTATION_ERROR: f64 = 0.05;

/// The bounds of the run itself judge.
fn starvation(variant: Variant) -> (Result<(), String>, Variant) {
    let hog = |name, nice| group(name, 1, nice, Does::Hog {});
    let file = file("1", 12.0, vec![hog("heavy", -20), hog("light", 19)]);
    judge(&file, variant, |_| Ok(()))
}

/// A tree of cgroups on `topology`: one hog against many in a cgroup, nested
/// cgroups, a task beside them; then a weight changes and tasks move.
pub fn cgroup_tree(topology: &str) -> File {
    let cgroup = |path: &str, weight| CgroupSpec {
        path: path.to_string(),
        weight,
        idle: false,
    };
    let hogs = |name, count, path: Option<&str>| {
        let mut hogs = group(name, count, 0, Does::Hog {});
        hogs.cgroup = path.map(str::to_string);
        hogs
    };
    let groups = vec![
        hogs("one", 1, Some("a")),
        hogs("many", 8, Some("b/c")),
        hogs("two", 2, Some("b/d")),
        hogs("root", 1, None),
    ];
    let change = |at_us| ChangeSpec {
        at_us,
        ..ChangeSpec::default()
    };
    let cgroups = vec![
        cgroup("a", 100),
        cgroup("b", 300),
        cgroup("b/c", 50),
        cgroup("b/d", 150),
    ];
    let changes = vec![
        ChangeSpec {
            cgroup: Some("a".to_string()),
            weight: Some(500),
            ..change(2_000_000)
        },
        ChangeSpec {
            moves: Some("two".to_string()),
            to: Some("a".to_string()),
            ..change(4_000_000)
        },
    ];
    File {
        cgroups,
        changes,
        ..file(topology, 6.0, groups)
    }
}

/// The largest difference of a group's CPUs from the ideal ones.
pub fn apart_from_ideal(file: &File, machine: &Machine) -> f64 {
    let scenario = file.scenario().unwrap();
    let cpus = machine.cfg.topology.cpus;
    let ideal = fluid::run(
        &scenario.workload,
        cpus,
        machine.cfg.seed,
        scenario.duration,
    );
    let pairs = ran(machine).into_iter().zip(ideal.ran);
    let apart = pairs.map(|(ran, ideal)| (ran - ideal).abs() / machine.now as f64);
    apart.fold(0.0, f64::max)
}

fn cgroups(variant: Variant) -> (Result<(), String>, Variant) {
    let file = cgroup_tree("1");
    judge(&file, variant, |machine| {
        let apart = apart_from_ideal(&file, machine);
        verdict(apart < CGROUP_ERROR, || {
            format!("a group is off by {apart:.4} CPUs")
        })
    })
}

/// CPUs: the averages follow a change within some 100 ms of 6 s.
pub const CGROUP_ERROR: f64 = 0.02;

const RANDOM_RUNS: usize = 400;

fn random(variant: Variant) -> (Result<(), String>, Variant) {
    let mut runner = TestRunner::deterministic();
    let scenarios = scenarios();
    let mut variant = variant;
    for _ in 0..RANDOM_RUNS {
        let Ok(tree) = scenarios.new_tree(&mut runner) else {
            continue;
        };
        let (result, back) = check(&tree.current(), variant, |_| ());
        variant = back;
        if result.is_err() {
            return (result, variant);
        }
    }
    (Ok(()), variant)
}

fn arithmetic(variant: Variant) -> (Result<(), String>, Variant) {
    (arithmetic_holds(variant.arithmetic()), variant)
}

fn arithmetic_holds(a: &Arithmetic) -> Result<(), String> {
    let times = [0, 1, 1 << 62, (1 << 63) - 5, 1 << 63, u64::MAX - 3];
    for start in times {
        for apart in [1, 1000, 1 << 40, (1 << 63) - 1] {
            let later = start.wrapping_add(apart);
            let right = (a.before)(start, later) && !(a.before)(later, start);
            verdict(right, || format!("{start} is not before {later}"))?;
            verdict((a.max)(start, later) == later, || "max".to_string())?;
        }
        // What is beyond 12 ms of drift is translated, in both directions;
        // beyond 100 ms everything.
        for (apart, carried) in [
            (101_000_000, 101_000_000i64),
            (16_000_000, 4_000_000),
            (12_000_000, 0),
            (0, 0),
        ] {
            let ahead = (a.carry)(start, start.wrapping_add(apart));
            let behind = (a.carry)(start.wrapping_add(apart), start);
            verdict(ahead == carried && behind == -carried, || {
                format!("carry over {apart}: {ahead} and {behind}")
            })?;
        }
    }
    let normal = (a.weight)(120, 0);
    verdict((a.scale)(1_000_000, normal.inv) == 1_000_000, || {
        "nice 0 runs at another pace than time".to_string()
    })
}
