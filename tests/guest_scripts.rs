// SPDX-License-Identifier: GPL-2.0-only
//! The parts of the checks in the guest that can be tested here: that they
//! find what they are there to find.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

mod vm;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/guest")
        .join(name)
}

fn kernel_log(text: &str) -> Output {
    let mut child = Command::new(script("kernel-log.sh"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_healthy_kernel_log_is_clean() {
    let output = kernel_log(
        "[    5.1] fulcrum-check: begin\n\
         [   11.8] sched_ext: BPF scheduler \"fulcrum_0.1.0_gcef4d671_x86_64\" enabled\n\
         [   12.0] smpboot: CPU 1 is now offline\n\
         [   12.3] sched_ext: BPF scheduler \"fulcrum_0.1.0_gcef4d671_x86_64\" disabled (unregistered from user space)\n",
    );
    assert!(output.status.success());
    assert_eq!(output.stdout, b"");
}

#[test]
fn every_kind_of_fault_in_a_kernel_log_is_found() {
    for line in [
        "[  123.1] sched_ext: BPF scheduler \"fulcrum_0.1.0\" disabled (runnable task stall)",
        "[  123.1] sched_ext: fulcrum_0.1.0: make[1986] failed to run for 10.480s",
        "[  123.1] sched_ext: BPF scheduler \"fulcrum_0.1.0\" errored, disabling",
        "[    9.9] WARNING: CPU: 0 PID: 12 at kernel/sched/ext.c:1 foo+0x1/0x2",
        "[    9.9] BUG: kernel NULL pointer dereference, address: 0000000000000010",
        "[    9.9] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [bash:1]",
        "[    9.9] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "[    9.9] INFO: task kworker/0:1:9 blocked for more than 120 seconds.",
        "[    9.9] Oops: general protection fault, 0000 [#1] PREEMPT SMP",
        "[    9.9] Kernel panic - not syncing: Fatal exception",
        "[    9.9] Call Trace:",
    ] {
        let output = kernel_log(&format!("[1.0] fine\n{line}\n[2.0] fine\n"));
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{line}\n"));
    }
}

#[test]
fn the_c_program_builds_and_checks_itself() {
    let folder = tempfile::tempdir().unwrap();
    let run = |command: &mut Command| command.output().unwrap();
    assert!(
        run(Command::new(script("cprog.sh")).arg(folder.path()))
            .status
            .success()
    );
    let make = || {
        run(Command::new("make")
            .arg("-sC")
            .arg(folder.path())
            .args(["-j4", "check"]))
    };
    let output = make();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    // One wrong unit must be noticed.
    let unit = folder.path().join("unit_3.c");
    let text = std::fs::read_to_string(&unit).unwrap();
    std::fs::write(&unit, text.replace("sum + 3", "sum + 4")).unwrap();
    assert!(!make().status.success());
}

#[test]
fn a_trial_that_fails_twice_has_failed() {
    let runs = std::cell::Cell::new(0);
    let fails_until = |good: u32| {
        runs.set(0);
        vm::twice("trial", || {
            runs.set(runs.get() + 1);
            match runs.get() {
                run if run >= good => Ok(()),
                run => Err(format!("run {run}").into()),
            }
        })
    };
    assert!(fails_until(1).is_ok());
    assert_eq!(runs.get(), 1);
    assert!(fails_until(2).is_ok());
    assert_eq!(runs.get(), 2);
    let failed = fails_until(3).unwrap_err();
    assert_eq!(failed.message(), Some("run 2"));
}
