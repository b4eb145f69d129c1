// SPDX-License-Identifier: GPL-2.0-only
//! The commands that look at the scheduler which runs already: `explain` and
//! `recorder` here, `status` in [`super::status`].

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::explain::{Explained, Recorded};
use crate::exit::{ExitCode, Failure, Outcome, printed};

/// How long the scheduler may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Ask whoever serves streams at `socket`, and wait for the answer.
///
/// # Errors
///
/// [`ExitCode::NoStatistics`] if nobody is there to ask, or answers something
/// else; [`ExitCode::Usage`] with the reason if the question is refused.
pub fn ask<T: DeserializeOwned>(socket: &Path, question: &Value) -> Outcome<T> {
    let value = exchange(socket, question).map_err(|error| absent(socket, &error))?;
    if let Some(error) = value.get("error").and_then(Value::as_str) {
        return Err(Failure::new(ExitCode::Usage, error));
    }
    serde_json::from_value(value).map_err(|error| {
        let message =
            format!("the answer is not scx_fulcrum's ({error}): was it stopped or updated?");
        Failure::new(ExitCode::NoStatistics, message)
    })
}

/// One question, one answer.
///
/// # Errors
///
/// Those of the connection.
pub fn exchange(socket: &Path, question: &Value) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::from)
}

/// That nobody is at `socket`, and what to do about it.
pub fn absent(socket: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "run it as root, or as a member of the group that --socket-group names"
        }
        io::ErrorKind::WouldBlock => "it does not answer: see its log",
        _ => "start scx_fulcrum first",
    };
    let message = format!("no scx_fulcrum at {} ({error}): {hint}", socket.display());
    Failure::new(ExitCode::NoStatistics, message)
}

/// Print all that is known of the task `pid`.
///
/// # Errors
///
/// As [`ask`].
pub fn explain(socket: &Path, pid: u32, as_json: bool, out: &mut impl Write) -> Outcome<()> {
    let question = json!({"ask": "explain", "pid": pid});
    if as_json {
        let answer: Value = ask(socket, &question)?;
        return printed(out, &format!("{answer}\n"));
    }
    let explained: Explained = ask(socket, &question)?;
    printed(out, &text(&explained))
}

fn text(explained: &Explained) -> String {
    let task = &explained.task;
    let row = |name: &str, value: String| format!("{name:<10} {value}\n");
    let mut text = row(
        "task",
        format!("{} ({}), of process {}", task.comm, task.pid, task.tgid),
    );
    text += &row(
        "policy",
        format!(
            "{}, nice {}: weight {} in the whole machine (nice 0 alone: 1024)",
            task.policy, task.nice, task.weight
        ),
    );
    text += &row("cgroup", explained.path.clone());
    text += &row(
        "CPU",
        format!(
            "{}, {}; it may use {}",
            task.cpu,
            task.state,
            match task.cpus_allowed {
                1 => "this one only".to_string(),
                count => format!("{count} CPUs"),
            }
        ),
    );
    text += &row(
        "lag",
        format!("{:.0} us (above 0: it is owed)", task.lag_us),
    );
    text += &row(
        "burst",
        format!(
            "usually runs {:.0} us between sleeps; {:.0} us left of what it asked for",
            task.burst_us, task.request_us
        ),
    );
    text += &row(
        "waits",
        format!(
            "last {:.0} us, longest {:.0} us",
            task.last_wait_us, task.max_wait_us
        ),
    );
    for (at, sentence) in explained.why.iter().enumerate() {
        text += &row(if at == 0 { "why" } else { "" }, sentence.clone());
    }
    if !explained.recorded.is_empty() {
        text += "\nlast decisions about it (time before the latest of the machine):\n";
        text += &lines(&explained.recorded);
    }
    text
}

fn lines(recorded: &[Recorded]) -> String {
    recorded.iter().map(|one| one.line() + "\n").collect()
}

/// Print the last decisions of each CPU, or of `cpu`.
///
/// # Errors
///
/// As [`ask`].
pub fn recorder(
    socket: &Path,
    cpu: Option<u32>,
    as_json: bool,
    out: &mut impl Write,
) -> Outcome<()> {
    let answer: Value = ask(socket, &json!({"ask": "recorder", "cpu": cpu}))?;
    let recorded = answer.get("recorded").cloned().unwrap_or_default();
    if as_json {
        return printed(out, &format!("{recorded}\n"));
    }
    let recorded: Vec<Recorded> = serde_json::from_value(recorded).unwrap_or_default();
    printed(out, &lines(&recorded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sample;

    #[test]
    fn an_explanation_has_all_that_is_known() {
        let explained = Explained {
            task: sample::frames(1)[0].tasks[6].clone(),
            path: "/user.slice".to_string(),
            why: vec!["first".to_string(), "second".to_string()],
            recorded: vec![Recorded::default()],
            ..Explained::default()
        };
        let text = text(&explained);
        for part in [
            "game.x86_64 (2001)",
            "nice -5",
            "/user.slice",
            "8 CPUs",
            "why        first\n           second\n",
            "last decisions",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn nobody_there_is_one_line() {
        let mut out = Vec::new();
        let failure = recorder(Path::new("/nowhere/stream"), None, false, &mut out).unwrap_err();
        assert_eq!(failure.code, ExitCode::NoStatistics);
        assert!(failure.message.contains("start scx_fulcrum first"));
    }
}
