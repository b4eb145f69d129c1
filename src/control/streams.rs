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
use serde::Serialize;
use serde_json::{Value, json};

use super::ask::Ask;
use super::connection::Connection;
use super::door::{Access, Door};
use super::explain;
use crate::stats::frame::{Frame, SCHEMA};
use crate::stats::observer::{Observer, Sections, Source};

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

/// The longest that one who subscribes waits for the first frame.
const FIRST: Duration = Duration::from_millis(200);

/// How many frames a second, and what is in them.
type Figures = (f64, Sections);

/// Makes the frames of all who want the same.
#[derive(Debug)]
struct Ticker {
    figures: Figures,
    due: Instant,
    observer: Observer,
}

impl Ticker {
    fn new(figures: Figures, observer: Observer) -> Self {
        let mut ticker = Self {
            figures,
            due: Instant::now(),
            observer,
        };
        ticker.due += ticker.interval().min(FIRST);
        ticker
    }

    fn interval(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.figures.0)
    }
}

#[derive(Debug)]
struct Client {
    connection: Connection,
    figures: Option<Figures>,
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
        let clients = &self.clients;
        let wanted = |figures| clients.iter().any(|client| client.figures == Some(figures));
        self.tickers.retain(|ticker| wanted(ticker.figures));
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
                Err(error) => text(&json!({"error": error})),
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

    fn answer(&mut self, at: usize, ask: Ask, source: &mut dyn Source) -> String {
        match ask {
            Ask::Figures(hz, sections) => text(&self.subscribe(at, (hz, sections), source)),
            Ask::Events => {
                if let Some(client) = self.clients.get_mut(at) {
                    client.events = Some(source.reports().events.next());
                }
                text(&json!({"subscribed": "events", "schema": SCHEMA}))
            }
            Ask::Frame(sections) => {
                let mut frame = Observer::default().frame(source, sections);
                frame.health.clients = self.clients.len() as u32;
                text(&frame)
            }
            Ask::Explain(pid) => match explain::task(source, pid) {
                Ok(explained) => text(&explained),
                Err(error) => text(&json!({"error": error})),
            },
            Ask::Recorder(cpu) => {
                let mut recorded = source.recorded();
                recorded.retain(|decided| cpu.is_none_or(|cpu| decided.cpu == cpu as usize));
                recorded.sort_by_key(|decided| decided.time_ns);
                let skip = recorded.len().saturating_sub(RECORDED);
                let lines = explain::lines(recorded.get(skip..).unwrap_or_default());
                format!("{{\"recorded\":{}}}", text(&lines))
            }
        }
    }

    fn subscribe(&mut self, at: usize, figures: Figures, source: &mut dyn Source) -> Value {
        let mut before = None;
        if let Some(client) = self.clients.get_mut(at) {
            before = client.figures.replace(figures);
            (client.seq, client.dropped) = (0, 0);
        }
        self.watch(source);
        let (hz, sections) = figures;
        let ticker = |figures| self.tickers.iter().find(|one| one.figures == figures);
        if ticker(figures).is_none() {
            let mut observer = Observer::from_now(source, sections.groups);
            if let Some(ticker) = before.and_then(ticker) {
                observer.goes_on_after(&ticker.observer);
            }
            self.tickers.push(Ticker::new(figures, observer));
        }
        json!({"subscribed": "figures", "schema": SCHEMA, "hz": hz, "sections": sections.names()})
    }

    /// Frames for those whose time it is.
    fn tick(&mut self, source: &mut dyn Source) {
        let now = Instant::now();
        let clients = self.clients.len() as u32;
        for ticker in self.tickers.iter_mut().filter(|ticker| ticker.due <= now) {
            let late = now - ticker.due;
            // A late frame is not made up for.
            while ticker.due <= now {
                ticker.due += ticker.interval();
            }
            let wants = |client: &&mut Client| client.figures == Some(ticker.figures);
            let mut members = self.clients.iter_mut().filter(wants).peekable();
            if members.peek().is_none() {
                continue;
            }
            let (_, sections) = ticker.figures;
            let mut frame = ticker.observer.frame(source, sections);
            frame.health.clients = clients;
            frame.health.late_ms = late.as_millis() as u64;
            let line = Line::of(&frame);
            members.for_each(|client| client.frame(&line));
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

/// As JSON: written straight from the fields, which takes a third of the time of
/// making a [`Value`] of them first.
fn text(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).unwrap_or_default()
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
        let text = text(frame);
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
