// SPDX-License-Identifier: GPL-2.0-only
//! What each policy answers when it is asked: a judge of the arithmetic alone.
#![allow(dead_code)]

use scx_fulcrum::control::settings::POLICIES;
use scx_fulcrum::sim::ffi::{Arithmetic, Ask, Contest, moment};
use scx_fulcrum::sim::variants::Variant;

const MS: u64 = 1_000_000;
const SLICE: u64 = 2 * MS;
/// A quarter of a slice: short, and no bound of requests.
const BURST: u64 = SLICE / 4;
const CLOCK: u64 = 1 << 40;

fn number(name: &str) -> u32 {
    POLICIES.iter().position(|p| p.name == name).unwrap() as u32
}

/// A task of this nice level, a millisecond of virtual time behind the clock.
pub fn ask(a: &Arithmetic, nice: i32) -> Ask {
    Ask {
        v: CLOCK - MS,
        clock: CLOCK,
        burst: BURST,
        request: 0,
        slice: SLICE,
        weight: (a.weight)(120 + nice, 0),
        level: 0,
        mixed: 0,
    }
}

/// Somebody who is owed something, due at once, against one due so much later.
fn contest(later: u64) -> Contest {
    Contest {
        v: CLOCK - MS,
        deadline: CLOCK,
        clock: CLOCK,
        curr_deadline: CLOCK + later,
        slice: SLICE,
    }
}

fn is(what: &str, found: u64, expected: u64) -> Result<(), String> {
    match found.abs_diff(expected) {
        0..=1 => Ok(()),
        _ => Err(format!("{what}: {found}, not {expected}")),
    }
}

fn holds(what: &str, good: bool) -> Result<(), String> {
    if good { Ok(()) } else { Err(what.to_string()) }
}

/// Request and distance of the deadline from v.
fn answer(a: &Arithmetic, policy: u32, nice: i32, moment: u32) -> (u64, u64) {
    let mut ask = ask(a, nice);
    let due = (a.answer)(policy, &mut ask, moment);
    (ask.request, due.wrapping_sub(ask.v))
}

fn fair_and_its_relatives(a: &Arithmetic) -> Result<(), String> {
    let (fair, latency, batch) = (number("fair"), number("latency"), number("batch"));
    for policy in [fair, latency, batch] {
        // Double the weight (nice -3 against 0: 1991 of 1024), double the time, the same deadline.
        let (request, due) = answer(a, policy, 0, moment::USED_UP);
        is("a busy task's request", request, SLICE)?;
        is("a busy task's deadline", due, SLICE)?;
        let (request, due) = answer(a, policy, -3, moment::USED_UP);
        is("a heavy task's request", request, SLICE * 1991 / 1024)?;
        holds("a heavy task's deadline", due.abs_diff(SLICE) < 1000)?;
    }
    for (policy, request, due) in [
        (fair, BURST, BURST),
        (latency, BURST, BURST / 4),
        (batch, SLICE, SLICE),
    ] {
        let found = answer(a, policy, 0, moment::WAKES);
        is("a waking task's request", found.0, request)?;
        is("a waking task's deadline", found.1, due)?;
    }
    for (policy, least) in [(fair, 0), (latency, 0), (batch, 2 * SLICE)] {
        holds(
            "who is due earlier interrupts",
            (a.preempts)(policy, &contest(least + 1)),
        )?;
        holds(
            "who is not due earlier waits",
            !(a.preempts)(policy, &contest(least)),
        )?;
        let mut over = contest(least + MS);
        over.v = CLOCK + 1;
        holds("who is over its share waits", !(a.preempts)(policy, &over))?;
    }
    for (policy, way) in [(fair, true), (latency, true), (batch, false)] {
        holds(
            "who gives way at a tick",
            (a.gives_way)(policy, CLOCK, CLOCK + 1) == way,
        )?;
        holds(
            "nobody gives way to the later",
            !(a.gives_way)(policy, CLOCK + 1, CLOCK),
        )?;
    }
    Ok(())
}

/// Levels: fall when the request is used up, rise on waking if the bursts fit,
/// an age apart; nice means nothing.
fn mlfq(a: &Arithmetic) -> Result<(), String> {
    let policy = number("mlfq");
    for nice in [-20, 0, 19] {
        let mut task = ask(a, nice);
        task.burst = 100 * MS;
        (a.answer)(policy, &mut task, moment::WAKES);
        let mut before = None;
        for level in [0, 1, 2, 3, 3, 3] {
            holds("level after using up", task.level == level)?;
            is("slice of the level", task.request, (SLICE / 2) << level)?;
            let due = (a.answer)(policy, &mut task, moment::AGAIN);
            let later = before.is_none_or(|(last, level)| due > last || task.level == level);
            holds("a lower level is due later", later)?;
            before = Some((due, task.level));
            (a.answer)(policy, &mut task, moment::USED_UP);
        }
        // Aging: who joined the last level an age per level ago comes first.
        let old = (a.answer)(policy, &mut task, moment::AGAIN);
        let mut fresh = ask(a, nice);
        fresh.clock += 60 * MS;
        let young = (a.answer)(policy, &mut fresh, moment::WAKES);
        holds(
            "who has waited for long comes first",
            (a.before)(old, young),
        )?;
        task.burst = SLICE / 8;
        for level in [2, 1, 0, 0] {
            (a.answer)(policy, &mut task, moment::WAKES);
            holds("level after short bursts", task.level == level)?;
        }
        task.level = 2;
        task.burst = 100 * MS;
        (a.answer)(policy, &mut task, moment::WAKES);
        holds("long bursts don't rise", task.level == 2)?;
    }
    let mut over = contest(1);
    over.v = CLOCK + MS;
    holds("the higher level interrupts", (a.preempts)(policy, &over))?;
    holds(
        "the same level does not",
        !(a.preempts)(policy, &contest(0)),
    )?;
    holds(
        "the higher level is let in",
        (a.gives_way)(policy, CLOCK, CLOCK + 1),
    )
}

/// In order of arrival, for a slice each, uninterrupted.
fn fifo(a: &Arithmetic) -> Result<(), String> {
    let policy = number("fifo");
    for nice in [-20, 0, 19] {
        for moment in [moment::WAKES, moment::USED_UP] {
            let mut task = ask(a, nice);
            let due = (a.answer)(policy, &mut task, moment);
            is("request", task.request, SLICE)?;
            is("place in the order", due - CLOCK, SLICE)?;
        }
    }
    holds(
        "nobody is interrupted",
        !(a.preempts)(policy, &contest(1 << 40)),
    )?;
    holds(
        "nobody gives way",
        !(a.gives_way)(policy, CLOCK, CLOCK + (1 << 40)),
    )
}

/// The judge.
pub fn answers(variant: Variant) -> (Result<(), String>, Variant) {
    let a = variant.arithmetic();
    let verdict = fair_and_its_relatives(a)
        .and_then(|()| mlfq(a).map_err(|why| format!("mlfq: {why}")))
        .and_then(|()| fifo(a).map_err(|why| format!("fifo: {why}")));
    (verdict, variant)
}
