// SPDX-License-Identifier: GPL-2.0-only
//! Serves the figures on the socket and in the protocol that scx tools know.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use crossbeam_channel::{Receiver, Sender};
use scx_stats::prelude::*;

use super::counters::Snapshot;
use super::metrics::Metrics;

/// Serves statistics until dropped. Clients' requests arrive as messages, so
/// that only one thread ever touches the scheduler.
pub struct Server {
    inner: Option<StatsServer<(), Snapshot>>,
    path: PathBuf,
}

impl Server {
    /// Serve on the socket `path`.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no serving: somebody else does, or
    /// the socket can't be made.
    pub fn launch(path: &Path) -> Result<Self, String> {
        // Launching would take the socket away from whoever serves there.
        if UnixStream::connect(path).is_ok() {
            return Err(format!(
                "another scheduler serves statistics on {}, so --monitor will show that one's",
                path.display()
            ));
        }
        let inner = StatsServer::new(definition())
            .set_path(path)
            .launch()
            .map_err(|error| format!("statistics can't be served ({error:#})"))?;
        Ok(Self {
            inner: Some(inner),
            path: path.to_path_buf(),
        })
    }

    /// Where to answer with a snapshot, and where requests for one arrive.
    /// `None` after the server was dropped.
    pub fn channels(&self) -> Option<(Sender<Snapshot>, Receiver<()>)> {
        self.inner.as_ref().map(StatsServer::channels)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.inner.take());
        // Left behind, it would look like a scheduler that does not answer.
        let _ = fs::remove_file(&self.path);
    }
}

fn definition() -> StatsServerData<(), Snapshot> {
    let open: Box<dyn StatsOpener<(), Snapshot>> = Box::new(|_| {
        // A client's first report covers the time since the start.
        let mut earlier = Snapshot::default();
        Ok(Box::new(move |_args, (requests, answers)| {
            requests
                .send(())
                .map_err(|_| anyhow!("the scheduler is stopping"))?;
            let now = answers
                .recv()
                .map_err(|_| anyhow!("the scheduler is stopping"))?;
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
    definition()
        .describe_meta(out, None)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::stats::monitor;

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
        let server = Server::launch(&path).unwrap();
        let (answers, requests) = server.channels().unwrap();
        let scheduler = thread::spawn(move || {
            for number in 1..=2 {
                requests.recv().unwrap();
                let mut now = Snapshot {
                    at: Duration::from_secs(number),
                    ..Snapshot::default()
                };
                now.counters.wakeups = 10 * number * number;
                answers.send(now).unwrap();
            }
        });
        let mut client = monitor::Client::connect(&path).unwrap();
        assert_eq!(client.fetch().unwrap().wakeups, 10.0);
        assert_eq!(client.fetch().unwrap().wakeups, 30.0);
        scheduler.join().unwrap();
        let Err(message) = Server::launch(&path) else {
            panic!("two servers")
        };
        assert!(message.contains("another scheduler"), "{message}");
        drop(server);
        assert!(!path.exists());
    }
}
