// SPDX-License-Identifier: GPL-2.0-only
//! How the one thread that decides sleeps: in one `poll`, until a signal, a
//! client of the statistics, the kernel or a deadline wakes it.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest single sleep: what any clock can express.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// Ends the sleep of a [`Sleeper`], from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    pipe: Arc<PipeWriter>,
    stopping: Arc<AtomicBool>,
}

impl Waker {
    /// End the sleep that is going on, or else the next one.
    pub fn wake(&self) {
        // Fails only if there is nobody left to wake.
        let _ = (&*self.pipe).write(&[0]);
    }

    /// Tell the sleeper for good that it should stop, and wake it.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
    }
}

/// The end of the thread that sleeps.
#[derive(Debug)]
pub struct Sleeper {
    pipe: PipeReader,
    waker: Waker,
}

impl Sleeper {
    /// A sleeper and, with [`Self::waker`], what wakes it.
    ///
    /// # Errors
    ///
    /// If this process may open no more files.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self {
            pipe: reader,
            waker: Waker {
                pipe: Arc::new(writer),
                stopping: Arc::new(AtomicBool::new(false)),
            },
        })
    }

    /// What wakes this sleeper.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Whether [`Waker::stop`] was called.
    pub fn stopping(&self) -> bool {
        self.waker.stopping.load(Ordering::Acquire)
    }

    /// Sleep until woken, until one of `sources` is ready, or until `deadline`.
    /// May end early: the caller looks at everything anyway.
    ///
    /// # Errors
    ///
    /// Those of `poll`; a signal is none.
    pub fn sleep(&self, sources: &[PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
        let mut fds = vec![readable(self.pipe.as_fd())];
        fds.extend_from_slice(sources);
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.min(LONGEST).as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        if poll_readable(&mut fds, timeout.as_ref())? {
            // One read takes all that is likely to be there; what it leaves
            // ends the next sleep, which does no harm.
            let _taken = (&self.pipe).read(&mut [0; 64])?;
        }
        Ok(())
    }
}

/// A source of [`Sleeper::sleep`] that is ready when it can be read.
pub fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(fd, PollFlags::IN)
}

/// Wait, and tell whether the first of `fds` can be read.
fn poll_readable(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> io::Result<bool> {
    match poll(fds, timeout) {
        Ok(_) => Ok(fds.first().is_some_and(|fd| !fd.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Longer than any test takes: a sleep that ends by this alone has failed.
    const FOREVER: Duration = Duration::from_secs(60);

    fn slept(sleeper: &Sleeper, sources: &[PollFd<'_>], limit: Duration) -> Duration {
        let start = Instant::now();
        sleeper.sleep(sources, Some(start + limit)).unwrap();
        start.elapsed()
    }

    #[test]
    fn a_deadline_ends_the_sleep_and_not_before() {
        let sleeper = Sleeper::new().unwrap();
        let limit = Duration::from_millis(20);
        assert!(slept(&sleeper, &[], limit) >= limit);
        assert!(slept(&sleeper, &[], Duration::ZERO) < FOREVER);
        assert!(!sleeper.stopping());
    }

    #[test]
    fn waking_ends_one_sleep_even_if_it_comes_first() {
        let sleeper = Sleeper::new().unwrap();
        let (waker, limit) = (sleeper.waker(), Duration::from_millis(20));
        waker.wake();
        waker.wake();
        assert!(slept(&sleeper, &[], FOREVER) < FOREVER);
        assert!(slept(&sleeper, &[], limit) >= limit);
        let other = thread::spawn(move || waker.stop());
        assert!(slept(&sleeper, &[], FOREVER) < FOREVER);
        other.join().unwrap();
        assert!(sleeper.stopping());
    }

    #[test]
    fn a_readable_source_ends_the_sleep_and_is_left_alone() {
        let sleeper = Sleeper::new().unwrap();
        let (mut reader, mut writer) = io::pipe().unwrap();
        let limit = Duration::from_millis(20);
        assert!(slept(&sleeper, &[readable(reader.as_fd())], limit) >= limit);
        writer.write_all(b"x").unwrap();
        assert!(slept(&sleeper, &[readable(reader.as_fd())], FOREVER) < FOREVER);
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }
}
