// SPDX-License-Identifier: GPL-2.0-only
//! Kinds of faults that schedulers in the field have shown, repeated on the
//! oldest kernel, one of the middle and the newest (docs/faults.md). The guest's
//! clock counts instructions, so that a busy host can't make anybody wait.

mod vm;

use libtest_mimic::{Failed, Trial};
use std::process::ExitCode;

/// Starts of versions; of several kernels that fit the last is taken.
const KERNELS: [&str; 3] = ["6.16.", "6.18.", "7.3."];

fn check(version: &str) -> Result<(), Failed> {
    let options = ["--kernel", version, "--cpus", "2", "--deterministic"];
    let options = [&options[..], &["--timeout", "900"]].concat();
    let command = ["tests/guest/check.sh", "faults"];
    vm::verdict(&vm::vm(version, &options, &command)?)
}

fn trials(kernels: &[vm::Kernel]) -> Vec<Trial> {
    let trial = |start: &&str| {
        let name = format!("faults_{}", start.trim_end_matches('.'));
        let fits = |kernel: &&vm::Kernel| kernel.version.starts_with(*start);
        match kernels.iter().rev().find(fits).cloned() {
            None => vm::skipped(name, "no such kernel in scripts/kernels"),
            Some(vm::Kernel {
                missing: Some(reason),
                ..
            }) => vm::skipped(name, &reason),
            Some(kernel) => vm::trial(name, move || check(&kernel.version)),
        }
    };
    KERNELS.iter().map(trial).collect()
}

fn main() -> ExitCode {
    match vm::kernels() {
        Ok(kernels) => vm::run(trials(&kernels)).exit_code(),
        Err(message) => {
            eprintln!("vm_faults: {message}: run scripts/setup");
            ExitCode::FAILURE
        }
    }
}
