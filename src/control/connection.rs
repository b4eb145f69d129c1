// SPDX-License-Identifier: GPL-2.0-only
//! A client at the other end of a socket. Nothing here ever waits; whatever a
//! client sends or fails to read is that client's loss only.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};

/// Longest request, in bytes.
pub const LONGEST: usize = 16 << 10;

/// Either kind of socket that clients come by.
#[derive(Debug)]
pub enum Socket {
    /// A Unix socket.
    Unix(UnixStream),
    /// A TCP connection, from this machine.
    Tcp(TcpStream),
}

impl Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// One client.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// Read, but no whole line yet.
    received: Vec<u8>,
    /// What did not fit the socket yet; nothing is read meanwhile.
    unsent: Vec<u8>,
    /// Nothing more will come, or be read.
    finished: bool,
}

impl Connection {
    /// Over `socket`.
    ///
    /// # Errors
    ///
    /// If it can't be told never to wait.
    pub fn new(socket: Socket) -> io::Result<Self> {
        match &socket {
            Socket::Unix(stream) => stream.set_nonblocking(true)?,
            Socket::Tcp(stream) => stream.set_nonblocking(true)?,
        }
        Ok(Self {
            socket,
            received: Vec::new(),
            unsent: Vec::new(),
            finished: false,
        })
    }

    /// What to poll for this client.
    pub fn poll_fd(&self) -> PollFd<'_> {
        let flags = if self.unsent.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::OUT
        };
        PollFd::from_borrowed_fd(self.socket.fd(), flags)
    }

    /// Read once, so that nobody keeps the agent; false: the connection broke.
    /// A client that does not take its answers is not read.
    pub fn receive(&mut self) -> bool {
        if self.finished || !self.unsent.is_empty() {
            return true;
        }
        let mut bytes = [0; LONGEST];
        match self.socket.read(&mut bytes) {
            Ok(0) => self.finished = true,
            Ok(count) => self.received.extend(bytes.iter().take(count)),
            Err(error) => return waits(&error),
        }
        true
    }

    /// The whole lines that have been read, without their ends; empty ones are
    /// left out. The last line of all may lack its end.
    pub fn lines(&mut self) -> Vec<Vec<u8>> {
        let mut received = std::mem::take(&mut self.received);
        if self.finished && !received.is_empty() && !received.ends_with(b"\n") {
            received.push(b'\n');
        }
        let mut whole = Vec::new();
        for line in received.split_inclusive(|&byte| byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) if line.trim_ascii().is_empty() => {}
                Some(line) => whole.push(line.to_vec()),
                None => self.received = line.to_vec(),
            }
        }
        whole
    }

    /// What has been read and belongs to no whole line.
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// Whether more was sent than a request may be long. It is forgotten, and
    /// nothing more is read.
    pub fn too_long(&mut self) -> bool {
        if self.received.len() < LONGEST {
            return false;
        }
        self.finish();
        true
    }

    /// Read nothing more.
    pub fn finish(&mut self) {
        self.received.clear();
        self.finished = true;
    }

    /// Whether nothing more will come.
    pub const fn finished(&self) -> bool {
        self.finished
    }

    /// Queue `bytes` to be sent.
    pub fn push(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Bytes that the other end has not taken.
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Send what fits; false: the connection broke.
    pub fn send(&mut self) -> bool {
        let mut sent = 0;
        let alive = loop {
            match self.unsent.get(sent..) {
                None | Some([]) => break true,
                Some(rest) => match self.socket.write(rest) {
                    Ok(0) => break false,
                    Ok(count) => sent += count,
                    Err(error) => break waits(&error),
                },
            }
        };
        self.unsent.drain(..sent.min(self.unsent.len()));
        alive
    }

    /// Whether everything was said on both sides.
    pub fn done(&self) -> bool {
        self.finished && self.unsent.is_empty()
    }
}

/// Is it no error, but that one would have to wait?
fn waits(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted)
}
