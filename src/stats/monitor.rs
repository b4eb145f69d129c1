// SPDX-License-Identifier: GPL-2.0-only
//! `--monitor`: shows the figures of the scheduler that runs already.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use scx_stats::prelude::*;

use crate::exit::{self, ExitCode, Failure, Outcome};
use crate::wake::Sleeper;

use super::metrics::Metrics;

/// How long the scheduler may take to answer, in milliseconds.
const PATIENCE_MS: u64 = 5000;

/// A connection to a scheduler's statistics.
pub struct Client {
    inner: StatsClient,
}

impl Client {
    /// Connect to the socket `path`.
    ///
    /// # Errors
    ///
    /// [`ExitCode::NoStatistics`] if nobody serves there, or if this user
    /// may not ask.
    pub fn connect(path: &Path) -> Outcome<Self> {
        let connected = StatsClient::new().set_path(path).connect(Some(PATIENCE_MS));
        let inner = connected.map_err(|error| {
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            let (path, hint) = (path.display(), hint(kind));
            Failure::new(
                ExitCode::NoStatistics,
                format!("no statistics from {path} ({error}): {hint}"),
            )
        })?;
        Ok(Self { inner })
    }

    /// The figures of the time since the last call, or since the scheduler's
    /// start on the first.
    ///
    /// # Errors
    ///
    /// [`ExitCode::NoStatistics`] if the scheduler is gone or is not
    /// scx_fulcrum.
    pub fn fetch(&mut self) -> Outcome<Metrics> {
        self.inner.request::<Metrics>("stats", Vec::new()).map_err(|error| {
            let message = if error.downcast_ref::<serde_json::Error>().is_some() {
                "the statistics come from a scheduler that is not scx_fulcrum: use its own --monitor"
                    .to_string()
            } else {
                format!("the scheduler stopped ({error}): start it again with scx_fulcrum")
            };
            Failure::new(ExitCode::NoStatistics, message)
        })
    }
}

fn hint(kind: Option<io::ErrorKind>) -> &'static str {
    match kind {
        Some(io::ErrorKind::PermissionDenied) => "run it as root, for example with sudo",
        _ => "start scx_fulcrum first",
    }
}

/// Print a line every `interval` until `stop` says so, the scheduler ends or
/// nobody reads any more.
///
/// # Errors
///
/// Those of [`Client::connect`] and [`Client::fetch`].
pub fn run(path: &Path, interval: Duration, sleeper: &Sleeper) -> Outcome<()> {
    let mut client = Client::connect(path)?;
    let mut due = Instant::now();
    while !sleeper.stopping() {
        if Instant::now() >= due {
            due = Instant::now() + interval;
            let metrics = client.fetch()?;
            if !exit::written(metrics.print(&mut io::stdout().lock()))? {
                return Ok(());
            }
        }
        sleeper.sleep(&[], Some(due)).map_err(Failure::sleepless)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn refusal(path: &Path) -> Failure {
        match Client::connect(path) {
            Ok(_) => panic!("connected to nobody"),
            Err(failure) => failure,
        }
    }

    #[test]
    fn nobody_there_is_one_clear_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats");
        let absent = refusal(&path);
        drop(UnixListener::bind(&path).unwrap());
        let stale = refusal(&path);
        for failure in [absent, stale] {
            assert_eq!(failure.code, ExitCode::NoStatistics);
            assert!(
                failure.message.contains("start scx_fulcrum first"),
                "{}",
                failure.message
            );
            assert_eq!(failure.message.lines().count(), 1);
        }
        assert!(hint(Some(io::ErrorKind::PermissionDenied)).contains("root"));
    }
}
