// SPDX-License-Identifier: GPL-2.0-only
//! Every view as it is drawn at several sizes, compared with
//! `tests/snapshots/`. After a change that is meant: run with
//! `UPDATE_SNAPSHOTS=1`, and read the difference.

mod tui_common;

use std::fs;
use std::path::PathBuf;

use scx_fulcrum::stats::frame::Frame;
use scx_fulcrum::stats::sample;
use scx_fulcrum::tui::look::Look;
use scx_fulcrum::tui::model::Feed;
use scx_fulcrum::tui::svg;
use tui_common::{ASCII, UTF8, drawn, live, machine, screen, text, typed};

const SIZES: [(u16, u16); 4] = [(20, 6), (40, 12), (80, 24), (200, 60)];

/// Collects what differs, so that one run shows all.
#[derive(Default)]
struct Snapshots {
    wrong: Vec<String>,
}

impl Snapshots {
    fn check(&mut self, name: &str, (width, height): (u16, u16), drawn: &str) {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/snapshots/{name}-{width}x{height}.txt"));
        assert_eq!(drawn.lines().count(), usize::from(height), "{name}");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, drawn).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if expected != drawn {
            self.wrong.push(format!("{}:\n{drawn}", file.display()));
        }
    }

    fn view(&mut self, name: &str, frames: &[Frame], keys: &str, look: Look) {
        for size in SIZES {
            let mut model = screen(frames, size, look);
            typed(&mut model, keys);
            self.check(name, size, &text(&model));
        }
    }

    fn done(self) {
        assert!(self.wrong.is_empty(), "differs:\n{}", self.wrong.join("\n"));
    }
}

#[test]
fn machines() {
    let mut snapshots = Snapshots::default();
    snapshots.view("machine", &sample::frames(12), "1", UTF8);
    snapshots.view("machine-4", &machine(4, 4), "1", UTF8);
    snapshots.view("machine-64", &machine(64, 16), "1", UTF8);
    snapshots.view("machine-512", &machine(512, 16), "1", UTF8);
    snapshots.view("machine-512-ascii", &machine(512, 16), "1", ASCII);
    snapshots.done();
}

/// No such machine is at hand: the picture in docs/top.md is of this one.
#[test]
fn the_picture_of_a_large_machine() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/pictures/made-up-128cpus-100x30.svg"
    );
    let model = screen(&machine(128, 16), (100, 30), UTF8);
    let picture = svg::render(&drawn(&model));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(file, &picture).unwrap();
    }
    assert!(
        fs::read_to_string(file).unwrap() == picture,
        "{file} differs"
    );
}

#[test]
fn lists() {
    let mut snapshots = Snapshots::default();
    let frames = sample::frames(12);
    snapshots.view("groups", &frames, "2", UTF8);
    snapshots.view("groups-ascii", &frames, "2", ASCII);
    snapshots.view("groups-by-p99", &frames, "2ssssss", UTF8);
    snapshots.view("tasks", &frames, "3", UTF8);
    snapshots.view("tasks-filtered", &frames, "3/game<Enter>", UTF8);
    snapshots.view("log", &frames, "4", UTF8);
    snapshots.view("health", &sample::frames(5), "5", UTF8);
    snapshots.done();
}

#[test]
fn what_lies_over_a_view() {
    let mut snapshots = Snapshots::default();
    let frames = sample::frames(12);
    snapshots.view("help", &frames, "?", UTF8);
    snapshots.view("help-ascii", &frames, "?", ASCII);
    snapshots.view("menu", &frames, "c<Down>", UTF8);
    snapshots.view("menu-end", &frames, "c<End>", UTF8);
    snapshots.view("confirm", &frames, "c<Down><Enter>", UTF8);
    snapshots.view("knob", &frames, "c<End><Enter>99999<Enter>", UTF8);
    snapshots.view("explained-task", &frames, "3<Down><Enter>", UTF8);
    snapshots.view("explained-group", &frames, "2<Down><Enter><Down>", UTF8);
    snapshots.view("filter", &frames, "3/ng", UTF8);
    snapshots.done();
}

/// On the smallest screen, all that a dialog says can be scrolled to.
#[test]
fn dialogs_fit_the_smallest_screen() {
    for (keys, words) in [
        ("?", "Choose machine, Suspend; brings back"),
        ("c", "exact shares by weight, short tasks wake fast"),
        (
            "c<Down>",
            "desktop, audio, games: fair, and short tasks come sooner",
        ),
        (
            "c<Enter>",
            "y sets it, any other now then policy=fair slice-us=3000",
        ),
        ("c<End><Enter>99999<Enter>", "99999 0 to 30000 microseconds"),
    ] {
        let mut model = screen(&sample::frames(3), (20, 6), UTF8);
        typed(&mut model, keys);
        let mut seen = String::new();
        for _ in 0..80 {
            seen += &text(&model);
            typed(&mut model, "<Down>");
        }
        for word in words.split(' ') {
            assert!(seen.contains(word), "{keys}: {word}: {seen}");
        }
    }
}

#[test]
fn what_is_not_now() {
    let mut snapshots = Snapshots::default();
    let size = (80, 24);
    let mut model = screen(&sample::frames(3), size, UTF8);
    model.feed = Feed::Live {
        lost: Some("scx_fulcrum is gone".to_string()),
    };
    snapshots.check("lost", size, &text(&model));
    model.feed = live();
    typed(&mut model, " ");
    snapshots.check("paused", size, &text(&model));
    model.feed = Feed::Replay {
        frames: 40,
        at: 2,
        speed: 2.0,
    };
    typed(&mut model, " c");
    snapshots.check("replay", size, &text(&model));
    let empty = screen(&[], size, UTF8);
    snapshots.check("empty", size, &text(&empty));
    snapshots.done();
}
