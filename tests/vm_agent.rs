// SPDX-License-Identifier: GPL-2.0-only
//! The agent on the newest kernel: asleep when there is nothing to do, stopped,
//! killed, and refused a second time; on four CPUs with two caches.

mod vm;

use libtest_mimic::Failed;
use std::process::ExitCode;

fn check(version: &str) -> Result<(), Failed> {
    let options = [
        "--kernel",
        version,
        "--smp",
        "4,sockets=2,cores=2,threads=1",
        "--deterministic",
        "--timeout",
        "1800",
    ];
    let command = ["tests/guest/check.sh", "agent"];
    vm::verdict(&vm::vm(version, &options, &command)?)
}

fn main() -> ExitCode {
    vm::run(vec![vm::trial("agent", || check(&vm::newest()?))]).exit_code()
}
