// SPDX-License-Identifier: GPL-2.0-only
//! The stream socket with a made-up scheduler behind it, and clients of every
//! kind.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use super::*;
use crate::kernel::inspect::{CpuView, Decided, TaskView};
use crate::stats::counters::Counters;
use crate::stats::frame;
use crate::stats::histogram::BUCKETS;
use crate::stats::look::Look;
use crate::stats::reports::Reports;
use crate::wake::{Sleeper, Waker};

/// A scheduler on which one CPU is always busy.
struct Made {
    begun: Instant,
    watched: bool,
    looks: u32,
    reports: Reports,
}

impl Source for Made {
    fn look(&mut self, groups: bool) -> Look {
        self.looks += 1;
        assert!(!groups || self.watched || self.looks > 0);
        let at = self.begun.elapsed();
        let cpu = CpuView {
            cpu: 0,
            domain: 0,
            online: true,
            pid: 0,
            waiting: 1,
            counters: Counters {
                run_ns: at.as_nanos() as u64,
                ..Counters::default()
            },
            wakeup: vec![1; BUCKETS],
            other: vec![0; BUCKETS],
        };
        Look {
            at,
            cpus: vec![cpu; 64],
            groups: Vec::new(),
        }
    }

    fn tasks(&mut self) -> Result<Vec<TaskView>, String> {
        let task = |pid| TaskView {
            pid,
            comm: "\"seq\":0,\"dropped_frames\":0".to_string(),
            ..TaskView::default()
        };
        Ok((1..200).map(task).collect())
    }

    fn recorded(&mut self) -> Vec<Decided> {
        let decided = |time_ns| Decided {
            cpu: (time_ns % 2) as usize,
            time_ns,
            pid: 7,
            lag_us: 0,
            wait_us: 0,
            from: 0,
            way: 1,
        };
        (0..20).map(decided).collect()
    }

    fn watch(&mut self, on: bool) {
        self.watched = on;
    }

    fn scheduler(&self) -> frame::Scheduler {
        frame::Scheduler::default()
    }

    fn node_of(&self, _domain: usize) -> usize {
        0
    }

    fn reports(&self) -> &Reports {
        &self.reports
    }
}

struct Agent {
    path: PathBuf,
    waker: Waker,
    thread: Option<JoinHandle<(u32, Made)>>,
    _folder: tempfile::TempDir,
}

impl Agent {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/stream");
        let streams = Streams::launch(&path, None).unwrap();
        let sleeper = Sleeper::new().unwrap();
        let waker = sleeper.waker();
        let thread = Some(thread::spawn(move || run(streams, &sleeper)));
        Self {
            path,
            waker,
            thread,
            _folder: folder,
        }
    }

    /// Stops it; how often its loop went round.
    fn stop(mut self) -> (u32, Made) {
        self.waker.stop();
        self.thread.take().unwrap().join().unwrap()
    }

    fn connect(&self) -> BufReader<UnixStream> {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        BufReader::new(stream)
    }

    fn asked(&self, question: &str) -> (BufReader<UnixStream>, Value) {
        let mut client = self.connect();
        client
            .get_mut()
            .write_all(format!("{question}\n").as_bytes())
            .unwrap();
        let answer = next(&mut client);
        (client, answer)
    }
}

fn run(mut streams: Streams, sleeper: &Sleeper) -> (u32, Made) {
    let mut rounds = 0;
    let mut made = Made {
        begun: Instant::now(),
        watched: false,
        looks: 0,
        reports: Reports::default(),
    };
    while !sleeper.stopping() {
        rounds += 1;
        if rounds % 2 == 0 {
            made.reports.happened("round", format!("number {rounds}"));
        }
        streams.serve(&mut made);
        sleeper
            .sleep(&streams.poll_fds(), streams.deadline())
            .unwrap();
    }
    (rounds, made)
}

fn next(client: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
fn frames_come_at_the_rate_and_with_the_sections_asked_for() {
    let agent = Agent::start();
    let begun = Instant::now();
    let (mut client, answer) =
        agent.asked("{\"subscribe\":\"figures\",\"hz\":19,\"sections\":[\"tasks\"]}");
    assert_eq!(
        (&answer["subscribed"], &answer["hz"]),
        (&json!("figures"), &json!(20.0))
    );
    for seq in 0..3 {
        let frame: Frame = serde_json::from_value(next(&mut client)).unwrap();
        assert_eq!((frame.schema, frame.seq), (SCHEMA, seq));
        assert_eq!((frame.tasks.len(), frame.cpus.len()), (199, 0));
        assert_eq!(frame.health.dropped_frames, 0);
        assert_eq!(frame.tasks[0].comm, "\"seq\":0,\"dropped_frames\":0");
        assert!(frame.interval_ms >= 20, "{}", frame.interval_ms);
    }
    assert!(begun.elapsed() >= Duration::from_millis(120));
    // Another choice replaces the first.
    client
        .get_mut()
        .write_all(b"{\"subscribe\":\"figures\",\"hz\":10,\"sections\":[\"groups\",\"cpus\"]}\n")
        .unwrap();
    let mut frame = next(&mut client);
    while frame.get("subscribed").is_none() {
        frame = next(&mut client);
    }
    let frame: Frame = serde_json::from_value(next(&mut client)).unwrap();
    assert_eq!((frame.seq, frame.cpus.len()), (0, 64));
    drop(client);
    // Nobody is left to count for.
    agent.asked("{\"ask\":\"recorder\"}");
    thread::sleep(Duration::from_millis(50));
    let (_, made) = agent.stop();
    assert!(!made.watched);
}

#[test]
fn where_nobody_listens_nothing_happens() {
    let agent = Agent::start();
    thread::sleep(Duration::from_millis(300));
    let (rounds, made) = agent.stop();
    assert!(rounds <= 2, "{rounds}");
    assert_eq!(made.looks, 0);
}

#[test]
fn questions_are_answered_one_by_one() {
    let agent = Agent::start();
    let (_, frame) = agent.asked("{\"ask\":\"frame\",\"sections\":[\"waits\"]}");
    let frame: Frame = serde_json::from_value(frame).unwrap();
    assert_eq!(frame.waits.wakeup.count(), 64 * BUCKETS as u64);
    assert_eq!(frame.health.clients, 1);
    let (_, explained) = agent.asked("{\"ask\":\"explain\",\"pid\":7}");
    assert_eq!(explained["task"]["pid"], 7);
    let (_, unknown) = agent.asked("{\"ask\":\"explain\",\"pid\":70000}");
    assert!(unknown["error"].as_str().unwrap().contains("no task 70000"));
    let (_, recorded) = agent.asked("{\"ask\":\"recorder\",\"cpu\":1}");
    assert_eq!(recorded["recorded"].as_array().unwrap().len(), 10);
    agent.stop();
}

#[test]
fn malformed_requests_are_answered_and_the_client_stays() {
    let agent = Agent::start();
    let mut client = agent.connect();
    for bad in [
        "nonsense",
        "{\"ask\":7}",
        "[[[[",
        "\u{fffd}",
        "{\"subscribe\":\"x\"}",
    ] {
        let line = format!("{bad}\n\n");
        client.get_mut().write_all(line.as_bytes()).unwrap();
        assert!(next(&mut client)["error"].is_string(), "{bad}");
    }
    client.get_mut().write_all(&vec![b'x'; 20_000]).unwrap();
    let answer = next(&mut client);
    assert!(answer["error"].as_str().unwrap().contains("too long"));
    // With more of it unread, the kernel calls the end a reset.
    assert!(matches!(
        client.read_line(&mut String::new()),
        Ok(0) | Err(_)
    ));
    agent.stop();
}

#[test]
fn a_slow_reader_loses_frames_and_is_told_how_many() {
    let agent = Agent::start();
    let (mut slow, _) = agent.asked("{\"subscribe\":\"figures\",\"hz\":20}");
    let (mut quick, _) = agent.asked("{\"subscribe\":\"figures\",\"hz\":20}");
    // Frames of some 60 kB each; the socket holds a few.
    let mut last: Frame = serde_json::from_value(next(&mut quick)).unwrap();
    for _ in 0..20 {
        last = serde_json::from_value(next(&mut quick)).unwrap();
    }
    assert_eq!(last.health.dropped_frames, 0);
    let mut lost = 0;
    for _ in 0..20 {
        let frame: Frame = serde_json::from_value(next(&mut slow)).unwrap();
        lost = frame.health.dropped_frames;
        if lost > 0 {
            assert!(frame.seq >= lost);
            break;
        }
    }
    assert!(lost > 0);
    agent.stop();
}

#[test]
fn a_hundred_clients_are_served_and_one_too_many_is_told() {
    let agent = Agent::start();
    let mut clients: Vec<_> = (0..100)
        .map(|_| {
            agent
                .asked("{\"subscribe\":\"figures\",\"hz\":5,\"sections\":[\"waits\"]}")
                .0
        })
        .collect();
    for client in &mut clients {
        for seq in 0..2 {
            assert_eq!(next(client)["seq"], seq);
        }
    }
    let more: Vec<_> = (100..CLIENTS).map(|_| agent.connect()).collect();
    let mut refused = agent.connect();
    assert!(
        next(&mut refused)["error"]
            .as_str()
            .unwrap()
            .contains("too many")
    );
    drop((more, clients));
    thread::sleep(Duration::from_millis(100));
    agent.asked("{\"ask\":\"frame\"}");
    agent.stop();
}

#[test]
fn events_come_in_order() {
    let agent = Agent::start();
    let (mut client, answer) = agent.asked("{\"subscribe\":\"events\"}");
    assert_eq!(answer["subscribed"], "events");
    for _ in 0..6 {
        agent.waker.wake();
        thread::sleep(Duration::from_millis(5));
    }
    let (first, second) = (next(&mut client), next(&mut client));
    assert_eq!(first["event"], "round");
    assert!(first["time_ms"].as_u64() <= second["time_ms"].as_u64());
    agent.stop();
}

#[test]
fn the_file_says_who_may_look() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let own = folder.path().join("own");
    let alone = Streams::launch(&own, None).unwrap();
    assert_eq!(mode(&own), 0o600);
    let theirs = folder.path().join("theirs");
    let group = rustix::process::getegid().as_raw();
    let shared = Streams::launch(&theirs, Some(group)).unwrap();
    assert_eq!(mode(&theirs), 0o660);
    drop((alone, shared));
    assert!(!own.exists());
}
