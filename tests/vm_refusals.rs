// SPDX-License-Identifier: GPL-2.0-only
//! When scx_fulcrum refuses to start: one clear line and an exit code of its
//! own. On this machine as it is, and in a VM whose kernel could run it.

mod vm;

use libtest_mimic::{Completion, Failed, Trial};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

const PERMISSION: i32 = 10;
const NO_SCHED_EXT: i32 = 11;
/// Whoever runs as nobody on Debian.
const NOBODY: u32 = 65534;

/// The command ends with `code` and one line on standard error that holds
/// `word`.
fn refused(command: &mut Command, code: i32, word: &str) -> Result<Completion, Failed> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    println!("  {}", text.trim_end());
    if output.status.code() != Some(code) {
        return Err(format!("{}, not exit code {code}: {text}", output.status).into());
    }
    if text.lines().count() != 1 || !output.stdout.is_empty() {
        return Err(format!("not one line: {text}").into());
    }
    if !text.contains(word) {
        return Err(format!("does not say {word:?}: {text}").into());
    }
    Ok(Completion::Completed)
}

fn is_root() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// As somebody who isn't root, from a place where that one may read.
fn not_root() -> Result<Completion, Failed> {
    let folder = tempfile::Builder::new()
        .prefix("fulcrum")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()?;
    let copy = folder.path().join("scx_fulcrum");
    std::fs::copy(env!("CARGO_BIN_EXE_scx_fulcrum"), &copy)?;
    let mut command = Command::new(&copy);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    refused(&mut command, PERMISSION, "root")
}

fn host_kernel() -> Result<Completion, Failed> {
    if Path::new("/sys/kernel/sched_ext").exists() {
        return Ok(Completion::ignored_with(
            "this machine's kernel has sched_ext",
        ));
    }
    if !is_root() {
        return Ok(Completion::ignored_with("not root: that is said first"));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_fulcrum"));
    refused(&mut command, NO_SCHED_EXT, "sched_ext")
}

fn in_a_vm() -> Result<(), Failed> {
    let version = vm::newest()?;
    let options = ["--kernel", &version, "--cpus", "2", "--timeout", "300"];
    vm::verdict(&vm::vm("refusals", &options, &["tests/guest/refusals.sh"])?)
}

fn main() -> ExitCode {
    vm::run(vec![
        Trial::ignorable_test("refusal_non_root_here", not_root),
        Trial::ignorable_test("refusal_kernel_without_sched_ext_here", host_kernel),
        vm::trial("refusals_in_a_vm", in_a_vm),
    ])
    .exit_code()
}
