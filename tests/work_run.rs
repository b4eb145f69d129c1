// SPDX-License-Identifier: GPL-2.0-only
//! `fulcrum-work run` on this machine's own scheduler: every committed
//! workload file that fits runs and reports, what can't run is one line, and
//! nothing stays behind. How long things take is nobody's business here.

use scx_fulcrum::sim::workload;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn run(arguments: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fulcrum-work"))
        .arg("run")
        .args(arguments)
        .arg(file)
        .output()
        .unwrap()
}

fn report(arguments: &[&str], file: &Path) -> Value {
    let output = run(&[&["--json"], arguments].concat(), file);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", file.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The one line that a run which can't be ends with.
fn refusal(arguments: &[&str], file: &Path) -> String {
    let output = run(arguments, file);
    assert_eq!(output.status.code(), Some(1), "{}", file.display());
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// Writes a workload file of these groups, and what else it has.
fn file(folder: &tempfile::TempDir, groups: &str, more: &str) -> PathBuf {
    let path = folder.path().join("file.json");
    fs::write(
        &path,
        format!("{{\"topology\": \"1\"{more}, \"groups\": [{groups}]}}"),
    )
    .unwrap();
    path
}

/// All committed workload files.
fn committed() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workloads");
    let mut files = Vec::new();
    for folder in [root.clone(), root.join("calibration"), root.join("known")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "json") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Whether this machine has what a file with cgroups needs.
fn has_cgroups() -> bool {
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    let ours = fs::metadata("/sys/fs/cgroup/cgroup.procs").is_ok_and(|file| {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        // SAFETY: no preconditions.
        file.uid() == unsafe { libc::geteuid() } && file.permissions().mode() & 0o200 != 0
    });
    ours && controllers.is_ok_and(|text| text.split_whitespace().any(|word| word == "cpu"))
}

/// The cgroups that a run with this process id would have left.
fn left_behind(pid: u32) -> bool {
    Path::new("/sys/fs/cgroup")
        .join(format!("fulcrum-run.{pid}"))
        .exists()
}

fn here() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

#[test]
fn every_committed_file_that_fits_reports_every_group() {
    let mut ran = 0;
    for file in committed() {
        let scenario = workload::load(&file, None).unwrap();
        if scenario.config.topology.cpus > here() {
            let line = refusal(&[], &file);
            assert!(
                ["--cpus", "faults", "tasks", "cgroups"]
                    .iter()
                    .any(|word| line.contains(word)),
                "{line}"
            );
            continue;
        }
        if !scenario.workload.cgroups.is_empty() && !has_cgroups() {
            let line = refusal(&[], &file);
            assert!(line.contains("cgroup2"), "{line}");
            continue;
        }
        let report = report(&["--seconds", "0.3"], &file);
        let groups = report["groups"].as_array().unwrap();
        let names: BTreeSet<&str> = groups
            .iter()
            .map(|group| group["name"].as_str().unwrap())
            .collect();
        let expected: BTreeSet<&str> = scenario
            .workload
            .groups
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        assert_eq!(names, expected, "{}", file.display());
        let share: f64 = groups
            .iter()
            .map(|group| group["share"].as_f64().unwrap())
            .sum();
        assert!(share > 0.0, "{report}");
        ran += 1;
    }
    // Those of one or two CPUs fit any machine that can build this.
    assert!(ran > 0 || here() < 2);
}

#[test]
fn keys_are_the_simulators() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(
        &folder,
        r#"{"name": "a", "does": {"frame": {"period_us": 5000, "work_us": 100}}}"#,
        "",
    );
    let report = report(&["--seconds", "0.2"], &path);
    let simulated = Command::new(env!("CARGO_BIN_EXE_scx_fulcrum"))
        .args(["sim", "--json", "--seconds", "0.2"])
        .arg(&path)
        .output()
        .unwrap();
    let simulated: Value = serde_json::from_slice(&simulated.stdout).unwrap();
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert!(keys(&report).is_subset(&keys(&simulated)));
    let (group, simulated) = (&report["groups"][0], &simulated["groups"][0]);
    assert!(keys(group).is_subset(&keys(simulated)));
    assert_eq!(keys(&group["wakeup"]), keys(&simulated["wakeup"]));
    for same in ["name", "tasks"] {
        assert_eq!(group[same], simulated[same]);
    }
}

/// Work that each program does, by what it must have led to.
#[test]
fn programs_wake_serve_lock_fork_and_yield() {
    let folder = tempfile::tempdir().unwrap();
    for (does, group, counted) in [
        (
            r#"{"pipeline": {"stages": 3, "run_us": 10, "sleep_us": 1000}}"#,
            2,
            "/response/count",
        ),
        (
            r#"{"server": {"every_us": 2000, "burst": 3, "service_us": 50}}"#,
            0,
            "/response/count",
        ),
        (
            r#"{"convoy": {"hold_us": 100, "think_us": 500}}"#,
            0,
            "/wakeup/count",
        ),
        (
            r#"{"fork_storm": {"every_us": 2000, "child_us": 50}}"#,
            0,
            "/tasks",
        ),
        (
            r#"{"sleeper": {"run_us": 100, "sleep_us": 1000}}"#,
            0,
            "/wakeup/count",
        ),
        (r#"{"yielder": {"run_us": 50}}"#, 0, "/share"),
        (
            r#"{"frame": {"period_us": 2000, "work_us": 50}}"#,
            0,
            "/response/count",
        ),
    ] {
        let path = file(
            &folder,
            &format!(r#"{{"name": "a", "count": 2, "does": {does}}}"#),
            "",
        );
        let report = report(&["--seconds", "0.3"], &path);
        let count = report["groups"][group]
            .pointer(counted)
            .and_then(Value::as_f64);
        assert!(count.unwrap() > 0.0, "{does}: {report}");
    }
}

/// rt-app's events that the groups above don't use: one program that ends.
#[test]
fn a_program_may_end_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rt-app.json");
    let text = r#"{"tasks": {
        "first": {"loop": 3, "run": 100, "broad": "go", "sleep": 1000},
        "second": {"loop": 2, "lock": "m", "wait": {"ref": "go", "mutex": "m"}, "unlock": "m"}
    }, "global": {"duration": 1}}"#;
    fs::write(&path, text).unwrap();
    let report = report(&["--seconds", "0.3"], &path);
    let first = &report["groups"][0];
    assert_eq!(first["tasks"], 1);
    assert!(first["share"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn what_cannot_run_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let hog = r#"{"name": "a", "does": {"hog": {}}}"#;
    for (groups, more, word) in [
        (
            hog,
            r#", "faults": {"hotplug_us": 1}"#,
            "can't be told to fail",
        ),
        (
            hog,
            r#", "faults": {"storage_one_in": 1}"#,
            "can't be told to fail",
        ),
        (
            r#"{"name": "a", "kthread": true, "does": {"hog": {}}}"#,
            "",
            "kernel threads",
        ),
        (
            r#"{"name": "a", "count": 5000, "does": {"hog": {}}}"#,
            "",
            "5000 tasks",
        ),
        (r#"{"name": 3}"#, "", "file.json:1:"),
    ] {
        let line = refusal(&[], &file(&folder, groups, more));
        assert!(line.contains(word), "{line}");
    }
    let line = refusal(&["--cpus", "4096"], &file(&folder, hog, ""));
    assert!(line.contains("this machine has"), "{line}");
    let line = refusal(&[], Path::new("/nonexistent.json"));
    assert!(line.contains("/nonexistent.json"), "{line}");
}

#[test]
fn cgroups_are_made_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let groups = r#"{"name": "a", "cgroup": "x/y", "does": {"hog": {}}},
        {"name": "b", "cgroup": "z", "does": {"fork_storm": {"every_us": 3000, "child_us": 50}}}"#;
    let more = r#", "cgroups": [{"path": "x", "weight": 300}, {"path": "x/y"}, {"path": "z"}],
        "changes": [{"at_us": 50000, "cgroup": "x", "weight": 50}, {"at_us": 60000, "move": "a", "to": "z"}]"#;
    let path = file(&folder, groups, more);
    if !has_cgroups() {
        let line = refusal(&[], &path);
        assert!(line.contains("cgroup2"), "{line}");
        return;
    }
    let child = Command::new(env!("CARGO_BIN_EXE_fulcrum-work"))
        .args(["run", "--json", "--seconds", "0.3"])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(!left_behind(pid));
}

#[test]
fn a_signal_ends_it_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, r#"{"name": "a", "does": {"hog": {}}}"#, "");
    let child = Command::new(env!("CARGO_BIN_EXE_fulcrum-work"))
        .args(["run", "--seconds", "600"])
        .arg(&path)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    // It has threads: it takes signals by then.
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    while threads() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(pid as i32, libc::SIGTERM) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("stopped by signal 15"), "{text}");
    assert!(!left_behind(pid));
}
