// SPDX-License-Identifier: GPL-2.0-only
//! `cpu.max` of cgroups, read to be shown. Nothing enforces it while a sched_ext
//! scheduler runs: the kernel throttles tasks of its own class only.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A limit that is shown may be so old.
const READ_EVERY: Duration = Duration::from_secs(5);

/// The limits of all cgroups that have one.
#[derive(Debug, Default)]
pub struct Limits {
    read_at: Option<Instant>,
    known: HashMap<String, f64>,
}

impl Limits {
    /// Read those of the cgroups at `paths` below `root`, unless that was done
    /// a moment ago.
    pub fn refresh<'a>(&mut self, root: &Path, paths: impl Iterator<Item = &'a str>, now: Instant) {
        if self.read_at.is_some_and(|read| now < read + READ_EVERY) {
            return;
        }
        self.read_at = Some(now);
        self.known.clear();
        for path in paths {
            let file = root.join(path.trim_start_matches('/')).join("cpu.max");
            let text = fs::read_to_string(file).unwrap_or_default();
            if let Some(percent) = percent(&text) {
                self.known.insert(path.to_string(), percent);
            }
        }
    }

    /// The limit of the cgroup at `path`, in % of one CPU; 0: it has none.
    pub fn of(&self, path: &str) -> f64 {
        self.known.get(path).copied().unwrap_or(0.0)
    }
}

/// What the text of `cpu.max` comes to, in % of one CPU; `None`: no limit.
fn percent(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    let percent = 100.0 * quota / period;
    percent
        .is_finite()
        .then_some((percent * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_part_of_one_cpu() {
        assert_eq!(percent("50000 100000\n"), Some(50.0));
        assert_eq!(percent("250000 100000"), Some(250.0));
        for none in ["max 100000\n", "", "5", "5 0", "x 7"] {
            assert_eq!(percent(none), None, "{none}");
        }
    }

    #[test]
    fn limits_are_read_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let set = |text: &str| fs::write(root.join("a/b/cpu.max"), text).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        set("20000 100000\n");
        let (mut limits, start) = (Limits::default(), Instant::now());
        let paths = || ["/", "/a", "/a/b"].into_iter();
        limits.refresh(root, paths(), start);
        assert_eq!((limits.of("/a/b"), limits.of("/a")), (20.0, 0.0));
        set("max 100000\n");
        limits.refresh(root, paths(), start + READ_EVERY / 2);
        assert_eq!(limits.of("/a/b"), 20.0);
        limits.refresh(root, paths(), start + READ_EVERY);
        assert_eq!(limits.of("/a/b"), 0.0);
    }
}
