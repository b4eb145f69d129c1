// SPDX-License-Identifier: GPL-2.0-only
//! `chain`: a pipeline of processes that pass blocks on, each after a little
//! work, as in `a | b | c`.

use crate::burn::Amount;
use crate::crew::{Crew, Desk, Member};
use crate::report::{self, Report};
use crate::wire::Wire;
use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;
use std::fmt;

const BLOCK: usize = 4096;
/// The first byte of a block: more will come, or none.
const MORE: u8 = 1;
const END: u8 = 2;

#[derive(Args)]
pub struct ChainArgs {
    /// Processes
    #[arg(long, default_value_t = 5)]
    stages: usize,
    /// Rounds of work that each does with a block
    #[arg(long, default_value_t = 2000)]
    rounds: u64,
    /// Seconds to measure
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

#[derive(Serialize)]
pub struct ChainReport {
    stages: usize,
    seconds: f64,
    blocks: u64,
    us_per_block: f64,
}

fn source(desk: &Desk, work: Amount, to: Wire) {
    let mut block = [MORE; BLOCK];
    while !desk.stopped() {
        work.spend();
        if !to.send(&block) {
            return;
        }
    }
    block[0] = END;
    to.send(&block);
}

/// The last stage has nobody to send to.
fn stage(desk: &Desk, work: Amount, from: Wire, to: Option<Wire>) {
    let mut block = [0; BLOCK];
    while from.receive(&mut block) {
        work.spend();
        if to.is_some_and(|to| !to.send(&block)) || block[0] == END {
            return;
        }
        desk.count();
    }
}

pub fn chain(args: &ChainArgs) -> Result<ChainReport> {
    ensure!(args.stages >= 2, "--stages is at least 2");
    let work = Amount::Rounds(args.rounds);
    let member = |work: Box<dyn Fn(&Desk)>| Member {
        nice: 0,
        cpus: None,
        samples: 0,
        work,
    };
    let mut from = Wire::new()?;
    let mut members = vec![member(Box::new(move |desk| source(desk, work, from)))];
    for i in 1..args.stages {
        let to = match i + 1 == args.stages {
            true => None,
            false => Some(Wire::new()?),
        };
        members.push(member(Box::new(move |desk| stage(desk, work, from, to))));
        from = to.unwrap_or(from);
    }
    let mut crew = Crew::muster(&members)?;
    let window = crew.observe(300, args.seconds)?;
    crew.stop()?;
    let blocks = window.counts.last().copied().unwrap_or(0);
    ensure!(blocks > 0, "not one block came through in the time given");
    Ok(ChainReport {
        stages: args.stages,
        seconds: window.ns as f64 / 1e9,
        blocks,
        us_per_block: window.ns as f64 / 1e3 / blocks as f64,
    })
}

impl fmt::Display for ChainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "chain: {} stages, {:.2} s, {} blocks, {:.2} us each",
            self.stages, self.seconds, self.blocks, self.us_per_block
        )
    }
}

impl Report for ChainReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("chain", self)
    }
}
