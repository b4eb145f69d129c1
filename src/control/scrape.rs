// SPDX-License-Identifier: GPL-2.0-only
//! `--metrics`: figures for Prometheus and its kin, over just as much HTTP as
//! a scraper speaks.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use rustix::event::PollFd;

use super::connection::Connection;
use super::door::{Access, Door};
use crate::stats::frame::Frame;
use crate::stats::look::Look;
use crate::stats::observer::{Observer, Sections, Source};
use crate::stats::openmetrics::{Format, Told, page};

/// Clients at a time; one more, and the oldest has to go.
const CLIENTS: usize = 16;

/// Where scrapers come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// An address of this machine itself.
    Tcp(SocketAddr),
}

impl Address {
    /// From the command line.
    ///
    /// # Errors
    ///
    /// A sentence, if it is neither a path nor an address of this machine
    /// itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(Self::Unix(PathBuf::from(path))),
                false => Err("not a path from / on, as unix:/run/metrics".to_string()),
            };
        }
        if text.starts_with('/') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        match text.replace("localhost:", "127.0.0.1:").parse() {
            Ok(address) if SocketAddr::ip(&address).is_loopback() => Ok(Self::Tcp(address)),
            Ok(_) => Err("not an address of this machine itself, as 127.0.0.1:9777".to_string()),
            Err(_) => Err("neither unix:/PATH nor an address as 127.0.0.1:9777".to_string()),
        }
    }
}

/// The listening socket and those who scrape.
#[derive(Debug)]
pub struct Scrape {
    door: Door,
    clients: Vec<Connection>,
    observer: Observer,
}

impl Scrape {
    /// Listen at `address`; a Unix socket besides root for members of `group`.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no listening.
    pub fn launch(address: &Address, group: Option<u32>) -> Result<Self, String> {
        let access = group.map_or(Access::Owner, Access::Group);
        let door = match address {
            Address::Unix(path) => Door::unix(path, access)?,
            Address::Tcp(address) => Door::tcp(*address)?,
        };
        Ok(Self {
            door,
            clients: Vec::new(),
            observer: Observer::default(),
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

    /// Where it listens, if that is an address.
    ///
    /// # Errors
    ///
    /// Those of asking the kernel.
    pub fn address(&self) -> std::io::Result<Option<SocketAddr>> {
        self.door.address()
    }

    /// Accept who waits, and answer every whole request.
    pub fn serve(&mut self, source: &mut dyn Source) {
        while let Some(connection) = self.door.accept() {
            if self.clients.len() >= CLIENTS {
                self.clients.remove(0);
            }
            self.clients.push(connection);
        }
        let observer = &mut self.observer;
        self.clients.retain_mut(|client| {
            if !client.receive() {
                return false;
            }
            if let Some(request) = whole(client.received()) {
                let answer = answer(&request, &mut || told(observer, source, request.format));
                client.push(answer.as_bytes());
                client.finish();
            } else if client.too_long() {
                client.push(status("431 Request Header Fields Too Large").as_bytes());
            }
            client.send() && !client.done()
        });
    }
}

/// The page for a scraper that was last told by `observer`.
fn told(observer: &mut Observer, source: &mut dyn Source, format: Format) -> String {
    let sections = Sections {
        groups: true,
        ..Sections::default()
    };
    let frame: Frame = observer.frame(source, sections);
    let look: &Look = observer.latest();
    let told = Told {
        scheduler: &frame.scheduler,
        look,
        groups: &frame.groups,
        health: &frame.health,
    };
    page(&told, format)
}

/// What matters of a request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    method: String,
    path: String,
    format: Format,
}

/// The request that `bytes` are, if they are whole.
fn whole(bytes: &[u8]) -> Option<Request> {
    let text = String::from_utf8_lossy(bytes);
    let end = text.find("\r\n\r\n").or_else(|| text.find("\n\n"))?;
    let mut lines = text.get(..end)?.lines();
    let mut first = lines.next().unwrap_or_default().split_whitespace();
    let accepts_new = lines.any(|line| {
        line.get(..7)
            .is_some_and(|name| name.eq_ignore_ascii_case("accept:"))
            && line.contains("application/openmetrics-text")
    });
    let path = first.clone().nth(1).unwrap_or_default();
    Some(Request {
        method: first.next().unwrap_or_default().to_string(),
        path: path.split('?').next().unwrap_or_default().to_string(),
        format: if accepts_new {
            Format::OpenMetrics
        } else {
            Format::Text
        },
    })
}

fn answer(request: &Request, page: &mut dyn FnMut() -> String) -> String {
    if request.method != "GET" {
        return status("405 Method Not Allowed");
    }
    if request.path != "/metrics" && request.path != "/" {
        return status("404 Not Found");
    }
    let body = page();
    let kind = request.format.content_type();
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

fn status(line: &str) -> String {
    let length = line.len() + 1;
    format!(
        "HTTP/1.1 {line}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{line}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_this_machine() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        assert_eq!(Address::parse("localhost:9777"), Ok(tcp("127.0.0.1:9777")));
        assert_eq!(Address::parse("[::1]:1"), Ok(tcp("[::1]:1")));
        let unix = Ok(Address::Unix(PathBuf::from("/run/x")));
        assert_eq!(Address::parse("unix:/run/x"), unix);
        assert_eq!(Address::parse("/run/x"), unix);
        for bad in ["0.0.0.0:9777", "192.168.0.1:80", "9777", "", "[::]:1"] {
            let message = Address::parse(bad).unwrap_err();
            assert!(message.contains("127.0.0.1:9777"), "{bad}: {message}");
        }
    }

    #[test]
    fn requests_are_read_when_they_are_whole() {
        assert_eq!(whole(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
        let request =
            whole(b"GET /metrics?a=b HTTP/1.1\r\naccept: application/openmetrics-text;q=1\r\n\r\n");
        let request = request.unwrap();
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("GET", "/metrics")
        );
        assert_eq!(request.format, Format::OpenMetrics);
        let old = whole(b"GET / HTTP/1.0\n\n").unwrap();
        assert_eq!(old.format, Format::Text);
        assert!(whole(b"\xff\xfe\r\n\r\n").is_some());
    }

    #[test]
    fn answers_have_their_length() {
        let mut page = || "x 1\n".to_string();
        let mut get = |head: &str| answer(&whole(head.as_bytes()).unwrap(), &mut page);
        assert!(
            get("GET / HTTP/1.1\n\n")
                .ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nx 1\n")
        );
        assert!(get("POST / HTTP/1.1\n\n").starts_with("HTTP/1.1 405"));
        assert!(get("GET /x HTTP/1.1\n\n").starts_with("HTTP/1.1 404"));
        assert!(get("\n\n").starts_with("HTTP/1.1 405"));
    }
}
