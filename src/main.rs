// SPDX-License-Identifier: GPL-2.0-only
//! The command `scx_fulcrum`.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode as Status;

use crossbeam_channel::{Receiver, bounded};
use scx_fulcrum::cli::{self, Cli, Command};
use scx_fulcrum::exit::{ExitCode, Failure, Outcome};
use scx_fulcrum::kernel::view::SystemView;
use scx_fulcrum::kernel::{doctor, libbpf_log, preflight};
use scx_fulcrum::stats::{self, monitor, server};
use scx_fulcrum::{agent, log as logging};

fn main() -> Status {
    logging::init(0);
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err((text, 0)) => {
            // Whoever closed the pipe has read enough.
            let _ = io::stdout().write_all(text.as_bytes());
            return Status::SUCCESS;
        }
        Err((line, code)) => {
            log::error!("{line}");
            return Status::from(code);
        }
    };
    logging::init(cli.run.verbose);
    libbpf_log::init(cli.run.verbose);
    match run(&cli) {
        Ok(code) => Status::from(code as u8),
        Err(failure) => {
            log::error!("{failure}");
            Status::from(failure.code as u8)
        }
    }
}

fn run(cli: &Cli) -> Outcome<ExitCode> {
    if let Some(Command::Doctor) = cli.command {
        return examine();
    }
    if cli.run.help_stats {
        return written(server::describe(&mut io::stdout().lock()));
    }
    let stop = signals()?;
    match cli.run.monitor {
        Some(interval) => monitor::run(Path::new(stats::SOCKET), interval, &stop)?,
        None => agent::run(&cli.run, &stop)?,
    }
    Ok(ExitCode::Ok)
}

fn examine() -> Outcome<ExitCode> {
    let report = preflight::check(&SystemView::host());
    written(doctor::print(&report, &mut io::stdout().lock()))?;
    Ok(report
        .failure()
        .map_or(ExitCode::Ok, |failure| failure.code))
}

fn written(result: io::Result<()>) -> Outcome<ExitCode> {
    match result {
        Ok(()) => Ok(ExitCode::Ok),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::Ok),
        Err(error) => {
            let message = format!("standard output: {error}: is the disk full?");
            Err(Failure::new(ExitCode::Unexpected, message))
        }
    }
}

/// A channel that gets a message on SIGINT, SIGTERM or SIGHUP.
fn signals() -> Outcome<Receiver<()>> {
    let (sender, receiver) = bounded(1);
    ctrlc::set_handler(move || {
        // Full means that a signal is already on its way.
        let _ = sender.try_send(());
    })
    .map_err(|error| {
        let message = format!("signals can't be handled ({error}): try again");
        Failure::new(ExitCode::Unexpected, message)
    })?;
    Ok(receiver)
}
