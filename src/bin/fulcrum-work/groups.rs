// SPDX-License-Identifier: GPL-2.0-only
//! `groups`: hogs in cgroups of different `cpu.weight` on one CPU, what each
//! group got beside what it ought to get, and how soon a new weight is obeyed.

use crate::clock;
use crate::cpus::CpuList;
use crate::crew::{Crew, Member};
use crate::fair;
use crate::hogs;
use crate::report::{self, Report};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const MOUNT: &str = "/sys/fs/cgroup";
/// A new weight counts as obeyed when the shares of this long a time are within
/// `NEAR` of what they ought to be: slices of some milliseconds need that much
/// to even out.
const TRAIL_NS: u64 = 100_000_000;
const NEAR: f64 = 0.05;
const STEP_NS: u64 = 10_000_000;
/// When to give up waiting for it.
const PATIENCE_NS: u64 = 1_500_000_000;

/// A group with hogs in it: `a/b:100:2` is two hogs in the group b of weight
/// 100 within the group a. A group that only holds groups has 0 hogs.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    path: String,
    weight: u32,
    hogs: usize,
}

impl FromStr for Group {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let &[path, weight, hogs] = parts.as_slice() else {
            bail!("`{text}` is no group; write for example a/b:100:2 (path, weight, hogs)");
        };
        ensure!(
            path.split('/')
                .all(|p| !p.is_empty() && p.chars().all(|c| c.is_ascii_alphanumeric())),
            "`{path}` is no path of groups; write for example a/b"
        );
        let weight = weight.parse().ok().filter(|w| (1..=10_000).contains(w));
        Ok(Self {
            path: path.to_string(),
            weight: weight.with_context(|| format!("`{text}`: weights are from 1 to 10000"))?,
            hogs: hogs
                .parse()
                .with_context(|| format!("`{text}`: how many hogs?"))?,
        })
    }
}

#[derive(Args)]
pub struct GroupsArgs {
    /// A group as PATH:WEIGHT:HOGS, parents first; hogs only where no group is
    /// inside (repeatable)
    #[arg(long = "group", required = true)]
    groups: Vec<Group>,
    /// After measuring, give the group PATH this weight and take the time until
    /// the shares follow: PATH:WEIGHT
    #[arg(long)]
    change: Option<String>,
    /// The CPU that all share
    #[arg(long, default_value = "0")]
    cpus: CpuList,
    /// Seconds to measure
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

#[derive(Serialize)]
struct Row {
    group: String,
    weight: u32,
    hogs: usize,
    share: f64,
    ideal: f64,
}

#[derive(Serialize)]
pub struct GroupsReport {
    seconds: f64,
    /// The largest |share - ideal|.
    worst_error: f64,
    groups: Vec<Row>,
    /// Milliseconds from a change of weight until the shares followed.
    settled_ms: Option<f64>,
}

/// The groups in the file system, removed when dropped.
struct Tree(Vec<PathBuf>);

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("writing {text} to {}", file.display()))
}

impl Tree {
    /// A group for us, and the asked ones in it.
    fn make(groups: &[Group]) -> Result<Self> {
        let root = Path::new(MOUNT);
        let missing = "no cgroup2 with the cpu controller: run as root, mount cgroup2 there";
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).context(missing)?;
        ensure!(controllers.split_whitespace().any(|c| c == "cpu"), missing);
        write(&root.join("cgroup.subtree_control"), "+cpu").context(missing)?;
        let mut tree = Self(Vec::new());
        let base = root.join(format!("fulcrum-work.{}", std::process::id()));
        tree.add(&base, 100, true)?;
        for group in groups {
            tree.add(&base.join(&group.path), group.weight, group.hogs == 0)?;
        }
        Ok(tree)
    }

    fn add(&mut self, path: &Path, weight: u32, parent: bool) -> Result<()> {
        fs::create_dir(path).with_context(|| format!("creating {}", path.display()))?;
        self.0.push(path.to_path_buf());
        write(&path.join("cpu.weight"), &weight.to_string())?;
        match parent {
            true => write(&path.join("cgroup.subtree_control"), "+cpu"),
            false => Ok(()),
        }
    }

    fn path(&self, group: &Group) -> PathBuf {
        self.0
            .first()
            .map_or_else(PathBuf::new, |base| base.join(&group.path))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            if let Err(e) = fs::remove_dir(path) {
                eprintln!("fulcrum-work: {} stays: {e}", path.display());
            }
        }
    }
}

/// What part of the CPU each group ought to get: its parent's part, divided by
/// weight among those groups of the parent's that have hogs anywhere.
fn ideals(groups: &[Group]) -> Vec<f64> {
    let parent = |path: &str| path.rsplit_once('/').map(|(p, _)| p.to_string());
    let busy = |g: &Group| {
        let inside = format!("{}/", g.path);
        groups
            .iter()
            .any(|o| o.hogs > 0 && (o.path == g.path || o.path.starts_with(&inside)))
    };
    let mut parts: Vec<f64> = Vec::new();
    for group in groups {
        let up = parent(&group.path);
        let above = up.as_ref().map_or(1.0, |up| {
            let at = groups.iter().position(|g| g.path == *up);
            at.and_then(|i| parts.get(i).copied()).unwrap_or(0.0)
        });
        let sum: u32 = groups
            .iter()
            .filter(|g| parent(&g.path) == up && busy(g))
            .map(|g| g.weight)
            .sum();
        parts.push(match busy(group) {
            true => above * f64::from(group.weight) / f64::from(sum),
            false => 0.0,
        });
    }
    parts
}

/// Each group's part of the CPU time that all hogs used.
fn by_group(groups: &[Group], cpu_ns: &[u64]) -> Vec<f64> {
    let mut rest = cpu_ns.iter();
    let sums: Vec<f64> = groups
        .iter()
        .map(|g| rest.by_ref().take(g.hogs).sum::<u64>() as f64)
        .collect();
    fair::shares(&sums)
}

/// The largest difference, over the groups that have hogs themselves.
fn worst(groups: &[Group], shares: &[f64], ideals: &[f64]) -> f64 {
    groups
        .iter()
        .zip(shares.iter().zip(ideals))
        .filter(|(g, _)| g.hogs > 0)
        .map(|(_, (s, i))| (s - i).abs())
        .fold(0.0, f64::max)
}

/// Change a weight and wait until the shares have followed.
fn settle(crew: &Crew, groups: &[Group], tree: &Tree, change: &str) -> Result<f64> {
    let (path, weight) = change
        .rsplit_once(':')
        .with_context(|| format!("`{change}`: write PATH:WEIGHT"))?;
    let mut after = groups.to_vec();
    let group = after
        .iter_mut()
        .find(|g| g.path == path)
        .with_context(|| format!("`{change}`: no such group"))?;
    group.weight = weight
        .parse()
        .with_context(|| format!("`{change}`: what weight?"))?;
    let file = tree.path(group).join("cpu.weight");
    let ideal = ideals(&after);
    let mut readings = vec![crew.read()?];
    write(&file, weight)?;
    let began = clock::now();
    loop {
        let now = clock::now();
        if now - began > PATIENCE_NS {
            return Ok(PATIENCE_NS as f64 / 1e6);
        }
        clock::sleep_until(now + STEP_NS);
        let latest = crew.read()?;
        while readings
            .get(1)
            .is_some_and(|r| latest.at_ns - r.at_ns >= TRAIL_NS)
        {
            readings.remove(0);
        }
        if let Some(first) = readings
            .first()
            .filter(|r| latest.at_ns - r.at_ns >= TRAIL_NS)
        {
            let used: Vec<u64> = latest
                .cpu_ns
                .iter()
                .zip(&first.cpu_ns)
                .map(|(b, a)| b - a)
                .collect();
            if worst(groups, &by_group(groups, &used), &ideal) <= NEAR {
                return Ok((latest.at_ns - began) as f64 / 1e6);
            }
        }
        readings.push(latest);
    }
}

pub fn groups(args: &GroupsArgs) -> Result<GroupsReport> {
    ensure!(args.cpus.len() == 1, "--cpus is one CPU");
    let tree = Tree::make(&args.groups)?;
    let hogs: usize = args.groups.iter().map(|g| g.hogs).sum();
    let members: Vec<Member> = (0..hogs)
        .map(|_| hogs::hog(0, Some(args.cpus.clone())))
        .collect();
    let mut crew = Crew::muster(&members)?;
    let mut pids = crew.pids().iter();
    for group in &args.groups {
        let file = tree.path(group).join("cgroup.procs");
        for pid in pids.by_ref().take(group.hogs) {
            write(&file, &pid.to_string())?;
        }
    }
    let window = crew.observe(500, args.seconds)?;
    let settled_ms = match &args.change {
        Some(change) => Some(settle(&crew, &args.groups, &tree, change)?),
        None => None,
    };
    crew.stop()?;
    let shares = by_group(&args.groups, &window.cpu_ns);
    let ideals = ideals(&args.groups);
    let row = |(group, (share, ideal)): (&Group, (&f64, &f64))| Row {
        group: group.path.clone(),
        weight: group.weight,
        hogs: group.hogs,
        share: *share,
        ideal: *ideal,
    };
    Ok(GroupsReport {
        seconds: window.ns as f64 / 1e9,
        worst_error: worst(&args.groups, &shares, &ideals),
        groups: args
            .groups
            .iter()
            .zip(shares.iter().zip(&ideals))
            .filter(|(g, _)| g.hogs > 0)
            .map(row)
            .collect(),
        settled_ms,
    })
}

impl fmt::Display for GroupsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "groups: {:.2} s on one CPU", self.seconds)?;
        writeln!(f, "  weight  hogs   share   ideal  group")?;
        for row in &self.groups {
            writeln!(
                f,
                "  {:>6}  {:>4}  {:.4}  {:.4}  {}",
                row.weight, row.hogs, row.share, row.ideal, row.group
            )?;
        }
        if let Some(ms) = self.settled_ms {
            writeln!(f, "  a new weight was obeyed after {ms:.0} ms")?;
        }
        write!(f, "worst error {:.4}", self.worst_error)
    }
}

impl Report for GroupsReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("groups", self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Vec<Group> {
        texts.iter().map(|t| t.parse().unwrap()).collect()
    }

    #[test]
    fn a_tree_is_divided_level_by_level() {
        let groups = parsed(&["a:100:0", "a/x:100:1", "a/y:300:3", "b:100:10"]);
        assert_eq!(ideals(&groups), [0.5, 0.125, 0.375, 0.5]);
        // Groups without a hog take nothing.
        let groups = parsed(&["a:100:0", "a/x:100:0", "b:100:1", "c:300:1"]);
        assert_eq!(ideals(&groups), [0.0, 0.0, 0.25, 0.75]);
    }

    #[test]
    fn a_scheduler_that_only_sees_tasks_is_found_out() {
        let groups = parsed(&["a:100:1", "b:100:10"]);
        let shares = by_group(&groups, &[10; 11]);
        assert!(worst(&groups, &shares, &ideals(&groups)) > 0.4);
        // One that takes only the leaf's own weight errs on nested groups.
        let groups = parsed(&["a:100:0", "a/x:100:1", "b:100:1", "a/y:300:1"]);
        let shares = by_group(&groups, &[1, 1, 3]);
        assert!(worst(&groups, &shares, &ideals(&groups)) > 0.2);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "a",
            "a:1",
            ":1:1",
            "a//b:1:1",
            "../a:1:1",
            "a:0:1",
            "a:10001:1",
            "a:1:x",
        ] {
            assert!(text.parse::<Group>().is_err(), "{text}");
        }
    }
}
