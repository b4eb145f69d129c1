// SPDX-License-Identifier: GPL-2.0-only
//! `scx_fulcrum top` on a terminal, and where there is none: it draws, sleeps
//! while nothing happens, and gives the terminal back however it ends.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use scx_fulcrum::stats::frame::Frame;
use scx_fulcrum::stats::sample;
use scx_fulcrum::tui::terminal::Screen;

const PROGRAM: &str = env!("CARGO_BIN_EXE_scx_fulcrum");

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Leaves the second screen.
const LEFT: &str = "\u{1b}[?1049l";

/// A program on a terminal of its own.
struct OnTerminal {
    child: Child,
    master: File,
    terminal: OwnedFd,
    before: libc::termios,
    output: Arc<Mutex<Vec<u8>>>,
}

fn settings(terminal: &OwnedFd) -> libc::termios {
    let mut settings = MaybeUninit::uninit();
    // SAFETY: a valid descriptor and a place for the answer, which is complete
    // when the call succeeds.
    unsafe {
        assert_eq!(
            libc::tcgetattr(terminal.as_raw_fd(), settings.as_mut_ptr()),
            0
        );
        settings.assume_init()
    }
}

impl OnTerminal {
    fn start(command: &mut Command) -> Self {
        let (mut master, mut terminal) = (-1, -1);
        let size = libc::winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: all pointers are valid or null, as the call allows; the
        // descriptors are ours alone.
        let (master, terminal) = unsafe {
            let null = std::ptr::null_mut();
            let opened = libc::openpty(&mut master, &mut terminal, null, null.cast(), &size);
            assert_eq!(opened, 0);
            (File::from_raw_fd(master), OwnedFd::from_raw_fd(terminal))
        };
        let before = settings(&terminal);
        let end = || Stdio::from(terminal.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        command.env("LC_ALL", "C.UTF-8");
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        // SAFETY: both calls may be made between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, sink) = (master.try_clone().unwrap(), Arc::clone(&output));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                sink.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self {
            child,
            master,
            terminal,
            before,
            output,
        }
    }

    fn written(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    fn until(&self, what: &str, happened: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !happened(&self.written()) {
            assert!(start.elapsed() < PATIENCE, "{what}: {}", self.written());
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn shows(&self, text: &str) {
        self.until(text, |written| written.contains(text));
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&self, width: u16, height: u16) {
        let size = libc::winsize {
            ws_row: height,
            ws_col: width,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the call reads a window size.
        let set = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        assert_eq!(set, 0);
    }

    /// Waits for its end; the terminal must be as before.
    fn ended(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "still runs");
            thread::sleep(Duration::from_millis(10));
        };
        self.until("the screen is left", |written| written.contains(LEFT));
        let (before, after) = (self.before, settings(&self.terminal));
        assert_eq!(before.c_lflag, after.c_lflag);
        assert_eq!(before.c_iflag, after.c_iflag);
        assert_eq!(before.c_oflag, after.c_oflag);
        let written = self.written();
        let shown = written
            .rfind("\u{1b}[?25h")
            .expect("the cursor is shown again");
        assert!(shown > written.rfind("\u{1b}[?25l").unwrap());
        (status, written)
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn recording(folder: &Path, frames: u64) -> PathBuf {
    let file = folder.join("recording.jsonl");
    let lines = sample::frames(frames).into_iter();
    let lines = lines.map(|frame| serde_json::to_string(&frame).unwrap() + "\n");
    fs::write(&file, lines.collect::<String>()).unwrap();
    file
}

fn replaying(folder: &Path, frames: u64) -> OnTerminal {
    let file = recording(folder, frames);
    OnTerminal::start(Command::new(PROGRAM).args(["top", "--replay"]).arg(file))
}

#[test]
fn a_recording_plays_to_its_end_and_q_gives_the_terminal_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut top = replaying(folder.path(), 3);
    top.shows("recording 1/3");
    top.press("+++");
    top.shows("the recording is at its end");
    top.press("3");
    top.shows("PREEMPTED BY");
    top.press("q");
    assert!(top.ended().0.success());
}

#[test]
fn signals_and_storms_of_sizes_give_the_terminal_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut top = replaying(folder.path(), 3);
    top.shows("recording 1/3");
    for round in 0..60_u16 {
        top.resize(1 + round * 37 % 220, 1 + round * 23 % 70);
        top.press(["2", "3", "z", "?", "\u{1b}", "\t"][usize::from(round) % 6]);
    }
    thread::sleep(Duration::from_millis(300));
    top.output.lock().unwrap().clear();
    top.resize(100, 30);
    // The first key closes what may lie over the view.
    top.press("322");
    top.shows("OWED%");
    let pid = i32::try_from(top.child.id()).unwrap();
    // SAFETY: the process is our child, not yet waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    assert!(top.ended().0.success());
}

/// A key that comes together with a change of size was read only at the next key.
#[test]
fn a_key_beside_a_change_of_size_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut top = replaying(folder.path(), 3);
    top.shows("recording 1/3");
    let pid = i32::try_from(top.child.id()).unwrap();
    for (view, width, sign) in [("2", 90, "OWED%"), ("3", 100, "PREEMPTED BY")] {
        // SAFETY: the process is our child, not yet waited for.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
        top.resize(width, 30);
        top.press(view);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGCONT) }, 0);
        top.shows(sign);
    }
    top.press("q");
    assert!(top.ended().0.success());
}

/// Time on a CPU in clock ticks, and times that it went to sleep.
fn effort(pid: u32) -> (u64, u64) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let switches = |status: String| {
        let line = status
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.and_then(|line| line.split_whitespace().last()?.parse::<u64>().ok())
    };
    let counts = tasks.map(|task| {
        let status = fs::read_to_string(task.unwrap().path().join("status"));
        status.ok().and_then(switches).unwrap_or(0)
    });
    (ticks(11) + ticks(12), counts.sum())
}

#[test]
fn nothing_to_do_is_no_work() {
    let folder = tempfile::tempdir().unwrap();
    let mut top = replaying(folder.path(), 3);
    top.shows("recording 1/3");
    top.press(" ");
    top.until("the pause", |written| written.contains('‖'));
    thread::sleep(Duration::from_millis(300));
    let before = effort(top.child.id());
    thread::sleep(Duration::from_secs(2));
    let after = effort(top.child.id());
    assert!(after.0 - before.0 <= 1, "{before:?} {after:?}");
    assert!(after.1 - before.1 <= 2, "{before:?} {after:?}");
    top.press("q");
    assert!(top.ended().0.success());
}

/// Run by the test below, on a terminal: it panics while the screen is taken.
#[test]
fn panics_if_told_to() {
    if std::env::var_os("FULCRUM_TUI_PANIC").is_some() {
        let _screen = Screen::take().unwrap();
        panic!("what went wrong");
    }
}

#[test]
fn a_panic_gives_the_terminal_back_and_can_be_read() {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(this);
    command.args(["panics_if_told_to", "--exact", "--nocapture"]);
    let (status, written) = OnTerminal::start(command.env("FULCRUM_TUI_PANIC", "1")).ended();
    assert!(!status.success());
    assert!(
        written.find("what went wrong") > written.find(LEFT),
        "{written}"
    );
}

#[test]
fn without_a_terminal_there_is_a_line_for_each_frame() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path(), 5);
    let mut command = Command::new(PROGRAM);
    let output = command
        .args(["top", "--replay"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(
        text.lines()
            .all(|line| line.contains("busy") && !line.contains('\u{1b}'))
    );
}

#[test]
fn no_colour_where_none_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path(), 3);
    let mut command = Command::new(PROGRAM);
    command.args(["top", "--replay"]).arg(&file);
    let mut top = OnTerminal::start(command.env("NO_COLOR", "1"));
    top.shows("recording 1/3");
    top.press("q");
    let (status, written) = top.ended();
    assert!(status.success());
    for colour in ["[38;", "[48;", "[31m", "[32m", "[33m"] {
        assert!(!written.contains(colour), "{colour}: {written}");
    }
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path(), 3);
    let mut command = Command::new(PROGRAM);
    command.args(["top", "--replay"]).arg(&file);
    let mut top = OnTerminal::start(command.env("TERM", "dumb"));
    top.until("3 lines", |written| written.matches("busy").count() == 3);
    assert!(top.child.wait().unwrap().success());
    assert!(!top.written().contains('\u{1b}'));
}

#[test]
fn what_cannot_be_shown_is_one_line_with_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("odd");
    fs::write(&odd, "{\"schema\":1}\nnonsense\n").unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "\n").unwrap();
    let absent = folder.path().join("absent");
    let other = folder.path().join("other");
    fs::write(&other, "{}\n").unwrap();
    // It would wait for a writer for ever, and the other has no end.
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let endless = std::path::PathBuf::from("/dev/zero");
    for (flag, path, code) in [
        ("--replay", &odd, 2),
        ("--replay", &empty, 2),
        ("--replay", &absent, 2),
        ("--replay", &other, 2),
        ("--replay", &pipe, 2),
        ("--replay", &endless, 2),
        ("--socket", &absent, 40),
    ] {
        let mut command = Command::new(PROGRAM);
        let output = command.args(["top", flag]).arg(path).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn a_picture_is_drawn_from_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let (file, picture) = (recording(folder.path(), 5), folder.path().join("top.svg"));
    let mut command = Command::new(PROGRAM);
    command
        .args(["top", "--size", "100x30", "--replay"])
        .arg(&file);
    let status = command.arg("--svg").arg(&picture).status().unwrap();
    assert!(status.success());
    let svg = fs::read_to_string(picture).unwrap();
    assert!(svg.contains("scx_fulcrum") && svg.ends_with("</svg>\n"));
}

/// Serves a few frames to each who comes, `times` times, and hangs up.
fn serving(socket: &Path, times: u64) -> thread::JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        for _ in 0..times {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            assert!(line.contains("\"subscribe\":\"figures\""), "{line}");
            writeln!(stream, "{{\"subscribed\":\"figures\"}}").unwrap();
            for frame in sample::frames(3) {
                writeln!(stream, "{}", serde_json::to_string(&frame).unwrap()).unwrap();
                thread::sleep(Duration::from_millis(200));
            }
        }
    })
}

#[test]
fn a_scheduler_that_ends_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("stream");
    let server = serving(&socket, 2);
    let mut command = Command::new(PROGRAM);
    let mut top = OnTerminal::start(command.args(["top", "--socket"]).arg(&socket));
    top.shows("live");
    top.shows("waiting for it to start again");
    let lives = |written: &str| written.matches("live").count();
    let before = lives(&top.written());
    top.until("it is back", |written| lives(written) > before);
    server.join().unwrap();
    top.press("q");
    assert!(top.ended().0.success());
}

#[test]
fn what_is_recorded_can_be_played() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, file) = (folder.path().join("stream"), folder.path().join("file"));
    let server = serving(&socket, 1);
    let mut command = Command::new(PROGRAM);
    command.args(["top", "--socket"]).arg(&socket);
    let output = command.arg("--record").arg(&file).output().unwrap();
    server.join().unwrap();
    assert_eq!(output.status.code(), Some(40));
    assert_eq!(output.stdout.split(|&byte| byte == b'\n').count(), 4);
    let lines = fs::read_to_string(&file).unwrap();
    let frames = lines
        .lines()
        .map(|line| serde_json::from_str::<Frame>(line).unwrap());
    assert_eq!(frames.collect::<Vec<_>>(), sample::frames(3));
    let replay = Command::new(PROGRAM)
        .args(["top", "--replay"])
        .arg(&file)
        .output();
    assert!(replay.unwrap().status.success());
}
