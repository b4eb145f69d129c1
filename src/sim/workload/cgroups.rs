// SPDX-License-Identifier: GPL-2.0-only
//! Cgroups of a workload file: the tree, and what changes while it runs.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Cgroup, Change, Changed, Workload};

const MAX_CGROUPS: usize = 10_000;
/// `cpu.weight` of a cgroup that says nothing.
pub const DEFAULT_WEIGHT: u32 = 100;

const fn default_weight() -> u32 {
    DEFAULT_WEIGHT
}

/// A cgroup; its parents exist with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupSpec {
    /// `a/b`: b within a.
    pub path: String,
    /// `cpu.weight`, 1..=10000
    #[serde(default = "default_weight")]
    pub weight: u32,
    /// `cpu.idle`
    #[serde(default)]
    pub idle: bool,
}

/// Something that is done to a cgroup, or to the tasks of a group, at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// When.
    pub at_us: u64,
    /// Which cgroup gets a weight or is made idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Its new `cpu.weight`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Its new `cpu.idle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<bool>,
    /// It is removed, and one of the same path made: weight 100, not idle. Only
    /// if nothing is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remade: Option<bool>,
    /// The group whose tasks move.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub moves: Option<String>,
    /// The cgroup that they move to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Where each path is in [`Workload::cgroups`], as [`Cgroup::parent`] counts.
pub(super) struct Paths(HashMap<String, usize>);

impl Paths {
    /// The number of `path`, which must be there.
    pub(super) fn find(&self, path: &str) -> Result<usize, String> {
        match self.0.get(path) {
            Some(&number) => Ok(number),
            None => Err(format!("there is no cgroup {path:?}")),
        }
    }
}

fn weight(weight: u32) -> Result<u32, String> {
    if (1..=10_000).contains(&weight) {
        return Ok(weight);
    }
    Err(format!("weight: {weight} is not in 1..=10000"))
}

fn check_path(path: &str) -> Result<(), String> {
    let bad = |part: &str| part.is_empty() || part == "." || part == ".." || part.len() > 255;
    if path.split('/').any(bad) || path.contains(char::is_control) {
        return Err(format!(
            "path: {path:?} is not of the form \"a/b\" (without a slash at either end)"
        ));
    }
    Ok(())
}

/// Adds the cgroups of `specs` to `workload`, parents first.
///
/// # Errors
///
/// The member and what is wrong with it.
pub(super) fn add(specs: &[CgroupSpec], workload: &mut Workload) -> Result<Paths, String> {
    let mut paths = Paths(HashMap::from([("/".to_string(), 0)]));
    let mut named = vec![false];
    for (index, spec) in specs.iter().enumerate() {
        let place = |why: String| format!("cgroups[{index}].{why}");
        check_path(&spec.path).map_err(place)?;
        let mut number = 0;
        for end in spec.path.match_indices('/').map(|(at, _)| at) {
            number = child(&spec.path[..end], number, workload, &mut paths);
        }
        number = child(&spec.path, number, workload, &mut paths);
        named.resize(workload.cgroups.len() + 1, false);
        if std::mem::replace(&mut named[number], true) {
            return Err(place(format!("path: {:?} is there twice", spec.path)));
        }
        let cgroup = &mut workload.cgroups[number - 1];
        cgroup.weight = weight(spec.weight).map_err(place)?;
        cgroup.idle = spec.idle;
    }
    if workload.cgroups.len() > MAX_CGROUPS {
        return Err(format!("cgroups: there are more than {MAX_CGROUPS}"));
    }
    Ok(paths)
}

fn child(path: &str, parent: usize, workload: &mut Workload, paths: &mut Paths) -> usize {
    *paths.0.entry(path.to_string()).or_insert_with(|| {
        workload.cgroups.push(Cgroup {
            path: path.to_string(),
            parent,
            weight: DEFAULT_WEIGHT,
            idle: false,
        });
        workload.cgroups.len()
    })
}

/// Adds the changes, in the order of their times. `members` says which groups
/// of the workload a group of the file became.
///
/// # Errors
///
/// The member and what is wrong with it.
pub(super) fn add_changes(
    specs: &[ChangeSpec],
    paths: &Paths,
    members: &HashMap<&str, Vec<usize>>,
    workload: &mut Workload,
) -> Result<(), String> {
    let mut changes = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let place = |why: String| format!("changes[{index}]{why}");
        let what = spec.changed(paths, members).map_err(place)?;
        let at = spec.at_us * 1000;
        changes.push((index, Change { at, what }));
    }
    changes.sort_by_key(|(_, change)| change.at);
    refuse_weights_of_idle(&changes, workload)?;
    workload.changes = changes.into_iter().map(|(_, change)| change).collect();
    Ok(())
}

/// The kernel takes no weight for a cgroup whose `cpu.idle` is 1.
fn refuse_weights_of_idle(changes: &[(usize, Change)], workload: &Workload) -> Result<(), String> {
    let mut idle: Vec<bool> = workload.cgroups.iter().map(|cgroup| cgroup.idle).collect();
    for (index, change) in changes {
        match change.what {
            Changed::Idle { cgroup, idle: now } => idle[cgroup - 1] = now,
            Changed::Remade { cgroup } => idle[cgroup - 1] = false,
            Changed::Weight { cgroup, .. } if idle[cgroup - 1] => {
                return Err(format!(
                    "changes[{index}].weight: the kernel refuses a weight for {:?}, which is idle",
                    workload.cgroups[cgroup - 1].path
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

impl ChangeSpec {
    fn changed(
        &self,
        paths: &Paths,
        members: &HashMap<&str, Vec<usize>>,
    ) -> Result<Changed, String> {
        match self {
            Self {
                cgroup: Some(path),
                weight: new,
                idle,
                remade,
                moves: None,
                to: None,
                ..
            } => {
                let cgroup = paths.find(path).map_err(|why| format!(".cgroup: {why}"))?;
                if cgroup == 0 {
                    return Err(".cgroup: the root has no weight".to_string());
                }
                match (new, idle, remade) {
                    (Some(new), None, None) => Ok(Changed::Weight {
                        cgroup,
                        weight: weight(*new).map_err(|why| format!(".{why}"))?,
                    }),
                    (None, Some(idle), None) => Ok(Changed::Idle {
                        cgroup,
                        idle: *idle,
                    }),
                    (None, None, Some(true)) => Ok(Changed::Remade { cgroup }),
                    _ => Err(": a cgroup needs one of weight, idle, remade".to_string()),
                }
            }
            Self {
                cgroup: None,
                weight: None,
                idle: None,
                remade: None,
                moves: Some(name),
                to: Some(path),
                ..
            } => {
                let groups = members
                    .get(name.as_str())
                    .ok_or_else(|| format!(".move: there is no group {name:?}"))?;
                Ok(Changed::Move {
                    groups: groups.clone(),
                    to: paths.find(path).map_err(|why| format!(".to: {why}"))?,
                })
            }
            _ => Err(": expected cgroup with weight, idle or remade, or move with to".to_string()),
        }
    }
}
