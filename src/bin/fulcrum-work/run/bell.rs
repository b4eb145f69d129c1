// SPDX-License-Identifier: GPL-2.0-only
//! How one thread waits until another wakes it, and when that was.
//!
//! Through a futex, or through a pipe: a write to a pipe tells the kernel that
//! the waker is about to sleep (a SYNC wakeup), a futex can't.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What a thread sleeps on.
pub struct Bell {
    rung: AtomicU32,
    at: AtomicU64,
    released: AtomicU64,
    pipe: Option<(File, File)>,
}

/// When it rang, and when the request came that it rang for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    pub at: u64,
    pub released: u64,
}

impl Bell {
    /// `sync`: it can be rung through a pipe too.
    pub fn new(sync: bool) -> Result<Self> {
        Ok(Self {
            rung: AtomicU32::new(0),
            at: AtomicU64::new(0),
            released: AtomicU64::new(0),
            pipe: if sync { Some(pipe()?) } else { None },
        })
    }

    /// Wakes the one thread that waits or is about to.
    pub fn ring(&self, ring: Ring, sync: bool) {
        self.at.store(ring.at, Relaxed);
        self.released.store(ring.released, Relaxed);
        self.rung.store(1, Release);
        match &self.pipe {
            // A byte always fits: the waiter reads each before the next.
            Some((_, writer)) if sync => {
                let mut writer: &File = writer;
                let _ = writer.write(&[1]);
            }
            _ => futex(&self.rung, libc::FUTEX_WAKE, 1),
        }
    }

    /// Ends a wait of either kind.
    pub fn ring_out(&self) {
        let ring = Ring { at: 0, released: 0 };
        self.ring(ring, false);
        self.ring(ring, true);
    }

    /// Sleeps until it rings, in the same way as the one who rings.
    pub fn wait(&self, sync: bool) -> Ring {
        match &self.pipe {
            Some((reader, _)) if sync => {
                let mut reader: &File = reader;
                let mut byte = [0];
                while reader
                    .read(&mut byte)
                    .is_err_and(|e| e.kind() == io::ErrorKind::Interrupted)
                {}
            }
            _ => {
                while self.rung.load(Acquire) == 0 {
                    futex(&self.rung, libc::FUTEX_WAIT, 0);
                }
            }
        }
        self.rung.swap(0, Acquire);
        Ring {
            at: self.at.load(Relaxed),
            released: self.released.load(Relaxed),
        }
    }
}

fn pipe() -> Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: room for the two descriptors that the call returns.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error()).context("no pipe: raise `ulimit -n`");
    }
    // SAFETY: both are fresh and nobody else's.
    let [reader, writer] = ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) }));
    Ok((reader, writer))
}

/// One operation on a futex of this process.
pub fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // SAFETY: the word outlives the call; no timeout is given.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            ptr::null::<libc::timespec>(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_ring_is_kept_until_somebody_waits() {
        for sync in [false, true] {
            let bell = Bell::new(true).unwrap();
            let ring = Ring { at: 7, released: 3 };
            bell.ring(ring, sync);
            assert_eq!(bell.wait(sync), ring);
        }
    }

    #[test]
    fn a_sleeper_is_woken_either_way() {
        for sync in [false, true] {
            let bell = Arc::new(Bell::new(sync).unwrap());
            let waiter = Arc::clone(&bell);
            let thread = std::thread::spawn(move || waiter.wait(sync));
            std::thread::sleep(std::time::Duration::from_millis(5));
            bell.ring_out();
            assert_eq!(thread.join().unwrap().at, 0);
        }
    }
}
