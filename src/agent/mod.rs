// SPDX-License-Identifier: GPL-2.0-only
//! The agent's one loop: load, attach, wait, detach.
//!
//! It decides nothing about scheduling. It waits for three things, a signal,
//! a request for statistics and the kernel ending the scheduler, and wakes a
//! few times a second for the last only.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, never, select};

use crate::cli::RunArgs;
use crate::exit::{ExitCode, Failure, Outcome};
use crate::kernel::exit_info::{ExitInfo, Next};
use crate::kernel::features::Features;
use crate::kernel::lock::{self, InstanceLock, LockError};
use crate::kernel::preflight::{self, Verdict};
use crate::kernel::scheduler::{Config, Scheduler, Storage};
use crate::kernel::topology::Topology;
use crate::kernel::view::SystemView;
use crate::stats::SOCKET;
use crate::stats::counters::Snapshot;
use crate::stats::metrics::Metrics;
use crate::stats::server::Server;

/// How long an ejection may go unnoticed. The kernel tells it in memory
/// shared with the BPF program, which can be looked at but not waited for.
const EJECTION_CHECK: Duration = Duration::from_millis(250);

/// Pause before a restart that follows its start at once, so that a storm of
/// CPU hotplug events does not become a storm of restarts.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// How one life of the scheduler ended.
enum End {
    Stopped,
    Restart,
}

/// Schedule the machine until `stop` receives a message.
///
/// # Errors
///
/// Whatever keeps the scheduler from running, and the kernel ejecting it.
pub fn run(args: &RunArgs, stop: &Receiver<()>) -> Outcome<()> {
    let view = SystemView::host();
    let config = config(args)?;
    let (features, _lock) = preflight(&view)?;
    let mut agent = Agent {
        view,
        config,
        features,
        stop,
        stats: args.stats,
        service: None,
    };
    loop {
        let started = Instant::now();
        match agent.live()? {
            End::Stopped => return Ok(()),
            End::Restart if started.elapsed() > RESTART_PAUSE => {}
            End::Restart => {
                if stop.recv_timeout(RESTART_PAUSE).is_ok() {
                    return Ok(());
                }
            }
        }
    }
}

fn config(args: &RunArgs) -> Outcome<Config> {
    let timeout = std::env::var("SCX_TIMEOUT_MS").ok();
    Ok(Config {
        slice_ns: args.slice_us * 1000,
        partial: args.partial,
        timeout_ms: args.timeout_ms(timeout.as_deref())?,
        exit_dump_len: args.exit_dump_len,
    })
}

/// All checks, then the instance lock: nothing is changed before they pass.
fn preflight(view: &SystemView) -> Outcome<(Features, Option<InstanceLock>)> {
    let report = preflight::check(view);
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
        Ok(lock) => Ok((report.features, Some(lock))),
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
            Ok((report.features, None))
        }
    }
}

/// Statistics for clients, across restarts of the scheduler.
struct Service {
    _server: Server,
    answers: Sender<Snapshot>,
    requests: Receiver<()>,
}

impl Service {
    fn launch() -> Option<Self> {
        let served = Server::launch(Path::new(SOCKET));
        let server = served
            .map_err(|why| log::warn!("{why}: scheduling goes on"))
            .ok()?;
        let (answers, requests) = server.channels()?;
        Some(Self {
            _server: server,
            answers,
            requests,
        })
    }
}

struct Agent<'a> {
    view: SystemView,
    config: Config,
    features: Features,
    stop: &'a Receiver<()>,
    /// How often to print statistics.
    stats: Option<Duration>,
    /// `None` before the first attach, or if nobody can be served.
    service: Option<Service>,
}

impl Agent<'_> {
    /// One life of the scheduler, from loading to its end.
    fn live(&mut self) -> Outcome<End> {
        // Before the topology: whatever changes in between, the kernel sees it.
        let hotplug_seq = self.view.hotplug_seq().map_err(|error| {
            let message = format!("/sys/kernel/sched_ext/hotplug_seq: {error}: is /sys mounted?");
            Failure::new(ExitCode::Unexpected, message)
        })?;
        let topology = Topology::read(&self.view);
        let mut storage = Storage::uninit();
        let started = Instant::now();
        let (config, features) = (&self.config, &self.features);
        let mut scheduler =
            Scheduler::load(&mut storage, config, features, &topology, hotplug_seq)?;
        if self.stop.try_recv().is_ok() {
            return Ok(End::Stopped);
        }
        let loaded = Instant::now();
        scheduler.attach()?;
        log::debug!(
            "loaded and verified in {} ms, attached in {} ms",
            (loaded - started).as_millis(),
            loaded.elapsed().as_millis()
        );
        if let Some(info) = scheduler.exit_info() {
            return self.ended(&info, ExitCode::Enable);
        }
        self.announce(&topology);
        if self.service.is_none() {
            self.service = Service::launch();
        }
        match self.wait(&scheduler) {
            Some(info) => self.ended(&info, ExitCode::Ejected),
            None => {
                let took = scheduler.detach();
                log::info!("stopped; the kernel's own scheduler took over");
                log::debug!("detached in {} ms", took.as_millis());
                Ok(End::Stopped)
            }
        }
    }

    fn announce(&self, topology: &Topology) {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        log::info!(
            "{} schedules {} on Linux {} ({}, {}, {}); watch: scx_fulcrum --monitor 1; \
             stop: Ctrl-C or kill {}",
            crate::BUILD_ID,
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
        for note in &topology.notes {
            log::info!("topology: {note}");
        }
    }

    /// Wait until the scheduler ends: why, or `None` on request.
    fn wait(&mut self, scheduler: &Scheduler<'_>) -> Option<ExitInfo> {
        let nobody = never();
        let mut earlier = Snapshot::default();
        let mut due = self.stats.map(|interval| Instant::now() + interval);
        loop {
            let requests = self
                .service
                .as_ref()
                .map_or(&nobody, |service| &service.requests);
            let patience = due.map_or(EJECTION_CHECK, |due| {
                due.saturating_duration_since(Instant::now())
                    .min(EJECTION_CHECK)
            });
            let mut served = true;
            select! {
                recv(self.stop) -> _ => return None,
                recv(requests) -> request => served = request.is_ok() && self.answer(scheduler),
                default(patience) => {}
            }
            if !served {
                log::warn!("the statistics server ended: scheduling goes on");
                self.service = None;
            }
            if let Some(info) = scheduler.exit_info() {
                return Some(info);
            }
            if let (Some(interval), Some(at)) = (self.stats, due)
                && Instant::now() >= at
            {
                let now = scheduler.snapshot();
                let printed = Metrics::between(&earlier, &now).print(&mut io::stdout().lock());
                earlier = now;
                // Nobody reads any more: no reason to stop scheduling.
                due = printed.is_ok().then(|| Instant::now() + interval);
            }
        }
    }

    fn answer(&self, scheduler: &Scheduler<'_>) -> bool {
        let answers = self.service.as_ref().map(|service| &service.answers);
        answers.is_some_and(|answers| answers.send(scheduler.snapshot()).is_ok())
    }

    /// What follows from the kernel having ended the scheduler. `error` is
    /// the code for an end that is an error.
    fn ended(&self, info: &ExitInfo, error: ExitCode) -> Outcome<End> {
        match info.next(&self.features) {
            Next::Restart => {
                log::info!("{}: starting again", info.line());
                Ok(End::Restart)
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
}
