// SPDX-License-Identifier: GPL-2.0-only
//! The committed results of the benchmark: that the page is made from the
//! data, that the data is whole, and that the check against it can fail.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name)
}

fn committed(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(docs(name)).unwrap()).unwrap()
}

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fulcrum-work"))
        .arg("bench")
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The keys of all rows with targets, as the program lists them.
fn keys() -> Vec<String> {
    let text = stdout(&bench(&["rows"]));
    let key = |line: &str| line.split(':').next().unwrap().to_string();
    text.lines().map(key).collect()
}

/// The committed run with rows of this set and this many CPUs.
fn run(document: &Value, part: &str, cpus: u64) -> Value {
    let runs = document["runs"].as_array().unwrap();
    let fits = |r: &&Value| r["header"]["part"] == part && r["cpus"] == cpus;
    runs.iter().find(fits).unwrap().clone()
}

#[test]
fn the_page_is_made_from_the_data() {
    let data = docs("benchmarks.json");
    let output = bench(&["render", data.to_str().unwrap()]);
    assert!(output.status.success());
    let page = fs::read_to_string(docs("benchmarks.md")).unwrap();
    assert!(
        stdout(&output) == page,
        "docs/benchmarks.md is not what its data says: scripts/bench --save writes both"
    );
}

#[test]
fn the_policies_table_is_made_from_the_data() {
    let data = docs("benchmarks.json");
    let output = bench(&["render", "--policies", data.to_str().unwrap()]);
    assert!(output.status.success());
    let (page, tables) = (
        fs::read_to_string(docs("policies.md")).unwrap(),
        stdout(&output),
    );
    assert!(
        tables.contains("| `fifo` |") && page.contains(&tables),
        "docs/policies.md is not what its data says: scripts/bench --policies --save writes both"
    );
}

#[test]
fn every_row_with_a_target_is_there_for_both() {
    let run = run(&committed("benchmarks.json"), "targets", 2);
    for scheduler in ["EEVDF", "fulcrum"] {
        for key in keys() {
            let series = run["series"].as_array().unwrap();
            let one = |s: &Value| s["key"] == key && s["scheduler"] == scheduler;
            assert!(series.iter().any(one), "{scheduler}: no {key}");
        }
    }
}

/// A folder with a result that is the committed one times `factor`, for one
/// figure of ours.
fn bent(key: &str, factor: f64) -> (tempfile::TempDir, String) {
    let mut run = run(&committed("benchmarks.json"), "targets", 2);
    for series in run["series"].as_array_mut().unwrap() {
        if series["key"] == key && series["scheduler"] == "fulcrum" {
            for of in ["values", "ratios"] {
                for value in series[of].as_array_mut().unwrap() {
                    *value = json!(value.as_f64().unwrap() * factor);
                }
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    fs::write(&file, run.to_string()).unwrap();
    let path = file.to_str().unwrap().to_string();
    (folder, path)
}

#[test]
fn a_result_that_got_worse_fails_the_check() {
    let data = docs("benchmarks.json");
    let check = |key, factor| {
        let (_folder, run) = bent(key, factor);
        bench(&["check", &run, data.to_str().unwrap()])
    };
    assert!(check("T1 trip", 1.0).status.success());
    assert!(check("T1 trip", 0.5).status.success());
    for key in ["T1 trip", "T3 time", "L1 p99"] {
        let output = check(key, 3.0);
        assert_eq!(output.status.code(), Some(1), "{key}");
        assert!(stdout(&output).contains(&format!("worse: {key}")), "{key}");
    }
    assert_eq!(check("T5 loops", 0.5).status.code(), Some(1));
    // A few percent are enough where repeats are near each other.
    assert_eq!(check("T5 loops", 0.95).status.code(), Some(1));
}

#[test]
fn the_newest_kernel_s_verifier_counts_are_committed() {
    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/kernels"));
    let list = list.unwrap();
    let newest = list.lines().last().unwrap().split(' ').next().unwrap();
    let counts = committed("verifier.json");
    let programs = counts[newest].as_object().unwrap();
    assert!(programs.len() > 5, "{programs:?}");
    assert!(
        programs
            .iter()
            .all(|(name, count)| { name.starts_with("fulcrum_") && count.as_u64().unwrap() > 0 })
    );
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let output = bench(&["rows", "--only", "F1,X9"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("X9"));
    let modes = stdout(&bench(&["rows", "--modes", "--only", "L1"]));
    assert_eq!(modes, "metronome\n");
    let modes = stdout(&bench(&["rows", "--modes", "--only", "L1,f3"]));
    assert_eq!(modes, "plain\nmetronome\n");
}
