// SPDX-License-Identifier: GPL-2.0-only
//! What scheduling itself costs while pipes keep waking tasks: BPF programs,
//! switches, migrations, interrupts sent to other CPUs; and what the
//! scheduler's own process uses.

use super::programs::{self, Program};
use super::rows::Case;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Instant;

/// Switches the kernel's own accounting on, and off again when dropped.
struct Accounting;

const SWITCHES: [&str; 2] = [
    "/proc/sys/kernel/bpf_stats_enabled",
    "/proc/sys/kernel/sched_schedstats",
];

impl Accounting {
    fn on() -> Result<Self> {
        for file in SWITCHES {
            fs::write(file, "1").with_context(|| format!("writing {file}"))?;
        }
        Ok(Self)
    }
}

impl Drop for Accounting {
    fn drop(&mut self) {
        for file in SWITCHES {
            if let Err(e) = fs::write(file, "0") {
                eprintln!("fulcrum-work: {file} stays 1: {e}");
            }
        }
    }
}

/// Counts tasks' migrations on all CPUs, as `perf stat -a -e migrations` does.
struct Migrations(Vec<fs::File>);

impl Migrations {
    fn count(cpus: &[usize]) -> Result<Self> {
        use std::os::fd::FromRawFd;
        /// The first fields of `struct perf_event_attr`, as much as is needed
        /// here (PERF_ATTR_SIZE_VER0).
        #[repr(C)]
        struct Attributes {
            kind: u32,
            size: u32,
            config: u64,
            rest: [u64; 6],
        }
        const SOFTWARE: u32 = 1;
        const CPU_MIGRATIONS: u64 = 4;
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: CPU_MIGRATIONS,
            rest: [0; 6],
        };
        let mut files = Vec::new();
        for cpu in cpus {
            // SAFETY: the attributes are valid and say how long they are.
            let fd = unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    &raw const attributes,
                    -1,
                    *cpu,
                    -1,
                    0,
                )
            };
            if fd < 0 {
                return Err(io::Error::last_os_error()).context("counting migrations");
            }
            // SAFETY: a descriptor that was just opened and belongs to nobody.
            files.push(unsafe { fs::File::from_raw_fd(fd as i32) });
        }
        Ok(Self(files))
    }

    fn read(&self) -> Result<u64> {
        use std::io::Read;
        let mut sum = 0;
        for mut file in &self.0 {
            let mut bytes = [0; 8];
            file.read_exact(&mut bytes).context("reading migrations")?;
            sum += u64::from_ne_bytes(bytes);
        }
        Ok(sum)
    }
}

/// The kernel's counters since the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counters {
    wakeups: u64,
    switches: u64,
    kicks: u64,
}

/// Calls of try_to_wake_up(): the fifth number of each CPU in /proc/schedstat.
fn wakeups(schedstat: &str) -> u64 {
    let cpu = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let is_cpu = name.strip_prefix("cpu")?.parse::<usize>().is_ok();
        words.nth(4)?.parse::<u64>().ok().filter(|_| is_cpu)
    };
    schedstat.lines().filter_map(cpu).sum()
}

/// The line `ctxt` of /proc/stat.
fn switches(stat: &str) -> u64 {
    let line = stat.lines().find_map(|l| l.strip_prefix("ctxt "));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Reschedule interrupts of all CPUs in /proc/interrupts.
fn kicks(interrupts: &str) -> u64 {
    let line = interrupts
        .lines()
        .find_map(|l| l.trim_start().strip_prefix("RES:"));
    line.map_or(0, |l| {
        l.split_whitespace()
            .map_while(|n| n.parse::<u64>().ok())
            .sum()
    })
}

fn counters() -> Result<Counters> {
    let text = |file: &str| fs::read_to_string(file).with_context(|| file.to_string());
    Ok(Counters {
        wakeups: wakeups(&text("/proc/schedstat")?),
        switches: switches(&text("/proc/stat")?),
        kicks: kicks(&text("/proc/interrupts")?),
    })
}

fn per_wakeup(
    wakeups: u64,
    before: &BTreeMap<String, Program>,
    after: &BTreeMap<String, Program>,
) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    let mut total = 0;
    for (name, program) in after {
        let old = before.get(name).copied().unwrap_or_default();
        let (calls, ns) = (program.calls - old.calls, program.ns - old.ns);
        total += ns;
        // What is hardly ever called costs nothing per wakeup.
        if calls as f64 > 0.01 * wakeups as f64 {
            values.insert(format!("calls of {name}"), calls as f64 / wakeups as f64);
            values.insert(format!("ns per call of {name}"), ns as f64 / calls as f64);
        }
    }
    values.insert(
        "ns in BPF programs".to_string(),
        total as f64 / wakeups as f64,
    );
    values
}

/// What the costs of a wakeup in this case are called.
pub fn about(case: &Case) -> String {
    format!("per wakeup, {}", case.what)
}

/// How the clock of the VM counts (docs/vm.md). While one CPU is busy at a
/// time, all of it is that CPU's.
pub const NS_PER_INSTRUCTION: f64 = 2.0;

/// Times of programs as instructions.
fn in_instructions(values: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    values
        .into_iter()
        .map(|(name, value)| match name.strip_prefix("ns ") {
            Some(what) => (format!("instructions {what}"), value / NS_PER_INSTRUCTION),
            None => (name, value),
        })
        .collect()
}

/// Run `work` with all accounting on; what it cost per wakeup. `alone` says
/// that only one CPU is busy at a time.
pub fn of(
    cpus: &[usize],
    alone: bool,
    work: impl FnOnce() -> Result<()>,
) -> Result<BTreeMap<String, f64>> {
    let _accounting = Accounting::on()?;
    let migrations = Migrations::count(cpus)?;
    let (before, programs) = (counters()?, programs::loaded());
    work()?;
    let (after, moved) = (counters()?, migrations.read()?);
    let wakeups = (after.wakeups - before.wakeups).max(1);
    let mut values = per_wakeup(wakeups, &programs, &programs::loaded());
    let mut put = |name: &str, count: u64| {
        values.insert(name.to_string(), count as f64 / wakeups as f64);
    };
    put("context switches", after.switches - before.switches);
    put("reschedule interrupts", after.kicks - before.kicks);
    put("migrations", moved);
    Ok(match alone {
        true => in_instructions(values),
        false => values,
    })
}

/// What a process has used since it was first looked at.
pub struct Process {
    pid: u32,
    began: Instant,
    cpu_ns: u64,
    sleeps: u64,
}

fn status_number(text: &str, field: &str) -> u64 {
    text.lines()
        .find_map(|l| l.strip_prefix(field)?.strip_prefix(':'))
        .and_then(|v| v.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// CPU time and voluntary switches of all threads.
fn used(pid: u32) -> Result<(u64, u64)> {
    let (mut cpu_ns, mut sleeps) = (0, 0);
    let folder = format!("/proc/{pid}/task");
    for thread in fs::read_dir(&folder).with_context(|| folder.clone())? {
        let path = thread.with_context(|| folder.clone())?.path();
        // A thread may end while it is looked at.
        let schedstat = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        let ns = schedstat.split_whitespace().next().map(str::parse::<u64>);
        cpu_ns += ns.and_then(Result::ok).unwrap_or(0);
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        sleeps += status_number(&status, "voluntary_ctxt_switches");
    }
    Ok((cpu_ns, sleeps))
}

impl Process {
    pub fn watch(pid: u32) -> Result<Self> {
        let (cpu_ns, sleeps) = used(pid)?;
        Ok(Self {
            pid,
            began: Instant::now(),
            cpu_ns,
            sleeps,
        })
    }

    pub fn cost(&self) -> Result<BTreeMap<String, f64>> {
        let (cpu_ns, sleeps) = used(self.pid)?;
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).context("status")?;
        let seconds = self.began.elapsed().as_secs_f64();
        Ok(BTreeMap::from([
            (
                "RSS, MiB".to_string(),
                status_number(&status, "VmRSS") as f64 / 1024.0,
            ),
            (
                "CPU, %".to_string(),
                (cpu_ns - self.cpu_ns) as f64 / 1e7 / seconds,
            ),
            (
                "sleeps, 1/s".to_string(),
                (sleeps - self.sleeps) as f64 / seconds,
            ),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_in_the_kernel_s_files() {
        let schedstat = "version 17\ntimestamp 1\ncpu0 0 0 4 5 600 7 8 9 10\ndomain0 03 1 2 3\n\
                         cpu1 0 0 4 5 60 7 8 9 10\n";
        assert_eq!(wakeups(schedstat), 660);
        assert_eq!(switches("cpu 1 2\nctxt 4711\nbtime 1\n"), 4711);
        let interrupts = "  CPU0 CPU1\n  0: 3 4 IO-APIC\nRES: 10 5 Rescheduling interrupts\n";
        assert_eq!(kicks(interrupts), 15);
    }

    #[test]
    fn programs_are_charged_per_wakeup() {
        let program = |calls, ns| Program {
            calls,
            ns,
            verified: 1,
        };
        let before = BTreeMap::from([("a".to_string(), program(100, 1000))]);
        let after = BTreeMap::from([
            ("a".to_string(), program(300, 51_000)),
            ("b".to_string(), program(1, 50)),
        ]);
        let values = per_wakeup(200, &before, &after);
        assert_eq!(values["calls of a"], 1.0);
        assert_eq!(values["ns per call of a"], 250.0);
        assert_eq!(values["ns in BPF programs"], 250.25);
        assert!(!values.contains_key("calls of b"));
    }

    #[test]
    fn times_become_instructions_and_counts_stay() {
        let values = [("ns per call of a", 250.0), ("calls of a", 1.5)];
        let values = in_instructions(values.map(|(k, v)| (k.to_string(), v)).into());
        assert_eq!(values["instructions per call of a"], 125.0);
        assert_eq!((values["calls of a"], values.len()), (1.5, 2));
    }

    #[test]
    fn a_process_is_seen_using_its_cpu() {
        let watch = Process::watch(std::process::id()).unwrap();
        crate::burn::spin(3_000_000);
        let cost = watch.cost().unwrap();
        assert!(cost["RSS, MiB"] > 0.5, "{cost:?}");
        assert!(cost["CPU, %"] > 0.0, "{cost:?}");
    }
}
