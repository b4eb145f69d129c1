// SPDX-License-Identifier: GPL-2.0-only
//! At most one scx_fulcrum at a time: a lock file that says who holds it.
//!
//! The lock ends with the process, however it ends; the file stays.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::view::{SystemView, read_trimmed};

const FOLDER: &str = "/run/scx_fulcrum";
const FILE: &str = "/run/scx_fulcrum/lock";

/// `doctor` takes the lock for an instant to see whether it is free; a start
/// just then must not take that for a second scheduler.
const RETRIES: u32 = 3;
const RETRY_AFTER: Duration = Duration::from_millis(30);

/// The lock, held until dropped.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
}

/// Why the lock could not be taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it.
    Held {
        /// Who, in words: `pid 123`.
        holder: String,
    },
    /// The file can't be made, opened or locked.
    Io(PathBuf, io::Error),
}

/// Take the lock and write this process's id into its file.
///
/// # Errors
///
/// [`LockError::Held`] if another scx_fulcrum has it.
pub fn acquire(view: &SystemView) -> Result<InstanceLock, LockError> {
    let (folder, path) = (view.path(FOLDER), view.path(FILE));
    let failed = |error| LockError::Io(path.clone(), error);
    fs::create_dir_all(&folder).map_err(failed)?;
    // Whoever can open the file can lock it, and so keep us from starting.
    let open = OpenOptions::new()
        .mode(0o600)
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path);
    let mut file = open.map_err(failed)?;
    for attempt in 0.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if attempt < RETRIES => thread::sleep(RETRY_AFTER),
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held {
                    holder: holder(view),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(InstanceLock { _file: file })
}

/// Who holds the lock now, in words; `None` if nobody does.
///
/// # Errors
///
/// If the file exists and can't be opened or tested.
pub fn held_by(view: &SystemView) -> io::Result<Option<String>> {
    let file = match File::open(view.path(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder(view))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn holder(view: &SystemView) -> String {
    // The file's text is for people only; the lock itself is what counts.
    match read_trimmed(&view.path(FILE)) {
        Ok(text) if text.parse::<u32>().is_ok() => format!("pid {text}"),
        _ => "a process that just started".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::Tree;

    #[test]
    fn one_holder_at_a_time_and_it_is_named() {
        let tree = Tree::new();
        let view = tree.view();
        assert!(held_by(&view).unwrap().is_none());
        let lock = acquire(&view).unwrap();
        let me = format!("pid {}", std::process::id());
        assert_eq!(held_by(&view).unwrap(), Some(me.clone()));
        match acquire(&view) {
            Err(LockError::Held { holder }) => assert_eq!(holder, me),
            other => panic!("{other:?}"),
        }
        drop(lock);
        assert!(held_by(&view).unwrap().is_none());
        assert!(acquire(&view).is_ok());
    }

    /// 1,000 times five at once; the losers wait a moment each, so several such
    /// races run beside each other.
    #[test]
    fn of_several_at_once_exactly_one_gets_it() {
        let race = |view: &SystemView| {
            let start = std::sync::Barrier::new(5);
            let taken: Vec<_> = thread::scope(|scope| {
                let one = || {
                    start.wait();
                    acquire(view)
                };
                let all: Vec<_> = (0..5).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            let held = taken.iter().filter(|result| result.is_ok()).count();
            assert_eq!(held, 1, "{taken:?}");
        };
        thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| {
                    let tree = Tree::new();
                    (0..20).for_each(|_| race(&tree.view()));
                });
            }
        });
    }

    #[test]
    fn others_cannot_open_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let tree = Tree::new();
        let _lock = acquire(&tree.view()).unwrap();
        let mode = fs::metadata(tree.view().path(FILE)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }

    #[test]
    fn a_stale_file_is_no_holder() {
        let tree = Tree::new().file("run/scx_fulcrum/lock", "4000000\n");
        assert!(held_by(&tree.view()).unwrap().is_none());
        assert!(acquire(&tree.view()).is_ok());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let tree = Tree::new().file("run", "in the way");
        assert!(matches!(acquire(&tree.view()), Err(LockError::Io(..))));
    }
}
