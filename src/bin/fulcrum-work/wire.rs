// SPDX-License-Identifier: GPL-2.0-only
//! Pipes between members of a crew, for messages of a fixed length.

use anyhow::{Context, Result};
use std::io;

/// A pipe; both ends stay open in all members.
#[derive(Clone, Copy)]
pub struct Wire {
    read: i32,
    write: i32,
}

impl Wire {
    pub fn new() -> Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: room for the two descriptors.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error())
                .context("too many pipes for the limit of open files: ask for fewer");
        }
        Ok(Self {
            read: ends[0],
            write: ends[1],
        })
    }

    /// Messages up to PIPE_BUF are written and, if all are equally long, read
    /// in one piece.
    pub fn send(self, message: &[u8]) -> bool {
        // SAFETY: a valid buffer of that length.
        let n = unsafe { libc::write(self.write, message.as_ptr().cast(), message.len()) };
        n == message.len() as isize
    }

    pub fn receive(self, message: &mut [u8]) -> bool {
        // SAFETY: a valid buffer of that length.
        let n = unsafe { libc::read(self.read, message.as_mut_ptr().cast(), message.len()) };
        n == message.len() as isize
    }
}
