// SPDX-License-Identifier: GPL-2.0-only
//! A listening socket that lets clients in, and never waits for any.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::connection::{Connection, Socket};

/// How long to let new clients wait if one can't be accepted (no more files).
const PAUSE: Duration = Duration::from_secs(1);

/// Who may come in by a Unix socket, besides root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The user that this process runs as.
    Owner,
    /// That user, and the members of a group.
    Group(u32),
    /// Everybody.
    All,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener, PathBuf, Access),
    Tcp(TcpListener),
}

/// A listening socket; a Unix socket's file goes with it.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    paused_until: Option<Instant>,
}

impl Door {
    /// Listen at `path`.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no listening.
    pub fn unix(path: &Path, access: Access) -> Result<Self, String> {
        let place = path.display();
        // Ours would be taken away from whoever serves there.
        if UnixStream::connect(path).is_ok() {
            return Err(format!("another process listens at {place}"));
        }
        let listener =
            listen(path, access).map_err(|error| format!("no socket {place} ({error})"))?;
        Ok(Self::with(Listener::Unix(
            listener,
            path.to_path_buf(),
            access,
        )))
    }

    /// Listen at `address`, which is this machine's own.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no listening.
    pub fn tcp(address: SocketAddr) -> Result<Self, String> {
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| format!("no socket {address} ({error})"))?;
        Ok(Self::with(Listener::Tcp(listener)))
    }

    const fn with(listener: Listener) -> Self {
        Self {
            listener,
            paused_until: None,
        }
    }

    /// Where it listens, if that is an address.
    ///
    /// # Errors
    ///
    /// Those of asking the kernel.
    pub fn address(&self) -> io::Result<Option<SocketAddr>> {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().map(Some),
            Listener::Unix(..) => Ok(None),
        }
    }

    /// What to poll; nothing during a pause.
    pub fn poll_fd(&self) -> Option<PollFd<'_>> {
        let fd = match &self.listener {
            Listener::Unix(listener, ..) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        };
        self.paused_until
            .is_none()
            .then(|| PollFd::from_borrowed_fd(fd, PollFlags::IN))
    }

    /// When to call [`Self::accept`] even if nobody has come.
    pub const fn deadline(&self) -> Option<Instant> {
        self.paused_until
    }

    /// The next client that waits and may come in.
    pub fn accept(&mut self) -> Option<Connection> {
        if self
            .paused_until
            .is_some_and(|until| Instant::now() < until)
        {
            return None;
        }
        self.paused_until = None;
        loop {
            match self.listener.accept() {
                Ok(Some(connection)) => return Some(connection),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) => {
                    log::debug!("accepting failed ({error})");
                    self.paused_until = Some(Instant::now() + PAUSE);
                    return None;
                }
            }
        }
    }
}

impl Listener {
    /// `None`: somebody who may not come in.
    fn accept(&self) -> io::Result<Option<Connection>> {
        match self {
            Self::Unix(listener, _, access) => {
                let (stream, _) = listener.accept()?;
                if admitted(&stream, *access)? {
                    Connection::new(Socket::Unix(stream)).map(Some)
                } else {
                    Ok(None)
                }
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                Connection::new(Socket::Tcp(stream)).map(Some)
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Listener::Unix(_, path, _) = &self.listener {
            // Left behind, it would look like a scheduler that does not answer.
            let _ = fs::remove_file(path);
        }
    }
}

fn listen(path: &Path, access: Access) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    let mode = match access {
        Access::Owner => 0o600,
        Access::Group(group) => match chown(path, None, Some(group)) {
            Ok(()) => 0o660,
            Err(error) => {
                // As in a sandbox that forbids it.
                log::warn!(
                    "{} can't be given to group {group} ({error}): only root may use it",
                    path.display()
                );
                0o600
            }
        },
        Access::All => 0o666,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// May the client at the other end come in? Of a socket for this user alone
/// the file's mode says so too, but only from the moment after it was made.
fn admitted(stream: &UnixStream, access: Access) -> io::Result<bool> {
    if access != Access::Owner {
        return Ok(true);
    }
    let peer = peer_uid(stream)?;
    Ok(peer == 0 || peer == rustix::process::geteuid().as_raw())
}

/// Whose the process at the other end is. Not by rustix: of a process outside our
/// PID namespace the kernel gives 0 for the PID, which its type has no value for.
fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = MaybeUninit::<libc::ucred>::uninit();
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `stream` is, and both pointers
    // are to room of the length that is given.
    let answer = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            peer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so all of it is filled in.
    Ok(unsafe { peer.assume_init() }.uid)
}
