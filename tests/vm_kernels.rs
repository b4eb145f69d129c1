// SPDX-License-Identifier: GPL-2.0-only
//! scx_fulcrum on every kernel of `scripts/kernels`: attached under load, real
//! work, fair shares, CPUs that come and go, a clean end.

mod vm;

use libtest_mimic::{Failed, Trial};
use std::process::ExitCode;
use vm::Kernel;

fn check(version: &str, profile: &str) -> Result<(), Failed> {
    let options = ["--kernel", version, "--cpus", "2", "--timeout", "900"];
    vm::verdict(&vm::vm(
        version,
        &options,
        &["tests/guest/check.sh", profile],
    )?)
}

/// Attaching and detaching 50 times takes a while: the oldest and the newest
/// kernel do it, which differ most.
fn trials(kernels: Vec<Kernel>) -> Vec<Trial> {
    let ready: Vec<&Kernel> = kernels.iter().filter(|k| k.missing.is_none()).collect();
    let ends = [ready.first(), ready.last()].map(|k| k.map(|k| k.version.clone()));
    let mut trials = vec![vm::trial("kernel_newest_exists", || {
        Ok(vm::newest().map(|_| ())?)
    })];
    for kernel in kernels {
        let name = format!("kernel_{}", kernel.version);
        trials.push(match kernel.missing {
            Some(reason) => vm::skipped(name, &reason),
            None => {
                let at_end = ends.contains(&Some(kernel.version.clone()));
                let profile = if at_end { "cycles" } else { "kernel" };
                vm::trial(name, move || check(&kernel.version, profile))
            }
        });
    }
    trials
}

fn main() -> ExitCode {
    match vm::kernels() {
        Ok(kernels) => vm::run(trials(kernels)).exit_code(),
        Err(message) => {
            eprintln!("vm_kernels: {message}: run scripts/setup");
            ExitCode::FAILURE
        }
    }
}
