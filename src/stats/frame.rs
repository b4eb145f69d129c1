// SPDX-License-Identifier: GPL-2.0-only
//! A frame: all that can be seen of the running scheduler at one moment.
//!
//! Streams carry frames, recordings are frames line by line, the live screen
//! shows them. Every field's unit and meaning is declared with it; see
//! [`super::fields`]. Rates are per second of the frame's interval.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Map;

use super::fields::{Section, figures};
use super::histogram::Histogram;
use super::metrics::Metrics;

/// Counts changes of the frame that a reader has to know of. A field that is
/// added is none: readers skip what they don't know, and what a frame lacks
/// reads as 0 or empty.
pub const SCHEMA: u32 = 2;

figures! {
    Scheduler, "scheduler", "The scheduler that runs, and how it is set";
    version: String, Text, "", "Version and commit";
    kernel: String, Text, "", "Release of the kernel";
    pid: u32, Label, "", "Process of the agent";
    policy: String, Text, "", "The policy in force";
    mode: String, Text, "", "Mode whose settings these are; empty: none's";
    slice_us: u64, Gauge, "us", "CPU time that a busy task gets at a time";
    credit_us: u64, Gauge, "us", "CPU time that one which slept may catch up on first";
    partial: bool, Text, "", "Only tasks of policy SCHED_EXT are scheduled";
    generation: u32, Counter, "", "Changes of the settings since the start, from 1";
    active_since_ms: u64, Gauge, "ms", "When it was attached, since 1970";
    cpus: u32, Gauge, "", "CPUs online";
    llcs: u32, Gauge, "", "Last-level caches";
    nodes: u32, Gauge, "", "NUMA nodes";
}

figures! {
    Waits, "waits", "How long tasks of the whole machine waited in the interval until they ran";
    wakeup_p50_us: f64, Gauge, "us", "Wait from waking to running that half of the wakeups did not exceed";
    wakeup_p99_us: f64, Gauge, "us", "The same for 99 % of the wakeups";
    wakeup_max_us: f64, Gauge, "us", "Longest such wait, as the end of its bucket";
    wakeup: Histogram, Buckets, "ns", "Waits from waking to running";
    queue_p50_us: f64, Gauge, "us", "Any wait, of tasks that slept or were interrupted, that half did not exceed";
    queue_p99_us: f64, Gauge, "us", "The same for 99 % of the waits";
    queue_max_us: f64, Gauge, "us", "Longest such wait, as the end of its bucket";
    queue: Histogram, Buckets, "ns", "All waits until a task ran";
}

figures! {
    Cpu, "cpus", "One possible CPU";
    cpu: u32, Label, "", "Its number";
    llc: u32, Gauge, "", "Its last-level cache (part of one, if that has more than 64 CPUs), numbered over the machine";
    node: u32, Gauge, "", "Its NUMA node";
    online: bool, Text, "", "It runs tasks";
    busy_pct: f64, Gauge, "%", "Share of the interval in which it ran tasks of the scheduler";
    waiting: u32, Gauge, "", "Tasks in its queue";
    wait_p50_us: f64, Gauge, "us", "Wait of tasks that came to run here that half did not exceed";
    wait_p99_us: f64, Gauge, "us", "The same for 99 %";
    wait_max_us: f64, Gauge, "us", "Longest such wait, as the end of its bucket";
    switches: f64, Gauge, "1/s", "Times that a task began to run here";
    steals: f64, Gauge, "1/s", "Tasks that it took from other CPUs";
    steal_misses: f64, Gauge, "1/s", "Looks into other queues that gave nothing";
    preemptions: f64, Gauge, "1/s", "Running tasks that wakeups done here interrupted, here or elsewhere";
    kicks: f64, Gauge, "1/s", "Idle CPUs told from here to take work";
    pid: u32, Label, "", "Task that runs now; 0: none of the scheduler's";
    comm: String, Text, "", "Its name";
}

figures! {
    Group, "groups", "One cgroup that has tasks, or a weight of its own";
    id: u64, Label, "", "Its number in the kernel, the inode in /sys/fs/cgroup; 1: the root";
    path: String, Label, "", "Its path below /sys/fs/cgroup; / is the root";
    parent: u64, Label, "", "id of the cgroup above it; 0: it is the root";
    depth: u32, Gauge, "", "Levels below the root";
    weight: u32, Gauge, "", "cpu.weight, 1 to 10000";
    idle: bool, Text, "", "cpu.idle is set";
    max_pct: f64, Gauge, "%", "cpu.max, of one CPU; 0: none; it is shown only, nothing enforces it";
    runnable: f64, Gauge, "", "Tasks that ran or waited in it and below it, on average";
    got_pct: f64, Gauge, "%", "Share of the busy CPUs' time that it and those below it got";
    owed_pct: f64, Gauge, "%", "Share that its weights grant it for what it had runnable";
    wait_p50_us: f64, Gauge, "us", "Wait of its own tasks until they ran that half did not exceed";
    wait_p99_us: f64, Gauge, "us", "The same for 99 %";
    wait_max_us: f64, Gauge, "us", "Longest such wait, as the end of its bucket";
    waits: Histogram, Buckets, "ns", "Waits of its own tasks until they ran";
}

figures! {
    Task, "tasks", "One task that the scheduler looks after";
    pid: u32, Label, "", "Thread number";
    tgid: u32, Label, "", "Process number";
    comm: String, Text, "", "Name";
    group: u64, Label, "", "id of its cgroup, or of the nearest above with a weight of its own; 1: the root";
    policy: String, Text, "", "Its policy in the kernel: normal, batch, idle or ext";
    nice: i32, Gauge, "", "Nice value, -20 to 19";
    weight: f64, Gauge, "", "Its weight in the whole machine; 1024 is nice 0 in the root";
    cpu: u32, Gauge, "", "CPU that it runs or waits on, or last ran on";
    cpus_allowed: u32, Gauge, "", "CPUs that it may use";
    state: String, Text, "", "running, queued or blocked";
    lag_us: f64, Gauge, "us", "CPU time that it is owed, or would be if it woke now; below 0: that it had too much";
    burst_us: f64, Gauge, "us", "CPU time that it usually uses between two sleeps";
    request_us: f64, Gauge, "us", "CPU time left of what it asked for";
    waits_since_us: f64, Gauge, "us", "How long it has waited now; 0: it does not";
    last_wait_us: f64, Gauge, "us", "Its last wait until it ran";
    max_wait_us: f64, Gauge, "us", "Its longest wait since it came to the scheduler";
    woken_by: u32, Label, "", "Task that ran where it was last woken: its waker, unless an interrupt was; 0: nobody's";
    preempted_by: u32, Label, "", "Task that woke and took the CPU when this one last lost it; 0: its slice was over";
}

figures! {
    Decision, "decisions", "One decision of the balancer since the last frame";
    time_ms: u64, Gauge, "ms", "When, since 1970";
    kind: String, Text, "", "What it decided";
    from_cpu: i32, Gauge, "", "CPU that tasks are to leave; -1: none";
    to_cpu: i32, Gauge, "", "CPU that is to take them; -1: none";
    count: u64, Gauge, "", "Tasks, or whatever the kind counts";
    outcome: String, Text, "", "What came of it: applied, refused, expired or open";
}

figures! {
    Health, "health", "What to know before trusting the rest";
    late_ms: u64, Gauge, "ms", "How late the agent came to make this frame, for want of a CPU or for other work";
    agent_wakeups: f64, Gauge, "1/s", "Times the agent woke";
    agent_cpu_pct: f64, Gauge, "%", "Share of one CPU that the agent used";
    agent_rss_kib: u64, Gauge, "KiB", "Memory of the agent";
    clients: u32, Gauge, "", "Clients of the streams";
    lifecycle_errors: u64, Counter, "", "Events that a task's life does not allow, since the start; not 0 is a bug";
    missing_ctx: u64, Counter, "", "Callbacks for a task without context, since the start; it ran with defaults";
    groups_without_slot: u64, Counter, "", "cgroups that run with their parent's weight, being too many or too deep";
    rescues: u64, Counter, "", "Tasks run out of turn because they had waited for seconds, since the start";
    fallbacks: Vec<String>, Text, "", "What this kernel lacks and the scheduler does in another way";
    warnings: Vec<String>, Text, "", "What somebody should look at, a sentence each";
    dropped_frames: u64, Counter, "", "Frames that this reader was too slow for, since it subscribed";
}

/// All that can be seen at one moment. Sections that were not asked for are
/// absent, and read as empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// [`SCHEMA`] of whoever made it.
    pub schema: u32,
    /// Counts the frames of one subscription, those included that its reader
    /// was too slow for.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// What rates and shares are taken over: the time since the last frame.
    pub interval_ms: u64,
    /// The scheduler, and how it is set.
    pub scheduler: Scheduler,
    /// Rates and sums over the whole machine, as `--monitor` prints them.
    #[serde(deserialize_with = "lenient")]
    pub totals: Metrics,
    /// Waits over the whole machine.
    #[serde(skip_serializing_if = "nothing")]
    pub waits: Waits,
    /// All possible CPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<Cpu>,
    /// cgroups, a parent before its children.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// Tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
    /// The balancer's decisions since the last frame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// What to know before trusting the rest.
    pub health: Health,
}

/// The sections in the order of a frame, but for the totals, whose
/// descriptions are those of [`Metrics`].
pub const SECTIONS: &[Section] = &[
    Scheduler::SECTION,
    Waits::SECTION,
    Cpu::SECTION,
    Group::SECTION,
    Task::SECTION,
    Decision::SECTION,
    Health::SECTION,
];

/// Totals of a version with other figures: those that are known.
fn lenient<'de, D: Deserializer<'de>>(source: D) -> Result<Metrics, D::Error> {
    let given = Map::deserialize(source)?;
    let mut all = serde_json::to_value(Metrics::default()).map_err(D::Error::custom)?;
    if let Some(all) = all.as_object_mut() {
        all.extend(given);
    }
    serde_json::from_value(all).map_err(D::Error::custom)
}

fn nothing(waits: &Waits) -> bool {
    *waits == Waits::default()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::stats::fields::Kind;

    #[test]
    fn a_frame_survives_being_written_and_read() {
        for frame in sample::frames(3) {
            let line = serde_json::to_string(&frame).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Frame>(&line).unwrap(), frame);
        }
        let empty = serde_json::to_value(Frame::default()).unwrap();
        for absent in ["waits", "cpus", "groups", "tasks", "decisions"] {
            assert!(empty.get(absent).is_none(), "{absent}");
        }
        let unknown = "{\"schema\":9,\"later\":{\"x\":1},\"cpus\":[{\"cpu\":3}],\"totals\":{\"cpus\":5,\"later\":1}}";
        let frame: Frame = serde_json::from_str(unknown).unwrap();
        assert_eq!(frame.cpus.first().map(|cpu| cpu.cpu), Some(3));
        assert_eq!(frame.totals.cpus, 5);
    }

    #[test]
    fn the_description_is_of_the_fields_that_are_there() {
        let frame = sample::frames(1).remove(0);
        let value = serde_json::to_value(&frame).unwrap();
        for section in SECTIONS {
            let part = &value[section.name];
            let part = part.get(0).unwrap_or(part).as_object().unwrap();
            let described: Vec<_> = section.fields.iter().map(|field| field.name).collect();
            let mut present: Vec<_> = part.keys().map(String::as_str).collect();
            let mut sorted = described.clone();
            sorted.sort_unstable();
            present.sort_unstable();
            assert_eq!(sorted, present, "{}", section.name);
        }
    }

    #[test]
    fn a_unit_is_in_the_name_and_a_meaning_is_one_line() {
        for field in SECTIONS.iter().flat_map(|section| section.fields) {
            let suffix = match field.unit {
                "us" => "_us",
                "ms" => "_ms",
                "%" => "_pct",
                "KiB" => "_kib",
                _ => "",
            };
            assert!(field.name.ends_with(suffix), "{field:?}");
            assert!(!field.meaning.is_empty() && !field.meaning.ends_with('.'));
            assert!(!field.meaning.contains('\n'), "{field:?}");
            assert_eq!(field.kind == Kind::Buckets, field.unit == "ns", "{field:?}");
        }
    }
}
