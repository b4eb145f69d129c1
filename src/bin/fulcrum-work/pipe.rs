// SPDX-License-Identifier: GPL-2.0-only
//! `pipe`: pairs of processes that pass one byte back and forth, so that every
//! step is a wakeup and a sleep.

use crate::cpus::CpuList;
use crate::crew::{Crew, Desk, Member};
use crate::report::{self, Report};
use crate::wire::Wire;
use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;
use std::fmt;

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

fn serve(desk: &Desk, there: Wire, back: Wire) {
    while !desk.stopped() {
        if !there.send(&[BALL]) || !back.receive(&mut [0]) {
            return;
        }
        desk.count();
    }
    there.send(&[BYE]);
}

fn answer(there: Wire, back: Wire) {
    let mut message = [0];
    while there.receive(&mut message) && message == [BALL] && back.send(&message) {}
}

pub fn pipe(args: &PipeArgs) -> Result<PipeReport> {
    ensure!(args.pairs > 0, "--pairs is at least 1");
    let mut members = Vec::new();
    for _ in 0..args.pairs {
        let (there, back) = (Wire::new()?, Wire::new()?);
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
