// SPDX-License-Identifier: GPL-2.0-only
//! `scx_fulcrum set` and `scx_fulcrum get`.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::protocol::{Reply, Request, State};
use super::settings::{self, Settings};
use crate::exit::{ExitCode, Failure, Outcome, printed};

/// How long the scheduler may take to answer: it may be starting again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Set the `KEY=VALUE`s of `arguments` and tell what came of it.
///
/// # Errors
///
/// [`ExitCode::Usage`] if a value is refused; [`ExitCode::NoStatistics`] if
/// nobody is there to ask.
pub fn set(socket: &Path, arguments: &[String], out: &mut impl Write) -> Outcome<()> {
    let refused = |why: String| Failure::new(ExitCode::Usage, why);
    let values = settings::split(arguments).map_err(refused)?;
    // Said even where nobody runs; the running one decides.
    Settings::default().with(&values).map_err(refused)?;
    let state = ask(socket, &Request::set(&values))?;
    let line = format!(
        "generation {}: policy={} slice-us={} credit-us={}\n",
        state.generation, state.policy, state.slice_us, state.credit_us
    );
    printed(out, &line)
}

/// Print the settings, a line each or as JSON.
///
/// # Errors
///
/// As [`set`].
pub fn get(socket: &Path, json: bool, out: &mut impl Write) -> Outcome<()> {
    let state = ask(socket, &Request::Get {})?;
    let text = if json {
        serde_json::to_string(&state).map_err(|error| not_ours(&error))? + "\n"
    } else {
        lines(&state)
    };
    printed(out, &text)
}

fn lines(state: &State) -> String {
    format!(
        "policy={}\nslice-us={}\ncredit-us={}\ngeneration={}\nseen-by={} of {} busy CPUs\n",
        state.policy,
        state.slice_us,
        state.credit_us,
        state.generation,
        state.seen_by,
        state.busy_cpus
    )
}

fn ask(socket: &Path, request: &Request) -> Outcome<State> {
    let mut line = serde_json::to_string(request).map_err(|error| not_ours(&error))?;
    line.push('\n');
    let absent = |error: io::Error| absent(socket, &error);
    let mut stream = UnixStream::connect(socket).map_err(absent)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(absent)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(absent)?;
    stream.write_all(line.as_bytes()).map_err(absent)?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .map_err(absent)?;
    match serde_json::from_str(&answer).map_err(|error| not_ours(&error))? {
        Reply::State(state) => Ok(state),
        Reply::Refused { error } => Err(Failure::new(ExitCode::Usage, error)),
    }
}

fn absent(socket: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "run it as root, for example with sudo",
        io::ErrorKind::WouldBlock => "it does not answer: see its log",
        _ => "start scx_fulcrum first",
    };
    let message = format!("no scx_fulcrum at {} ({error}): {hint}", socket.display());
    Failure::new(ExitCode::NoStatistics, message)
}

fn not_ours(error: &serde_json::Error) -> Failure {
    let message = format!("the answer is not scx_fulcrum's ({error}): was it stopped or updated?");
    Failure::new(ExitCode::NoStatistics, message)
}
