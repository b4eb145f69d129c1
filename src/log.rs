// SPDX-License-Identifier: GPL-2.0-only
//! Log lines on standard error, one a message; with their levels if that is the
//! journal.
//!
//! Writing never panics: a closed standard error must not take the scheduler
//! down.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;

use log::{Level, LevelFilter, Log, Metadata, Record};

struct StandardError;

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries report as warnings what is none to users, such as a
        // client of the statistics that hangs up.
        let limit = if is_ours(metadata) || verbose() {
            log::max_level()
        } else {
            LevelFilter::Off
        };
        metadata.level() <= limit
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            Level::Error => "error: ",
            Level::Warn => "warning: ",
            _ => "",
        };
        let origin = if is_ours(record.metadata()) {
            String::new()
        } else {
            format!("({}) ", record.target())
        };
        // A vanished reader is no reason to stop scheduling.
        let _ = writeln!(
            std::io::stderr(),
            "{}scx_fulcrum: {level}{origin}{}",
            if *IN_JOURNAL {
                priority(record.level())
            } else {
                ""
            },
            record.args()
        );
    }

    fn flush(&self) {}
}

/// Whether the journal reads standard error: then it is the very file that
/// `JOURNAL_STREAM` names, as `DEVICE:INODE`.
static IN_JOURNAL: LazyLock<bool> = LazyLock::new(|| {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let stderr = std::io::stderr().as_fd().try_clone_to_owned();
    let file = stderr.and_then(|fd| File::from(fd).metadata());
    file.is_ok_and(|file| named == format!("{}:{}", file.dev(), file.ino()))
});

/// The journal's prefix of a line of this level.
const fn priority(level: Level) -> &'static str {
    match level {
        Level::Error => "<3>",
        Level::Warn => "<4>",
        Level::Info => "<6>",
        Level::Debug | Level::Trace => "<7>",
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(env!("CARGO_CRATE_NAME"))
}

/// Write a text of several lines as it is, such as a debug dump.
pub fn block(text: &str) {
    let _ = writeln!(std::io::stderr(), "\n{text}\n");
}

/// Whether details are shown.
pub fn verbose() -> bool {
    log::max_level() >= LevelFilter::Debug
}

/// Send the `log` macros of this process to standard error. `verbose` counts
/// the `-v` flags: 0 shows what users need, more shows details.
///
/// A second call changes the level only.
pub fn init(verbose: u8) {
    static LOGGER: StandardError = StandardError;
    // The only failure is that a logger is set already: this one.
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(match verbose {
        0 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    });
}
