// SPDX-License-Identifier: GPL-2.0-only
//! Everything through which the agent lets itself be watched, in one piece for
//! its loop: streams, scrapers, and the file that says who runs.

use std::path::Path;
use std::time::Instant;

use rustix::event::PollFd;
use scx_utils::SCX_ECODE_ACT_RESTART;

use super::explain;
use super::record::{self, Record};
use super::scrape::{Address, Scrape};
use super::streams::Streams;
use crate::control::settings::{MODES, Settings};
use crate::exit::ExitCode;
use crate::kernel::exit_info::{ExitInfo, Next};
use crate::kernel::inspect::{Decided, TaskView};
use crate::kernel::scheduler::{Config, Scheduler};
use crate::kernel::topology::Topology;
use crate::stats::frame;
use crate::stats::look::Look;
use crate::stats::observer::Source;
use crate::stats::reports::{Reports, unix_ms};

/// Where streams are served.
pub const SOCKET: &str = "/run/scx_fulcrum/stream";

/// What each CPU decided last before the kernel ended the scheduler for an
/// error.
pub const DECISIONS: &str = "/run/scx_fulcrum/decisions.txt";

/// What the command line says of it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Besides root, the members of this group may look.
    pub group: Option<u32>,
    /// Where scrapers come.
    pub metrics: Option<Address>,
}

/// What stays the same while the scheduler lives.
#[derive(Clone, Debug, Default)]
struct About {
    kernel: String,
    since_ms: u64,
    cpus: u32,
    llcs: u32,
    nodes: u32,
    /// The node of each domain.
    domains: Vec<usize>,
}

/// All that watches.
#[derive(Debug, Default)]
pub struct Watch {
    options: Options,
    streams: Option<Streams>,
    scrape: Option<Scrape>,
    about: About,
    record: Record,
    /// What the agent has to tell besides figures.
    pub reports: Reports,
}

impl Watch {
    /// Nobody can watch yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// The scheduler is attached: says so, and lets watchers in, unless they
    /// are already.
    pub fn attached(&mut self, kernel: String, topology: &Topology, fallbacks: Vec<String>) {
        self.about = About {
            kernel,
            since_ms: unix_ms(),
            cpus: topology.online as u32,
            llcs: topology.llcs as u32,
            nodes: topology.nodes as u32,
            domains: topology.domains.iter().map(|domain| domain.node).collect(),
        };
        self.reports.fallbacks = fallbacks;
        self.record = Record::read(Path::new(record::PLACE));
        if self
            .record
            .run
            .as_ref()
            .is_some_and(|run| run.pid == std::process::id())
        {
            self.record.run = None;
        }
        self.record.begin();
        self.keep_record();
        let closed = |why: String| log::warn!("{why}: scheduling goes on");
        if self.streams.is_none() {
            self.streams = Streams::launch(Path::new(SOCKET), self.options.group)
                .map_err(closed)
                .ok();
        }
        if let (None, Some(address)) = (&self.scrape, &self.options.metrics) {
            self.scrape = Scrape::launch(address, self.options.group)
                .map_err(closed)
                .ok();
        }
    }

    /// The scheduler has ended: `info` says why the kernel ended it, if it did.
    /// After an error the last decisions of each CPU are kept in a file.
    pub fn ended(&mut self, info: Option<&ExitInfo>, scheduler: &Scheduler<'_>) {
        match info {
            Some(info) => {
                let restart = *SCX_ECODE_ACT_RESTART;
                let error = info.next(restart) == Next::End(ExitCode::Ejected);
                self.record.finish(&info.line(), error);
                if error {
                    keep_decisions(scheduler.recorded(), Path::new(DECISIONS));
                }
            }
            None => self.record.finish("stopped by a signal", false),
        }
        self.keep_record();
    }

    fn keep_record(&self) {
        if let Err(error) = self.record.write(Path::new(record::PLACE)) {
            log::debug!(
                "{}: {error}: status will not know of this run",
                record::PLACE
            );
        }
    }

    /// What to poll: when one of them is ready, call [`Self::serve`].
    pub fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let streams = self.streams.iter().flat_map(Streams::poll_fds);
        let scrape = self.scrape.iter().flat_map(Scrape::poll_fds);
        streams.chain(scrape).collect()
    }

    /// When to call [`Self::serve`] even if nothing is ready.
    pub fn deadline(&self) -> Option<Instant> {
        let streams = self.streams.as_ref().and_then(Streams::deadline);
        let scrape = self.scrape.as_ref().and_then(Scrape::deadline);
        streams.into_iter().chain(scrape).min()
    }

    /// Serve all who watch.
    pub fn serve(&mut self, scheduler: &mut Scheduler<'_>, config: &Config) {
        self.reports.wakeups += 1;
        let mut seen = Seen {
            scheduler,
            config,
            about: &self.about,
            reports: &self.reports,
        };
        if let Some(streams) = &mut self.streams {
            streams.serve(&mut seen);
        }
        if let Some(scrape) = &mut self.scrape {
            scrape.serve(&mut seen);
        }
    }
}

/// Write what each CPU decided last to `path`, in the order of time.
fn keep_decisions(mut recorded: Vec<Decided>, path: &Path) {
    recorded.sort_by_key(|decided| decided.time_ns);
    let lines: String = explain::lines(&recorded)
        .iter()
        .map(|line| line.line() + "\n")
        .collect();
    match std::fs::write(path, lines) {
        Ok(()) => log::info!(
            "the last {} decisions are in {}: report them with the dump",
            recorded.len(),
            path.display()
        ),
        Err(error) => log::debug!("{}: {error}", path.display()),
    }
}

/// The running scheduler as watchers see it.
struct Seen<'a, 'obj> {
    scheduler: &'a mut Scheduler<'obj>,
    config: &'a Config,
    about: &'a About,
    reports: &'a Reports,
}

impl Source for Seen<'_, '_> {
    fn look(&mut self, groups: bool) -> Look {
        Look {
            at: self.scheduler.age(),
            cpus: self.scheduler.cpu_views(),
            groups: if groups {
                self.scheduler.group_views()
            } else {
                Vec::new()
            },
        }
    }

    fn tasks(&mut self) -> Result<Vec<TaskView>, String> {
        self.scheduler.task_views()
    }

    fn recorded(&mut self) -> Vec<Decided> {
        self.scheduler.recorded()
    }

    fn watch(&mut self, on: bool) {
        self.scheduler.watch(on);
    }

    fn scheduler(&self) -> frame::Scheduler {
        let settings = &self.config.settings;
        frame::Scheduler {
            version: crate::VERSION.to_string(),
            kernel: self.about.kernel.clone(),
            pid: std::process::id(),
            policy: settings.policy().info().name.to_string(),
            mode: mode_of(settings),
            slice_us: settings.slice_us(),
            credit_us: settings.credit_us(),
            partial: self.config.partial,
            generation: self.config.generation,
            active_since_ms: self.about.since_ms,
            cpus: self.about.cpus,
            llcs: self.about.llcs,
            nodes: self.about.nodes,
        }
    }

    fn node_of(&self, domain: usize) -> usize {
        self.about.domains.get(domain).copied().unwrap_or(0)
    }

    fn reports(&self) -> &Reports {
        self.reports
    }
}

/// The mode whose settings these are; empty: none's.
fn mode_of(settings: &Settings) -> String {
    let same = |values: &[(&str, &str)]| {
        let values: Vec<_> = values
            .iter()
            .map(|(key, value)| ((*key).to_string(), (*value).to_string()))
            .collect();
        Settings::default().with(&values).as_ref() == Ok(settings)
    };
    let mode = MODES.iter().find(|mode| same(mode.values));
    mode.map_or_else(String::new, |mode| mode.name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::settings;

    #[test]
    fn a_mode_is_known_by_its_settings() {
        for mode in MODES {
            let values = settings::split(&[format!("mode={}", mode.name)]).unwrap();
            let settings = Settings::default().with(&values).unwrap();
            assert_eq!(mode_of(&settings), mode.name);
        }
        let odd = settings::split(&["slice-us=777".to_string()]).unwrap();
        assert_eq!(mode_of(&Settings::default().with(&odd).unwrap()), "");
    }

    #[test]
    fn the_last_decisions_are_kept_in_the_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decisions");
        let decided = |time_ns, pid| Decided {
            cpu: 0,
            time_ns,
            pid,
            lag_us: 0,
            wait_us: 0,
            from: 0,
            way: 1,
        };
        keep_decisions(
            vec![decided(2, 4_000_000_002), decided(1, 4_000_000_001)],
            &path,
        );
        let text = std::fs::read_to_string(&path).unwrap();
        let at = |pid: &str| text.find(pid).unwrap();
        assert!(at("4000000001") < at("4000000002"), "{text}");
    }

    #[test]
    fn nobody_watches_before_it_is_attached() {
        let watch = Watch::new(Options::default());
        assert!(watch.poll_fds().is_empty());
        assert_eq!(watch.deadline(), None);
    }
}
