// SPDX-License-Identifier: GPL-2.0-only
//! `web`: a server with many worker processes and a client that sends requests
//! at random times fixed beforehand, whether or not the former are answered.

use crate::burn::Amount;
use crate::clock;
use crate::cpus::CpuList;
use crate::crew::{Crew, Desk, Member, Window};
use crate::dice::Dice;
use crate::report::{self, Report};
use crate::spread::Spread;
use crate::wire::Wire;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use std::fmt;

const WARMUP_MS: u64 = 300;
/// Nine requests of ten are short, the tenth is long; a millisecond on average.
const SHORT_NS: u64 = 500_000;
const LONG_NS: u64 = 5_500_000;
const MEAN_NS: f64 = 1e6;
/// Who has waited that long at the end without an answer counts as well.
const OVERDUE_NS: u64 = 50_000_000;

#[derive(Args)]
pub struct WebArgs {
    /// How much of all CPUs the requests need
    #[arg(long, default_value_t = 0.8)]
    load: f64,
    /// Worker processes for each CPU
    #[arg(long, default_value_t = 8)]
    workers: usize,
    /// Seconds to measure
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

#[derive(Serialize)]
pub struct WebReport {
    load: f64,
    workers: usize,
    seconds: f64,
    requests: usize,
    /// Not answered at the end, though sent well before.
    overdue: usize,
    response: Spread,
}

/// When requests are sent, and how much work each is.
struct Arrivals {
    dice: Dice,
    mean_ns: f64,
    at: f64,
}

impl Arrivals {
    fn new(load: f64, cpus: usize, start_ns: u64) -> Self {
        Self {
            dice: Dice(1),
            mean_ns: MEAN_NS / (load * cpus as f64),
            at: start_ns as f64,
        }
    }

    /// Time due and work of the next, in nanoseconds.
    fn next(&mut self) -> (u64, u64) {
        self.at += self.dice.wait(self.mean_ns);
        let work = match self.dice.roll(10) {
            0 => LONG_NS,
            _ => SHORT_NS,
        };
        (self.at as u64, work)
    }
}

fn message(due: u64, work: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&due.to_ne_bytes());
    bytes[8..].copy_from_slice(&work.to_ne_bytes());
    bytes
}

fn parts(bytes: [u8; 16]) -> (u64, u64) {
    let (due, work) = bytes.split_at(8);
    let number = |b: &[u8]| b.try_into().map_or(0, u64::from_ne_bytes);
    (number(due), number(work))
}

/// Requests of no work, which end the workers.
const LAST: u64 = 0;

fn client(desk: &Desk, mut arrivals: Arrivals, wire: Wire, workers: usize) {
    while !desk.stopped() {
        let (due, work) = arrivals.next();
        clock::sleep_until(due);
        wire.send(&message(due, work));
        desk.count();
    }
    for _ in 0..workers {
        wire.send(&message(0, LAST));
    }
}

fn worker(desk: &Desk, wire: Wire) {
    let mut bytes = [0; 16];
    while wire.receive(&mut bytes) {
        let (due, work) = parts(bytes);
        if work == LAST {
            return;
        }
        Amount::CpuTime(work).spend();
        desk.note(clock::now().saturating_sub(due));
    }
}

pub fn web(args: &WebArgs) -> Result<WebReport> {
    ensure!(
        args.load > 0.0 && args.load <= 2.0 && args.workers > 0,
        "--load is above 0 and up to 2, --workers at least 1"
    );
    let cpus = CpuList::allowed()?.len();
    let workers = args.workers * cpus;
    let wire = Wire::new()?;
    let load = args.load;
    let expected = (args.seconds + 1.0) * 1e9 * load * cpus as f64 / MEAN_NS;
    let member = |samples, work: Box<dyn Fn(&Desk)>| Member {
        nice: 0,
        cpus: None,
        samples,
        work,
    };
    let mut members = vec![member(
        0,
        Box::new(move |desk| {
            let arrivals = Arrivals::new(load, cpus, desk.start_ns());
            client(desk, arrivals, wire, workers);
        }),
    )];
    members.extend((0..workers).map(|_| {
        let work = Box::new(move |desk: &Desk| worker(desk, wire));
        // Any one of them may happen to get most.
        member(expected as usize * 2, work)
    }));
    let mut crew = Crew::muster(&members)?;
    let window = crew.observe(WARMUP_MS, args.seconds)?;
    crew.stop()?;
    report(args, &crew, &window, cpus)
}

fn report(args: &WebArgs, crew: &Crew, window: &Window, cpus: usize) -> Result<WebReport> {
    let workers = args.workers * cpus;
    let mut responses: Vec<u64> = (1..=workers)
        .flat_map(|i| crew.samples(i, window))
        .collect();
    let answered: u64 = (1..=workers)
        .map(|i| window.first[i] + window.counts[i])
        .sum();
    // First come, first served: who is not answered came last.
    let mut arrivals = Arrivals::new(args.load, cpus, crew.start_ns());
    let mut overdue = 0;
    for n in 0.. {
        let (due, _) = arrivals.next();
        if due + OVERDUE_NS > window.end_ns {
            break;
        }
        if n >= answered {
            responses.push(window.end_ns - due);
            overdue += 1;
        }
    }
    Ok(WebReport {
        load: args.load,
        workers,
        seconds: window.ns as f64 / 1e9,
        requests: responses.len(),
        overdue,
        response: Spread::of(responses).context("no request was answered")?,
    })
}

impl fmt::Display for WebReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "web: {:.0} % load, {} workers, {:.2} s, {} requests, {} not answered in time",
            self.load * 100.0,
            self.workers,
            self.seconds,
            self.requests,
            self.overdue
        )?;
        write!(f, "  response  {}", self.response)
    }
}

impl Report for WebReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("web", self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_make_the_load_asked_for() {
        let mut arrivals = Arrivals::new(0.8, 2, 1_000);
        let (mut work, mut last) = (0, 0);
        for _ in 0..20_000 {
            let (due, w) = arrivals.next();
            assert!(due >= last && due >= 1_000);
            (work, last) = (work + w, due);
        }
        let load = work as f64 / last as f64;
        assert!((1.5..1.7).contains(&load), "{load}");
    }

    #[test]
    fn messages_read_as_they_are_written() {
        assert_eq!(parts(message(4711, 42)), (4711, 42));
    }
}
