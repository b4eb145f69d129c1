// SPDX-License-Identifier: GPL-2.0-only
//! Word to the service manager (systemd's `sd_notify`): ready, stopping, alive.
//!
//! Without one nothing is sent, and nobody is woken up for it. Whatever goes
//! wrong here is no reason not to schedule.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// The manager that started this process, if one did.
#[derive(Debug, Default)]
pub struct Manager {
    socket: Option<UnixDatagram>,
    /// How often it wants to hear that this process lives; it takes action after
    /// twice as long.
    every: Option<Duration>,
    due: Option<Instant>,
}

impl Manager {
    /// The one that the environment names.
    pub fn of_environment() -> Self {
        let Some(address) = env::var_os("NOTIFY_SOCKET") else {
            return Self::default();
        };
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let for_us = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let limit = number("WATCHDOG_USEC").filter(|usec| for_us && *usec > 0);
        Self::at(address.as_bytes(), limit.map(Duration::from_micros))
    }

    /// The one that listens at `address`; `@` in front means an abstract one. It
    /// acts if it hears nothing for `limit`.
    pub fn at(address: &[u8], limit: Option<Duration>) -> Self {
        let socket = connect(address)
            .map_err(|error| log::debug!("no word to the service manager ({error})"))
            .ok();
        let every = limit.filter(|_| socket.is_some()).map(|limit| limit / 2);
        Self {
            socket,
            every,
            due: every.map(|every| Instant::now() + every),
        }
    }

    /// The scheduler is attached; `status` is shown by `systemctl status`.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// The scheduler is about to be detached.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// When to call [`Self::live`] next.
    pub const fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The agent's loop goes round: says so if it is time.
    pub fn live(&mut self) {
        let now = Instant::now();
        if self.due.is_some_and(|due| due <= now) {
            self.send("WATCHDOG=1");
            self.due = self.every.map(|every| now + every);
        }
    }

    fn send(&self, text: &str) {
        if let Some(Err(error)) = self.socket.as_ref().map(|s| s.send(text.as_bytes())) {
            log::debug!("no word to the service manager ({error})");
        }
    }
}

fn connect(address: &[u8]) -> io::Result<UnixDatagram> {
    let address = match address.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(address))?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not stop the agent.
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> Option<String> {
        let mut bytes = [0; 200];
        socket.set_nonblocking(true).unwrap();
        let count = socket.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
    }

    #[test]
    fn a_manager_hears_of_start_life_and_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let limit = Some(Duration::from_millis(20));
        let mut manager = Manager::at(path.as_os_str().as_bytes(), limit);
        manager.ready("schedules");
        assert_eq!(heard(&socket).as_deref(), Some("READY=1\nSTATUS=schedules"));
        manager.live();
        assert_eq!(heard(&socket), None, "too early");
        let due = manager.deadline().unwrap();
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        manager.live();
        assert_eq!(heard(&socket).as_deref(), Some("WATCHDOG=1"));
        manager.stopping();
        assert_eq!(heard(&socket).as_deref(), Some("STOPPING=1"));
        drop(socket);
        manager.stopping();
    }

    #[test]
    fn abstract_names_and_nobody_there() {
        let name = format!("fulcrum-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let manager = Manager::at(format!("@{name}").as_bytes(), None);
        manager.stopping();
        assert_eq!(heard(&socket).as_deref(), Some("STOPPING=1"));
        assert_eq!(manager.deadline(), None, "no watchdog, no wakeups");
        let nobody = Manager::at(b"/nonexistent/notify", Some(Duration::from_secs(1)));
        nobody.ready("");
        assert_eq!(nobody.deadline(), None);
    }
}
