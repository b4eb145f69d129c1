// SPDX-License-Identifier: GPL-2.0-only
//! The checks of [`super::preflight`] as a list for people.

use std::io::{self, Write};

use super::preflight::{Report, Verdict};

/// Write one line a check, with the remedy below where there is one, and the
/// sum of it all.
///
/// # Errors
///
/// Those of writing to `out`.
pub fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let width = report
        .findings
        .iter()
        .map(|finding| finding.topic.len())
        .max()
        .unwrap_or(0);
    for finding in &report.findings {
        let mark = match finding.verdict {
            Verdict::Ok => "ok  ",
            Verdict::Warn => "warn",
            Verdict::Fail(_) => "FAIL",
        };
        writeln!(out, "{mark}  {:width$}  {}", finding.topic, finding.detail)?;
        if !finding.remedy.is_empty() {
            writeln!(out, "      {:width$}  -> {}", "", finding.remedy)?;
        }
    }
    match report.failure() {
        None => writeln!(
            out,
            "\nscx_fulcrum can run here: start it as root with scx_fulcrum"
        ),
        Some(failure) => {
            writeln!(
                out,
                "\nscx_fulcrum can't run here yet (exit code {})",
                failure.code as u8
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::preflight;
    use crate::kernel::testing::Tree;

    #[test]
    fn every_check_is_listed_with_its_remedy() {
        let report = preflight::check(&Tree::new().view(), &Err("absent".to_string()));
        let mut text = Vec::new();
        print(&report, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for finding in &report.findings {
            assert!(text.contains(finding.topic), "{text}");
            assert!(text.contains(&finding.remedy), "{text}");
        }
        assert!(text.ends_with("(exit code 11)\n"), "{text}");
    }
}
