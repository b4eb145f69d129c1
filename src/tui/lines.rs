// SPDX-License-Identifier: GPL-2.0-only
//! Where there is no screen to draw on: a line for each frame.

use std::io::{self, Write};
use std::sync::mpsc::Receiver;

use super::live::Message;
use super::player::Replay;
use super::session::Record;
use crate::exit::{self, ExitCode, Failure, Outcome};
use crate::stats::frame::Frame;
use crate::stats::observer::Sections;
use crate::wake::Sleeper;

/// The sections that a line is made of.
pub const SECTIONS: Sections = Sections {
    waits: true,
    cpus: true,
    groups: false,
    tasks: false,
    decisions: false,
};

/// One frame in one line.
///
/// # Errors
///
/// Those of writing to `out`.
pub fn print(frame: &Frame, out: &mut impl Write) -> io::Result<()> {
    let waiting: u64 = frame.cpus.iter().map(|cpu| u64::from(cpu.waiting)).sum();
    let (waits, policy) = (&frame.waits, &frame.scheduler.policy);
    write!(
        out,
        "{policy}: waiting {waiting:4} | wakeup wait p50 {:7.1} p99 {:7.1} max {:8.1} us | ",
        waits.wakeup_p50_us, waits.wakeup_p99_us, waits.wakeup_max_us
    )?;
    frame.totals.print(out)
}

/// Print a frame; false: whoever read has closed the pipe.
fn printed(frame: &Frame) -> Outcome<bool> {
    let mut out = io::stdout().lock();
    exit::written(print(frame, &mut out).and_then(|()| out.flush()))
}

/// Print each frame as it comes, until a signal, or until nobody reads.
///
/// # Errors
///
/// [`ExitCode::NoStatistics`] if the scheduler ends, [`ExitCode::Unexpected`]
/// if standard output can't be written.
pub fn follow(
    inbox: &Receiver<Message>,
    mut record: Option<Record>,
    sleeper: &Sleeper,
) -> Outcome<()> {
    loop {
        sleeper.sleep(&[], None).map_err(Failure::sleepless)?;
        if sleeper.stopping() {
            return Ok(());
        }
        while let Ok(message) = inbox.try_recv() {
            match message {
                Message::Frame(frame, line) => {
                    if let Some(record) = &mut record {
                        record.add(&line)?;
                    }
                    if !printed(&frame)? {
                        return Ok(());
                    }
                }
                Message::Lost(why) => return Err(Failure::new(ExitCode::NoStatistics, why)),
                _ => {}
            }
        }
    }
}

/// Print all frames of a recording.
///
/// # Errors
///
/// Those of reading it, and of writing to standard output.
pub fn replay(mut replay: Replay, sleeper: &Sleeper) -> Outcome<()> {
    while !sleeper.stopping() && printed(&replay.shown())? {
        if replay.ended() {
            break;
        }
        replay.step(1)?;
    }
    Ok(())
}
