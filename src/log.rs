// SPDX-License-Identifier: GPL-2.0-only
//! Log lines on standard error, one a message.
//!
//! Writing never panics: a closed standard error must not take the scheduler
//! down.

use std::io::Write;

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
            "scx_fulcrum: {level}{origin}{}",
            record.args()
        );
    }

    fn flush(&self) {}
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
