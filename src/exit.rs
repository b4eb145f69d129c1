// SPDX-License-Identifier: GPL-2.0-only
//! How the command ends: one table of exit codes, and the error that carries one.

use std::{fmt, io};

/// Why the command ended, as its exit code tells it. `docs/exit-codes.md`
/// holds the same table for users; a test keeps them equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Stopped on request, or the machine can run the scheduler (`doctor`).
    Ok = 0,
    /// Something that should work did not: I/O, memory, a bug.
    Unexpected = 1,
    /// Wrong command line or environment.
    Usage = 2,
    /// Not permitted to load BPF schedulers.
    Permission = 10,
    /// The kernel has no sched_ext.
    NoSchedExt = 11,
    /// The kernel carries no BTF type information.
    NoBtf = 12,
    /// The BPF just-in-time compiler is off.
    JitOff = 13,
    /// A PREEMPT_RT kernel.
    PreemptRt = 14,
    /// Another sched_ext scheduler is active.
    OtherScheduler = 15,
    /// Another scx_fulcrum runs.
    SecondInstance = 16,
    /// The kernel's BTF hides a function that has no substitute.
    HiddenFunction = 17,
    /// CPUs are isolated with `isolcpus=`.
    IsolatedCpus = 18,
    /// More possible CPUs than the scheduler has room for.
    TooManyCpus = 19,
    /// The BPF program could not be opened or loaded.
    Load = 30,
    /// The kernel refused to attach or to enable the scheduler.
    Enable = 31,
    /// The kernel ejected the scheduler because of an error.
    Ejected = 32,
    /// Somebody else turned the scheduler off (SysRq-S, for one).
    TurnedOff = 33,
    /// `--monitor`, `get`, `set` and the like found nobody to ask.
    NoStatistics = 40,
}

/// Every exit code with the sentence that explains it, in ascending order.
pub const TABLE: &[(ExitCode, &str)] = &[
    (
        ExitCode::Ok,
        "stopped on request; doctor: this machine can run it",
    ),
    (
        ExitCode::Unexpected,
        "unexpected failure (I/O, memory, a bug)",
    ),
    (ExitCode::Usage, "wrong command line or environment"),
    (
        ExitCode::Permission,
        "not permitted: needs root, or CAP_BPF and CAP_PERFMON",
    ),
    (
        ExitCode::NoSchedExt,
        "the kernel has no sched_ext (older than 6.12, or switched off)",
    ),
    (ExitCode::NoBtf, "the kernel has no BTF type information"),
    (
        ExitCode::JitOff,
        "the BPF JIT is off (net.core.bpf_jit_enable=0)",
    ),
    (
        ExitCode::PreemptRt,
        "a PREEMPT_RT kernel: sched_ext does not run there",
    ),
    (
        ExitCode::OtherScheduler,
        "another sched_ext scheduler is active",
    ),
    (ExitCode::SecondInstance, "another scx_fulcrum runs"),
    (
        ExitCode::HiddenFunction,
        "the kernel's BTF hides a function without substitute",
    ),
    (
        ExitCode::IsolatedCpus,
        "CPUs are isolated with isolcpus=: sched_ext refuses to load",
    ),
    (
        ExitCode::TooManyCpus,
        "more possible CPUs than the scheduler has room for",
    ),
    (
        ExitCode::Load,
        "the BPF program could not be opened or loaded",
    ),
    (
        ExitCode::Enable,
        "the kernel refused to attach or enable the scheduler",
    ),
    (
        ExitCode::Ejected,
        "ejected by the kernel because of an error",
    ),
    (ExitCode::TurnedOff, "turned off by somebody else (SysRq-S)"),
    (
        ExitCode::NoStatistics,
        "--monitor, top, get, set, explain, recorder: no running scx_fulcrum to ask, or not permitted; status: it is not active",
    ),
];

/// The table as text for `--help`: one line a code.
pub fn help_text() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, meaning) in TABLE {
        text.push_str(&format!("  {:>2}  {meaning}\n", *code as u8));
    }
    text
}

/// An error that ends the command: one line for people and an exit code for
/// scripts.
#[derive(Debug)]
pub struct Failure {
    /// The exit code to end with.
    pub code: ExitCode,
    /// What failed, where, and what to do about it.
    pub message: String,
}

impl Failure {
    /// An error that ends the command with `code`.
    pub fn new(code: ExitCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    /// Standard output can't be written.
    fn unwritten(error: &io::Error) -> Self {
        let message = format!("standard output: {error}: is the disk full?");
        Self::new(ExitCode::Unexpected, message)
    }

    /// Waiting for signals and events failed.
    pub fn sleepless(error: io::Error) -> Self {
        let message = format!("waiting failed ({error}): report this with the kernel's version");
        Self::new(ExitCode::Unexpected, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// What a step that can end the command returns.
pub type Outcome<T> = Result<T, Failure>;

/// Print `text`. Whoever closed the pipe has read enough.
///
/// # Errors
///
/// [`ExitCode::Unexpected`] if it can't be written.
pub fn printed(out: &mut impl io::Write, text: &str) -> Outcome<()> {
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush())).map(|_| ())
}

/// What became of printing: false where whoever read has closed the pipe.
///
/// # Errors
///
/// [`ExitCode::Unexpected`] if it failed for another reason.
pub fn written(result: io::Result<()>) -> Outcome<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::unwritten(&error)),
    }
}

/// What somebody typed, without characters that would make it another line or
/// move the cursor.
pub fn shown(typed: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    typed.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_stays_on_its_line() {
        assert_eq!(shown("fair\nx\u{1b}[1mü\r"), "fair\\nx\\u{1b}[1mü\\r");
    }

    #[test]
    fn a_full_disk_is_told_and_a_closed_pipe_is_none() {
        struct Broken(io::ErrorKind);
        impl io::Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert!(printed(&mut Broken(io::ErrorKind::BrokenPipe), "x").is_ok());
        let failure = printed(&mut Broken(io::ErrorKind::StorageFull), "x").unwrap_err();
        assert_eq!(failure.code, ExitCode::Unexpected);
        assert!(failure.message.contains("is the disk full?"));
    }

    #[test]
    fn codes_ascend_and_are_distinct() {
        assert!(
            TABLE
                .windows(2)
                .all(|pair| (pair[0].0 as u8) < (pair[1].0 as u8))
        );
    }

    #[test]
    fn the_document_holds_the_same_table() {
        let document = include_str!("../docs/exit-codes.md");
        for (code, meaning) in TABLE {
            let row = format!("| {} | {meaning} |", *code as u8);
            assert!(
                document.contains(&row),
                "docs/exit-codes.md lacks the row {row:?}"
            );
        }
    }
}
