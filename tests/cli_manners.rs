// SPDX-License-Identifier: GPL-2.0-only
//! What the command says of mistakes and of a full disk: one line, with what
//! to do, and an exit code that is not 0.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_scx_fulcrum");
const WORKLOAD: &str = "tests/workloads/cgroups.json";
const STREAM: &str = "tests/streams/sample.jsonl";

fn run(arguments: &[&str], full: bool) -> Output {
    let stdout = match full {
        true => Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap()),
        false => Stdio::piped(),
    };
    Command::new(PROGRAM)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap()
}

/// It ends with `code`, and its one line on standard error has `words`.
fn complains(arguments: &[&str], full: bool, code: i32, words: &[&str]) {
    let output = run(arguments, full);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    let control = said.trim_end().contains(char::is_control);
    assert!(!control, "{arguments:?}: {said:?}");
    for word in words {
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn a_full_disk_is_no_success() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["top", "--help"],
        &["--help-stats"],
        &["doctor"],
        &["status"],
        &["sim", "--seconds", "0.1", WORKLOAD],
        &["top", "--lines", "--replay", STREAM],
    ] {
        complains(arguments, true, 1, &["standard output", "disk full?"]);
    }
    assert_eq!(run(&["--help"], false).status.code(), Some(0));
}

#[test]
fn what_is_missing_is_named() {
    complains(&["explain"], false, 2, &["<PID>"]);
    complains(&["sim"], false, 2, &["<FILE>"]);
}

#[test]
fn files_that_are_none_have_a_remedy() {
    let remedy = "name a workload file";
    complains(
        &["sim", "/nonexistent"],
        false,
        2,
        &["/nonexistent: No such", remedy],
    );
    complains(&["sim", PROGRAM], false, 2, &["not a text", remedy]);
    let trace = ["sim", "--trace", "/nonexistent/t", WORKLOAD];
    complains(
        &trace,
        false,
        2,
        &["--trace /nonexistent/t: No such", "name a file"],
    );
    complains(
        &["sim", "--cpus", "0", WORKLOAD],
        false,
        2,
        &["'0'", "--cpus"],
    );
    let shape = ["sim", "--topology", "2x0", WORKLOAD];
    complains(&shape, false, 2, &["--topology: \"2x0\""]);
}

#[test]
fn two_groups_of_one_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twice.json");
    let group = r#"{"name": "a", "does": {"hog": {}}}"#;
    std::fs::write(&file, format!("{{\"groups\": [{group}, {group}]}}")).unwrap();
    let file = file.to_str().unwrap();
    complains(
        &["sim", file],
        false,
        2,
        &[file, "groups[1].name: \"a\" is there twice"],
    );
}

#[test]
fn what_was_typed_stays_on_the_line() {
    let words = ["policy=fair\\nx", "not one of"];
    complains(&["set", "policy=fair\nx"], false, 2, &words);
    complains(
        &["set", "a\u{1b}[1m"],
        false,
        2,
        &["a\\u{1b}[1m is not KEY=VALUE"],
    );
    complains(&["--policy", "fair\nx"], false, 2, &["fair\\nx"]);
}

/// Even here, where the scheduler may not start at all.
#[test]
fn watching_is_refused_before_anything_else() {
    let words = ["not a path from / on"];
    complains(&["--metrics", "unix:here"], false, 2, &words);
    complains(
        &["--metrics", "192.0.2.1:80"],
        false,
        2,
        &["this machine itself"],
    );
    let words = ["no group nobody-has-this"];
    complains(&["--socket-group", "nobody-has-this"], false, 2, &words);
}
