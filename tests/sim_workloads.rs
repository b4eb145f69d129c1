// SPDX-License-Identifier: GPL-2.0-only
//! The committed workload files run, under all checks, and say what came of it.

use std::path::PathBuf;

use scx_fulcrum::exit::ExitCode;
use scx_fulcrum::sim::command::{SimArgs, run};

fn workload(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/workloads")
        .join(name)
}

fn args(name: &str) -> SimArgs {
    SimArgs {
        file: workload(name),
        seed: None,
        cpus: None,
        topology: None,
        kernel: None,
        policy: None,
        seconds: None,
        agent: false,
        check: true,
        json: true,
        trace: None,
    }
}

fn summary(args: &SimArgs) -> serde_json::Value {
    let mut out = Vec::new();
    let code = run(args, &mut out).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(code, ExitCode::Ok);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn every_file_runs_on_every_kernel() {
    for name in [
        "desktop.json",
        "server.json",
        "crowd.json",
        "cgroups.json",
        "rt-app.json",
    ] {
        for kernel in ["6.16", "6.18", "7.1", "7.3"] {
            let mut args = args(name);
            args.kernel = Some(kernel.to_string());
            args.seconds = Some(0.5);
            assert!(
                summary(&args)["events"].as_u64() > Some(1000),
                "{name} {kernel}"
            );
        }
    }
}

#[test]
fn four_thousand_cpus() {
    let mut args = args("large.json");
    args.seconds = Some(0.02);
    args.check = false;
    assert_eq!(summary(&args)["cpus"], 4096);
}

/// Hogs that crowd one of four caches until they may leave it.
#[test]
fn the_agent_is_there_if_asked_for() {
    let mut args = args("crowd.json");
    args.topology = Some("1x4x4x1".to_string());
    args.seconds = Some(0.5);
    assert!(summary(&args)["agent"].is_null());
    args.agent = true;
    assert!(summary(&args)["agent"]["rounds"].as_u64() >= Some(1));
    args.json = false;
    let mut out = Vec::new();
    run(&args, &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("\nagent: "));
}

#[test]
fn a_trace_is_json_and_repeats() {
    let folder = tempfile::tempdir().unwrap();
    let traces = [1, 2].map(|number| {
        let mut args = args("desktop.json");
        let path = folder.path().join(number.to_string());
        args.seconds = Some(0.1);
        args.trace = Some(path.clone());
        summary(&args);
        std::fs::read_to_string(path).unwrap()
    });
    assert_eq!(traces[0], traces[1]);
    let trace: serde_json::Value = serde_json::from_str(&traces[0]).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 100);
}

#[test]
fn a_bad_file_is_one_line_with_place_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.json");
    std::fs::write(&path, "{\n  \"groups\": [{\"name\": 3}]\n}").unwrap();
    let mut args = args("desktop.json");
    args.file.clone_from(&path);
    let failure = run(&args, &mut Vec::new()).unwrap_err();
    assert_eq!(failure.code, ExitCode::Usage);
    let text = failure.to_string();
    assert!(text.contains("bad.json:2:23: invalid type"), "{text}");
    assert_eq!(text.lines().count(), 1);
}
