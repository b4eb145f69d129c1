// SPDX-License-Identifier: GPL-2.0-only
//! fulcrum-work on this machine's own scheduler: that it measures what it says
//! and that its bounds can fail.

use serde_json::Value;
use std::process::{Command, Output};

fn work(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fulcrum-work"))
        .args(arguments)
        .output()
        .unwrap()
}

fn json(arguments: &str) -> Value {
    let mut all = vec!["--json"];
    all.extend(arguments.split(' '));
    let output = work(&all);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap()
}

#[test]
fn hogs_report_what_each_got() {
    let report = json("hogs --nice 0,10 --cpus 0 --seconds 1.5");
    let rows = report["hogs"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    let (heavy, light) = (&rows[0], &rows[1]);
    assert_eq!(heavy["weight"], 1024);
    assert_eq!(light["weight"], 110);
    // The kernel's own scheduler favours the heavy one clearly (9:1).
    assert!(
        number(heavy, "/share") > 2.0 * number(light, "/share"),
        "{report}"
    );
    assert!(
        number(heavy, "/loops") > number(light, "/loops"),
        "{report}"
    );
    assert!(number(&report, "/cpus_used") < 1.05, "{report}");
    let sum = number(heavy, "/ideal") + number(light, "/ideal");
    assert!((sum - 1.0).abs() < 1e-9);
}

#[test]
fn bounds_that_are_not_kept_fail() {
    let output = work(&[
        "hogs",
        "--nice",
        "0,10",
        "--cpus",
        "0",
        "--seconds",
        "0.3",
        "--max-error",
        "0",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("above the bound of 0"), "{text}");

    let output = work(&["yielders", "--seconds", "0.3", "--min-hog-share", "1.01"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("below the bound of 1.01"), "{text}");
}

#[test]
fn sleepers_keep_their_timetable() {
    let report = json("sleepers --tasks 2 --period-us 5000 --work-us 100 --seconds 1");
    // 200 periods a task and second; all that began are counted, late or not.
    let periods = number(&report, "/periods");
    assert!((100.0..=404.0).contains(&periods), "{report}");
    for field in ["wakeup", "response"] {
        let at = |p: &str| number(&report, &format!("/{field}/{p}_us"));
        assert!(at("p50") > 0.0 && at("p50") <= at("p99") && at("p99") <= at("max"));
    }
    assert!(number(&report, "/response/p50_us") > number(&report, "/wakeup/p50_us"));
}

#[test]
fn a_starved_task_counts_though_it_noted_nothing() {
    // Nobody can do 4.9 ms of work in 5 ms beside hogs on the same CPU.
    let arguments = "sleepers --clocked --tasks 1 --work-us 4900 --hogs 3 --cpus 0 --seconds 1";
    let report = json(arguments);
    assert!(number(&report, "/periods") > 150.0, "{report}");
    assert!(number(&report, "/miss_pct") > 90.0, "{report}");
    assert!(number(&report, "/response/p99_us") > 300_000.0, "{report}");
}

#[test]
fn who_rests_skips_what_it_missed() {
    let report = json(
        "sleepers --clocked --tasks 1 --work-us 4500 --rest-us 500 --hogs 3 --cpus 0 --seconds 1",
    );
    assert!(number(&report, "/periods") < 150.0, "{report}");
}

#[test]
fn hogs_beside_sleepers_are_measured_apart() {
    let report = json("sleepers --tasks 1 --work-us 100 --hogs 1 --cpus 0 --seconds 1");
    let (tasks, hogs) = (
        number(&report, "/tasks_cpus"),
        number(&report, "/hogs_cpus"),
    );
    assert!(tasks > 0.0 && hogs > tasks, "{report}");
    assert!(tasks + hogs < 1.05, "{report}");
}

#[test]
fn every_other_workload_runs_and_counts() {
    for (arguments, counter) in [
        ("frames --seconds 0.5", "/periods"),
        ("pin --seconds 0.5", "/periods"),
        ("pipe --pairs 2 --seconds 0.3", "/round_trips"),
        ("forks --seconds 0.3", "/forks"),
        ("forks --exec --seconds 0.3", "/forks"),
        ("yielders --seconds 0.3", "/yields"),
        ("hop --tasks 3 --seconds 0.3", "/hops"),
        ("hop --tasks 3 --seconds 0.3 --by other", "/hops"),
        ("web --seconds 0.5 --load 0.3", "/requests"),
        ("chain --seconds 0.3", "/blocks"),
        ("store --seconds 0.5", "/readers"),
        ("calibrate", "/rounds_per_us"),
    ] {
        let report = json(arguments);
        assert!(number(&report, counter) > 0.0, "{arguments}: {report}");
        let name = arguments.split(' ').next().unwrap();
        assert_eq!(report["workload"], name);
    }
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    for (arguments, word) in [
        ("hogs --nice 20", "-20 to 19"),
        ("hogs --each 0", "at least one"),
        ("hogs --cpus 3-1", "lower CPU first"),
        ("hogs --cpus 4095 --seconds 0.1", "no online CPU"),
        ("sleepers --period-us 100 --work-us 100", "less than"),
        ("pipe --pairs 0", "at least 1"),
        ("metronome --ticks 11", "12"),
        ("other /nonexistent.bpf.o", "/nonexistent.bpf.o"),
    ] {
        let output = work(&arguments.split(' ').collect::<Vec<_>>());
        assert!(!output.status.success(), "{arguments}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(word), "{arguments}: {text}");
    }
}
