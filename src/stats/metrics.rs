// SPDX-License-Identifier: GPL-2.0-only
//! The figures that people and tools see: what happened in one interval.

use std::io::{self, Write};

use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};

use super::counters::Snapshot;

/// What the scheduler did in one interval. The field descriptions below are
/// what `--help-stats` prints; rates are per second of that interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[stat(
    top,
    desc = "What scx_fulcrum did in the interval since the last report"
)]
#[allow(missing_docs)] // Each field's description is the text below.
pub struct Metrics {
    #[stat(desc = "Length of the interval, ms")]
    pub interval_ms: u64,
    #[stat(desc = "CPUs online at its end")]
    pub cpus: u64,
    #[stat(desc = "Share of all CPUs' time that tasks ran, %")]
    pub busy_pct: f64,
    #[stat(desc = "Tasks that became runnable after sleeping, 1/s")]
    pub wakeups: f64,
    #[stat(desc = "Wakeups placed straight onto an idle CPU, % of wakeups")]
    pub idle_hit_pct: f64,
    #[stat(desc = "Wakeups handed the CPU of a waker about to sleep, % of wakeups")]
    pub sync_pull_pct: f64,
    #[stat(desc = "Wakeups that run right after the task that woke them, % of wakeups")]
    pub next_slot_pct: f64,
    #[stat(desc = "Insertions into CPUs' queues, 1/s")]
    pub enqueues: f64,
    #[stat(desc = "Kernel threads and tasks pinned for now put on local queues, 1/s")]
    pub local_inserts: f64,
    #[stat(desc = "Running tasks interrupted for a more urgent one, 1/s")]
    pub preemptions: f64,
    #[stat(desc = "Idle CPUs told to come and take work, 1/s")]
    pub idle_kicks: f64,
    #[stat(desc = "Times that a CPU asked for its next task, 1/s")]
    pub dispatches: f64,
    #[stat(desc = "Those that went on with the task they had, % of dispatches")]
    pub keep_pct: f64,
    #[stat(desc = "Tasks that idle CPUs took within their cache, 1/s")]
    pub steals_near: f64,
    #[stat(desc = "Tasks that idle CPUs took from another cache, 1/s")]
    pub steals_far: f64,
    #[stat(desc = "Looks into a queue that gave nothing, 1/s")]
    pub steal_misses: f64,
    #[stat(desc = "Tasks taken at a slice's end because they were owed more, 1/s")]
    pub exchanges: f64,
    #[stat(desc = "Queued tasks moved because their CPU can't run them, 1/s")]
    pub rehomed: f64,
    #[stat(desc = "Wishes corrected because of affinity or an offline CPU, 1/s")]
    pub place_fixes: f64,
    #[stat(desc = "Changes of a task's CPU mask, 1/s")]
    pub affinity_changes: f64,
    #[stat(desc = "Hints of the agent's balancer that moved tasks, 1/s")]
    pub hints_applied: f64,
    #[stat(desc = "Tasks that they moved, 1/s")]
    pub hint_moves: f64,
    #[stat(desc = "Hints that no task could follow because of affinity, 1/s")]
    pub hints_refused: f64,
    #[stat(desc = "Hints that came too late or were no longer needed, 1/s")]
    pub hints_expired: f64,
    #[stat(desc = "Hints of an agent that another one had replaced, since the start")]
    pub hints_fenced: u64,
    #[stat(desc = "Virtual runtimes pulled back into their bounds, 1/s")]
    pub clock_clamps: f64,
    #[stat(desc = "Mean wait of tasks that came to run, us")]
    pub wait_mean_us: f64,
    #[stat(desc = "Longest such wait since the scheduler started, us")]
    pub wait_max_us: f64,
    #[stat(desc = "Callbacks for a task without context since the start; it ran with defaults")]
    pub missing_ctx: u64,
    #[stat(desc = "Events that a task's life does not allow, since the start; not 0 is a bug")]
    pub lifecycle_errors: u64,
}

impl Metrics {
    /// The figures of the interval between two snapshots. If `earlier` is of
    /// a former run of the scheduler, the interval is all of this run.
    pub fn between(earlier: &Snapshot, now: &Snapshot) -> Self {
        let start = Snapshot::default();
        let earlier = if earlier.at > now.at { &start } else { earlier };
        let seconds = (now.at - earlier.at).as_secs_f64();
        let total = &now.counters;
        let delta = total.since(&earlier.counters);
        let rate = |count: u64| ratio(count as f64, seconds);
        let percent = |part: u64, whole: u64| ratio(100.0 * part as f64, whole as f64);
        let cpu_ns = seconds * 1e9 * now.online as f64;
        Self {
            interval_ms: (now.at - earlier.at).as_millis() as u64,
            cpus: now.online,
            // Time is charged when a task stops or the tick comes, so a short
            // interval may be charged some of the time before it.
            busy_pct: ratio(100.0 * delta.run_ns as f64, cpu_ns).min(100.0),
            wakeups: rate(delta.wakeups),
            idle_hit_pct: percent(delta.idle_hits, delta.wakeups),
            sync_pull_pct: percent(delta.sync_pulls, delta.wakeups),
            next_slot_pct: percent(delta.next_slots, delta.wakeups),
            enqueues: rate(delta.enqueues),
            local_inserts: rate(delta.local_inserts),
            preemptions: rate(delta.preempt_kicks),
            idle_kicks: rate(delta.idle_kicks),
            dispatches: rate(delta.dispatches),
            keep_pct: percent(delta.keeps, delta.dispatches),
            steals_near: rate(delta.steals_near),
            steals_far: rate(delta.steals_far),
            steal_misses: rate(delta.steal_misses),
            exchanges: rate(delta.exchanges),
            rehomed: rate(delta.rehomed),
            place_fixes: rate(delta.place_fixes),
            affinity_changes: rate(delta.affinity_changes),
            hints_applied: rate(delta.hints_applied),
            hint_moves: rate(delta.hint_moves),
            hints_refused: rate(delta.hints_refused),
            hints_expired: rate(delta.hints_expired),
            hints_fenced: total.hints_fenced,
            clock_clamps: rate(delta.clock_clamps),
            wait_mean_us: ratio(delta.wait_ns as f64 / 1e3, delta.waits as f64),
            wait_max_us: total.wait_max_ns as f64 / 1e3,
            missing_ctx: total.missing_ctx,
            lifecycle_errors: total.lifecycle_errors,
        }
    }

    /// Write the figures as one line for people.
    ///
    /// # Errors
    ///
    /// Those of writing to `out`.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "busy {:5.1}% of {} CPUs | wakeups {:7.0}/s: idle {:3.0}% sync {:3.0}% next {:3.0}% | \
             preempt {:5.0}/s | steal near {:5.0}/s far {:5.0}/s swap {:5.0}/s | \
             hints {:3.0}/s: moved {:.0} refused {:.0} expired {:.0} fenced {} | \
             wait mean {:7.1} us, max {:.0} us | errors {}",
            self.busy_pct,
            self.cpus,
            self.wakeups,
            self.idle_hit_pct,
            self.sync_pull_pct,
            self.next_slot_pct,
            self.preemptions,
            self.steals_near,
            self.steals_far,
            self.exchanges,
            self.hints_applied + self.hints_refused + self.hints_expired,
            self.hint_moves,
            self.hints_refused,
            self.hints_expired,
            self.hints_fenced,
            self.wait_mean_us,
            self.wait_max_us,
            self.lifecycle_errors + self.missing_ctx,
        )?;
        out.flush()
    }
}

/// A quotient, rounded to what a reader can use; 0 of nothing.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (part / whole * 100.0).round() / 100.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scx_stats::Meta;

    use super::*;
    use crate::stats::counters::Counters;

    fn snapshot(seconds: u64, wakeups: u64) -> Snapshot {
        let counters = Counters {
            wakeups,
            idle_hits: wakeups / 2,
            run_ns: seconds * 1_000_000_000,
            waits: wakeups,
            wait_ns: wakeups * 3000,
            wait_max_ns: 70_000,
            ..Counters::default()
        };
        Snapshot {
            at: Duration::from_secs(seconds),
            online: 4,
            counters,
        }
    }

    #[test]
    fn figures_are_those_of_the_interval() {
        let metrics = Metrics::between(&snapshot(10, 100), &snapshot(12, 300));
        assert_eq!(metrics.interval_ms, 2000);
        assert_eq!(metrics.wakeups, 100.0);
        assert_eq!(metrics.idle_hit_pct, 50.0);
        assert_eq!(metrics.busy_pct, 25.0);
        assert_eq!(metrics.wait_mean_us, 3.0);
        assert_eq!(metrics.wait_max_us, 70.0);
    }

    #[test]
    fn a_restarted_scheduler_starts_anew() {
        let metrics = Metrics::between(&snapshot(100, 5000), &snapshot(1, 20));
        assert_eq!(metrics.wakeups, 20.0);
        assert_eq!(metrics.interval_ms, 1000);
    }

    #[test]
    fn nothing_happened_is_all_zero() {
        let none = Snapshot::default();
        assert_eq!(Metrics::between(&none, &none), Metrics::default());
    }

    #[test]
    fn every_field_is_described_with_its_unit() {
        let meta = Metrics::meta();
        assert_eq!(meta.fields.len(), 30);
        for (name, field) in &meta.fields {
            let text = field.attrs.desc.as_deref().unwrap_or_default();
            assert!(!text.is_empty(), "{name} has no description");
            let has_unit = ["%", "1/s", " us", " ms", "since the start", "CPUs"];
            assert!(
                has_unit.iter().any(|unit| text.contains(unit)),
                "{name} has no unit: {text}"
            );
        }
    }

    #[test]
    fn a_line_for_people_is_one_line() {
        let mut out = Vec::new();
        let mut now = snapshot(2, 300);
        now.counters.hints_applied = 4;
        now.counters.hint_moves = 14;
        now.counters.hints_refused = 2;
        now.counters.hints_fenced = 3;
        Metrics::between(&snapshot(0, 0), &now)
            .print(&mut out)
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1);
        let hints = "hints   3/s: moved 7 refused 1 expired 0 fenced 3";
        assert!(text.contains(hints), "{text}");
    }
}
