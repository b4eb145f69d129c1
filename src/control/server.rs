// SPDX-License-Identifier: GPL-2.0-only
//! The agent's end of the control socket. It never waits: the agent's one
//! `poll` tells when to serve. Whatever a client sends or fails to read is
//! that client's loss only.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::protocol::{Reply, Request};

/// Clients at a time; one more, and the oldest has to go.
const CLIENTS: usize = 16;

/// Longest request, in bytes.
const LONGEST: usize = 16 << 10;

/// How long to let new clients wait if one can't be accepted (no more files).
const PAUSE: Duration = Duration::from_secs(1);

/// The listening socket and its clients.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
    paused_until: Option<Instant>,
}

impl Server {
    /// Listen on `path`, for this user and root alone.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no listening.
    pub fn launch(path: &Path) -> Result<Self, String> {
        let place = path.display();
        // Ours would be taken away from whoever serves there.
        if UnixStream::connect(path).is_ok() {
            return Err(format!("another process listens at {place}"));
        }
        let listen = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|error| format!("no control socket {place} ({error})"))?;
        Ok(Self {
            listener,
            path: path.to_path_buf(),
            clients: Vec::new(),
            paused_until: None,
        })
    }

    /// What to poll: when one of them is ready, call [`Self::serve`].
    pub fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let mut fds: Vec<_> = self.clients.iter().map(Client::poll_fd).collect();
        if self.paused_until.is_none() {
            fds.push(PollFd::from_borrowed_fd(
                self.listener.as_fd(),
                PollFlags::IN,
            ));
        }
        fds
    }

    /// When to call [`Self::serve`] even if nothing is ready.
    pub const fn deadline(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Accept who waits, read, `answer` every whole request, write.
    pub fn serve(&mut self, mut answer: impl FnMut(Request) -> Reply) {
        if self
            .paused_until
            .is_none_or(|until| Instant::now() >= until)
        {
            self.paused_until = None;
            self.accept();
        }
        self.clients.retain_mut(|client| client.serve(&mut answer));
    }

    fn accept(&mut self) {
        loop {
            match self
                .listener
                .accept()
                .and_then(|(stream, _)| admitted(stream))
            {
                Ok(Some(client)) => {
                    if self.clients.len() >= CLIENTS {
                        self.clients.remove(0);
                    }
                    self.clients.push(client);
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    log::debug!("control: accepting failed ({error})");
                    self.paused_until = Some(Instant::now() + PAUSE);
                    return;
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Left behind, it would look like a scheduler that does not answer.
        let _ = fs::remove_file(&self.path);
    }
}

/// The client at the other end, if it may ask. The file's mode says so too,
/// but only from the moment after it was made.
fn admitted(stream: UnixStream) -> io::Result<Option<Client>> {
    let peer = rustix::net::sockopt::socket_peercred(&stream)?;
    if !peer.uid.is_root() && peer.uid != rustix::process::geteuid() {
        return Ok(None);
    }
    stream.set_nonblocking(true)?;
    Ok(Some(Client {
        stream,
        received: Vec::new(),
        unsent: Vec::new(),
        finished: false,
    }))
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// Read, but no whole line yet.
    received: Vec<u8>,
    /// Answers that did not fit the socket yet; nothing is read meanwhile.
    unsent: Vec<u8>,
    /// Nothing more will come.
    finished: bool,
}

impl Client {
    fn poll_fd(&self) -> PollFd<'_> {
        let flags = if self.unsent.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::OUT
        };
        PollFd::from_borrowed_fd(self.stream.as_fd(), flags)
    }

    /// Does what can be done without waiting; false: this client is done.
    fn serve(&mut self, answer: &mut impl FnMut(Request) -> Reply) -> bool {
        if !self.send() {
            return false;
        }
        if !self.unsent.is_empty() {
            return true;
        }
        if !self.finished && !self.receive() {
            return false;
        }
        self.answer_lines(answer);
        self.send() && !(self.finished && self.unsent.is_empty())
    }

    /// Reads once, so that nobody keeps the agent; false: the connection broke.
    fn receive(&mut self) -> bool {
        let mut bytes = [0; LONGEST];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.finished = true,
            Ok(count) => self.received.extend(bytes.iter().take(count)),
            Err(error) => return waits(&error),
        }
        true
    }

    fn answer_lines(&mut self, answer: &mut impl FnMut(Request) -> Reply) {
        let mut received = std::mem::take(&mut self.received);
        // The last line may lack its end.
        if self.finished && !received.is_empty() && !received.ends_with(b"\n") {
            received.push(b'\n');
        }
        let mut lines = received.split_inclusive(|&byte| byte == b'\n');
        for line in &mut lines {
            let Some(line) = line.strip_suffix(b"\n") else {
                self.received = line.to_vec();
                break;
            };
            if !line.trim_ascii().is_empty() {
                let reply = match Request::parse(line) {
                    Ok(request) => answer(request),
                    Err(error) => Reply::Refused { error },
                };
                self.reply(&reply);
            }
        }
        if self.received.len() >= LONGEST {
            let error = format!("a request of more than {LONGEST} bytes: send a line at a time");
            self.reply(&Reply::Refused { error });
            self.received.clear();
            self.finished = true;
        }
    }

    fn reply(&mut self, reply: &Reply) {
        if let Ok(mut line) = serde_json::to_vec(reply) {
            line.push(b'\n');
            self.unsent.append(&mut line);
        }
    }

    /// Sends what fits; false: the connection broke.
    fn send(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) => return waits(&error),
            }
        }
        true
    }
}

/// Is it no error, but that one would have to wait?
fn waits(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
