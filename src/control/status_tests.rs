// SPDX-License-Identifier: GPL-2.0-only
//! Machines on which it runs, ran, never ran, or is kept from running.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::stats::sample;

struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(state: &str, ops: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scx = folder.path().join("sys/kernel/sched_ext/root");
        if !state.is_empty() {
            fs::create_dir_all(&scx).unwrap();
            fs::write(folder.path().join("sys/kernel/sched_ext/state"), state).unwrap();
            fs::write(scx.join("ops"), ops).unwrap();
        }
        Self { folder }
    }

    fn record(&self) -> PathBuf {
        self.folder.path().join("run/state.json")
    }

    fn status(&self) -> String {
        let view = SystemView::new(self.folder.path());
        let status = find(&view, &self.record(), Path::new("/nowhere/stream"));
        text(&status, unix_ms())
    }
}

#[test]
fn it_says_why_it_is_not_active() {
    assert!(
        Machine::new("", "")
            .status()
            .contains("no: this kernel has no sched_ext")
    );
    let never = Machine::new("disabled\n", "").status();
    assert!(never.contains("not started since"), "{never}");
    let other = Machine::new("enabled\n", "bpfland_1\n").status();
    assert!(
        other.contains("another scheduler runs: bpfland_1"),
        "{other}"
    );
    let ended = Machine::new("disabled\n", "");
    let mut record = Record::default();
    record.begin();
    record.write(&ended.record()).unwrap();
    assert!(ended.status().contains("was it killed?"));
    record.finish("runnable task stall (bash[5] failed to run)", true);
    record.write(&ended.record()).unwrap();
    let text = ended.status();
    assert!(text.contains("no: it ended: runnable task stall"), "{text}");
    assert!(
        text.contains("ERROR, 0 s ago: runnable task stall"),
        "{text}"
    );
}

#[test]
fn without_its_agent_it_says_so() {
    let machine = Machine::new("enabled\n", "fulcrum_0.1.0\n");
    let mut record = Record::default();
    record.begin();
    record.write(&machine.record()).unwrap();
    let text = machine.status();
    assert!(
        text.contains("yes, but it schedules, without its agent"),
        "{text}"
    );
    assert!(text.contains("agent      is not there"), "{text}");
    assert!(text.contains("since      0 s, process"), "{text}");
}

#[test]
fn all_of_a_running_one_is_on_one_screen() {
    let status = Status {
        active: true,
        ops: "fulcrum_0.1.0".to_string(),
        agent: "answers".to_string(),
        now: Some(sample::frames(5).remove(4)),
        last_end: Some(End::default()),
        ..Status::default()
    };
    let text = text(&status, 0);
    for part in [
        "policy     fair (mode auto)",
        "p99",
        "WARNING",
        "fallback",
        "some time ago",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().count() < 24);
    let mut out = Vec::new();
    print(&status, true, &mut out).unwrap();
    let value: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["active"], true);
    assert_eq!(value["now"]["scheduler"]["policy"], "fair");
}

#[test]
fn durations_are_rounded() {
    for (seconds, text) in [
        (1, "1 s"),
        (125, "2 min"),
        (7300, "2 h"),
        (200_000, "2 days"),
    ] {
        assert_eq!(duration(seconds), text);
    }
}

#[test]
fn limits_are_named_and_said_not_to_be_enforced() {
    let group = |path: &str, max_pct: f64| Group {
        path: path.to_string(),
        max_pct,
        ..Group::default()
    };
    assert_eq!(limits(&[group("/a", 0.0)]), None);
    let some = [group("/a", 50.0), group("/b", 0.0), group("/c", 250.0)];
    let text = limits(&some).unwrap();
    assert_eq!(
        text,
        "not enforced: /a (50 % of a CPU), /c (250 % of a CPU)"
    );
    let many = vec![group("/x", 1.0); 7];
    assert!(
        limits(&many)
            .unwrap()
            .ends_with("/x (1 % of a CPU) and 4 more")
    );
}
