// SPDX-License-Identifier: GPL-2.0-only
//! Makes the frames of one rate: remembers the look before, and asks the
//! scheduler for no more than somebody wants to see.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::kernel::inspect::{Decided, ROOT, TaskView};

use super::frame::{Frame, Health, SCHEMA, Scheduler};
use super::limits::Limits;
use super::look::{self, Between, Look};
use super::reports::{Reports, unix_ms};

/// Where cgroups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The running scheduler, as far as it can be looked at.
pub trait Source {
    /// A look; with the cgroups if `groups`.
    fn look(&mut self, groups: bool) -> Look;
    /// All tasks.
    ///
    /// # Errors
    ///
    /// A sentence, if they can't be listed.
    fn tasks(&mut self) -> Result<Vec<TaskView>, String>;
    /// The last decisions of each CPU.
    fn recorded(&mut self) -> Vec<Decided>;
    /// Count the waits of each cgroup from now on, or no longer.
    fn watch(&mut self, on: bool);
    /// The scheduler, and how it is set.
    fn scheduler(&self) -> Scheduler;
    /// The NUMA node of a domain.
    fn node_of(&self, domain: usize) -> usize;
    /// What the agent has to tell.
    fn reports(&self) -> &Reports;
}

/// The sections of a frame that are there only if asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Those of a frame.
pub struct Sections {
    pub waits: bool,
    pub cpus: bool,
    pub groups: bool,
    pub tasks: bool,
    pub decisions: bool,
}

/// Names of sections; the first three are always there.
pub const NAMES: &[&str] = &[
    "scheduler",
    "totals",
    "health",
    "waits",
    "cpus",
    "groups",
    "tasks",
    "decisions",
];

impl Sections {
    /// All of them.
    pub const ALL: Self = Self {
        waits: true,
        cpus: true,
        groups: true,
        tasks: true,
        decisions: true,
    };

    /// Those called `names`.
    ///
    /// # Errors
    ///
    /// A sentence with all names, if one is none of them.
    pub fn named(names: &[String]) -> Result<Self, String> {
        let mut sections = Self::default();
        for name in names {
            match name.as_str() {
                "waits" => sections.waits = true,
                "cpus" => sections.cpus = true,
                "groups" => sections.groups = true,
                "tasks" => sections.tasks = true,
                "decisions" => sections.decisions = true,
                "scheduler" | "totals" | "health" => {}
                _ => {
                    return Err(format!(
                        "no section {name:?}: there are {}",
                        NAMES.join(", ")
                    ));
                }
            }
        }
        Ok(sections)
    }

    /// Their names, with those that are always there.
    pub fn names(self) -> Vec<&'static str> {
        let names = NAMES.iter().copied();
        names.filter(|name| self.has(name)).collect()
    }

    /// Whether the section called `name` is among them.
    pub fn has(self, name: &str) -> bool {
        match name {
            "waits" => self.waits,
            "cpus" => self.cpus,
            "groups" => self.groups,
            "tasks" => self.tasks,
            "decisions" => self.decisions,
            _ => true,
        }
    }
}

/// Makes one frame after the other.
#[derive(Debug, Default)]
pub struct Observer {
    earlier: Look,
    none: Look,
    decisions: u64,
    wakeups: u64,
    cpu_time: Duration,
    paths: Paths,
    limits: Limits,
}

impl Observer {
    /// The first frame counts from now.
    pub fn from_now(source: &mut dyn Source, groups: bool) -> Self {
        Self {
            earlier: source.look(groups),
            decisions: source.reports().decisions.next(),
            wakeups: source.reports().wakeups,
            cpu_time: used().0,
            ..Self::default()
        }
    }

    /// No decision that `before` has not shown is left out.
    pub const fn goes_on_after(&mut self, before: &Self) {
        self.decisions = before.decisions;
    }

    /// A frame of the time since the last one, or since the start of the
    /// scheduler on the first; its number is 0.
    pub fn frame(&mut self, source: &mut dyn Source, sections: Sections) -> Frame {
        let now = source.look(sections.groups);
        let mut warnings = source.reports().warnings.clone();
        let tasks = if sections.tasks {
            source.tasks().unwrap_or_else(|why| {
                warnings.push(why);
                Vec::new()
            })
        } else {
            Vec::new()
        };
        let between = Between::new(&self.earlier, &now, &self.none);
        let mut frame = Frame {
            schema: SCHEMA,
            time_ms: unix_ms(),
            interval_ms: between.interval_ms(),
            scheduler: source.scheduler(),
            totals: between.totals(),
            tasks: tasks.iter().map(look::task).collect(),
            ..Frame::default()
        };
        if sections.waits {
            frame.waits = between.waits();
        }
        if sections.cpus {
            frame.cpus = between.cpus(|domain| source.node_of(domain));
            for cpu in frame.cpus.iter_mut().filter(|cpu| cpu.pid != 0) {
                cpu.comm = comm(cpu.pid);
            }
        }
        if sections.groups {
            self.paths.learn(now.groups.iter().map(|group| group.id));
            frame.groups = between.groups(|id| self.paths.of(id));
            let paths = frame.groups.iter().map(|group| group.path.as_str());
            self.limits
                .refresh(Path::new(CGROUPS), paths, Instant::now());
            for group in &mut frame.groups {
                group.max_pct = self.limits.of(&group.path);
            }
        }
        let reports = source.reports();
        if sections.decisions {
            frame.decisions = reports.decisions.since(self.decisions).cloned().collect();
        }
        self.decisions = reports.decisions.next();
        frame.health = self.health(reports, &now, warnings);
        self.wakeups = reports.wakeups;
        self.earlier = now;
        frame
    }

    /// The look that the last frame was made of.
    pub const fn latest(&self) -> &Look {
        &self.earlier
    }

    fn health(&mut self, reports: &Reports, now: &Look, warnings: Vec<String>) -> Health {
        let seconds = now.at.saturating_sub(self.earlier.at).as_secs_f64();
        let rate = |value: f64| {
            if seconds > 0.0 {
                (100.0 * value / seconds).round() / 100.0
            } else {
                0.0
            }
        };
        let sum = |count: fn(&crate::stats::counters::Counters) -> u64| {
            now.cpus.iter().map(|cpu| count(&cpu.counters)).sum()
        };
        let (cpu_time, rss_kib) = used();
        let spent = cpu_time.saturating_sub(self.cpu_time).as_secs_f64();
        self.cpu_time = cpu_time;
        Health {
            late_ms: 0,
            agent_wakeups: rate(reports.wakeups.saturating_sub(self.wakeups) as f64),
            agent_cpu_pct: rate(100.0 * spent),
            agent_rss_kib: rss_kib,
            clients: 0,
            lifecycle_errors: sum(|counters| counters.lifecycle_errors),
            missing_ctx: sum(|counters| counters.missing_ctx),
            groups_without_slot: sum(|counters| counters.groups_without_slot),
            rescues: sum(|counters| counters.rescues),
            fallbacks: reports.fallbacks.clone(),
            warnings,
            dropped_frames: 0,
        }
    }
}

/// The path of the cgroup with this id.
pub fn cgroup_path(id: u64) -> String {
    let mut paths = Paths::default();
    paths.learn(std::iter::once(id));
    paths.of(id)
}

/// The name of a task; empty if it has ended.
pub fn comm(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}

/// CPU time and memory in KiB of this process; 0 where /proc does not tell.
fn used() -> (Duration, u64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let field = |at: usize| after.split_whitespace().nth(at)?.parse::<u64>().ok();
    // Fields 14, 15 and 24 of proc(5), of which two are before the bracket.
    let ticks = field(11).unwrap_or(0) + field(12).unwrap_or(0);
    (
        Duration::from_millis(10 * ticks),
        4 * field(21).unwrap_or(0),
    )
}

/// Paths of cgroups by id. Looked up anew only when an unknown id appears.
#[derive(Debug, Default)]
struct Paths {
    known: HashMap<u64, String>,
}

impl Paths {
    fn learn(&mut self, ids: impl Iterator<Item = u64>) {
        let mut unknown = ids.filter(|id| *id != ROOT && !self.known.contains_key(id));
        if unknown.next().is_none() {
            return;
        }
        self.known.clear();
        let root = Path::new(CGROUPS);
        let mut folders = vec![(root.to_path_buf(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            self.learn_folder(root, &folder, depth, &mut folders);
        }
    }

    fn learn_folder(
        &mut self,
        root: &Path,
        folder: &Path,
        depth: usize,
        folders: &mut Vec<(PathBuf, usize)>,
    ) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if depth > 32 || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if let Ok(below) = path.strip_prefix(root) {
                let name = format!("/{}", below.display());
                self.known.insert(entry.ino(), name);
            }
            folders.push((path, depth + 1));
        }
    }

    fn of(&self, id: u64) -> String {
        match self.known.get(&id) {
            Some(path) => path.clone(),
            None if id == ROOT => "/".to_string(),
            None => format!("(cgroup {id})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_named_and_cut_out() {
        let names = |text: &str| {
            let names: Vec<_> = text.split(' ').map(str::to_string).collect();
            Sections::named(&names)
        };
        let cpus = names("cpus scheduler").unwrap();
        assert_eq!((cpus.cpus, cpus.tasks), (true, false));
        assert!(
            names("cpus cpu")
                .unwrap_err()
                .contains("\"cpu\": there are")
        );
        let all: Vec<_> = NAMES.iter().map(|name| (*name).to_string()).collect();
        assert_eq!(Sections::named(&all), Ok(Sections::ALL));
    }

    #[test]
    fn the_agent_knows_what_it_uses_itself() {
        let (_, rss_kib) = used();
        assert!(rss_kib > 100);
        assert_eq!(comm(u32::MAX), "");
        assert!(!comm(std::process::id()).is_empty());
    }

    #[test]
    fn an_unknown_cgroup_still_has_a_name() {
        let mut paths = Paths::default();
        paths.learn([ROOT, u64::MAX].into_iter());
        assert_eq!(paths.of(ROOT), "/");
        assert_eq!(paths.of(u64::MAX), format!("(cgroup {})", u64::MAX));
    }
}
