// SPDX-License-Identifier: GPL-2.0-only
//! `scx_fulcrum status`: whether it runs and how it is; if not, why not. Needs
//! neither a running scheduler nor, for the most of it, root.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::looker::exchange;
use super::record::{End, Record, Run};
use crate::exit::{Outcome, printed};
use crate::kernel::seat::Seat;
use crate::kernel::view::SystemView;
use crate::stats::frame::{Frame, Group};
use crate::stats::reports::unix_ms;

/// All that is known.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// It schedules this machine's tasks.
    pub active: bool,
    /// Why it does not; or what is odd although it does.
    pub why: String,
    /// What schedules, in the kernel's words; empty: the kernel's own.
    pub ops: String,
    /// What the file says of who runs.
    pub run: Option<Run>,
    /// How the last run ended.
    pub last_end: Option<End>,
    /// Whether the agent answered: `yes`, or why not.
    pub agent: String,
    /// The latest of the running scheduler, over all its run.
    pub now: Option<Frame>,
}

/// Find out. `record` and `socket` are the places of the state file and of the
/// streams.
pub fn find(view: &SystemView, record: &Path, socket: &Path) -> Status {
    let record = Record::read(record);
    let read = |path: &str| view.read(path).unwrap_or_default().trim().to_string();
    let state = read("/sys/kernel/sched_ext/state");
    let enabled = state == "enabled";
    let ops = if enabled {
        read("/sys/kernel/sched_ext/root/ops")
    } else {
        String::new()
    };
    let active = ops.starts_with("fulcrum");
    let (agent, now) = if active || record.run.is_some() {
        agent(socket)
    } else {
        ("is not there".to_string(), None)
    };
    let why = why(&state, &ops, active, now.is_some(), &record);
    Status {
        active,
        why,
        ops,
        run: record.run.filter(|_| active),
        last_end: record.end,
        agent,
        now,
    }
}

fn agent(socket: &Path) -> (String, Option<Frame>) {
    let question = json!({"ask": "frame", "sections": ["waits", "groups"]});
    let answer = exchange(socket, &question);
    match answer.and_then(|value| Ok(serde_json::from_value::<Frame>(value)?)) {
        Ok(frame) => ("answers".to_string(), Some(frame)),
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "can't be asked by this user: ask as root, or as a member of --socket-group"
                }
                io::ErrorKind::WouldBlock => return (silence(Seat::find()), None),
                _ => "is not there",
            };
            (why.to_string(), None)
        }
    }
}

/// What the BPF program knows of an agent that does not answer.
fn silence(seat: Option<Seat>) -> String {
    let owes = seat.filter(Seat::is_stuck).and_then(|seat| seat.unanswered);
    match owes {
        Some(since) => format!(
            "does not answer, nor the BPF program's call of {:.0} s ago: is it stopped?",
            since.as_secs_f64()
        ),
        None => "does not answer: is it stopped?".to_string(),
    }
}

fn why(state: &str, ops: &str, active: bool, answers: bool, record: &Record) -> String {
    let ended = || match &record.end {
        Some(end) => format!("it ended: {}", end.reason),
        None => "it was not started since the machine was".to_string(),
    };
    match (state, active) {
        (_, true) if answers => String::new(),
        (_, true) => "it schedules, without its agent: figures and changes wait".to_string(),
        ("", _) => "this kernel has no sched_ext: see scx_fulcrum doctor".to_string(),
        ("enabled", _) => format!("another scheduler runs: {ops}"),
        ("disabled", _) => match &record.run {
            Some(run) => format!(
                "process {} attached it and ended without a word: was it killed?",
                run.pid
            ),
            None => ended(),
        },
        (other, _) => format!("sched_ext is {other}: look again in a moment"),
    }
}

/// Print it, on one screen or as JSON.
///
/// # Errors
///
/// Those of writing.
pub fn print(status: &Status, as_json: bool, out: &mut impl Write) -> Outcome<()> {
    if as_json {
        let value = serde_json::to_value(status).unwrap_or(Value::Null);
        return printed(out, &format!("{value}\n"));
    }
    printed(out, &text(status, unix_ms()))
}

fn text(status: &Status, now_ms: u64) -> String {
    let row = |name: &str, value: String| format!("{name:<10} {value}\n");
    let ago = |ms: u64| duration(now_ms.saturating_sub(ms) / 1000);
    let mut text = match (status.active, status.why.as_str()) {
        (true, "") => row("active", "yes".to_string()),
        (true, why) => row("active", format!("yes, but {why}")),
        (false, why) => row("active", format!("no: {why}")),
    };
    if status.active {
        text += &row("kernel's", status.ops.clone());
    }
    if let Some(run) = &status.run {
        text += &row(
            "since",
            format!(
                "{}, process {}, version {}",
                ago(run.since_ms),
                run.pid,
                run.version
            ),
        );
    }
    if status.active {
        text += &row("agent", status.agent.clone());
    }
    if let Some(frame) = &status.now {
        text += &running(frame);
    }
    if let Some(end) = &status.last_end {
        let when = if end.time_ms == 0 {
            "some time ago".to_string()
        } else {
            format!("{} ago", ago(end.time_ms))
        };
        let kind = if end.error { "ERROR, " } else { "" };
        text += &row("last end", format!("{kind}{when}: {}", end.reason));
    }
    text
}

fn running(frame: &Frame) -> String {
    let row = |name: &str, value: String| format!("{name:<10} {value}\n");
    let (scheduler, health, waits) = (&frame.scheduler, &frame.health, &frame.waits);
    let mode = match scheduler.mode.as_str() {
        "" => String::new(),
        mode => format!(" (mode {mode})"),
    };
    let mut text = row(
        "policy",
        format!(
            "{}{mode}, slice {} us, credit {} us, generation {}",
            scheduler.policy, scheduler.slice_us, scheduler.credit_us, scheduler.generation
        ),
    );
    text += &row(
        "machine",
        format!(
            "Linux {}: {} CPUs, {} caches, {} nodes, busy {:.0} %",
            scheduler.kernel,
            scheduler.cpus,
            scheduler.llcs,
            scheduler.nodes,
            frame.totals.busy_pct
        ),
    );
    text += &row(
        "waits",
        format!(
            "after waking p50 {:.0} us, p99 {:.0} us; of all p99 {:.0} us, longest {:.0} us",
            waits.wakeup_p50_us, waits.wakeup_p99_us, waits.queue_p99_us, frame.totals.wait_max_us
        ),
    );
    text += &row(
        "health",
        format!(
            "{} lifecycle errors, {} missing contexts, {} rescues; agent: {} KiB, {} wakeups",
            health.lifecycle_errors,
            health.missing_ctx,
            health.rescues,
            health.agent_rss_kib,
            if frame.interval_ms > 0 {
                format!("{:.2}/s", health.agent_wakeups)
            } else {
                "no".to_string()
            }
        ),
    );
    if let Some(limits) = limits(&frame.groups) {
        text += &row("cpu.max", limits);
    }
    for fallback in &health.fallbacks {
        text += &row("fallback", fallback.clone());
    }
    for warning in &health.warnings {
        text += &row("WARNING", warning.clone());
    }
    text
}

/// Which cgroups have a `cpu.max`; `None`: none.
fn limits(groups: &[Group]) -> Option<String> {
    /// So many are named.
    const NAMED: usize = 3;
    let limited: Vec<_> = groups.iter().filter(|group| group.max_pct > 0.0).collect();
    let named = limited.iter().take(NAMED);
    let named: Vec<_> = named
        .map(|group| format!("{} ({} % of a CPU)", group.path, group.max_pct))
        .collect();
    let more = match limited.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!limited.is_empty()).then(|| format!("not enforced: {}{more}", named.join(", ")))
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
