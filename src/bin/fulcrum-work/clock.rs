// SPDX-License-Identifier: GPL-2.0-only
//! Time: the monotonic clock, sleeping until a point of it, and CPU clocks of
//! processes.
//!
//! CPU time is read through the kernel's CPU clocks and not from
//! /proc/PID/schedstat: the clock brings a running task's account up to date
//! first, the file can be a whole tick old.

use anyhow::{Result, bail};

const NS: u64 = 1_000_000_000;

/// Nanoseconds of a clock, if there is such a clock.
pub fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is a valid timespec for the call to fill.
    if unsafe { libc::clock_gettime(clock, &mut t) } != 0 {
        return None;
    }
    Some(t.tv_sec as u64 * NS + t.tv_nsec as u64)
}

/// Nanoseconds of CLOCK_MONOTONIC, which every Linux has.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CPU time of the calling thread in nanoseconds.
pub fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// Sleep until `due` on the monotonic clock. The default timer slack stays in
/// force: the delays that we report are those of an ordinary program.
pub fn sleep_until(due: u64) {
    let t = libc::timespec {
        tv_sec: (due / NS) as libc::time_t,
        tv_nsec: (due % NS) as libc::c_long,
    };
    loop {
        // SAFETY: `t` is valid; an absolute sleep needs no remainder.
        let rc = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &t,
                std::ptr::null_mut(),
            )
        };
        if rc != libc::EINTR {
            return;
        }
    }
}

/// The CPU clock of another process.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    pub fn of(pid: libc::pid_t) -> Result<Self> {
        let mut id = 0;
        // SAFETY: `id` is valid for the call to fill.
        let rc = unsafe { libc::clock_getcpuclockid(pid, &mut id) };
        if rc != 0 {
            bail!("process {pid} has no CPU clock: it ended too early");
        }
        Ok(Self(id))
    }

    pub fn read(self) -> Result<u64> {
        match read(self.0) {
            Some(ns) => Ok(ns),
            None => bail!("a process ended while it was being measured"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_until_never_returns_early() {
        let due = now() + 2_000_000;
        sleep_until(due);
        assert!(now() >= due);
    }

    #[test]
    fn own_cpu_clock_advances_with_the_thread() {
        // SAFETY: getpid has no preconditions.
        let clock = CpuClock::of(unsafe { libc::getpid() }).unwrap();
        let (process, thread) = (clock.read().unwrap(), thread_cpu());
        crate::burn::spin(3_000_000);
        let used = thread_cpu() - thread;
        assert!(used > 0);
        // Other test threads add to the process, never take away.
        assert!(clock.read().unwrap() - process >= used / 2);
    }
}
