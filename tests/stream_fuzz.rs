// SPDX-License-Identifier: GPL-2.0-only
//! The sockets against clients that send anything and read as they like.
//!
//! Lasts FULCRUM_FUZZ_SECONDS (default: 2), from the seed FULCRUM_FUZZ_SEED
//! (default: the time; printed if it fails). `FULCRUM_FUZZ_SECONDS=60 cargo
//! test --release --test stream_fuzz` is the long form.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use scx_fulcrum::control::protocol::{Reply, State};
use scx_fulcrum::control::scrape::{Address, Scrape};
use scx_fulcrum::control::settings::Settings;
use scx_fulcrum::control::streams::Streams;
use scx_fulcrum::control::{server, watch};
use scx_fulcrum::kernel::inspect::{CpuView, Decided, TaskView};
use scx_fulcrum::stats::counters::Counters;
use scx_fulcrum::stats::frame;
use scx_fulcrum::stats::histogram::BUCKETS;
use scx_fulcrum::stats::look::Look;
use scx_fulcrum::stats::observer::Source;
use scx_fulcrum::stats::reports::Reports;
use scx_fulcrum::wake::Sleeper;

struct Made {
    begun: Instant,
    reports: Reports,
}

impl Source for Made {
    fn look(&mut self, _groups: bool) -> Look {
        let cpu = |cpu| CpuView {
            cpu,
            domain: 0,
            online: true,
            pid: 0,
            waiting: 0,
            counters: Counters::default(),
            wakeup: vec![1; BUCKETS],
            other: vec![2; BUCKETS],
        };
        Look {
            at: self.begun.elapsed(),
            cpus: (0..16).map(cpu).collect(),
            groups: Vec::new(),
        }
    }

    fn tasks(&mut self) -> Result<Vec<TaskView>, String> {
        Ok(vec![TaskView::default(); 50])
    }

    fn recorded(&mut self) -> Vec<Decided> {
        Vec::new()
    }

    fn watch(&mut self, _on: bool) {}

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

/// The three sockets in a loop like the agent's.
fn serve(folder: &Path, sleeper: &Sleeper) {
    let mut streams = Streams::launch(&folder.join("stream"), None).unwrap();
    let mut control = server::Server::launch(&folder.join("control")).unwrap();
    let place = Address::Unix(folder.join("metrics"));
    let mut scrape = Scrape::launch(&place, None).unwrap();
    let mut made = Made {
        begun: Instant::now(),
        reports: Reports::default(),
    };
    while !sleeper.stopping() {
        made.reports.happened("round", "one more".to_string());
        streams.serve(&mut made);
        scrape.serve(&mut made);
        let settings = Settings::default();
        control.serve(|_| Reply::State(State::of(&settings, 1, (0, 0))));
        let mut sources = streams.poll_fds();
        sources.extend(scrape.poll_fds());
        sources.extend(control.poll_fds());
        let deadlines = [streams.deadline(), scrape.deadline(), control.deadline()];
        let deadline = deadlines.into_iter().flatten().min();
        sleeper.sleep(&sources, deadline).unwrap();
    }
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

const SENSIBLE: &[&str] = &[
    "{\"subscribe\":\"figures\",\"hz\":20}",
    "{\"subscribe\":\"figures\",\"sections\":[\"cpus\",\"tasks\"]}",
    "{\"subscribe\":\"events\"}",
    "{\"ask\":\"frame\"}",
    "{\"ask\":\"explain\",\"pid\":1}",
    "{\"ask\":\"recorder\"}",
    "{\"op\":\"get\"}",
    "{\"op\":\"set\",\"values\":{\"policy\":\"fair\"}}",
    "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r",
    "GET / HTTP/1.0\n",
];

/// A request, or what is left of one after some accidents.
fn request(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = SENSIBLE[dice.below(SENSIBLE.len())].as_bytes().to_vec();
    for _ in 0..[0, 0, 1, 3, 30][dice.below(5)] {
        let at = dice.below(bytes.len().max(1));
        match dice.below(5) {
            0 if !bytes.is_empty() => bytes[at] = dice.below(256) as u8,
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            2 => bytes.insert(at.min(bytes.len()), b"{}[]\",:\\\n0-e"[dice.below(12)]),
            3 => bytes.truncate(at),
            _ => bytes.extend_from_within(..at.min(bytes.len())),
        }
    }
    if dice.below(50) == 0 {
        bytes.resize(40_000, b'7');
    }
    if dice.below(10) > 0 {
        bytes.push(b'\n');
    }
    bytes
}

/// One client after the other, until `stop`.
fn torment(places: &[PathBuf], seed: u64, stop: &AtomicBool) -> u64 {
    let mut dice = Dice(seed | 1);
    let mut open: VecDeque<UnixStream> = VecDeque::new();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        if open.len() < 8 && dice.below(3) == 0 {
            let stream = UnixStream::connect(&places[dice.below(places.len())]).unwrap();
            stream.set_nonblocking(true).unwrap();
            open.push_back(stream);
        }
        let Some(mut stream) = open.pop_front() else {
            continue;
        };
        match dice.below(12) {
            0 => continue,
            1 => drop(stream.shutdown(Shutdown::Write)),
            2..=4 => drop(stream.read(&mut vec![0; 1 + dice.below(70_000)])),
            _ => {
                let bytes = request(&mut dice);
                sent += u64::from(stream.write(&bytes).is_ok());
            }
        }
        open.push_back(stream);
        if dice.below(20) == 0 {
            thread::sleep(Duration::from_micros(dice.below(3000) as u64));
        }
    }
    sent
}

/// Each socket still answers as it should.
fn check(folder: &Path) {
    let ask = |socket: &str, question: &str| {
        let mut stream = UnixStream::connect(folder.join(socket)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.write_all(question.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    let frame = ask("stream", "{\"ask\":\"frame\"}\n");
    let frame: frame::Frame = serde_json::from_str(&frame).unwrap();
    assert_eq!((frame.cpus.len(), frame.tasks.len()), (16, 50));
    assert!(ask("control", "{\"op\":\"get\"}\n").contains("\"policy\":\"fair\""));
    assert_eq!(
        ask("metrics", "GET / HTTP/1.1\r\n\r\n"),
        "HTTP/1.1 200 OK\r\n"
    );
}

#[test]
fn nothing_that_clients_do_ends_the_agent() {
    assert!(watch::SOCKET.ends_with("stream"));
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds = number("FULCRUM_FUZZ_SECONDS").unwrap_or(2);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed: u64 = number("FULCRUM_FUZZ_SEED").unwrap_or(now.as_nanos() as u64);
    println!("FULCRUM_FUZZ_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let places: Vec<_> = ["stream", "control", "metrics"]
        .iter()
        .map(|name| folder.path().join(name))
        .collect();
    let sleeper = Sleeper::new().unwrap();
    let waker = sleeper.waker();
    let path = folder.path().to_path_buf();
    let agent = thread::spawn(move || serve(&path, &sleeper));
    while places
        .iter()
        .any(|place| UnixStream::connect(place).is_err())
    {
        thread::sleep(Duration::from_millis(5));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let tormentors: Vec<_> = (0..3)
        .map(|number: u64| {
            let (places, stop) = (places.clone(), stop.clone());
            thread::spawn(move || torment(&places, seed.wrapping_mul(2 * number + 3), &stop))
        })
        .collect();
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(200));
        assert!(!agent.is_finished(), "the agent ended");
    }
    stop.store(true, Ordering::Relaxed);
    let sent: u64 = tormentors.into_iter().map(|t| t.join().unwrap()).sum();
    check(folder.path());
    waker.stop();
    agent.join().unwrap();
    println!("{sent} requests in {seconds} s");
    assert!(sent > 50 * seconds, "only {sent} requests were sent");
}
