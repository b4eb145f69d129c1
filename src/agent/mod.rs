// SPDX-License-Identifier: GPL-2.0-only
//! The agent's one loop: load, attach, wait, detach.
//!
//! It sleeps until a signal, a request for statistics, somebody who changes a
//! knob, a call of the BPF program's (to balance, to show that it lives), the
//! kernel ending the scheduler or the time for its next line of statistics;
//! where none of these comes, it never wakes.

pub mod balancer;
pub mod diagnosis;
mod haste;
pub mod leaks;
pub mod ledger;
pub mod manager;
pub mod planner;
pub mod rounds;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use scx_utils::SCX_ECODE_ACT_RESTART;

use crate::cli::RunArgs;
use crate::control;
use crate::control::protocol::{Reply, Request, State, texts};
use crate::control::watch::Watch;
use crate::exit::{ExitCode, Failure, Outcome};
use crate::kernel::events::{Events, Heard};
use crate::kernel::exit_info::{ExitInfo, Next};
use crate::kernel::features::{self, Features};
use crate::kernel::lock::{self, InstanceLock, LockError};
use crate::kernel::preflight::{self, Verdict};
use crate::kernel::scheduler::{Config, Scheduler, Storage};
use crate::kernel::topology::Topology;
use crate::kernel::view::SystemView;
use crate::stats::SOCKET;
use crate::stats::counters::Snapshot;
use crate::stats::metrics::Metrics;
use crate::stats::reports::Reports;
use crate::stats::server::Server;
use crate::wake::{Sleeper, readable};

use haste::Haste;
use manager::Manager;
use rounds::Rounds;

/// How long an ejection may go unnoticed where no event can tell of it.
const EJECTION_CHECK: Duration = Duration::from_millis(250);

/// Pause before a restart, so that a storm of CPU hotplug events does not
/// become a storm of restarts.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// How one life of the scheduler ended.
enum End {
    Stopped,
    Restart,
}

/// Schedule the machine until `sleeper` is told to stop.
///
/// # Errors
///
/// Whatever keeps the scheduler from running, and the kernel ejecting it.
pub fn run(args: &RunArgs, sleeper: &Sleeper) -> Outcome<()> {
    let view = SystemView::host();
    let config = config(args)?;
    let watch = Watch::new(args.watch()?);
    let haste = Haste::begin();
    let _lock = preflight(&view)?;
    let mut agent = Agent {
        view,
        config,
        sleeper,
        stats: args.stats,
        server: None,
        control: None,
        watch,
        manager: Manager::of_environment(),
    };
    let mut end = agent.live(haste)?;
    while let End::Restart = end {
        end = agent.live(Haste::begin())?;
    }
    Ok(())
}

fn config(args: &RunArgs) -> Outcome<Config> {
    let timeout = std::env::var_os("SCX_TIMEOUT_MS");
    let timeout = timeout.as_ref().map(|text| text.to_string_lossy());
    Ok(Config {
        settings: args.settings()?,
        generation: 1,
        partial: args.partial,
        timeout_ms: args.timeout_ms(timeout.as_deref())?,
        exit_dump_len: args.exit_dump_len,
    })
}

/// All checks, then the instance lock: nothing is changed before they pass.
fn preflight(view: &SystemView) -> Outcome<Option<InstanceLock>> {
    let report = preflight::check(view, &Features::read());
    if let Some(failure) = report.failure() {
        return Err(failure);
    }
    for finding in report
        .findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Warn)
    {
        log::warn!("{}", finding.line());
    }
    match lock::acquire(view) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { holder }) => Err(Failure::new(
            ExitCode::SecondInstance,
            preflight::second_instance(&holder).line(),
        )),
        // The kernel itself lets only one scheduler attach.
        Err(LockError::Io(path, error)) => {
            log::warn!(
                "no instance lock in {} ({error}): going on without",
                path.display()
            );
            Ok(None)
        }
    }
}

/// Lines of statistics on standard output, for `--stats`.
struct Lines {
    every: Duration,
    due: Instant,
    earlier: Snapshot,
}

impl Lines {
    fn new(every: Duration) -> Self {
        Self {
            every,
            due: Instant::now() + every,
            earlier: Snapshot::default(),
        }
    }

    /// Print a line if it is time; false: nobody reads any more.
    fn print_if_due(&mut self, scheduler: &Scheduler<'_>) -> bool {
        let start = Instant::now();
        if start < self.due {
            return true;
        }
        self.due = start + self.every;
        let now = scheduler.snapshot();
        let metrics = Metrics::between(&self.earlier, &now);
        self.earlier = now;
        metrics.print(&mut io::stdout().lock()).is_ok()
    }
}

struct Agent<'a> {
    view: SystemView,
    config: Config,
    sleeper: &'a Sleeper,
    /// How often to print statistics.
    stats: Option<Duration>,
    /// Statistics for clients, across restarts; `None` before the first attach
    /// or if nobody can be served.
    server: Option<Server>,
    /// Where knobs are changed, likewise.
    control: Option<control::server::Server>,
    /// How it lets itself be watched, likewise.
    watch: Watch,
    /// Who started this process, if it wants to know.
    manager: Manager,
}

impl Agent<'_> {
    /// One life of the scheduler, from loading, with `haste`, to its end.
    fn live(&mut self, haste: Haste) -> Outcome<End> {
        // Before the topology: whatever changes in between, the kernel sees it.
        let hotplug_seq = self.view.hotplug_seq().map_err(|error| {
            let message = format!("/sys/kernel/sched_ext/hotplug_seq: {error}: is /sys mounted?");
            Failure::new(ExitCode::Unexpected, message)
        })?;
        let topology = Topology::read(&self.view);
        let mut storage = Storage::uninit();
        let started = Instant::now();
        log::debug!("loading the BPF program");
        let mut scheduler = Scheduler::load(&mut storage, &self.config, &topology, hotplug_seq)?;
        if self.sleeper.stopping() {
            return Ok(End::Stopped);
        }
        let loaded = Instant::now();
        log::debug!("attaching: loaded in {} ms", (loaded - started).as_millis());
        scheduler.attach()?;
        log::debug!(
            "attached in {} ms{}",
            loaded.elapsed().as_millis(),
            self.view.process_age().map_or_else(String::new, |age| {
                format!(", {} ms after the start of the process", age.as_millis())
            })
        );
        drop(haste);
        if let Some(info) = scheduler.exit_info() {
            return self.ended(&info, ExitCode::Enable);
        }
        self.announce(&topology);
        self.open_doors();
        self.manager.ready(&self.config.settings.to_string());
        let fallbacks = features::fallbacks();
        self.watch
            .attached(self.view.kernel_release(), &topology, fallbacks);
        let end = self.wait(&mut scheduler, &topology)?;
        self.watch.ended(end.as_ref(), &scheduler);
        let summary = scheduler.snapshot().summary();
        match end {
            Some(info) => {
                log::info!("ended by the kernel {summary}");
                self.ended(&info, ExitCode::Ejected)
            }
            None => {
                self.manager.stopping();
                let took = scheduler.detach();
                log::info!("stopped {summary}; the kernel's own scheduler took over");
                log::debug!("detached in {} ms", took.as_millis());
                Ok(End::Stopped)
            }
        }
    }

    /// Let clients in, unless they are already.
    fn open_doors(&mut self) {
        let closed = |why: String| log::warn!("{why}: scheduling goes on");
        if self.server.is_none() {
            self.server = Server::launch(Path::new(SOCKET), self.sleeper.waker())
                .map_err(closed)
                .ok();
        }
        if self.control.is_none() {
            self.control = control::server::Server::launch(Path::new(control::SOCKET))
                .map_err(closed)
                .ok();
        }
    }

    fn announce(&self, topology: &Topology) {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        log::info!(
            "{} schedules {} on Linux {} ({}, {}, {}); watch: scx_fulcrum --monitor 1; \
             stop: Ctrl-C or kill {}",
            crate::build_id(),
            if self.config.partial {
                "SCHED_EXT tasks"
            } else {
                "all normal tasks"
            },
            self.view.kernel_release(),
            count(topology.online, "CPU"),
            count(topology.llcs, "LLC"),
            count(topology.nodes, "node"),
            std::process::id(),
        );
        log::debug!(
            "{}, generation {}",
            self.config.settings,
            self.config.generation
        );
        for note in &topology.notes {
            log::info!("topology: {note}");
        }
    }

    /// Wait until the scheduler ends: why, or `None` on request. All inputs
    /// meet here.
    fn wait(
        &mut self,
        scheduler: &mut Scheduler<'_>,
        topology: &Topology,
    ) -> Outcome<Option<ExitInfo>> {
        let mut events = listen(scheduler);
        let mut rounds = Rounds::new(topology);
        let mut heard = Heard::default();
        let mut lines = self.stats.map(Lines::new);
        loop {
            if let Some(info) = scheduler.exit_info() {
                return Ok(Some(info));
            }
            if self.sleeper.stopping() {
                return Ok(None);
            }
            rounds.serve(scheduler, heard, &mut self.watch.reports);
            self.manager.live();
            if let Some(server) = &self.server {
                server.answer(|| scheduler.snapshot());
            }
            if let Some(control) = &mut self.control {
                let (config, reports) = (&mut self.config, &mut self.watch.reports);
                control.serve(|request| obey(config, scheduler, reports, request));
            }
            self.watch.serve(scheduler, &self.config);
            // Nobody who reads is no reason to stop scheduling.
            if lines
                .as_mut()
                .is_some_and(|lines| !lines.print_if_due(scheduler))
            {
                lines = None;
            }
            let due = lines.as_ref().map(|lines| lines.due);
            let check = match events {
                Some(_) => None,
                None => Some(Instant::now() + EJECTION_CHECK),
            };
            let control = self.control.as_ref();
            let pause = control.and_then(control::server::Server::deadline);
            let watch = self.watch.deadline();
            let round = rounds.deadline();
            let deadline = due.into_iter().chain(check).chain(pause).chain(watch);
            let manager = self.manager.deadline();
            let deadline = deadline.chain(round).chain(manager).min();
            let mut sources = control.map_or_else(Vec::new, |control| control.poll_fds());
            sources.extend(self.watch.poll_fds());
            sources.extend(events.as_ref().map(|events| readable(events.as_fd())));
            self.sleeper
                .sleep(&sources, deadline)
                .map_err(Failure::sleepless)?;
            drop(sources);
            heard = match events.as_ref().map(Events::take) {
                Some(Ok(heard)) => heard,
                Some(Err(error)) => {
                    log::debug!("events: {error:#}");
                    events = None;
                    Heard::default()
                }
                None => Heard::default(),
            };
        }
    }

    /// What follows from the kernel having ended the scheduler. `error` is
    /// the code for an end that is an error.
    fn ended(&self, info: &ExitInfo, error: ExitCode) -> Outcome<End> {
        match info.next(*SCX_ECODE_ACT_RESTART) {
            Next::Restart => {
                log::info!("{}: starting again", info.line());
                self.pause()
            }
            Next::End(ExitCode::Ejected) => {
                let dump = info.dump_text();
                if !dump.is_empty() {
                    crate::log::block(&dump);
                }
                Err(info.failure(error))
            }
            Next::End(code) => Err(info.failure(code)),
        }
    }

    /// Wait a moment before the next life, unless told to stop.
    fn pause(&self) -> Outcome<End> {
        let until = Instant::now() + RESTART_PAUSE;
        while Instant::now() < until {
            if self.sleeper.stopping() {
                return Ok(End::Stopped);
            }
            self.sleeper
                .sleep(&[], Some(until))
                .map_err(Failure::sleepless)?;
        }
        Ok(End::Restart)
    }
}

/// Do what a client of the control socket wants: all of it, or nothing.
fn obey(
    config: &mut Config,
    scheduler: &mut Scheduler<'_>,
    reports: &mut Reports,
    request: Request,
) -> Reply {
    if let Request::Set { values } = request {
        match texts(&values).and_then(|values| config.settings.with(&values)) {
            Ok(settings) => config.settings = settings,
            Err(error) => return Reply::Refused { error },
        }
        // Kept in the configuration, it survives a restart.
        config.generation = config.generation.wrapping_add(1);
        if !scheduler.set_knobs(&config.settings, config.generation) {
            log::warn!("another agent has taken over: the change waits for the next start");
        }
        let set = format!("{}, generation {}", config.settings, config.generation);
        log::info!("set: {set}");
        reports.happened("settings", set);
    }
    let seen = scheduler.seen_by(config.generation);
    Reply::State(State::of(&config.settings, config.generation, seen))
}

/// What tells of an ejection at once; `None` means looking for it.
fn listen(scheduler: &Scheduler<'_>) -> Option<Events> {
    let events = scheduler.events();
    events
        .map_err(|error| {
            let ms = EJECTION_CHECK.as_millis();
            log::debug!("no events from the kernel ({error:#}): looking every {ms} ms");
        })
        .ok()
}
