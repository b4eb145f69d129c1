// SPDX-License-Identifier: GPL-2.0-only
//! Sets of CPUs and what a process asks of the kernel for itself: affinity,
//! nice, real-time priority.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::io;
use std::str::FromStr;

/// As many CPU numbers as the scheduler supports.
const MAX_CPUS: usize = 4096;
const WORDS: usize = MAX_CPUS / 64;

/// CPUs by number, written as in /sys: `0-3,5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(BTreeSet<usize>);

impl CpuList {
    pub fn one(cpu: usize) -> Self {
        Self(BTreeSet::from([cpu]))
    }

    /// The CPUs that this process may run on and that are online.
    pub fn allowed() -> Result<Self> {
        let mut mask = [0_u64; WORDS];
        // SAFETY: the kernel fills at most the size given with it.
        let rc = unsafe { libc::sched_getaffinity(0, WORDS * 8, mask.as_mut_ptr().cast()) };
        if rc != 0 {
            return Err(io::Error::last_os_error()).context("sched_getaffinity");
        }
        Ok(Self(
            (0..MAX_CPUS)
                .filter(|c| mask[c / 64] >> (c % 64) & 1 == 1)
                .collect(),
        ))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn to_vec(&self) -> Vec<usize> {
        self.0.iter().copied().collect()
    }

    /// Confine a task (0: the caller) to these CPUs. Plain system calls, so
    /// that a task may call it in a loop.
    pub fn confine(&self, pid: libc::pid_t) -> io::Result<()> {
        let mut mask = [0_u64; WORDS];
        for cpu in &self.0 {
            mask[cpu / 64] |= 1 << (cpu % 64);
        }
        // SAFETY: the mask is as long as the size given with it.
        match unsafe { libc::sched_setaffinity(pid, WORDS * 8, mask.as_ptr().cast()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl FromStr for CpuList {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |s: &str| {
                s.trim()
                    .parse::<usize>()
                    .ok()
                    .filter(|c| *c < MAX_CPUS)
                    .with_context(|| format!("`{s}` is no CPU number; write for example 0-3,5"))
            };
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                bail!("`{part}` runs backwards; write the lower CPU first");
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl std::fmt::Display for CpuList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<(usize, usize)> = Vec::new();
        for &cpu in &self.0 {
            match parts.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => parts.push((cpu, cpu)),
            }
        }
        let text: Vec<String> = parts
            .iter()
            .map(|(a, b)| match a == b {
                true => a.to_string(),
                false => format!("{a}-{b}"),
            })
            .collect();
        f.write_str(&text.join(","))
    }
}

/// Set the caller's nice value.
pub fn renice(nice: i32) -> io::Result<()> {
    // SAFETY: plain system call on the calling process.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Make the caller a real-time task, so that reading the clocks is not delayed
/// by the very tasks being measured, real-time ones among them. What it starts
/// is ordinary again. False where that isn't permitted.
pub fn become_observer() -> bool {
    let param = libc::sched_param { sched_priority: 50 };
    // SAFETY: `param` is valid.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &param) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_they_are_written() {
        for text in ["0", "0-3", "0-3,5", "1,3,5-7", "4095"] {
            assert_eq!(text.parse::<CpuList>().unwrap().to_string(), text);
        }
        assert_eq!("5,0-1,1".parse::<CpuList>().unwrap().to_string(), "0-1,5");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "x", "3-1", "4096", "1,", "-1", "1-"] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_confined_thread_runs_where_it_was_told() {
        let allowed = CpuList::allowed().unwrap();
        assert!(allowed.len() > 0);
        for cpu in allowed.to_vec() {
            CpuList::one(cpu).confine(0).unwrap();
            // SAFETY: no preconditions.
            assert_eq!(unsafe { libc::sched_getcpu() }, cpu as i32);
        }
        allowed.confine(0).unwrap();
    }
}
