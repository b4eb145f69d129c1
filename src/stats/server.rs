// SPDX-License-Identifier: GPL-2.0-only
//! Serves the figures on the socket and in the protocol that scx tools know.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};

use anyhow::anyhow;
use scx_stats::prelude::*;

use super::counters::Snapshot;
use super::metrics::Metrics;
use crate::wake::Waker;

/// A client's request: where to send the answer.
type Request = Sender<Snapshot>;

/// Serves statistics until dropped. Clients' requests arrive as messages, so
/// that only one thread ever touches the scheduler.
///
/// Not through the channels of scx_stats: its own thread passes a request on
/// at some time after it was made, when waking would come too early.
pub struct Server {
    inner: Option<StatsServer<(), ()>>,
    requests: Receiver<Request>,
    path: PathBuf,
}

impl Server {
    /// Serve on the socket `path`; each request wakes whoever answers.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no serving: somebody else does, or
    /// the socket can't be made.
    pub fn launch(path: &Path, waker: Waker) -> Result<Self, String> {
        // Launching would take the socket away from whoever serves there.
        if UnixStream::connect(path).is_ok() {
            return Err(format!(
                "another scheduler serves statistics on {}, so --monitor will show that one's",
                path.display()
            ));
        }
        let (sender, requests) = mpsc::channel();
        let ask = move || {
            let (question, answer) = mpsc::channel();
            sender.send(question).ok()?;
            waker.wake();
            answer.recv().ok()
        };
        let inner = StatsServer::new(definition(ask))
            .set_path(path)
            .launch()
            .map_err(|error| format!("statistics can't be served ({error:#})"))?;
        Ok(Self {
            inner: Some(inner),
            requests,
            path: path.to_path_buf(),
        })
    }

    /// Answer each request that waits with a snapshot taken by `look`.
    pub fn answer(&self, look: impl Fn() -> Snapshot) {
        for request in self.requests.try_iter() {
            // A client that is gone wants no answer.
            let _ = request.send(look());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.inner.take());
        // Left behind, it would look like a scheduler that does not answer.
        let _ = fs::remove_file(&self.path);
    }
}

/// What is served. `ask` gets a snapshot, or `None` if nobody answers.
fn definition(
    ask: impl Fn() -> Option<Snapshot> + Clone + Send + 'static,
) -> StatsServerData<(), ()> {
    let open: Box<dyn StatsOpener<(), ()>> = Box::new(move |_| {
        let ask = ask.clone();
        // A client's first report covers the time since the start.
        let mut earlier = Snapshot::default();
        Ok(Box::new(move |_args, _channels| {
            let now = ask().ok_or_else(|| anyhow!("the scheduler is stopping"))?;
            let metrics = Metrics::between(&earlier, &now);
            earlier = now;
            metrics.to_json()
        }))
    });
    StatsServerData::new()
        .add_meta(Metrics::meta())
        .add_ops("top", StatsOps { open, close: None })
}

/// Write the description of every figure.
///
/// # Errors
///
/// Those of writing to `out`.
pub fn describe(out: &mut impl Write) -> io::Result<()> {
    definition(|| None)
        .describe_meta(out, None)
        .map_err(io::Error::other)?;
    writeln!(out, "\nWhat streams tell besides (docs/stream.md):")?;
    out.write_all(super::describe::plain().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::stats::monitor;
    use crate::wake::Sleeper;

    #[test]
    fn the_description_names_every_figure() {
        let mut text = Vec::new();
        describe(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for name in Metrics::meta().fields.keys() {
            assert!(text.contains(name), "{name} is missing");
        }
    }

    #[test]
    fn a_monitor_gets_figures_and_a_second_server_steps_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scx/root/stats");
        let sleeper = Sleeper::new().unwrap();
        let waker = sleeper.waker();
        let server = Server::launch(&path, waker.clone()).unwrap();
        let scheduler = thread::spawn(move || {
            for number in 1..=2 {
                // Without a deadline: a request that wakes nobody hangs here.
                sleeper.sleep(&[], None).unwrap();
                let mut now = Snapshot {
                    at: Duration::from_secs(number),
                    ..Snapshot::default()
                };
                now.counters.wakeups = 10 * number * number;
                let asked = Cell::new(0);
                server.answer(|| {
                    asked.set(asked.get() + 1);
                    now.clone()
                });
                assert_eq!(asked.get(), 1);
            }
            server
        });
        let mut client = monitor::Client::connect(&path).unwrap();
        assert_eq!(client.fetch().unwrap().wakeups, 10.0);
        assert_eq!(client.fetch().unwrap().wakeups, 30.0);
        let server = scheduler.join().unwrap();
        let Err(message) = Server::launch(&path, waker) else {
            panic!("two servers")
        };
        assert!(message.contains("another scheduler"), "{message}");
        drop(server);
        assert!(!path.exists());
    }
}
