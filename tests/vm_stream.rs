// SPDX-License-Identifier: GPL-2.0-only
//! Watching a running scheduler: streams, status, explain, the recorder and a
//! real Prometheus, on the newest and the oldest kernel.

mod vm;

use libtest_mimic::Failed;
use std::process::ExitCode;

fn check(version: &str) -> Result<(), Failed> {
    let cache = std::env::var("XDG_CACHE_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cache")))
        .unwrap_or_default();
    let prometheus = format!("PROMETHEUS={cache}/scx_fulcrum/prometheus/prometheus");
    let options = [
        "--kernel",
        version,
        "--cpus",
        "2",
        "--deterministic",
        "--timeout",
        "400",
        "--env",
        &prometheus,
    ];
    let command = ["tests/guest/check.sh", "stream"];
    vm::verdict(&vm::vm(version, &options, &command)?)
}

fn main() -> ExitCode {
    let oldest = || {
        let kernels = vm::kernels()?;
        let ready = kernels.into_iter().find(|kernel| kernel.missing.is_none());
        ready
            .map(|kernel| kernel.version)
            .ok_or("no kernel is ready".to_string())
    };
    vm::run(vec![
        vm::trial("stream-newest", || check(&vm::newest()?)),
        vm::trial("stream-oldest", move || check(&oldest()?)),
    ])
    .exit_code()
}
