// SPDX-License-Identifier: GPL-2.0-only
//! Requests that arrive from outside, whatever the workers do.
//!
//! One thread for all sources, in real time where that is permitted: an
//! arrival stands for an interrupt and must not wait for a CPU. A request
//! counts from when it was due, not from when the thread got to it.

use super::stage::Stage;
use crate::clock;
use crate::cpus;
use anyhow::Result;
use scx_fulcrum::sim::rng::Rng;
use scx_fulcrum::sim::workload::{Arrivals, Source, arrivals};
use std::sync::Arc;

/// Starts the thread if there is a source; how many threads.
pub fn start(stage: &Arc<Stage>) -> Result<usize> {
    if stage.sources.is_empty() {
        return Ok(0);
    }
    let own = Arc::clone(stage);
    stage.spawn(move || deliver(&own))?;
    Ok(1)
}

fn deliver(stage: &Stage) {
    cpus::become_observer();
    stage.is_ready();
    let start = stage.await_open();
    let mut rng = arrivals(stage.seed);
    let mut due: Vec<u64> = stage
        .sources
        .iter()
        .map(|source| start + gap(source, &mut rng))
        .collect();
    loop {
        let Some(next) = (0..due.len()).min_by_key(|&source| due[source]) else {
            return;
        };
        let at = due[next];
        if at >= stage.end() {
            return;
        }
        clock::sleep_until(at);
        if stage.over() {
            return;
        }
        let source = &stage.sources[next];
        due[next] = at + gap(source, &mut rng);
        for _ in 0..size(source) {
            stage.signal(source.channel, false, Some(at));
        }
    }
}

fn gap(source: &Source, rng: &mut Rng) -> u64 {
    match source.arrivals {
        Arrivals::Poisson(mean) | Arrivals::Bursts(_, mean) => rng.exponential(mean),
    }
}

const fn size(source: &Source) -> u64 {
    match source.arrivals {
        Arrivals::Poisson(_) => 1,
        Arrivals::Bursts(size, _) => size,
    }
}
