// SPDX-License-Identifier: GPL-2.0-only
//! The cgroups of a workload file, for as long as it runs.
//!
//! They are threaded cgroups below one of our own, which stands for the file's
//! root: so threads of one process can be in different ones. What a run that
//! was killed left behind is removed by the next.

use crate::clock;
use anyhow::{Context, Result, ensure};
use scx_fulcrum::sim::workload::Cgroup;
use std::fs;
use std::path::{Path, PathBuf};

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

    /// Sets a control file of a cgroup; without that cgroup nothing happens.
    pub fn set(&self, number: usize, file: &str, value: u32) -> Result<()> {
        match self.nodes.get(number) {
            Some(path) => write(&path.join(file), &value.to_string()),
            None => Ok(()),
        }
    }

    /// Removes a cgroup and makes it again.
    pub fn remake(&self, number: usize) -> Result<()> {
        let Some(path) = self.nodes.get(number) else {
            return Ok(());
        };
        remove(path)?;
        fs::create_dir(path).with_context(|| format!("creating {}", path.display()))?;
        write(&path.join("cgroup.type"), "threaded")
    }
}
