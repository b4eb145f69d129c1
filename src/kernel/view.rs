// SPDX-License-Identifier: GPL-2.0-only
//! The machine as `/proc`, `/sys` and `/run` show it, read below a root that
//! tests replace by a made-up tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Capability numbers of the kernel's `linux/capability.h`.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Ticks a second in `/proc/PID/stat`: part of the kernel's ABI.
const USER_HZ: f64 = 100.0;

/// Read access to the machine's files below a root folder.
#[derive(Clone, Debug)]
pub struct SystemView {
    root: PathBuf,
}

/// What `/sys/kernel/sched_ext` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedExt {
    /// There is no such folder.
    Absent,
    /// No scheduler is loaded.
    Disabled,
    /// A scheduler is active, starting or stopping.
    Active {
        /// The kernel's word: `enabled`, `enabling` or `disabling`.
        state: String,
        /// The scheduler's name; empty if the kernel doesn't tell.
        ops: String,
    },
}

impl SystemView {
    /// This machine.
    pub fn host() -> Self {
        Self::new("/")
    }

    /// The machine whose `/proc`, `/sys` and `/run` lie below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where an absolute path of the machine lies.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// A file's text without white space at its end.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn read(&self, absolute: &str) -> io::Result<String> {
        read_trimmed(&self.path(absolute))
    }

    /// The kernel's release, such as `7.3.4+deb13-cloud-amd64`; `unknown` if
    /// `/proc` doesn't tell.
    pub fn kernel_release(&self) -> String {
        self.read("/proc/sys/kernel/osrelease")
            .unwrap_or_else(|_| "unknown".into())
    }

    /// Major and minor number of the kernel's release.
    pub fn kernel_version(&self) -> Option<(u32, u32)> {
        let release = self.kernel_release();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// Whether this process may load a scheduler; `None` if `/proc` doesn't
    /// tell its capabilities.
    pub fn may_load_bpf(&self) -> Option<bool> {
        let status = self.read("/proc/self/status").ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))?;
        let effective = u64::from_str_radix(line.trim(), 16).ok()?;
        let has = |capability: u32| effective >> capability & 1 == 1;
        // The kernel takes CAP_SYS_ADMIN for either of the other two.
        Some(has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON)))
    }

    /// Whether the kernel is built with PREEMPT_RT.
    pub fn is_preempt_rt(&self) -> bool {
        self.read("/sys/kernel/realtime")
            .is_ok_and(|text| text == "1")
            || self
                .read("/proc/version")
                .is_ok_and(|text| text.contains("PREEMPT_RT"))
    }

    /// The BPF JIT's setting: 0 is off; `None` if it can't be read, as
    /// without privileges or in a network namespace.
    pub fn jit_enable(&self) -> Option<u32> {
        self.read("/proc/sys/net/core/bpf_jit_enable")
            .ok()?
            .parse()
            .ok()
    }

    /// Which sched_ext scheduler is active.
    pub fn sched_ext(&self) -> SchedExt {
        if !self.path("/sys/kernel/sched_ext").is_dir() {
            return SchedExt::Absent;
        }
        match self.read("/sys/kernel/sched_ext/state") {
            Ok(state) if state != "disabled" => SchedExt::Active {
                state,
                ops: self
                    .read("/sys/kernel/sched_ext/root/ops")
                    .unwrap_or_default(),
            },
            _ => SchedExt::Disabled,
        }
    }

    /// The kernel's count of CPU hotplug events, which lets it notice one
    /// between our look at the CPUs and attaching.
    ///
    /// # Errors
    ///
    /// If the file can't be read or is no number.
    pub fn hotplug_seq(&self) -> io::Result<u64> {
        self.read("/sys/kernel/sched_ext/hotplug_seq")?
            .parse()
            .map_err(io::Error::other)
    }

    /// How long ago this process started, to 10 ms; `None` if `/proc` doesn't
    /// tell.
    pub fn process_age(&self) -> Option<Duration> {
        let stat = self.read("/proc/self/stat").ok()?;
        // The name before the last parenthesis may hold anything. The start
        // is the 22nd field, the 20th after the name.
        let (_, fields) = stat.rsplit_once(')')?;
        let start: f64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
        let uptime = self.read("/proc/uptime").ok()?;
        let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
        Duration::try_from_secs_f64(uptime - start / USER_HZ).ok()
    }

    /// CPUs taken from the scheduler's domains with `isolcpus=`, as the
    /// kernel's list; empty if there are none.
    pub fn isolated_cpus(&self) -> String {
        self.read("/sys/devices/system/cpu/isolated")
            .unwrap_or_default()
    }

    /// CPUs booted with `nohz_full=`, as the kernel's list; empty if there are none.
    pub fn nohz_full_cpus(&self) -> String {
        let list = self.read("/sys/devices/system/cpu/nohz_full");
        // Without such CPUs some kernels write "(null)".
        list.ok()
            .filter(|list| super::cpulist::parse(list, usize::MAX).is_some())
            .unwrap_or_default()
    }
}

/// A file's text without white space and NUL at its end.
///
/// # Errors
///
/// Those of reading the file.
pub fn read_trimmed(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes)
        .trim_end_matches(['\0', '\n', ' ', '\t'])
        .to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::Tree;

    #[test]
    fn versions_of_all_spellings() {
        for (release, version) in [
            ("7.3.4+deb13-cloud-amd64", Some((7, 3))),
            ("6.12-rc1", Some((6, 12))),
            ("6.1", Some((6, 1))),
            ("garbage", None),
        ] {
            let tree = Tree::new().file("proc/sys/kernel/osrelease", release);
            assert_eq!(tree.view().kernel_version(), version, "{release}");
        }
        assert_eq!(Tree::new().view().kernel_release(), "unknown");
    }

    #[test]
    fn capabilities_decide_not_the_user() {
        for (line, may) in [
            ("CapEff:\t000001ffffffffff\n", Some(true)),
            ("CapEff:\t0000000000000000\n", Some(false)),
            ("CapEff:\t0000000000200000\n", Some(true)),
            ("CapEff:\t000000c000000000\n", Some(true)),
            ("CapEff:\t0000008000000000\n", Some(false)),
            ("nothing", None),
        ] {
            let tree = Tree::new().file("proc/self/status", line);
            assert_eq!(tree.view().may_load_bpf(), may, "{line}");
        }
    }

    #[test]
    fn the_age_of_a_process_with_an_odd_name() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 500 20\n";
        let tree = Tree::new()
            .file("proc/self/stat", stat)
            .file("proc/uptime", "7.25 3.00\n");
        let age = tree.view().process_age();
        assert_eq!(age, Some(Duration::from_millis(2250)));
        let tree = tree.file("proc/uptime", "4.99 3.00\n");
        assert_eq!(tree.view().process_age(), None, "a start in the future");
        assert_eq!(Tree::new().view().process_age(), None);
    }

    #[test]
    fn the_state_of_sched_ext() {
        let bare = Tree::new();
        assert_eq!(bare.view().sched_ext(), SchedExt::Absent);
        let idle = bare.file("sys/kernel/sched_ext/state", "disabled\n");
        assert_eq!(idle.view().sched_ext(), SchedExt::Disabled);
        let busy = idle
            .file("sys/kernel/sched_ext/state", "enabled\n")
            .file("sys/kernel/sched_ext/root/ops", "simple\n");
        let (state, ops) = ("enabled".to_string(), "simple".to_string());
        assert_eq!(busy.view().sched_ext(), SchedExt::Active { state, ops });
    }
}
