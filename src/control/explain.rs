// SPDX-License-Identifier: GPL-2.0-only
//! One task explained: what it is to the scheduler, and why it last waited.
//! And the last decisions of each CPU, for people.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::kernel::inspect::{Decided, TaskView};
use crate::stats::frame::Task;
use crate::stats::look;
use crate::stats::observer::{Source, cgroup_path, comm};

/// What is said of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// The task, as in a frame.
    pub task: Task,
    /// The path of its cgroup.
    pub path: String,
    /// How it came to run last, or is about to.
    pub way: String,
    /// What explains its waits, a sentence each.
    pub why: Vec<String>,
    /// Its latest decisions, oldest first.
    pub recorded: Vec<Recorded>,
}

/// A decision of a CPU: what it began to run, or went on with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorded {
    /// The CPU that decided.
    pub cpu: usize,
    /// How long before the latest decision of all, us.
    pub before_us: f64,
    /// The task.
    pub pid: u32,
    /// Its name, if it still lives.
    pub comm: String,
    /// How it came to run.
    pub way: String,
    /// The CPU whose queue it was in.
    pub from_cpu: u16,
    /// How long it had waited, us.
    pub wait_us: u64,
    /// What it was owed, us of virtual time; below 0: it had too much.
    pub lag_us: i64,
}

impl Recorded {
    /// A line for people.
    pub fn line(&self) -> String {
        let name = if self.comm.is_empty() {
            "gone"
        } else {
            &self.comm
        };
        let from = if usize::from(self.from_cpu) == self.cpu {
            String::new()
        } else {
            format!(", taken from CPU {}", self.from_cpu)
        };
        format!(
            "{:>12.3} ms  CPU {:<3} {:>7} {:<15} {}{from}; waited {} us, {}",
            -self.before_us / 1e3,
            self.cpu,
            self.pid,
            name,
            self.way,
            self.wait_us,
            owed(self.lag_us as f64),
        )
    }
}

fn owed(lag_us: f64) -> String {
    if lag_us < 0.0 {
        format!("{:.0} us ahead of its share", -lag_us)
    } else {
        format!("owed {lag_us:.0} us")
    }
}

/// `decided`, which is in the order of time, with names.
pub fn lines(decided: &[Decided]) -> Vec<Recorded> {
    let latest = decided.last().map_or(0, |last| last.time_ns);
    let mut names: HashMap<u32, String> = HashMap::new();
    let line = |one: &Decided| Recorded {
        cpu: one.cpu,
        before_us: latest.saturating_sub(one.time_ns) as f64 / 1e3,
        pid: one.pid,
        comm: names
            .entry(one.pid)
            .or_insert_with(|| comm(one.pid))
            .clone(),
        way: look::way(one.way).to_string(),
        from_cpu: one.from,
        wait_us: one.wait_us,
        lag_us: one.lag_us,
    };
    decided.iter().map(line).collect()
}

/// Decisions about one task in an explanation.
const LATEST: usize = 8;

/// Explain the task `pid`.
///
/// # Errors
///
/// A sentence, if there is none under the scheduler's care.
pub fn task(source: &mut dyn Source, pid: u32) -> Result<Explained, String> {
    let tasks = source.tasks()?;
    let view = tasks.iter().find(|task| task.pid == pid).ok_or_else(|| {
        format!("no task {pid} under the scheduler's care: has it ended, or is it real-time?")
    })?;
    let mut recorded = source.recorded();
    recorded.sort_by_key(|decided| decided.time_ns);
    let mut own = lines(&recorded);
    own.retain(|line| line.pid == pid);
    let skip = own.len().saturating_sub(LATEST);
    let task = look::task(view);
    Ok(Explained {
        path: cgroup_path(task.group),
        way: look::way(view.way).to_string(),
        why: why(view, &task, &tasks),
        recorded: own.split_off(skip),
        task,
    })
}

fn why(view: &TaskView, task: &Task, all: &[TaskView]) -> Vec<String> {
    let mut why = Vec::new();
    let named = |pid: u32| {
        let name = all.iter().find(|other| other.pid == pid);
        name.map_or_else(|| format!("task {pid}"), |t| format!("{} ({pid})", t.comm))
    };
    match task.state.as_str() {
        "running" => why.push(format!("it runs on CPU {}", task.cpu)),
        "queued" => {
            let before = all.iter().filter(|other| {
                other.cpu == view.cpu && other.state == view.state && other.pid != view.pid
            });
            why.push(format!(
                "it has waited for {:.0} us in the queue of CPU {}, with {} others",
                task.waits_since_us,
                task.cpu,
                before.count()
            ));
        }
        _ => why.push("it sleeps: nothing for the scheduler to do".to_string()),
    }
    why.push(format!(
        "last time it {}, after a wait of {:.0} us",
        look::way(view.way),
        task.last_wait_us
    ));
    if task.preempted_by != 0 {
        why.push(format!(
            "{} interrupted it: it woke, was due earlier and was owed CPU time",
            named(task.preempted_by)
        ));
    }
    if task.woken_by != 0 {
        why.push(format!("last woken where {} ran", named(task.woken_by)));
    }
    why.push(if task.lag_us < 0.0 {
        format!(
            "it has had {:.0} us more than its share: others come first",
            -task.lag_us
        )
    } else {
        format!("it is owed {:.0} us of CPU time", task.lag_us)
    });
    if task.cpus_allowed == 1 {
        why.push("it may use one CPU only, so no idle CPU can take it".to_string());
    }
    if task.policy == "idle" {
        why.push("its policy is SCHED_IDLE: it never interrupts anybody".to_string());
    }
    if view.busy {
        why.push("it uses up what it asks for, so it waits for whole slices of others".to_string());
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_task_is_explained() {
        let view = |pid, state| TaskView {
            pid,
            state,
            cpu: 1,
            inv: 4_194_304,
            comm: format!("t{pid}"),
            cpus_allowed: 1,
            waits: 5_000_000,
            last_wait: 100,
            preempted_by: 9,
            lag: -3_000_000,
            way: 5,
            busy: true,
            ..TaskView::default()
        };
        let all = [view(7, 3), view(8, 3), view(9, 4)];
        let why = why(&all[0], &look::task(&all[0]), &all).join("; ");
        for part in [
            "waited for 5000 us in the queue of CPU 1, with 1 others",
            "waited its turn in a queue, after a wait of 102 us",
            "t9 (9) interrupted it",
            "3000 us more than its share",
            "one CPU only",
            "whole slices",
        ] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn a_decision_is_one_line() {
        let decided = |time_ns, from| Decided {
            cpu: 1,
            time_ns,
            pid: 4_000_000_000,
            lag_us: -5,
            wait_us: 12,
            from,
            way: 4,
        };
        let lines = lines(&[decided(1_000_000, 0), decided(3_500_000, 1)]);
        let texts: Vec<_> = lines.iter().map(Recorded::line).collect();
        assert!(texts[0].contains("-2.500 ms  CPU 1 "), "{}", texts[0]);
        assert!(texts[0].contains("taken from CPU 0; waited 12 us, 5 us ahead"));
        assert!(!texts[1].contains("taken from"));
    }
}
