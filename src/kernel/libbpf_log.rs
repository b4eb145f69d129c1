// SPDX-License-Identifier: GPL-2.0-only
//! What libbpf prints: kept for the error message, shown with `-v`.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// Lines that are kept: enough for the end of a verifier log.
const KEPT_LINES: usize = 24;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Take over libbpf's output. `verbose` counts the `-v` flags: 0 shows
/// nothing, 1 information and warnings, 2 debugging output too.
pub fn init(verbose: u8) {
    match verbose {
        0 => set_print(Some((PrintLevel::Info, keep))),
        1 => set_print(Some((PrintLevel::Info, show))),
        _ => set_print(Some((PrintLevel::Debug, show))),
    };
}

fn show(level: PrintLevel, text: String) {
    log::debug!("{}", text.trim_end());
    keep(level, text);
}

fn keep(level: PrintLevel, text: String) {
    if level != PrintLevel::Warn {
        return;
    }
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line.to_string());
    }
}

/// Take the last warnings, oldest first; the verifier's log ends there.
pub fn take() -> Vec<String> {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.drain(..).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        for number in 0..100 {
            keep(PrintLevel::Warn, format!("line {number}\n\n"));
        }
        keep(PrintLevel::Debug, "noise".to_string());
        let lines = take();
        assert_eq!(lines.len(), KEPT_LINES);
        assert_eq!(lines.last().map(String::as_str), Some("line 99"));
        assert!(take().is_empty());
    }
}
