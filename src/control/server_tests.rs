// SPDX-License-Identifier: GPL-2.0-only
//! The control socket with an agent's loop of its own behind it, and clients
//! of every kind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::*;
use crate::control::client;
use crate::control::protocol::{State, texts};
use crate::control::settings::Settings;
use crate::exit::ExitCode;
use crate::wake::{Sleeper, Waker};

/// A scheduler that has knobs and nothing else.
struct Agent {
    path: PathBuf,
    waker: Waker,
    thread: Option<JoinHandle<u32>>,
    _folder: tempfile::TempDir,
}

impl Agent {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/control");
        let server = Server::launch(&path).unwrap();
        let sleeper = Sleeper::new().unwrap();
        let waker = sleeper.waker();
        let thread = Some(thread::spawn(move || run(server, &sleeper)));
        Self {
            path,
            waker,
            thread,
            _folder: folder,
        }
    }

    /// Stops it; how often its loop went round.
    fn stop(mut self) -> u32 {
        self.waker.stop();
        self.thread.take().unwrap().join().unwrap()
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    fn get(&self) -> String {
        let mut out = Vec::new();
        client::get(&self.path, false, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn set(&self, arguments: &[&str]) -> Result<String, String> {
        let arguments: Vec<_> = arguments.iter().map(|text| (*text).to_string()).collect();
        let mut out = Vec::new();
        match client::set(&self.path, &arguments, &mut out) {
            Ok(()) => Ok(String::from_utf8(out).unwrap()),
            Err(failure) => {
                assert_eq!(failure.code, ExitCode::Usage);
                Err(failure.message)
            }
        }
    }
}

fn run(mut server: Server, sleeper: &Sleeper) -> u32 {
    let (mut settings, mut generation, mut rounds) = (Settings::default(), 1, 0);
    while !sleeper.stopping() {
        rounds += 1;
        server.serve(|request| {
            if let Request::Set { values } = request {
                match texts(&values).and_then(|values| settings.with(&values)) {
                    Ok(changed) => settings = changed,
                    Err(error) => return Reply::Refused { error },
                }
                generation += 1;
            }
            Reply::State(State::of(&settings, generation, (2, 1)))
        });
        sleeper
            .sleep(&server.poll_fds(), server.deadline())
            .unwrap();
    }
    rounds
}

fn lines(stream: &UnixStream) -> impl Iterator<Item = String> + use<> {
    BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map(Result::unwrap)
}

#[test]
fn a_set_is_taken_whole_or_not_at_all_and_counted() {
    let agent = Agent::start();
    let before = agent.get();
    assert!(before.contains("policy=fair\nslice-us=3000\ncredit-us=12000\ngeneration=1\n"));
    assert!(before.ends_with("seen-by=1 of 2 busy CPUs\n"), "{before}");
    let said = agent.set(&["slice-us=500", "policy=latency"]).unwrap();
    assert_eq!(
        said,
        "generation 2: policy=latency slice-us=500 credit-us=24000\n"
    );
    let error = agent.set(&["credit-us=5", "slice-us=1"]).unwrap_err();
    assert_eq!(error, "slice-us=1 is not a whole number in 100..=100000");
    let after = agent.get();
    assert!(after.contains("slice-us=500\ncredit-us=24000\ngeneration=2\n"));
    let mut json = Vec::new();
    client::get(&agent.path, true, &mut json).unwrap();
    let state: State = serde_json::from_slice(&json).unwrap();
    assert_eq!((state.generation, state.slice_us), (2, 500));
}

/// A client of another version may send what ours would not.
#[test]
fn the_agent_itself_refuses_bad_values() {
    let agent = Agent::start();
    let mut stream = agent.connect();
    for (values, message) in [
        (
            "{\"slice-us\":99}",
            "slice-us=99 is not a whole number in 100..=100000",
        ),
        (
            "{\"slice-us\":1e3}",
            "slice-us=1000.0 is not a whole number in 100..=100000",
        ),
        (
            "{\"policy\":null}",
            "policy=null is neither a text nor a number",
        ),
        (
            "{}",
            "nothing to set: name one of mode, policy, slice-us, credit-us",
        ),
        (
            "{\"credit-us\":7,\"x\":1}",
            "x=1: no such key: there are mode, policy, slice-us, credit-us",
        ),
    ] {
        writeln!(stream, "{{\"op\":\"set\",\"values\":{values}}}").unwrap();
        let answer = lines(&stream).next().unwrap();
        assert_eq!(answer, format!("{{\"error\":\"{message}\"}}"));
    }
    assert!(agent.get().contains("credit-us=12000\ngeneration=1\n"));
}

#[test]
fn nonsense_is_answered_and_the_next_request_served() {
    let agent = Agent::start();
    let mut stream = agent.connect();
    stream.write_all(b"\n\nhello\n{\"op\":\"get\"").unwrap();
    let mut answers = lines(&stream);
    assert!(answers.next().unwrap().contains("not understood"));
    // The rest of a line may come later.
    stream.write_all(b"}\n").unwrap();
    assert!(answers.next().unwrap().contains("\"policy\":\"fair\""));
    // Its end may never come.
    stream.write_all(b"\xff\xfe").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(answers.next().unwrap().contains("not understood"));
    assert_eq!(answers.next(), None);
    assert!(agent.get().contains("generation=1\n"));
}

#[test]
fn a_request_without_end_is_cut_off() {
    let agent = Agent::start();
    let mut stream = agent.connect();
    // The agent may hang up while we still write.
    let _ = stream.write_all(&vec![b'x'; 3 * LONGEST]);
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    let text = String::from_utf8_lossy(&answers);
    assert!(text.contains("more than 16384 bytes"), "{text}");
    assert!(agent.get().contains("generation=1\n"));
}

#[test]
fn clients_that_hang_or_do_not_read_hold_nobody_up() {
    let agent = Agent::start();
    let silent: Vec<_> = (0..3 * CLIENTS).map(|_| agent.connect()).collect();
    let mut deaf = agent.connect();
    deaf.set_nonblocking(true).unwrap();
    let request = "{\"op\":\"get\"}\n".repeat(1000);
    while deaf.write(request.as_bytes()).is_ok() {}
    assert!(agent.get().contains("generation=1\n"));
    let rounds = agent.stop();
    assert!(rounds < 500, "{rounds} rounds");
    drop((silent, deaf));
}

#[test]
fn without_requests_nothing_wakes_the_agent() {
    let agent = Agent::start();
    let idle = agent.connect();
    agent.get();
    thread::sleep(Duration::from_millis(300));
    let rounds = agent.stop();
    assert!(rounds <= 8, "{rounds} rounds");
    drop(idle);
}

#[test]
fn the_socket_is_private_goes_at_the_end_and_replaces_a_dead_one() {
    let agent = Agent::start();
    let mode = fs::metadata(&agent.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let error = Server::launch(&agent.path).unwrap_err();
    assert!(error.starts_with("another process listens at"), "{error}");
    let path = agent.path.clone();
    let folder = agent._folder.path().to_path_buf();
    let failure = {
        agent.waker.stop();
        while path.exists() {
            thread::sleep(Duration::from_millis(5));
        }
        client::get(&path, false, &mut Vec::new()).unwrap_err()
    };
    assert_eq!(failure.code, ExitCode::NoStatistics);
    assert!(
        failure.message.ends_with("start scx_fulcrum first"),
        "{failure}"
    );
    let stale = folder.join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    drop(Server::launch(&stale).unwrap());
    assert!(!stale.exists());
}
