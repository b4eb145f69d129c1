// SPDX-License-Identifier: GPL-2.0-only
//! Frames of the scheduler that runs, and keys that are pressed: each is read
//! by a thread of its own, which hands it to the one that draws.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};
use serde_json::{Value, json};

use crate::control::{client, looker};
use crate::exit::{ExitCode, Failure, Outcome};
use crate::stats::frame::Frame;
use crate::stats::observer::Sections;
use crate::wake::Waker;

/// How long to wait before looking again for a scheduler that is gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the one that draws is told.
#[derive(Debug)]
pub enum Message {
    /// A key, or another size.
    Input(Event),
    /// There will be no more keys.
    Deaf(String),
    /// A frame, and the line that it came in.
    Frame(Box<Frame>, Vec<u8>),
    /// No frames come; why, in a sentence.
    Lost(String),
    /// What the scheduler answered to a change.
    Answer(Result<String, String>),
}

/// A stream that was subscribed to.
pub type Stream = BufReader<UnixStream>;

/// Messages on their way at most. If the terminal takes no more, neither do we:
/// the scheduler then drops frames for us instead of our keeping them.
pub const ON_THE_WAY: usize = 32;

/// Hands messages to the one that draws.
#[derive(Clone, Debug)]
pub struct Outbox {
    sender: SyncSender<Message>,
    waker: Waker,
}

impl Outbox {
    /// To whoever has the other end of `sender` and sleeps until `waker`.
    pub const fn new(sender: SyncSender<Message>, waker: Waker) -> Self {
        Self { sender, waker }
    }

    /// Hand over a message; false: nobody wants any more.
    fn send(&self, message: Message) -> bool {
        let sent = self.sender.send(message).is_ok();
        self.waker.wake();
        sent
    }
}

/// Read keys and sizes until nobody wants them.
pub fn listen(outbox: Outbox) {
    thread::spawn(move || {
        loop {
            match event::read() {
                Ok(event) => {
                    if !outbox.send(Message::Input(event)) {
                        return;
                    }
                }
                Err(error) => {
                    let why = format!("the terminal can't be read ({error})");
                    outbox.send(Message::Deaf(why));
                    return;
                }
            }
        }
    });
}

/// Read frames from `stream`, and look for the scheduler again when it is gone.
pub fn follow(asked: Asked, stream: Stream, outbox: Outbox) {
    thread::spawn(move || {
        let mut stream = Some(stream);
        loop {
            let read = match stream.take() {
                Some(stream) => frames(stream, &outbox),
                None => asked.subscribe().and_then(|stream| frames(stream, &outbox)),
            };
            let why = match read {
                Ok(()) => return,
                Err(failure) => failure.message,
            };
            if !outbox.send(Message::Lost(why)) {
                return;
            }
            thread::sleep(PATIENCE);
        }
    });
}

/// Read frames until nobody wants them.
fn frames(mut stream: Stream, outbox: &Outbox) -> Outcome<()> {
    loop {
        let mut line = Vec::new();
        let length = stream.read_until(b'\n', &mut line);
        let length = length.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => gone("it sends nothing"),
            _ => gone(&error.to_string()),
        })?;
        if length == 0 {
            return Err(gone("it ended the connection"));
        }
        let frame: Frame =
            serde_json::from_slice(&line).map_err(|error| gone(&error.to_string()))?;
        // What confirms that other sections come has no time.
        if frame.time_ms == 0 {
            confirmed(&line)?;
        } else if !outbox.send(Message::Frame(Box::new(frame), line)) {
            return Ok(());
        }
    }
}

/// Whether the answer `line` says that frames will come.
fn confirmed(line: &[u8]) -> Outcome<()> {
    let answer: Value = serde_json::from_slice(line).unwrap_or_default();
    if answer.get("subscribed").is_some() {
        return Ok(());
    }
    let why = answer.get("error").and_then(Value::as_str);
    let why = why.unwrap_or("the answer is not scx_fulcrum's: was it stopped or updated?");
    Err(Failure::new(ExitCode::NoStatistics, why))
}

fn gone(why: &str) -> Failure {
    let message = format!("scx_fulcrum is gone ({why}): waiting for it to start again; q quits");
    Failure::new(ExitCode::NoStatistics, message)
}

/// Ask the scheduler at `socket` to set `key` to `value`.
pub fn set(socket: PathBuf, key: &'static str, value: String, outbox: Outbox) {
    thread::spawn(move || {
        let mut said = Vec::new();
        let set = client::set(&socket, &[format!("{key}={value}")], &mut said);
        let text = String::from_utf8_lossy(&said).trim().to_string();
        let answer = set.map(|()| text).map_err(|failure| failure.message);
        outbox.send(Message::Answer(answer));
    });
}

/// What frames are asked for, by the one who reads them and the one who draws.
#[derive(Clone, Debug)]
pub struct Asked {
    socket: PathBuf,
    interval: Duration,
    now: Arc<Mutex<Now>>,
}

#[derive(Debug)]
struct Now {
    sections: Sections,
    /// The connection over which they come.
    stream: Option<UnixStream>,
}

impl Asked {
    /// Frames with `sections` each `interval`, of whoever serves at `socket`.
    pub fn new(socket: &Path, interval: Duration, sections: Sections) -> Self {
        let stream = None;
        Self {
            socket: socket.to_path_buf(),
            interval,
            now: Arc::new(Mutex::new(Now { sections, stream })),
        }
    }

    /// Connect and ask.
    ///
    /// # Errors
    ///
    /// [`ExitCode::NoStatistics`] if nobody serves there, or not this user.
    pub fn subscribe(&self) -> Outcome<Stream> {
        let absent = |error: io::Error| looker::absent(&self.socket, &error);
        let stream = UnixStream::connect(&self.socket).map_err(absent)?;
        stream
            .set_write_timeout(Some(looker::PATIENCE))
            .and_then(|()| stream.set_read_timeout(Some(looker::PATIENCE + 3 * self.interval)))
            .map_err(absent)?;
        {
            let mut now = self.now();
            self.say(&stream, now.sections).map_err(absent)?;
            now.stream = Some(stream.try_clone().map_err(absent)?);
        }
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        stream.read_until(b'\n', &mut line).map_err(absent)?;
        confirmed(&line)?;
        Ok(stream)
    }

    /// Ask for other sections from now on, if these are others.
    pub fn change(&self, sections: Sections) {
        let mut now = self.now();
        if now.sections == sections {
            return;
        }
        now.sections = sections;
        // The one who reads hears of it if the connection broke, and asks anew.
        if let Some(stream) = &now.stream
            && self.say(stream, sections).is_err()
        {
            now.stream = None;
        }
    }

    fn say(&self, mut stream: &UnixStream, sections: Sections) -> io::Result<()> {
        let question = json!({
            "subscribe": "figures",
            "hz": 1.0 / self.interval.as_secs_f64(),
            "sections": sections.names(),
        });
        stream.write_all(format!("{question}\n").as_bytes())
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
