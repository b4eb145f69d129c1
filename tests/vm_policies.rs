// SPDX-License-Identifier: GPL-2.0-only
//! Policies and knobs changed a thousand times on a busy machine, on the
//! newest kernel.

mod vm;

use libtest_mimic::Failed;
use std::process::ExitCode;

fn check(version: &str) -> Result<(), Failed> {
    let options = ["--kernel", version, "--cpus", "2", "--timeout", "300"];
    let command = ["tests/guest/check.sh", "policies"];
    vm::verdict(&vm::vm(version, &options, &command)?)
}

fn main() -> ExitCode {
    vm::run(vec![vm::trial("policies", || check(&vm::newest()?))]).exit_code()
}
