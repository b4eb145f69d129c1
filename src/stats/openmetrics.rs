// SPDX-License-Identifier: GPL-2.0-only
//! The figures as text that Prometheus and its kin read: OpenMetrics, or the
//! older text format for who doesn't ask for that.
//!
//! What is counted is told as it is counted, since the scheduler was attached:
//! whoever scrapes makes rates of it. Names follow the conventions there:
//! seconds, `_total` for what only grows.

use std::fmt::{Display, Write};

use super::counters::{self, Counters};
use super::frame::{Cpu, Group, Health, Scheduler, Waits};
use super::histogram::{BUCKETS, below_ns};
use super::look::Look;

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own text format, 0.0.4.
    Text,
}

impl Format {
    /// What an HTTP answer calls it.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// All that is told.
#[derive(Debug)]
pub struct Told<'a> {
    /// The scheduler, and how it is set.
    pub scheduler: &'a Scheduler,
    /// What was counted.
    pub look: &'a Look,
    /// The cgroups, with their shares since the last scrape.
    pub groups: &'a [Group],
    /// How the agent is.
    pub health: &'a Health,
}

/// Writes one family of samples after the other.
struct Page {
    format: Format,
    text: String,
}

/// All names begin with this.
const PREFIX: &str = "fulcrum_";

impl Page {
    /// The head of a family: `kind` is `counter`, `gauge` or `histogram`.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // In the older format a counter's family has its samples' name.
        let suffix = match (self.format, kind) {
            (Format::Text, "counter") => "_total",
            _ => "",
        };
        // Writing to a text can't fail.
        let _ = writeln!(
            self.text,
            "# HELP {PREFIX}{name}{suffix} {}",
            help.replace('\\', "\\\\").replace('\n', " ")
        );
        let _ = writeln!(self.text, "# TYPE {PREFIX}{name}{suffix} {kind}");
        if self.format == Format::OpenMetrics && name.ends_with("_seconds") {
            let _ = writeln!(self.text, "# UNIT {PREFIX}{name} seconds");
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{PREFIX}{name}");
        for (at, (label, text)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let text = text
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.text, "{open}{label}=\"{text}\"");
        }
        let end = if labels.is_empty() { " " } else { "} " };
        let _ = writeln!(self.text, "{end}{value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        let suffix = if kind == "counter" { "_total" } else { "" };
        self.sample(&format!("{name}{suffix}"), &[], value);
    }
}

/// The page.
pub fn page(told: &Told<'_>, format: Format) -> String {
    let mut page = Page {
        format,
        text: String::new(),
    };
    settings(&mut page, told.scheduler);
    totals(&mut page, told.look);
    waits(&mut page, told.look);
    cpus(&mut page, told.look);
    groups(&mut page, told.groups);
    health(&mut page, told.health);
    if format == Format::OpenMetrics {
        page.text += "# EOF\n";
    }
    page.text
}

fn settings(page: &mut Page, scheduler: &Scheduler) {
    let labels = [
        ("version", scheduler.version.as_str()),
        ("kernel", scheduler.kernel.as_str()),
        ("policy", scheduler.policy.as_str()),
        ("mode", scheduler.mode.as_str()),
    ];
    page.family(
        "scheduler_info",
        "gauge",
        "The scheduler that runs, and how it is set",
    );
    page.sample("scheduler_info", &labels, 1);
    let help = |name: &str| Scheduler::SECTION.field(name).map_or("", |f| f.meaning);
    let seconds = |us: u64| us as f64 / 1e6;
    page.single(
        "slice_seconds",
        "gauge",
        help("slice_us"),
        seconds(scheduler.slice_us),
    );
    page.single(
        "credit_seconds",
        "gauge",
        help("credit_us"),
        seconds(scheduler.credit_us),
    );
    page.single(
        "generation",
        "gauge",
        help("generation"),
        scheduler.generation,
    );
    let since = scheduler.active_since_ms as f64 / 1e3;
    page.single(
        "active_since_seconds",
        "gauge",
        help("active_since_ms"),
        since,
    );
}

/// Every counter, summed over the CPUs.
fn totals(page: &mut Page, look: &Look) {
    let mut sum = Counters::default();
    for cpu in &look.cpus {
        sum.add(&cpu.counters);
    }
    for (name, help, value) in sum.named() {
        match name.strip_suffix("_ns") {
            Some(name) => {
                let name = format!("{name}_seconds");
                page.single(&name, "counter", help, value as f64 / 1e9);
            }
            None => page.single(name, "counter", help, value),
        }
    }
    let longest = sum.wait_max_ns as f64 / 1e9;
    page.single("wait_max_seconds", "gauge", counters::WAIT_MAX, longest);
}

fn waits(page: &mut Page, look: &Look) {
    let (mut wakeup, mut all) = ([0; BUCKETS], [0; BUCKETS]);
    for cpu in &look.cpus {
        for (sum, count) in wakeup.iter_mut().zip(&cpu.wakeup) {
            *sum += count;
        }
        for (sum, count) in all.iter_mut().zip(&cpu.wakeup) {
            *sum += count;
        }
        for (sum, count) in all.iter_mut().zip(&cpu.other) {
            *sum += count;
        }
    }
    let help = |name: &str| Waits::SECTION.field(name).map_or("", |field| field.meaning);
    histogram(page, "wakeup_wait_seconds", help("wakeup"), &wakeup);
    histogram(page, "queue_wait_seconds", help("queue"), &all);
}

/// Told by octaves: a scraper keeps a series for each bucket.
fn histogram(page: &mut Page, name: &str, help: &str, counts: &[u64]) {
    page.family(name, "histogram", help);
    let bucket = format!("{name}_bucket");
    let mut sum = 0_u64;
    for (at, count) in counts.iter().enumerate() {
        sum += count;
        let below = below_ns(at);
        if below.is_power_of_two() {
            let le = format!("{}", below as f64 / 1e9);
            page.sample(&bucket, &[("le", &le)], sum);
        }
    }
    page.sample(&bucket, &[("le", "+Inf")], sum);
    page.sample(&format!("{name}_count"), &[], sum);
}

fn cpus(page: &mut Page, look: &Look) {
    let help = |name: &str| Cpu::SECTION.field(name).map_or("", |field| field.meaning);
    type Of = fn(&crate::kernel::inspect::CpuView) -> f64;
    let families: [(&str, &str, &str, Of); 7] = [
        ("cpu_online", "gauge", help("online"), |cpu| {
            f64::from(u8::from(cpu.online))
        }),
        ("cpu_waiting", "gauge", help("waiting"), |cpu| {
            f64::from(cpu.waiting)
        }),
        (
            "cpu_run_seconds",
            "counter",
            "CPU time that it gave to tasks",
            |cpu| cpu.counters.run_ns as f64 / 1e9,
        ),
        ("cpu_switches", "counter", help("switches"), |cpu| {
            cpu.counters.waits as f64
        }),
        ("cpu_steals", "counter", help("steals"), |cpu| {
            let counters = &cpu.counters;
            (counters.steals_near + counters.steals_far + counters.exchanges) as f64
        }),
        ("cpu_preemptions", "counter", help("preemptions"), |cpu| {
            cpu.counters.preempt_kicks as f64
        }),
        ("cpu_kicks", "counter", help("kicks"), |cpu| {
            cpu.counters.idle_kicks as f64
        }),
    ];
    for (name, kind, help, of) in families {
        page.family(name, kind, help);
        let suffix = if kind == "counter" { "_total" } else { "" };
        let sample = format!("{name}{suffix}");
        for cpu in &look.cpus {
            page.sample(&sample, &[("cpu", &cpu.cpu.to_string())], of(cpu));
        }
    }
}

fn groups(page: &mut Page, groups: &[Group]) {
    let help = |name: &str| Group::SECTION.field(name).map_or("", |field| field.meaning);
    type Of = fn(&Group) -> f64;
    let families: [(&str, &str, Of); 4] = [
        ("group_weight", help("weight"), |group| {
            f64::from(group.weight)
        }),
        ("group_runnable", help("runnable"), |group| group.runnable),
        ("group_got_ratio", help("got_pct"), |group| {
            group.got_pct / 100.0
        }),
        ("group_owed_ratio", help("owed_pct"), |group| {
            group.owed_pct / 100.0
        }),
    ];
    for (name, help, of) in families {
        page.family(name, "gauge", help);
        for group in groups {
            page.sample(name, &[("group", &group.path)], of(group));
        }
    }
    // A limit of 0 would say that nothing may run: who has none has no sample.
    page.family("group_max_ratio", "gauge", help("max_pct"));
    for group in groups.iter().filter(|group| group.max_pct > 0.0) {
        let max = group.max_pct / 100.0;
        page.sample("group_max_ratio", &[("group", &group.path)], max);
    }
}

fn health(page: &mut Page, health: &Health) {
    let help = |name: &str| {
        Health::SECTION
            .field(name)
            .map_or("", |field| field.meaning)
    };
    let bytes = health.agent_rss_kib * 1024;
    page.single(
        "agent_resident_bytes",
        "gauge",
        help("agent_rss_kib"),
        bytes,
    );
    let cpu = health.agent_cpu_pct / 100.0;
    page.single("agent_cpu_ratio", "gauge", help("agent_cpu_pct"), cpu);
    let wakeups = health.agent_wakeups;
    page.single(
        "agent_wakeups_per_second",
        "gauge",
        help("agent_wakeups"),
        wakeups,
    );
    page.single("clients", "gauge", help("clients"), health.clients);
    page.single("warnings", "gauge", help("warnings"), health.warnings.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::inspect::CpuView;
    use crate::stats::sample;

    fn told(format: Format) -> String {
        let frame = sample::frames(1).remove(0);
        let mut wakeup = vec![0; BUCKETS];
        (wakeup[0], wakeup[5], wakeup[BUCKETS - 1]) = (3, 4, 1);
        let cpu = CpuView {
            cpu: 3,
            domain: 0,
            online: true,
            pid: 1,
            waiting: 2,
            counters: Counters {
                wakeups: 8,
                run_ns: 1_500_000_000,
                ..Counters::default()
            },
            wakeup,
            other: vec![1; BUCKETS],
        };
        let look = Look {
            cpus: vec![cpu],
            ..Look::default()
        };
        let told = Told {
            scheduler: &frame.scheduler,
            look: &look,
            groups: &frame.groups,
            health: &frame.health,
        };
        page(&told, format)
    }

    #[test]
    fn counters_keep_their_names_in_both_formats() {
        let new = told(Format::OpenMetrics);
        let old = told(Format::Text);
        assert!(new.contains("# TYPE fulcrum_wakeups counter\nfulcrum_wakeups_total 8\n"));
        assert!(old.contains("# TYPE fulcrum_wakeups_total counter\nfulcrum_wakeups_total 8\n"));
        assert!(
            new.contains("# UNIT fulcrum_run_seconds seconds\nfulcrum_run_seconds_total 1.5\n")
        );
        assert!(new.ends_with("# EOF\n") && !old.contains("EOF") && !old.contains("UNIT"));
    }

    #[test]
    fn histograms_grow_and_end_with_all() {
        let text = told(Format::OpenMetrics);
        let buckets = text
            .lines()
            .filter(|line| line.starts_with("fulcrum_wakeup_wait_seconds_bucket"));
        let counts: Vec<u64> = buckets
            .map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
            .collect();
        assert_eq!((counts.first(), counts.last()), (Some(&3), Some(&8)));
        assert!(counts.is_sorted() && counts.len() > 20);
        assert!(text.contains("fulcrum_wakeup_wait_seconds_bucket{le=\"0.000001024\"} 3\n"));
        assert!(text.contains("fulcrum_wakeup_wait_seconds_count 8\n"));
    }

    #[test]
    fn labels_are_quoted() {
        let mut page = Page {
            format: Format::Text,
            text: String::new(),
        };
        page.sample("x", &[("a", "q\"\\\n"), ("b", "")], 1.5);
        assert_eq!(page.text, "fulcrum_x{a=\"q\\\"\\\\\\n\",b=\"\"} 1.5\n");
        assert!(told(Format::Text).contains("group_weight{group=\"/user.slice\"} 300\n"));
    }

    #[test]
    fn limits_are_told_of_those_who_have_one() {
        let text = told(Format::OpenMetrics);
        assert!(text.contains("# TYPE fulcrum_group_max_ratio gauge\n"));
        let samples = text
            .lines()
            .filter(|line| line.starts_with("fulcrum_group_max_ratio{"));
        let limited: Vec<_> = samples.collect();
        let groups = sample::frames(1).remove(0).groups;
        let [one] = groups
            .iter()
            .filter(|group| group.max_pct > 0.0)
            .collect::<Vec<_>>()[..]
        else {
            panic!("one of the sample's cgroups has a limit");
        };
        assert_eq!(one.max_pct, 50.0);
        assert_eq!(
            limited,
            [format!(
                "fulcrum_group_max_ratio{{group=\"{}\"}} 0.5",
                one.path
            )]
        );
    }
}
