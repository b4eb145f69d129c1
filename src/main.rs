// SPDX-License-Identifier: GPL-2.0-only
//! The command `scx_fulcrum`.

use std::io;
use std::path::Path;
use std::process::ExitCode as Status;

use scx_fulcrum::cli::{self, Cli, Command};
use scx_fulcrum::control::{self, client, looker, record, status, watch};
use scx_fulcrum::exit::{self, ExitCode, Failure, Outcome};
use scx_fulcrum::kernel::features::Features;
use scx_fulcrum::kernel::view::SystemView;
use scx_fulcrum::kernel::{doctor, libbpf_log, preflight};
use scx_fulcrum::stats::{self, monitor, server};
use scx_fulcrum::wake::Sleeper;
use scx_fulcrum::{agent, log as logging, sim, tui};

fn main() -> Status {
    logging::init(0);
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err((text, 0)) => {
            return ended(exit::printed(&mut io::stdout().lock(), &text).map(|()| ExitCode::Ok));
        }
        Err((line, code)) => {
            log::error!("{line}");
            return Status::from(code);
        }
    };
    logging::init(cli.run.verbose);
    libbpf_log::init(cli.run.verbose);
    ended(run(&cli))
}

fn ended(result: Outcome<ExitCode>) -> Status {
    match result {
        Ok(code) => Status::from(code as u8),
        Err(failure) => {
            log::error!("{failure}");
            Status::from(failure.code as u8)
        }
    }
}

fn run(cli: &Cli) -> Outcome<ExitCode> {
    let control = Path::new(control::SOCKET);
    match &cli.command {
        Some(Command::Doctor) => return examine(),
        Some(Command::Sim(args)) => return sim::command::run(args, &mut io::stdout().lock()),
        Some(Command::Top(args)) => return done(tui::command::run(args, &sleeper()?)),
        Some(Command::Set { values }) => {
            return done(client::set(control, values, &mut io::stdout().lock()));
        }
        Some(Command::Get { json }) => {
            return done(client::get(control, *json, &mut io::stdout().lock()));
        }
        Some(Command::Status { json }) => {
            let record = Path::new(record::PLACE);
            let found = status::find(&SystemView::host(), record, Path::new(watch::SOCKET));
            status::print(&found, *json, &mut io::stdout().lock())?;
            return Ok(if found.active {
                ExitCode::Ok
            } else {
                ExitCode::NoStatistics
            });
        }
        Some(Command::Explain { pid, json }) => {
            let socket = Path::new(watch::SOCKET);
            let out = &mut io::stdout().lock();
            return done(looker::explain(socket, *pid, *json, out));
        }
        Some(Command::Recorder { cpu, json }) => {
            let socket = Path::new(watch::SOCKET);
            let out = &mut io::stdout().lock();
            return done(looker::recorder(socket, *cpu, *json, out));
        }
        None => {}
    }
    if cli.run.help_stats {
        return written(server::describe(&mut io::stdout().lock()));
    }
    let sleeper = sleeper()?;
    match cli.run.monitor {
        Some(interval) => monitor::run(Path::new(stats::SOCKET), interval, &sleeper)?,
        None => agent::run(&cli.run, &sleeper)?,
    }
    Ok(ExitCode::Ok)
}

fn examine() -> Outcome<ExitCode> {
    let report = preflight::check(&SystemView::host(), &Features::read());
    written(doctor::print(&report, &mut io::stdout().lock()))?;
    Ok(report
        .failure()
        .map_or(ExitCode::Ok, |failure| failure.code))
}

fn done(result: Outcome<()>) -> Outcome<ExitCode> {
    result.map(|()| ExitCode::Ok)
}

fn written(result: io::Result<()>) -> Outcome<ExitCode> {
    exit::written(result).map(|_| ExitCode::Ok)
}

/// What sleeps until there is something to do; SIGINT, SIGTERM and SIGHUP tell
/// it to stop.
fn sleeper() -> Outcome<Sleeper> {
    let unexpected = |message| Failure::new(ExitCode::Unexpected, message);
    let sleeper = Sleeper::new()
        .map_err(|error| unexpected(format!("no pipe ({error}): close some files, try again")))?;
    let waker = sleeper.waker();
    ctrlc::set_handler(move || waker.stop())
        .map_err(|error| unexpected(format!("signals can't be handled ({error}): try again")))?;
    Ok(sleeper)
}
