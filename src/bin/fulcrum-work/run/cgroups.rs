// SPDX-License-Identifier: GPL-2.0-only
//! The cgroups of a workload file, for as long as it runs.
//!
//! They are threaded cgroups below one of our own, which stands for the file's
//! root: so threads of one process can be in different ones. What a run that
//! was killed left behind is removed by the next.

use super::stage::Stage;
use crate::clock;
use anyhow::{Context, Result, ensure};
use scx_fulcrum::sim::workload::{Cgroup, Changed};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MOUNT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "fulcrum-run.";
/// A cgroup may stay busy for a moment after its last thread has ended.
const TRIES: usize = 200;

/// The cgroups in the file system.
pub struct Tree {
    /// Where this process was before.
    home: PathBuf,
    /// Our own, and the file's after it, parents first.
    nodes: Vec<PathBuf>,
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("writing {text} to {}", file.display()))
}

fn remove(path: &Path) -> Result<()> {
    for _ in 1..TRIES {
        if fs::remove_dir(path).is_ok() {
            return Ok(());
        }
        clock::sleep_until(clock::now() + 5_000_000);
    }
    fs::remove_dir(path).with_context(|| format!("{} stays", path.display()))
}

/// Removes cgroups of runs whose process is gone.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(pid) = name.strip_prefix(PREFIX)
            && !Path::new("/proc").join(pid).exists()
        {
            remove_below(&entry.path());
        }
    }
}

fn remove_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_below(&entry.path());
        }
    }
    // Somebody else's process may have been put there: then it stays.
    let _ = fs::remove_dir(path);
}

impl Tree {
    /// Makes them and puts this process into the root of them.
    pub fn make(cgroups: &[Cgroup]) -> Result<Self> {
        let root = Path::new(MOUNT);
        let missing = "cgroups: no cgroup2 with the cpu controller at /sys/fs/cgroup, or not root";
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).context(missing)?;
        ensure!(controllers.split_whitespace().any(|c| c == "cpu"), missing);
        write(&root.join("cgroup.subtree_control"), "+cpu").context(missing)?;
        sweep(root);
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let mut tree = Self {
            home: root.join(own.unwrap_or_default()),
            nodes: Vec::new(),
        };
        let made = tree.build(root, cgroups);
        if made.is_err() {
            let _ = tree.remove();
        }
        made.map(|()| tree)
    }

    fn build(&mut self, root: &Path, cgroups: &[Cgroup]) -> Result<()> {
        let base = root.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&base).with_context(|| format!("creating {}", base.display()))?;
        self.nodes.push(base.clone());
        write(&base.join("cgroup.procs"), "0")?;
        write(&base.join("cgroup.subtree_control"), "+cpu")?;
        for (index, cgroup) in cgroups.iter().enumerate() {
            let path = base.join(&cgroup.path);
            fs::create_dir(&path).with_context(|| format!("creating {}", path.display()))?;
            self.nodes.push(path.clone());
            write(&path.join("cgroup.type"), "threaded")?;
            if cgroups.iter().any(|other| other.parent == index + 1) {
                write(&path.join("cgroup.subtree_control"), "+cpu")?;
            }
            if cgroup.idle {
                write(&path.join("cpu.idle"), "1")?;
            } else {
                write(&path.join("cpu.weight"), &cgroup.weight.to_string())?;
            }
        }
        Ok(())
    }

    /// Puts a thread (0: the caller) into cgroup `number`, as the file counts them.
    pub fn admit(&self, thread: libc::pid_t, number: usize) -> Result<()> {
        match self.nodes.get(number) {
            Some(path) => write(&path.join("cgroup.threads"), &thread.to_string()),
            None => Ok(()),
        }
    }

    /// Leaves and removes them; no thread may be in them any more.
    pub fn remove(&self) -> Result<()> {
        write(&self.home.join("cgroup.procs"), "0")?;
        self.nodes.iter().rev().try_for_each(|path| remove(path))
    }

    fn change(&self, stage: &Stage, what: &Changed) -> Result<()> {
        let set = |number: usize, file: &str, value: u32| match self.nodes.get(number) {
            Some(path) => write(&path.join(file), &value.to_string()),
            None => Ok(()),
        };
        match what {
            Changed::Weight { cgroup, weight } => set(*cgroup, "cpu.weight", *weight),
            Changed::Idle { cgroup, idle } => set(*cgroup, "cpu.idle", u32::from(*idle)),
            Changed::Remade { cgroup } => self.nodes.get(*cgroup).map_or(Ok(()), |path| {
                remove(path)?;
                fs::create_dir(path).with_context(|| format!("creating {}", path.display()))?;
                write(&path.join("cgroup.type"), "threaded")
            }),
            Changed::Move { groups, to } => {
                for thread in stage.threads(groups) {
                    // It may have ended meanwhile.
                    let _ = self.admit(thread, *to);
                }
                Ok(())
            }
        }
    }
}

/// Starts the thread that carries out the file's changes, if there are any;
/// how many threads.
pub fn start_changes(stage: &Arc<Stage>) -> Result<usize> {
    if stage.changes.is_empty() {
        return Ok(0);
    }
    let own = Arc::clone(stage);
    stage.spawn(move || {
        if let Err(error) = carry_out(&own) {
            own.fail(format!("{error:#}"));
        }
    })?;
    Ok(1)
}

fn carry_out(stage: &Stage) -> Result<()> {
    crate::cpus::become_observer();
    stage.is_ready();
    let start = stage.await_open();
    for change in &stage.changes {
        let at = start + change.at;
        if at >= stage.end() {
            break;
        }
        clock::sleep_until(at);
        if stage.over() {
            break;
        }
        if let Some(tree) = &stage.tree {
            tree.change(stage, &change.what)?;
        }
    }
    Ok(())
}
