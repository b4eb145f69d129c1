// SPDX-License-Identifier: GPL-2.0-only
//! Serves frames and events to whoever subscribes, and answers questions
//! about the running scheduler. It only looks; changing things is the control
//! socket's business.
//!
//! Nothing is computed that nobody asked for, and where nobody listens this
//! wakes no one. A reader that is too slow loses frames, and is told how many.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::PollFd;
use serde_json::{Value, json};

use super::ask::Ask;
use super::connection::Connection;
use super::door::{Access, Door};
use super::explain;
use crate::stats::frame::{Frame, SCHEMA};
use crate::stats::observer::{NAMES, Observer, Sections, Source};

/// Clients at a time; one more is sent away.
const CLIENTS: usize = 128;

/// Bytes that wait for a slow reader, besides the frame that is being sent.
const QUEUED: usize = 64 << 10;

/// Decisions in one answer at most: the newest.
const RECORDED: usize = 16_384;

/// The stream socket and its clients.
#[derive(Debug)]
pub struct Streams {
    door: Door,
    clients: Vec<Client>,
    tickers: Vec<Ticker>,
    watching: bool,
}

/// Makes the frames of all who want so many a second.
#[derive(Debug)]
struct Ticker {
    hz: f64,
    due: Instant,
    observer: Observer,
}

impl Ticker {
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.hz)
    }
}

#[derive(Debug)]
struct Client {
    connection: Connection,
    figures: Option<(f64, Sections)>,
    /// The next event to send.
    events: Option<u64>,
    seq: u64,
    dropped: u64,
}

impl Streams {
    /// Listen on `path`; besides root, the members of `group` may look.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no listening.
    pub fn launch(path: &Path, group: Option<u32>) -> Result<Self, String> {
        let access = group.map_or(Access::Owner, Access::Group);
        Ok(Self {
            door: Door::unix(path, access)?,
            clients: Vec::new(),
            tickers: Vec::new(),
            watching: false,
        })
    }

    /// What to poll: when one of them is ready, call [`Self::serve`].
    pub fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let clients = self
            .clients
            .iter()
            .map(|client| client.connection.poll_fd());
        clients.chain(self.door.poll_fd()).collect()
    }

    /// When to call [`Self::serve`] even if nothing is ready.
    pub fn deadline(&self) -> Option<Instant> {
        let due = self.tickers.iter().map(|ticker| ticker.due);
        due.chain(self.door.deadline()).min()
    }

    /// Accept who waits, answer, and send what is due.
    pub fn serve(&mut self, source: &mut dyn Source) {
        while let Some(connection) = self.door.accept() {
            self.admit(connection);
        }
        for at in 0..self.clients.len() {
            self.hear(at, source);
        }
        self.tick(source);
        self.tell(source);
        self.clients
            .retain_mut(|client| client.connection.send() && !client.connection.done());
        let wanted = |hz| {
            let mut rates = self.clients.iter().filter_map(|client| client.figures);
            rates.any(|(rate, _)| rate == hz)
        };
        self.tickers.retain(|ticker| wanted(ticker.hz));
        self.watch(source);
    }

    fn admit(&mut self, mut connection: Connection) {
        if self.clients.len() >= CLIENTS {
            let line = format!(
                "{}\n",
                json!({"error": "too many clients: try again later"})
            );
            connection.push(line.as_bytes());
            connection.send();
            return;
        }
        self.clients.push(Client {
            connection,
            figures: None,
            events: None,
            seq: 0,
            dropped: 0,
        });
    }

    /// Read and answer what client `at` sent.
    fn hear(&mut self, at: usize, source: &mut dyn Source) {
        let Some(client) = self.clients.get_mut(at) else {
            return;
        };
        if !client.connection.send() || !client.connection.receive() {
            client.connection.finish();
            return;
        }
        for line in client.connection.lines() {
            let answer = match Ask::parse(&line) {
                Ok(ask) => self.answer(at, ask, source),
                Err(error) => json!({"error": error}),
            };
            let Some(client) = self.clients.get_mut(at) else {
                return;
            };
            client.connection.push(format!("{answer}\n").as_bytes());
        }
        if let Some(client) = self.clients.get_mut(at)
            && client.connection.too_long()
        {
            let error = json!({"error": "a request is too long: send a line at a time"});
            client.connection.push(format!("{error}\n").as_bytes());
        }
    }

    fn answer(&mut self, at: usize, ask: Ask, source: &mut dyn Source) -> Value {
        match ask {
            Ask::Figures(hz, sections) => self.subscribe(at, hz, sections, source),
            Ask::Events => {
                if let Some(client) = self.clients.get_mut(at) {
                    client.events = Some(source.reports().events.next());
                }
                json!({"subscribed": "events", "schema": SCHEMA})
            }
            Ask::Frame(sections) => {
                let mut frame = Observer::default().frame(source, sections);
                frame.health.clients = self.clients.len() as u32;
                json!(frame)
            }
            Ask::Explain(pid) => match explain::task(source, pid) {
                Ok(explained) => json!(explained),
                Err(error) => json!({"error": error}),
            },
            Ask::Recorder(cpu) => {
                let mut recorded = source.recorded();
                recorded.retain(|decided| cpu.is_none_or(|cpu| decided.cpu == cpu as usize));
                recorded.sort_by_key(|decided| decided.time_ns);
                let skip = recorded.len().saturating_sub(RECORDED);
                json!({"recorded": explain::lines(recorded.get(skip..).unwrap_or_default())})
            }
        }
    }

    fn subscribe(
        &mut self,
        at: usize,
        hz: f64,
        sections: Sections,
        source: &mut dyn Source,
    ) -> Value {
        if let Some(client) = self.clients.get_mut(at) {
            client.figures = Some((hz, sections));
            (client.seq, client.dropped) = (0, 0);
        }
        self.watch(source);
        if !self.tickers.iter().any(|ticker| ticker.hz == hz) {
            let mut ticker = Ticker {
                hz,
                due: Instant::now(),
                observer: Observer::from_now(source, sections.groups),
            };
            ticker.due += ticker.interval();
            self.tickers.push(ticker);
        }
        let names: Vec<_> = NAMES.iter().filter(|name| sections.has(name)).collect();
        json!({"subscribed": "figures", "schema": SCHEMA, "hz": hz, "sections": names})
    }

    /// Frames for those whose time it is.
    fn tick(&mut self, source: &mut dyn Source) {
        let now = Instant::now();
        let clients = self.clients.len() as u32;
        for ticker in self.tickers.iter_mut().filter(|ticker| ticker.due <= now) {
            // A late frame is not made up for.
            while ticker.due <= now {
                ticker.due += ticker.interval();
            }
            let members = || {
                let rates = self.clients.iter().filter_map(|client| client.figures);
                rates.filter(|(hz, _)| *hz == ticker.hz)
            };
            let wanted = members().fold(Sections::default(), |all, (_, own)| all.or(own));
            if members().next().is_none() {
                continue;
            }
            let mut frame = ticker.observer.frame(source, wanted);
            frame.health.clients = clients;
            let mut lines = Lines::new(frame);
            for client in &mut self.clients {
                if let Some((hz, sections)) = client.figures
                    && hz == ticker.hz
                    && let Some(line) = lines.of(sections)
                {
                    client.frame(line);
                }
            }
        }
    }

    /// Events for those who want them.
    fn tell(&mut self, source: &mut dyn Source) {
        let events = &source.reports().events;
        for client in &mut self.clients {
            let Some(from) = client.events else { continue };
            for event in events.since(from) {
                if client.connection.unsent() > QUEUED {
                    client.dropped += 1;
                    continue;
                }
                if let Ok(line) = serde_json::to_string(event) {
                    client.say_dropped();
                    client.connection.push(line.as_bytes());
                    client.connection.push(b"\n");
                }
            }
            client.events = Some(events.next());
        }
    }

    /// The waits of cgroups are counted while somebody wants to see them.
    fn watch(&mut self, source: &mut dyn Source) {
        let figures = self.clients.iter().filter_map(|client| client.figures);
        let wanted = figures.map(|(_, sections)| sections).any(|s| s.groups);
        if wanted != self.watching {
            source.watch(wanted);
            self.watching = wanted;
        }
    }
}

impl Client {
    /// Send a frame, unless the one before is still on its way.
    fn frame(&mut self, line: &Line) {
        if self.connection.unsent() > 0 {
            self.dropped += 1;
        } else {
            self.connection
                .push(line.for_reader(self.seq, self.dropped).as_bytes());
            self.connection.send();
        }
        self.seq += 1;
    }

    /// Before the next event: so many were lost.
    fn say_dropped(&mut self) {
        if self.figures.is_none() && self.dropped > 0 {
            let line = format!("{}\n", json!({"dropped": self.dropped}));
            self.connection.push(line.as_bytes());
            self.dropped = 0;
        }
    }
}

/// One frame as text, for each choice of sections once.
struct Lines {
    frame: Frame,
    made: Vec<(Sections, Line)>,
}

impl Lines {
    const fn new(frame: Frame) -> Self {
        let made = Vec::new();
        Self { frame, made }
    }

    fn of(&mut self, sections: Sections) -> Option<&Line> {
        if !self.made.iter().any(|(other, _)| *other == sections) {
            let line = Line::of(&sections.of(&self.frame));
            self.made.push((sections, line));
        }
        let mut made = self.made.iter();
        made.find(|(other, _)| *other == sections)
            .map(|(_, line)| line)
    }
}

/// A frame as text but for what differs between readers, so that a hundred of
/// them cost little more than one.
#[derive(Debug)]
struct Line {
    parts: [String; 3],
}

const SEQ: &str = "\"seq\":0";
const DROPPED: &str = "\"dropped_frames\":0";

impl Line {
    fn of(frame: &Frame) -> Self {
        // Names can't contain these: JSON escapes their quotes.
        let text = serde_json::to_string(frame).unwrap_or_default();
        let (before, rest) = text.split_once(SEQ).unwrap_or((&text, ""));
        let (middle, after) = rest.rsplit_once(DROPPED).unwrap_or((rest, ""));
        Self {
            parts: [before, middle, after].map(str::to_string),
        }
    }

    fn for_reader(&self, seq: u64, dropped: u64) -> String {
        let [before, middle, after] = &self.parts;
        format!("{before}\"seq\":{seq}{middle}\"dropped_frames\":{dropped}{after}\n")
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
