// SPDX-License-Identifier: GPL-2.0-only
//! A recorded stream: a file with a frame in each line. Only where the lines
//! begin is kept in memory, so that a recording may be of any length.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use crate::exit::{ExitCode, Failure, Outcome};
use crate::stats::frame::Frame;

/// Longest line that is read: a frame of 4,096 CPUs with all its tasks is a
/// fraction of it, and a file without lines must not fill the memory.
const LONGEST_LINE: u64 = 64 << 20;

/// Longest pause between two frames: who recorded may have slept.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A recording that is open.
#[derive(Debug)]
pub struct Recording {
    file: BufReader<File>,
    name: String,
    /// Where the lines of frames begin, and where the last ends.
    starts: Vec<u64>,
    end: u64,
}

impl Recording {
    /// Open the file `path` and find its frames.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Usage`] if it can't be read or holds no frame.
    pub fn open(path: &Path) -> Outcome<Self> {
        let name = path.display().to_string();
        let unreadable = |error: io::Error| {
            let message = format!(
                "recording {name} can't be read ({error}): name a file that top --record wrote"
            );
            Failure::new(ExitCode::Usage, message)
        };
        // Opening a pipe would wait for its writer, and a device may have no end.
        if !path.metadata().map_err(unreadable)?.is_file() {
            return Err(unreadable(io::Error::other("not a regular file")));
        }
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        let (starts, end) = lines(&mut file).map_err(unreadable)?;
        let mut recording = Self {
            file,
            name,
            starts,
            end,
        };
        if recording.starts.is_empty() {
            return Err(recording.wrong(0, "there is no frame in it"));
        }
        recording.frame(0)?;
        Ok(recording)
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Never: an empty recording can't be opened.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The frame number `at`, from 0.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Usage`] if its line is no frame.
    pub fn frame(&mut self, at: usize) -> Outcome<Frame> {
        let start = self.starts.get(at).copied().unwrap_or(self.end);
        let end = self.starts.get(at + 1).copied().unwrap_or(self.end);
        let mut line = Vec::new();
        let read = self.file.seek(SeekFrom::Start(start)).and_then(|_| {
            let mut part = self.file.by_ref().take(end - start);
            part.read_to_end(&mut line)
        });
        read.map_err(|error| self.wrong(at, &error.to_string()))?;
        let frame: Frame =
            serde_json::from_slice(&line).map_err(|error| self.wrong(at, &error.to_string()))?;
        if frame.schema == 0 {
            return Err(self.wrong(at, "it does not say its schema, as every frame does"));
        }
        Ok(frame)
    }

    fn wrong(&self, at: usize, why: &str) -> Failure {
        let message = format!(
            "recording {}, frame {}: {why}: name a file that top --record wrote",
            self.name,
            at + 1
        );
        Failure::new(ExitCode::Usage, message)
    }
}

/// Where the lines begin that hold something other than an answer to a
/// request, and where the file ends.
fn lines(file: &mut impl BufRead) -> io::Result<(Vec<u64>, u64)> {
    let (mut starts, mut at) = (Vec::new(), 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut part = file.by_ref().take(LONGEST_LINE);
        let length = part.read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            return Ok((starts, at));
        }
        if length == LONGEST_LINE {
            let why = format!("line at byte {at} is longer than {LONGEST_LINE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        if !line.trim_ascii().is_empty() {
            starts.push(at);
        }
        at += length;
    }
}

/// How long `next` is to be waited for after `frame`, at the speed of the
/// recording.
pub fn pause(frame: &Frame, next: &Frame) -> Duration {
    let ms = next.time_ms.saturating_sub(frame.time_ms);
    Duration::from_millis(ms).min(LONGEST_PAUSE)
}
