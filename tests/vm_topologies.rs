// SPDX-License-Identifier: GPL-2.0-only
//! scx_fulcrum on machines of other shapes, on the newest kernel: one CPU, and
//! four and eight with sockets, threads and memory nodes.

mod vm;

use libtest_mimic::{Failed, Trial};
use std::process::ExitCode;

/// Name and `scripts/vm` options.
const SHAPES: [(&str, &[&str]); 4] = [
    ("1_cpu", &["--cpus", "1"]),
    ("2_cpus", &["--cpus", "2"]),
    ("4_cpus", &["--cpus", "4"]),
    (
        "8_cpus_2_sockets_2_cores_2_threads_2_nodes",
        &["--smp", "8,sockets=2,cores=2,threads=2", "--numa", "2"],
    ),
];

fn check(shape: &'static str, options: &[&'static str], profile: &str) -> Result<(), Failed> {
    let version = vm::newest()?;
    let mut all = vec!["--kernel", &version, "--timeout", "900"];
    all.extend(options);
    vm::verdict(&vm::vm(shape, &all, &["tests/guest/check.sh", profile])?)
}

/// Whether everybody gets the same part of the machine is asked where the
/// guest's clock counts instructions: the host's other work can't bend it.
fn fairness((shape, options): (&'static str, &'static [&'static str])) -> Trial {
    let mut options = options.to_vec();
    options.push("--deterministic");
    vm::trial(format!("fairness_{shape}"), move || {
        check(shape, &options, "fairness")
    })
}

fn topology((shape, options): (&'static str, &'static [&'static str])) -> Trial {
    vm::trial(format!("topology_{shape}"), move || {
        check(shape, options, "topology")
    })
}

fn main() -> ExitCode {
    let mut trials: Vec<Trial> = SHAPES.into_iter().map(topology).collect();
    trials.extend(SHAPES.into_iter().skip(1).map(fairness));
    vm::run(trials).exit_code()
}
