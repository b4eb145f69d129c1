// SPDX-License-Identifier: GPL-2.0-only
//! Why the kernel ended the scheduler: what its exit information means.

use scx_utils::ScxExitKind;

use crate::exit::{ExitCode, Failure};

// The kinds that are told apart; the same in every kernel with sched_ext.
const UNREG_BPF: i32 = ScxExitKind::UnregBPF as i32;
const UNREG_KERN: i32 = ScxExitKind::UnregKern as i32;
const ERROR: i32 = ScxExitKind::Error as i32;
const ERROR_STALL: i32 = ScxExitKind::ErrorStall as i32;

/// The kernel's exit information, as the BPF program recorded it.
///
/// Not scx_utils' `UserExitInfo`: that panics on text that is no UTF-8, which
/// the names of tasks in a dump may be, and tells neither kind nor dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitInfo {
    /// `enum scx_exit_kind`; never 0.
    pub kind: i32,
    /// Action, reason and user code, for kinds that carry one.
    pub code: i64,
    /// The CPU on which it happened, if the kernel tells (7.2 and later).
    pub cpu: Option<i32>,
    /// The kernel's short reason.
    pub reason: String,
    /// Details of it.
    pub message: String,
    /// The debug dump; empty unless it was an error.
    pub dump: String,
}

/// What to do after an exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Load again: the kernel asks for it.
    Restart,
    /// End the command.
    End(ExitCode),
}

impl ExitInfo {
    /// What the kernel wants now. `restart` is the bit of the code that asks
    /// for a restart, `SCX_ECODE_ACT_RESTART`.
    pub fn next(&self, restart: u64) -> Next {
        let carries_code = matches!(self.kind, UNREG_BPF | UNREG_KERN);
        if carries_code && self.code as u64 & restart != 0 {
            Next::Restart
        } else if self.kind >= ERROR {
            Next::End(ExitCode::Ejected)
        } else {
            Next::End(ExitCode::TurnedOff)
        }
    }

    /// The reason in one line: what the kernel said, and where.
    pub fn line(&self) -> String {
        let mut line = match self.reason.as_str() {
            "" => format!("exit kind {}", self.kind),
            reason => reason.to_string(),
        };
        if !self.message.is_empty() {
            line.push_str(&format!(" ({})", self.message.replace('\n', " ")));
        }
        if let Some(cpu) = self.cpu {
            line.push_str(&format!(" on CPU {cpu}"));
        }
        line
    }

    /// The debug dump as it is shown to people; empty if there is none.
    pub fn dump_text(&self) -> String {
        if self.dump.is_empty() {
            return String::new();
        }
        let rule = "=".repeat(80);
        format!("DEBUG DUMP\n{rule}\n{}\n{rule}", self.dump.trim_end())
    }

    /// The error that ends the command with `code`.
    pub fn failure(&self, code: ExitCode) -> Failure {
        let line = self.line();
        let message = match code {
            ExitCode::Enable => {
                format!("the kernel refused to enable the scheduler: {line}; nothing has changed")
            }
            ExitCode::TurnedOff => {
                format!("turned off by somebody else: {line}; start it again at will")
            }
            _ if self.kind == ERROR_STALL => format!(
                "ejected by the kernel: {line}; the kernel's own scheduler took over: \
                 start it again, and report this with the dump above"
            ),
            _ => format!(
                "ejected by the kernel: {line}; the kernel's own scheduler took over: \
                 report this with the dump above"
            ),
        };
        Failure::new(code, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(kind: i32, code: i64) -> ExitInfo {
        ExitInfo {
            kind,
            code,
            reason: "why".into(),
            ..ExitInfo::default()
        }
    }

    #[test]
    fn kinds_lead_to_their_ends() {
        let next = |kind, code| info(kind, code).next(1 << 48);
        assert_eq!(next(66, 1 << 48 | 1 << 32), Next::Restart);
        assert_eq!(next(65, 1 << 48), Next::Restart);
        assert_eq!(next(66, 1 << 32), Next::End(ExitCode::TurnedOff));
        assert_eq!(next(64, 1 << 48), Next::End(ExitCode::TurnedOff));
        assert_eq!(next(67, 0), Next::End(ExitCode::TurnedOff));
        for error in [1024, 1025, 1026, 1027, 5000] {
            assert_eq!(next(error, 1 << 48), Next::End(ExitCode::Ejected));
        }
    }

    #[test]
    fn the_line_holds_what_is_known() {
        let mut info = info(1026, 0);
        assert_eq!(info.line(), "why");
        info.message = "a\nb".into();
        info.cpu = Some(3);
        assert_eq!(info.line(), "why (a b) on CPU 3");
        info.reason.clear();
        assert!(info.line().starts_with("exit kind 1026"));
        assert_eq!(info.failure(ExitCode::Ejected).message.lines().count(), 1);
    }

    #[test]
    fn a_dump_is_framed_and_no_dump_is_nothing() {
        let mut info = info(1024, 0);
        assert_eq!(info.dump_text(), "");
        info.dump = "CPU states\n".into();
        assert!(info.dump_text().starts_with("DEBUG DUMP\n"));
        assert!(info.dump_text().contains("CPU states"));
    }
}
