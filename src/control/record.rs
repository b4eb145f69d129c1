// SPDX-License-Identifier: GPL-2.0-only
//! What is known of the scheduler where nobody can be asked: a small file that
//! says who runs, and how the last run ended. `status` reads it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::stats::reports::unix_ms;

/// The file's place. It is of this boot, as is what it says.
pub const PLACE: &str = "/run/scx_fulcrum/state.json";

/// The one that runs, or ran last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The agent's process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it was attached, in milliseconds since 1970.
    pub since_ms: u64,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The version that ran.
    pub version: String,
    /// Why, in words: the kernel's if it ended it.
    pub reason: String,
    /// The kernel ended it for an error.
    pub error: bool,
}

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Who runs; of one that was killed, who ran last.
    pub run: Option<Run>,
    /// How the run before ended.
    pub end: Option<End>,
}

impl Record {
    /// Read the file at `path`; nothing is known where it can't be read.
    pub fn read(path: &Path) -> Self {
        let text = fs::read(path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Write it, whole or not at all, readable for everybody.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut new = PathBuf::from(path);
        new.set_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644))?;
        fs::rename(&new, path)
    }

    /// This process runs since now.
    pub fn begin(&mut self) {
        // One that was killed could not say how it ended.
        if let Some(run) = self.run.take() {
            self.end = Some(End {
                time_ms: 0,
                version: run.version,
                reason: format!("process {} ended without a word: was it killed?", run.pid),
                error: true,
            });
        }
        self.run = Some(Run {
            pid: std::process::id(),
            version: crate::VERSION.to_string(),
            since_ms: unix_ms(),
        });
    }

    /// The run is over.
    pub fn finish(&mut self, reason: &str, error: bool) {
        self.run = None;
        self.end = Some(End {
            time_ms: unix_ms(),
            version: crate::VERSION.to_string(),
            reason: reason.to_string(),
            error,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/state.json");
        assert_eq!(Record::read(&path), Record::default());
        let mut record = Record::default();
        record.begin();
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path), record);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o644
        );
        record.finish("stopped by a signal", false);
        record.write(&path).unwrap();
        let read = Record::read(&path);
        assert_eq!((read.run, read.end.unwrap().error), (None, false));
        fs::write(&path, "{\"run\":7").unwrap();
        assert_eq!(Record::read(&path), Record::default());
    }

    #[test]
    fn who_was_killed_is_told_by_the_next() {
        let mut record = Record::default();
        record.begin();
        record.begin();
        let end = record.end.unwrap();
        assert!(end.error && end.reason.contains("killed"));
        assert!(record.run.is_some());
    }
}
