// SPDX-License-Identifier: GPL-2.0-only
//! The agent's end of the control socket. It never waits: the agent's one
//! `poll` tells when to serve. Whatever a client sends or fails to read is
//! that client's loss only.

use std::path::Path;
use std::time::Instant;

use rustix::event::PollFd;

use super::connection::{Connection, LONGEST};
use super::door::{Access, Door};
use super::protocol::{Reply, Request};

/// Clients at a time; one more, and the oldest has to go.
const CLIENTS: usize = 16;

/// The listening socket and its clients.
#[derive(Debug)]
pub struct Server {
    door: Door,
    clients: Vec<Connection>,
}

impl Server {
    /// Listen on `path`, for this user and root alone.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no listening.
    pub fn launch(path: &Path) -> Result<Self, String> {
        Ok(Self {
            door: Door::unix(path, Access::Owner)?,
            clients: Vec::new(),
        })
    }

    /// What to poll: when one of them is ready, call [`Self::serve`].
    pub fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let clients = self.clients.iter().map(Connection::poll_fd);
        clients.chain(self.door.poll_fd()).collect()
    }

    /// When to call [`Self::serve`] even if nothing is ready.
    pub const fn deadline(&self) -> Option<Instant> {
        self.door.deadline()
    }

    /// Accept who waits, read, `answer` every whole request, write.
    pub fn serve(&mut self, mut answer: impl FnMut(Request) -> Reply) {
        while let Some(connection) = self.door.accept() {
            if self.clients.len() >= CLIENTS {
                self.clients.remove(0);
            }
            self.clients.push(connection);
        }
        self.clients.retain_mut(|client| serve(client, &mut answer));
    }
}

/// Does what can be done without waiting; false: this client is done.
fn serve(client: &mut Connection, answer: &mut impl FnMut(Request) -> Reply) -> bool {
    if !client.send() || !client.receive() {
        return false;
    }
    for line in client.lines() {
        let text = match Request::parse(&line) {
            Ok(request) => answer(request),
            Err(error) => Reply::Refused { error },
        };
        reply(client, &text);
    }
    if client.too_long() {
        let error = format!("a request of more than {LONGEST} bytes: send a line at a time");
        reply(client, &Reply::Refused { error });
    }
    client.send() && !client.done()
}

fn reply(client: &mut Connection, reply: &Reply) {
    if let Ok(line) = serde_json::to_vec(reply) {
        client.push(&line);
        client.push(b"\n");
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
