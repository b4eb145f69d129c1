// SPDX-License-Identifier: GPL-2.0-only
//! `knobs`: sets random policies and knobs of the scx_fulcrum that runs, good
//! ones and bad ones, and checks each answer.

use crate::report::{self, Report};
use anyhow::{Context, Result, ensure};
use clap::Args;
use scx_fulcrum::control::SOCKET;
use scx_fulcrum::control::protocol::{Reply, Request, State};
use scx_fulcrum::control::settings::{CREDIT_US, MODES, POLICIES, SLICE_US};
use scx_fulcrum::sim::rng::Rng;
use serde::Serialize;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long until every busy CPU must have seen a change: many slices.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Args)]
pub struct KnobsArgs {
    /// How many changes
    #[arg(long, default_value_t = 1000)]
    changes: u32,
    /// Milliseconds from one to the next
    #[arg(long, default_value_t = 10)]
    every_ms: u64,
    /// Which changes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The agent's socket
    #[arg(long, default_value = SOCKET)]
    socket: PathBuf,
}

#[derive(Serialize)]
pub struct KnobsReport {
    changes: u32,
    refusals: u32,
    seconds: f64,
    /// How long it took at most until all busy CPUs had seen a change, of
    /// every hundredth.
    seen_after_ms: f64,
    last: State,
}

type Values = Vec<(String, String)>;

/// One connection for all requests.
struct Agent {
    stream: BufReader<UnixStream>,
}

impl Agent {
    fn ask(&mut self, request: &Request) -> Result<Reply> {
        let line = serde_json::to_string(request)? + "\n";
        self.stream.get_mut().write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer)?;
        serde_json::from_str(&answer).with_context(|| format!("answer {answer:?}"))
    }

    fn state(&mut self, request: &Request) -> Result<State> {
        match self.ask(request)? {
            Reply::State(state) => Ok(state),
            Reply::Refused { error } => anyhow::bail!("refused: {error}"),
        }
    }

    /// A bad value among good ones changes nothing.
    fn is_refused(&mut self, mut values: Values, dice: &mut Rng, before: &State) -> Result<()> {
        let bad = [
            ("slice-us", "99"),
            ("slice-us", "100001"),
            ("credit-us", "30001"),
            ("credit-us", "-1"),
            ("mode", "none"),
            ("speed", "1"),
        ];
        let (key, value) = bad[dice.below(bad.len() as u64) as usize];
        values.retain(|(other, _)| other != key);
        values.push((key.to_string(), value.to_string()));
        let answer = self.ask(&Request::set(&values))?;
        ensure!(
            matches!(answer, Reply::Refused { .. }),
            "{values:?} was taken: {answer:?}"
        );
        let now = self.state(&Request::Get {})?;
        ensure!(
            same(&now, before),
            "{values:?} changed {before:?} to {now:?}"
        );
        Ok(())
    }

    /// How long until all busy CPUs have seen the change just made.
    fn seen_after(&mut self) -> Result<Duration> {
        let start = Instant::now();
        loop {
            let state = self.state(&Request::Get {})?;
            if state.seen_by == state.busy_cpus {
                return Ok(start.elapsed());
            }
            ensure!(start.elapsed() < PATIENCE, "still not seen: {state:?}");
            sleep(Duration::from_millis(1));
        }
    }
}

fn same(a: &State, b: &State) -> bool {
    a.policy == b.policy
        && (a.slice_us, a.credit_us, a.generation) == (b.slice_us, b.credit_us, b.generation)
}

/// A policy or a mode or neither, a slice or none, a credit or none; not
/// nothing.
fn random_values(dice: &mut Rng) -> Values {
    let mut values = Vec::new();
    match dice.below(6) {
        0 => values.push((
            "mode",
            MODES[dice.below(MODES.len() as u64) as usize]
                .name
                .to_string(),
        )),
        1 => {}
        _ => {
            let policy = &POLICIES[dice.below(POLICIES.len() as u64) as usize];
            values.push(("policy", policy.name.to_string()));
        }
    }
    let mut number = |key, range: &RangeInclusive<u64>| {
        // Short ones as often as long ones.
        let most = *range.end() >> dice.below(10);
        let value = dice.range(*range.start(), most.max(*range.start()));
        (dice.below(2) == 0).then(|| (key, value.to_string()))
    };
    values.extend(number("slice-us", &SLICE_US));
    values.extend(number("credit-us", &CREDIT_US));
    if values.is_empty() {
        values.push(("slice-us", SLICE_US.start().to_string()));
    }
    let owned = |(key, value): (&str, String)| (key.to_string(), value);
    values.into_iter().map(owned).collect()
}

pub fn knobs(args: &KnobsArgs) -> Result<KnobsReport> {
    let place = args.socket.display();
    let stream =
        UnixStream::connect(&args.socket).with_context(|| format!("no agent at {place}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut agent = Agent {
        stream: BufReader::new(stream),
    };
    let mut dice = Rng::new(args.seed);
    let start = Instant::now();
    let mut state = agent.state(&Request::Get {})?;
    let (mut refusals, mut slowest) = (0, Duration::ZERO);
    for change in 1..=args.changes {
        let values = random_values(&mut dice);
        if dice.one_in(10) {
            agent.is_refused(values.clone(), &mut dice, &state)?;
            refusals += 1;
        }
        let now = agent.state(&Request::set(&values))?;
        ensure!(
            now.generation == state.generation + 1,
            "generation {} after {}",
            now.generation,
            state.generation
        );
        for (key, value) in &values {
            let found = match key.as_str() {
                "policy" => now.policy.clone(),
                "slice-us" => now.slice_us.to_string(),
                "credit-us" => now.credit_us.to_string(),
                _ => continue,
            };
            ensure!(found == *value, "{key}={value} became {now:?}");
        }
        state = now;
        if change % 100 == 0 {
            slowest = slowest.max(agent.seen_after()?);
        }
        sleep(Duration::from_millis(args.every_ms));
    }
    Ok(KnobsReport {
        changes: args.changes,
        refusals,
        seconds: start.elapsed().as_secs_f64(),
        seen_after_ms: slowest.as_secs_f64() * 1e3,
        last: agent.state(&Request::Get {})?,
    })
}

impl fmt::Display for KnobsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "knobs: {} changes and {} refusals in {:.1} s, seen by all busy CPUs within {:.1} ms; \
             last: {} slice {} us credit {} us, generation {}",
            self.changes,
            self.refusals,
            self.seconds,
            self.seen_after_ms,
            self.last.policy,
            self.last.slice_us,
            self.last.credit_us,
            self.last.generation
        )
    }
}

impl Report for KnobsReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("knobs", self)
    }
}
