// SPDX-License-Identifier: GPL-2.0-only
//! Frames of a machine that does not exist, for tests and pictures: 8 CPUs,
//! two caches, some cgroups; always the same.

use super::frame::{Cpu, Decision, Frame, Group, Health, SCHEMA, Scheduler, Task, Waits};
use super::histogram::{BUCKETS, Histogram};
use super::metrics::Metrics;

/// Saturday, 13 June 2026, 10:00 UTC.
const START_MS: u64 = 1_781_344_800_000;

/// `count` frames, a second apart.
pub fn frames(count: u64) -> Vec<Frame> {
    (0..count).map(frame).collect()
}

fn frame(seq: u64) -> Frame {
    let time_ms = START_MS + 90_000 + 1000 * seq;
    Frame {
        schema: SCHEMA,
        seq,
        time_ms,
        interval_ms: 1000,
        scheduler: scheduler(),
        totals: totals(seq),
        waits: waits(seq),
        cpus: (0..8).map(|number| cpu(seq, number)).collect(),
        groups: groups(seq),
        tasks: (0..TASKS.len()).map(|at| task(seq, at)).collect(),
        decisions: decisions(seq, time_ms),
        health: health(seq),
    }
}

/// A number that looks random: the same for the same arguments.
fn dice(seq: u64, what: u64, below: u64) -> u64 {
    let mut x = (seq << 32) ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    for _ in 0..3 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % below.max(1)
}

fn scheduler() -> Scheduler {
    Scheduler {
        version: "0.1.0-gsample".to_string(),
        kernel: "7.3.4".to_string(),
        pid: 451,
        policy: "fair".to_string(),
        mode: "auto".to_string(),
        slice_us: 3000,
        credit_us: 12_000,
        partial: false,
        generation: 4,
        active_since_ms: START_MS,
        cpus: 7,
        llcs: 2,
        nodes: 1,
    }
}

fn totals(seq: u64) -> Metrics {
    Metrics {
        interval_ms: 1000,
        cpus: 7,
        busy_pct: 71.5 + dice(seq, 1, 80) as f64 / 10.0,
        wakeups: 18_000.0 + dice(seq, 2, 4000) as f64,
        idle_hit_pct: 42.5,
        sync_pull_pct: 12.25,
        next_slot_pct: 3.5,
        enqueues: 21_000.0 + dice(seq, 3, 3000) as f64,
        local_inserts: 410.0,
        preemptions: 900.0 + dice(seq, 4, 300) as f64,
        idle_kicks: 2300.0,
        dispatches: 24_000.0,
        keep_pct: 8.5,
        steals_near: 640.0 + dice(seq, 5, 200) as f64,
        steals_far: dice(seq, 6, 40) as f64,
        steal_misses: 120.0,
        exchanges: 210.0,
        wait_mean_us: 310.0,
        wait_max_us: 41_000.0,
        ..Metrics::default()
    }
}

/// Waits of which most are near bucket `peak`, with a tail.
fn histogram(seed: u64, peak: usize, count: u64) -> Histogram {
    let mut counts = [0; BUCKETS];
    for (at, slot) in counts.iter_mut().enumerate() {
        let apart = at.abs_diff(peak) as u64;
        let tail = if at > peak { 2 } else { 1 };
        let share = count >> (apart / (2 * tail) + 2).min(63);
        *slot = share + dice(seed, at as u64, share / 4 + 1);
    }
    Histogram::of(&counts)
}

fn waits(seq: u64) -> Waits {
    let wakeup = histogram(seq, 6, 18_000);
    let queue = wakeup.plus(&histogram(seq + 1000, 60, 4000));
    Waits {
        wakeup_p50_us: wakeup.quantile_us(0.5),
        wakeup_p99_us: wakeup.quantile_us(0.99),
        wakeup_max_us: wakeup.max_us(),
        wakeup,
        queue_p50_us: queue.quantile_us(0.5),
        queue_p99_us: queue.quantile_us(0.99),
        queue_max_us: queue.max_us(),
        queue,
    }
}

/// CPU 6 is off; CPU 7 idles.
fn cpu(seq: u64, number: u32) -> Cpu {
    let mut cpu = Cpu {
        cpu: number,
        llc: number / 4,
        node: 0,
        online: number != 6,
        ..Cpu::default()
    };
    let seed = u64::from(number) + 100;
    match number {
        6 => {}
        7 => cpu.busy_pct = dice(seq, seed, 30) as f64 / 10.0,
        _ => {
            let waits = histogram(seq + seed, 8, 3000);
            let at = (seed + seq) as usize % TASKS.len();
            cpu.busy_pct = 60.0 + dice(seq, seed, 400) as f64 / 10.0;
            cpu.waiting = dice(seq, seed + 50, 5) as u32;
            cpu.wait_p50_us = waits.quantile_us(0.5);
            cpu.wait_p99_us = waits.quantile_us(0.99);
            cpu.wait_max_us = waits.max_us();
            cpu.switches = 3000.0 + dice(seq, seed + 60, 900) as f64;
            cpu.steals = dice(seq, seed + 70, 200) as f64;
            cpu.steal_misses = dice(seq, seed + 80, 40) as f64;
            cpu.preemptions = dice(seq, seed + 90, 300) as f64;
            cpu.kicks = dice(seq, seed + 95, 500) as f64;
            (cpu.pid, cpu.comm) = (TASKS[at].0, TASKS[at].1.to_string());
        }
    }
    cpu
}

/// id, path, parent, depth, weight, idle, owed %, peak of its waits.
type GroupRow = (u64, &'static str, u64, u32, u32, bool, f64, usize);

const GROUPS: &[GroupRow] = &[
    (1, "/", 0, 0, 100, false, 100.0, 8),
    (2101, "/system.slice", 1, 1, 100, false, 25.0, 20),
    (
        2102,
        "/system.slice/build.service",
        2101,
        2,
        100,
        false,
        20.0,
        70,
    ),
    (
        2103,
        "/system.slice/nginx.service",
        2101,
        2,
        400,
        false,
        5.0,
        4,
    ),
    (2201, "/user.slice", 1, 1, 300, false, 74.0, 12),
    (
        2202,
        "/user.slice/user-1000.slice",
        2201,
        2,
        100,
        false,
        74.0,
        10,
    ),
    (
        2203,
        "/user.slice/user-1000.slice/app-game.scope",
        2202,
        3,
        1000,
        false,
        60.0,
        5,
    ),
    (
        2204,
        "/user.slice/user-1000.slice/app-firefox-äöü.scope",
        2202,
        3,
        100,
        false,
        14.0,
        15,
    ),
    (2301, "/background.slice", 1, 1, 100, true, 1.0, 110),
];

fn groups(seq: u64) -> Vec<Group> {
    let group = |&(id, path, parent, depth, weight, idle, owed, peak): &GroupRow| {
        let waits = histogram(seq + id, peak, 2000);
        let off = dice(seq, id, 40) as f64 / 10.0 - 2.0;
        Group {
            id,
            path: path.to_string(),
            parent,
            depth,
            weight,
            idle,
            max_pct: if idle { 50.0 } else { 0.0 },
            runnable: owed / 10.0,
            got_pct: ((owed + off).clamp(0.0, 100.0) * 10.0).round() / 10.0,
            owed_pct: owed,
            wait_p50_us: waits.quantile_us(0.5),
            wait_p99_us: waits.quantile_us(0.99),
            wait_max_us: waits.max_us(),
            waits,
        }
    };
    GROUPS.iter().map(group).collect()
}

/// pid, name, cgroup, nice, burst in microseconds.
const TASKS: &[(u32, &str, u64, i32, u32)] = &[
    (812, "nginx", 2103, 0, 120),
    (813, "nginx", 2103, 0, 140),
    (1200, "make", 2102, 0, 900),
    (1207, "cc1", 2102, 0, 400_000),
    (1208, "cc1", 2102, 0, 380_000),
    (1209, "ld", 2102, 5, 90_000),
    (2001, "game.x86_64", 2203, -5, 4100),
    (2002, "game:render", 2203, -5, 3800),
    (2003, "game:audio", 2203, -10, 90),
    (2400, "firefox", 2204, 0, 1500),
    (2401, "Web Content", 2204, 0, 2100),
    (2402, "Ünïcode täsk", 2204, 0, 2100),
    (3000, "backup", 2301, 19, 50_000),
    (17, "ksoftirqd/0", 1, 0, 40),
    (88, "kworker/u32:2", 1, 0, 60),
];

fn task(seq: u64, at: usize) -> Task {
    let (pid, comm, group, nice, burst) = TASKS[at];
    let seed = u64::from(pid);
    let state = ["running", "queued", "blocked"][dice(seq, seed, 3) as usize];
    Task {
        pid,
        tgid: pid - pid % 10,
        comm: comm.to_string(),
        group,
        policy: if group == 2301 { "idle" } else { "normal" }.to_string(),
        nice,
        weight: (1024.0 * 1.25_f64.powi(-nice)).round(),
        cpu: dice(seq, seed + 1, 6) as u32,
        cpus_allowed: if pid == 17 { 1 } else { 8 },
        state: state.to_string(),
        lag_us: dice(seq, seed + 2, 6000) as f64 - 3000.0,
        burst_us: f64::from(burst),
        request_us: f64::from(burst.min(3000)),
        waits_since_us: if state == "queued" {
            dice(seq, seed + 3, 4000) as f64
        } else {
            0.0
        },
        last_wait_us: dice(seq, seed + 4, 3000) as f64,
        max_wait_us: 3000.0 + seed as f64,
        woken_by: TASKS[(at + 3) % TASKS.len()].0,
        preempted_by: if burst > 3000 { 2003 } else { 0 },
    }
}

fn decisions(seq: u64, time_ms: u64) -> Vec<Decision> {
    let decision = |number: u64, kind: &str, count, outcome: &str| Decision {
        time_ms: time_ms - 100 * number,
        kind: kind.to_string(),
        from_cpu: dice(seq, number + 300, 4) as i32,
        to_cpu: 4 + dice(seq, number + 310, 3) as i32,
        count,
        outcome: outcome.to_string(),
    };
    match seq % 3 {
        0 => vec![
            decision(7, "move", 2, "applied"),
            decision(2, "move", 1, "refused"),
        ],
        1 => vec![decision(4, "rotate", 1, "applied")],
        _ => Vec::new(),
    }
}

fn health(seq: u64) -> Health {
    Health {
        late_ms: dice(seq, 400, 9),
        agent_wakeups: 1.0,
        agent_cpu_pct: 0.25,
        agent_rss_kib: 21_504,
        clients: 2,
        rescues: seq / 20,
        fallbacks: vec!["no dsq_peek: the head of a queue is read by an iterator".to_string()],
        warnings: if seq % 5 == 4 {
            vec!["backup (3000) has waited for 2.1 s: weight 3 beside nice -10".to_string()]
        } else {
            Vec::new()
        },
        ..Health::default()
    }
}
