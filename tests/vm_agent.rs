// SPDX-License-Identifier: GPL-2.0-only
//! The agent on the newest kernel: asleep when there is nothing to do, stopped,
//! killed, and refused a second time; on four CPUs with two caches. And as a unit
//! of systemd.

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

fn unit(version: &str) -> Result<(), Failed> {
    let options = ["--kernel", version, "--cpus", "2", "--timeout", "600"];
    let command = ["tests/guest/check.sh", "unit"];
    vm::verdict(&vm::vm("unit", &options, &command)?)
}

fn main() -> ExitCode {
    let agent = vm::trial("agent", || check(&vm::newest()?));
    let unit = vm::trial("systemd_unit", || unit(&vm::newest()?));
    vm::run(vec![agent, unit]).exit_code()
}
