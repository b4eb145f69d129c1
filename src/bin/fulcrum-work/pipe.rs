// SPDX-License-Identifier: GPL-2.0-only
//! `pipe`: pairs of processes that pass one byte back and forth, so that every
//! step is a wakeup and a sleep.

use crate::cpus::CpuList;
use crate::crew::{Crew, Desk, Member};
use crate::report::{self, Report};
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use std::{fmt, io};

const BALL: u8 = 1;
/// The last byte: the other side may leave.
const BYE: u8 = 2;

#[derive(Args)]
pub struct PipeArgs {
    /// Pairs that play at once
    #[arg(long, default_value_t = 1)]
    pairs: usize,
    /// Confine all to these CPUs [default: no limit]
    #[arg(long)]
    cpus: Option<CpuList>,
    /// Seconds to measure
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

#[derive(Serialize)]
pub struct PipeReport {
    pairs: usize,
    seconds: f64,
    round_trips: u64,
    /// What one pair waits for one round trip, on average.
    us_per_round_trip: f64,
}

#[derive(Clone, Copy)]
struct Pipe {
    read: i32,
    write: i32,
}

impl Pipe {
    fn new() -> Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: room for the two descriptors.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error())
                .context("too many pairs for the limit of open files: ask for fewer");
        }
        Ok(Self {
            read: ends[0],
            write: ends[1],
        })
    }

    fn send(self, byte: u8) -> bool {
        // SAFETY: one byte from a valid buffer.
        unsafe { libc::write(self.write, (&raw const byte).cast(), 1) == 1 }
    }

    fn receive(self) -> Option<u8> {
        let mut byte = 0;
        // SAFETY: one byte into a valid buffer.
        let n = unsafe { libc::read(self.read, (&raw mut byte).cast(), 1) };
        (n == 1).then_some(byte)
    }
}

fn serve(desk: &Desk, there: Pipe, back: Pipe) {
    while !desk.stopped() {
        if !there.send(BALL) || back.receive().is_none() {
            return;
        }
        desk.count();
    }
    there.send(BYE);
}

fn answer(there: Pipe, back: Pipe) {
    while there.receive() == Some(BALL) && back.send(BALL) {}
}

pub fn pipe(args: &PipeArgs) -> Result<PipeReport> {
    ensure!(args.pairs > 0, "--pairs is at least 1");
    let mut members = Vec::new();
    for _ in 0..args.pairs {
        let (there, back) = (Pipe::new()?, Pipe::new()?);
        let member = |work: Box<dyn Fn(&Desk)>| Member {
            nice: 0,
            cpus: args.cpus.clone(),
            samples: 0,
            work,
        };
        members.push(member(Box::new(move |desk| serve(desk, there, back))));
        members.push(member(Box::new(move |_| answer(there, back))));
    }
    let mut crew = Crew::muster(&members)?;
    let window = crew.observe(300, args.seconds)?;
    crew.stop()?;
    let trips: u64 = window.counts.iter().sum();
    ensure!(trips > 0, "not one round trip was made in the time given");
    Ok(PipeReport {
        pairs: args.pairs,
        seconds: window.ns as f64 / 1e9,
        round_trips: trips,
        us_per_round_trip: window.ns as f64 / 1e3 * args.pairs as f64 / trips as f64,
    })
}

impl fmt::Display for PipeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pipe: {} pairs, {:.2} s, {} round trips, {:.2} us each",
            self.pairs, self.seconds, self.round_trips, self.us_per_round_trip
        )
    }
}

impl Report for PipeReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("pipe", self)
    }
}
