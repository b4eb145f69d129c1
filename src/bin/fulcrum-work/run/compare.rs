// SPDX-License-Identifier: GPL-2.0-only
//! `compare`: runs of workload files on a real kernel beside the simulator's.
//!
//! Reads what `scripts/calibrate` gathered in a folder: `vm-SEED-NAME.json`,
//! `sim-SEED-NAME.json` and `floor-CPUS.json`. Judges each group by the rules
//! that `page.rs` prints, and fails on a difference that has no reason in the
//! file of reasons.

use super::calibration::{Calibration, ENOUGH, FACTOR, Group, Pair, Reason, SHARE_BOUND, reason};
use super::page;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct CompareArgs {
    /// Where the runs are
    dir: PathBuf,
    /// Known differences: [{"file", "group", "row", "reason"}]
    #[arg(long)]
    reasons: PathBuf,
    /// What the page says it was made with
    #[arg(long)]
    made_with: String,
    /// Writes OUT.md and OUT.json
    #[arg(long)]
    out: PathBuf,
}

/// A run's report, the tool's or the simulator's.
#[derive(Deserialize)]
struct Run {
    workload: String,
    cpus: usize,
    seconds: f64,
    groups: Vec<RunGroup>,
}

#[derive(Deserialize)]
struct RunGroup {
    name: String,
    tasks: usize,
    share: f64,
    wakeup: Times,
    response: Times,
    misses: u64,
}

#[derive(Clone, Copy, Deserialize)]
struct Times {
    count: u64,
    p50_us: f64,
    p99_us: f64,
}

/// How late real-time sleepers are in the VM.
#[derive(Deserialize)]
struct Floor {
    wakeup: FloorTimes,
}

#[derive(Deserialize)]
struct FloorTimes {
    p99_us: f64,
}

/// Writes the table; an error names a difference without a reason.
pub fn compare(args: &CompareArgs) -> Result<()> {
    let calibration = gather(args)?;
    let text =
        fs::read_to_string(&args.reasons).with_context(|| format!("{}", args.reasons.display()))?;
    let reasons: Vec<Reason> =
        serde_json::from_str(&text).with_context(|| format!("{}", args.reasons.display()))?;
    let write = |ending: &str, text: String| {
        let path = args.out.with_extension(ending);
        fs::write(&path, text).with_context(|| format!("{}", path.display()))
    };
    write("md", page::page(&calibration, &reasons))?;
    write("json", serde_json::to_string_pretty(&calibration)? + "\n")?;
    for group in &calibration.groups {
        for row in &group.differs {
            if reason(&reasons, group, row).is_none() {
                bail!(
                    "{}: {}: {row} differs, and {} has no reason for it",
                    group.file,
                    group.group,
                    args.reasons.display()
                );
            }
        }
    }
    Ok(())
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
}

fn gather(args: &CompareArgs) -> Result<Calibration> {
    let dir = &args.dir;
    let mut files: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for entry in fs::read_dir(dir).with_context(|| format!("{}", dir.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some((seed, file)) = run_name(&name) {
            files.entry(file.to_string()).or_default().push(seed);
        }
    }
    let (mut groups, mut floor_us, mut seeds) = (Vec::new(), BTreeMap::new(), Vec::new());
    for (file, mut of_file) in files {
        of_file.sort_unstable();
        let side = |side: &str| -> Result<Vec<Run>> {
            let path = |seed| dir.join(format!("{side}-{seed}-{file}.json"));
            of_file.iter().map(|seed| read(&path(seed))).collect()
        };
        let (vm, sim) = (side("vm")?, side("sim")?);
        let cpus = vm.first().map_or(0, |run| run.cpus);
        let floor: Floor = read(&dir.join(format!("floor-{cpus}.json")))?;
        floor_us.insert(cpus, floor.wakeup.p99_us);
        groups.extend(beside(&file, &vm, &sim, floor.wakeup.p99_us)?);
        seeds = of_file;
    }
    if groups.is_empty() {
        bail!("{}: no runs in it", dir.display());
    }
    groups.sort_by(|a, b| (a.cpus, &a.file).cmp(&(b.cpus, &b.file)));
    let kernel = fs::read_to_string(dir.join("kernel")).context("kernel")?;
    Ok(Calibration {
        made_with: args.made_with.clone(),
        kernel: kernel.trim().to_string(),
        seeds,
        share_bound: SHARE_BOUND,
        factor: FACTOR,
        floor_us,
        groups,
    })
}

/// Seed and file of `vm-SEED-FILE.json`.
fn run_name(name: &str) -> Option<(u64, &str)> {
    let (seed, file) = name
        .strip_prefix("vm-")?
        .strip_suffix(".json")?
        .split_once('-')?;
    Some((seed.parse().ok()?, file))
}

fn beside(file: &str, vm: &[Run], sim: &[Run], floor: f64) -> Result<Vec<Group>> {
    let Some(first) = vm.first() else {
        return Ok(Vec::new());
    };
    for run in vm.iter().chain(sim) {
        if (&run.workload, run.cpus) != (&first.workload, first.cpus) {
            bail!("{file}: its runs are not of one workload on one machine");
        }
    }
    let group = |index: usize| -> Result<Group> {
        let of = |runs| members(runs, index).with_context(|| format!("{file}: a group is missing"));
        let mut group = Group::new(file, first.cpus, &of(vm)?, &of(sim)?, floor);
        group.excess_us_a_wakeup = group.wakeups.map(|wakeups| {
            (group.share.vm - group.share.sim) * first.seconds * 1e6 / wakeups.max(1.0)
        });
        Ok(group)
    };
    (0..first.groups.len()).map(group).collect()
}

fn members(runs: &[Run], index: usize) -> Option<Vec<&RunGroup>> {
    runs.iter().map(|run| run.groups.get(index)).collect()
}

impl Group {
    fn new(file: &str, cpus: usize, vm: &[&RunGroup], sim: &[&RunGroup], floor: f64) -> Self {
        let mean = |of: &dyn Fn(&RunGroup) -> f64| Pair {
            vm: mean(vm, of),
            sim: mean(sim, of),
        };
        let share = mean(&|group| group.share);
        let share_error = (share.vm - share.sim) / cpus as f64;
        let times = times(vm, sim);
        let mut differs = Vec::new();
        if share_error.abs() > SHARE_BOUND {
            differs.push("share");
        }
        differs.extend(
            times
                .iter()
                .filter(|(_, pair)| !pair.same_order(floor))
                .map(|(row, _)| *row),
        );
        let first = vm.first();
        Self {
            file: file.to_string(),
            group: first.map_or_else(String::new, |group| group.name.clone()),
            cpus,
            tasks: first.map_or(0, |group| group.tasks),
            share,
            share_error,
            misses: mean(&|group| group.misses as f64),
            wakeups: times
                .contains_key("wakeup p50")
                .then(|| mean(&|group| group.wakeup.count as f64).vm),
            excess_us_a_wakeup: None,
            times,
            differs,
        }
    }
}

/// The rows of both sides that have enough values in each run.
fn times(vm: &[&RunGroup], sim: &[&RunGroup]) -> BTreeMap<&'static str, Pair> {
    let mut rows = BTreeMap::new();
    let mut add = |p50, p99, of: fn(&RunGroup) -> Times| {
        if vm.iter().chain(sim).all(|group| of(group).count >= ENOUGH) {
            rows.insert(p50, median_pair(vm, sim, |group| of(group).p50_us));
            rows.insert(p99, median_pair(vm, sim, |group| of(group).p99_us));
        }
    };
    add("wakeup p50", "wakeup p99", |group| group.wakeup);
    add("response p50", "response p99", |group| group.response);
    rows
}

fn mean(groups: &[&RunGroup], of: &dyn Fn(&RunGroup) -> f64) -> f64 {
    groups.iter().map(|group| of(group)).sum::<f64>() / groups.len().max(1) as f64
}

fn median_pair(vm: &[&RunGroup], sim: &[&RunGroup], of: impl Fn(&RunGroup) -> f64) -> Pair {
    let median = |groups: &[&RunGroup]| {
        let mut values: Vec<f64> = groups.iter().map(|group| of(group)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    Pair {
        vm: median(vm),
        sim: median(sim),
    }
}

impl Pair {
    /// Within the factor of each other, once both are raised to `floor`.
    fn same_order(self, floor: f64) -> bool {
        let (vm, sim) = (self.vm.max(floor), self.sim.max(floor));
        vm <= sim * FACTOR && sim <= vm * FACTOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(share: f64, p99_us: f64) -> Run {
        let times = Times {
            count: 1000,
            p50_us: 10.0,
            p99_us,
        };
        let group = RunGroup {
            name: "a".to_string(),
            tasks: 1,
            share,
            wakeup: times,
            response: Times { count: 3, ..times },
            misses: 0,
        };
        Run {
            workload: "w".to_string(),
            cpus: 2,
            seconds: 2.0,
            groups: vec![group],
        }
    }

    fn judged(vm: Run, sim: Run) -> Group {
        beside("w", &[vm], &[sim], 50.0).unwrap().remove(0)
    }

    #[test]
    fn shares_are_judged_as_parts_of_the_machine() {
        let near = judged(run(1.019, 1.0), run(1.0, 1.0));
        assert!(near.differs.is_empty());
        assert!((near.excess_us_a_wakeup.unwrap() - 38.0).abs() < 1e-6);
        assert_eq!(judged(run(1.0, 1.0), run(1.021, 1.0)).differs, ["share"]);
    }

    #[test]
    fn percentiles_are_judged_above_the_floor_and_by_their_factor() {
        assert!(judged(run(1.0, 149.0), run(1.0, 1.0)).differs.is_empty());
        for (vm, sim) in [(151.0, 1.0), (1000.0, 3100.0)] {
            assert_eq!(judged(run(1.0, vm), run(1.0, sim)).differs, ["wakeup p99"]);
        }
        let few = judged(run(1.0, 1.0), run(1.0, 1.0));
        assert!(!few.times.contains_key("response p99"));
    }

    #[test]
    fn a_reason_fits_its_file_group_and_row() {
        let group = judged(run(1.0, 1.0), run(1.5, 1.0));
        let reason_for = |file: &str, name: Option<&str>, row: &str| Reason {
            file: file.to_string(),
            group: name.map(ToString::to_string),
            row: row.to_string(),
            reason: "so".to_string(),
        };
        for (candidate, fits) in [
            (reason_for("w", Some("a"), "share"), true),
            (reason_for("w", None, "share"), true),
            (reason_for("w", Some("b"), "share"), false),
            (reason_for("v", None, "share"), false),
            (reason_for("w", None, "wakeup p99"), false),
        ] {
            assert_eq!(reason(&[candidate], &group, "share").is_some(), fits);
        }
    }

    #[test]
    fn names_carry_seed_and_file() {
        assert_eq!(run_name("vm-2-mixed-4.json"), Some((2, "mixed-4")));
        assert_eq!(run_name("sim-2-mixed-4.json"), None);
        assert_eq!(run_name("floor-4.json"), None);
    }
}
