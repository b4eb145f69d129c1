// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's list format for sets of CPUs: `0-3,8,10-11`.
//!
//! Not scx_utils' `read_cpulist`: that refuses the empty set, which an offline
//! node has, and a garbled range makes it panic or take all memory.

/// Parse a CPU list into ascending CPU numbers without repeats.
///
/// An empty list is the empty set. `None` if the text is no CPU list, or
/// names a CPU of `limit` or above.
pub fn parse(text: &str, limit: usize) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim_matches(['\0', '\n', ' ']).split(',') {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if first > last || last >= limit {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The list of ascending CPU numbers without repeats.
pub fn format(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let texts = runs.filter_map(|run| match run {
        [] => None,
        [only] => Some(only.to_string()),
        [first, .., last] => Some(format!("{first}-{last}")),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{format, parse};

    #[test]
    fn lists_of_the_kernel_parse() {
        assert_eq!(parse("0\n", 8), Some(vec![0]));
        assert_eq!(parse("0-3,6,5\n", 8), Some(vec![0, 1, 2, 3, 5, 6]));
        assert_eq!(parse("1-2,2-3", 8), Some(vec![1, 2, 3]));
        assert_eq!(parse("\n", 8), Some(vec![]));
        assert_eq!(parse("", 8), Some(vec![]));
    }

    #[test]
    fn lists_are_written_as_the_kernel_does() {
        for text in ["", "0", "0-3,5,7-8"] {
            assert_eq!(
                parse(text, 9).map(|cpus| format(&cpus)).as_deref(),
                Some(text)
            );
        }
    }

    #[test]
    fn other_text_is_refused_without_panic() {
        for text in ["-1", "3-1", "a", "0-", "0-99999999999999999999", "8", "0x3"] {
            assert_eq!(parse(text, 8), None, "{text}");
        }
    }
}
