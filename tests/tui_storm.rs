// SPDX-License-Identifier: GPL-2.0-only
//! Whatever is typed, whatever the size and whatever a frame holds: the screen
//! is drawn, within its bounds, and the same model gives the same screen.

mod tui_common;

use std::rc::Rc;

use proptest::prelude::*;
use scx_fulcrum::stats::frame::Frame;
use scx_fulcrum::stats::sample;
use scx_fulcrum::tui::model::{Feed, Model, Overlay, View};
use scx_fulcrum::tui::update::{self, Effect};
use tui_common::{ASCII, UTF8, drawn, machine, screen, text, typed};

/// What may happen to a screen.
#[derive(Clone, Debug)]
enum Event {
    Keys(&'static str),
    Letter(char),
    Size(u16, u16),
    Frame(usize),
    Lost,
}

const KEYS: [&str; 20] = [
    "<Enter>",
    "<Esc>",
    "<Tab>",
    "<Up>",
    "<Down>",
    "<PageDown>",
    "<PageUp>",
    "<Home>",
    "<End>",
    "<Backspace>",
    "1",
    "2",
    "3",
    "4",
    "5",
    "z",
    "s",
    "r",
    "c",
    "?",
];

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => prop::sample::select(&KEYS[..]).prop_map(Event::Keys),
        2 => any::<char>().prop_map(Event::Letter),
        2 => (0_u16..320, 0_u16..110).prop_map(|(width, height)| Event::Size(width, height)),
        1 => (0_u16..24, 0_u16..8).prop_map(|(width, height)| Event::Size(width, height)),
        2 => (0_usize..8).prop_map(Event::Frame),
        1 => Just(Event::Lost),
    ]
}

/// Frames of every kind, some of them nonsense.
fn frames() -> Vec<Frame> {
    let mut frames = sample::frames(3);
    frames.push(machine(4, 4).remove(0));
    frames.push(machine(512, 16).remove(1));
    let mut odd = sample::frames(1).remove(0);
    for task in &mut odd.tasks {
        task.lag_us = f64::MIN;
        task.waits_since_us = f64::NAN;
        task.comm = "\u{1b}[31m界界\u{200b}\u{301}".repeat(9);
    }
    for group in &mut odd.groups {
        group.parent = group.id;
        group.got_pct = f64::INFINITY;
        group.owed_pct = -1e300;
        group.depth = u32::MAX;
    }
    for cpu in &mut odd.cpus {
        cpu.busy_pct = f64::MAX;
        cpu.waiting = u32::MAX;
        (cpu.node, cpu.llc) = (u32::MAX, u32::MAX);
    }
    odd.time_ms = u64::MAX;
    odd.scheduler.active_since_ms = u64::MAX;
    odd.totals.busy_pct = f64::NAN;
    frames.push(odd);
    let mut circle = sample::frames(1).remove(0);
    for at in 0..circle.groups.len() {
        circle.groups[at].parent = circle.groups[(at + 1) % circle.groups.len()].id;
    }
    frames.push(circle);
    frames.push(Frame::default());
    frames
}

fn happen(model: &mut Model, event: &Event, frames: &[Frame]) {
    match event {
        Event::Keys(keys) => drop(typed(model, keys)),
        Event::Letter(letter) if *letter != '<' => drop(typed(model, &letter.to_string())),
        Event::Letter(_) => {}
        Event::Size(width, height) => update::resize(model, (*width, *height)),
        Event::Frame(at) => update::frame(model, Rc::new(frames[*at].clone())),
        Event::Lost => {
            model.feed = Feed::Live {
                lost: Some("gone".to_string()),
            };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn storms_of_sizes_keys_and_frames(
        events in prop::collection::vec(event(), 1..60),
        unicode in any::<bool>(),
    ) {
        let frames = frames();
        let look = if unicode { UTF8 } else { ASCII };
        let mut model = screen(&[], (80, 24), look);
        for event in &events {
            happen(&mut model, event, &frames);
            let shown = drawn(&model);
            prop_assert_eq!((shown.area.width, shown.area.height), model.size);
            prop_assert_eq!(&shown, &drawn(&model));
            let clean = |symbol: &str| symbol.chars().all(|c| !c.is_control() && (unicode || c.is_ascii()));
            prop_assert!(shown.content().iter().all(|cell| clean(cell.symbol())));
        }
    }
}

/// A drawing that is not of the size of the model: the terminal changed in
/// between.
#[test]
fn a_size_that_is_no_longer_true() {
    for (width, height) in [(1, 1), (20, 6), (40, 2), (300, 100)] {
        for keys in [
            "1", "1z", "1zz", "1zzz", "2", "3", "4", "5", "?", "c", "3<Enter>",
        ] {
            let mut model = screen(&machine(512, 16), (80, 24), UTF8);
            typed(&mut model, keys);
            let area = ratatui::layout::Rect::new(0, 0, width, height);
            let mut buffer = ratatui::buffer::Buffer::empty(area);
            scx_fulcrum::tui::view::draw(&mut buffer, &model);
        }
    }
}

#[test]
fn a_change_is_made_only_after_a_yes() {
    let mut model = screen(&sample::frames(1), (80, 24), UTF8);
    assert_eq!(typed(&mut model, "c<Down><Enter>n"), Effect::None);
    assert_eq!(typed(&mut model, "c<Down><Enter><Enter>"), Effect::None);
    assert_eq!(typed(&mut model, "c<Down><Esc>"), Effect::None);
    let set = |key, value: &str| Effect::Set {
        key,
        value: value.to_string(),
    };
    assert_eq!(
        typed(&mut model, "c<Down><Enter>y"),
        set("policy", "latency")
    );
    let slice = "c<End><Up><Enter>7<Backspace>";
    assert_eq!(
        typed(&mut model, &format!("{slice}500<Enter>y")),
        set("slice-us", "500")
    );
    assert_eq!(
        typed(&mut model, &format!("{slice}5<Enter>y<Esc>")),
        Effect::None
    );
    assert_eq!(model.overlay, Overlay::None);
    model.feed = Feed::Replay {
        frames: 1,
        at: 0,
        speed: 1.0,
    };
    typed(&mut model, "c");
    assert!(text(&model).contains("a recording can't be changed"));
}

#[test]
fn the_cursor_stays_on_its_task() {
    let frames = sample::frames(6);
    let mut model = screen(&frames[..1], (80, 24), UTF8);
    typed(&mut model, "3<Down><Down><Down>");
    let held = model.place().held;
    assert!(held.is_some());
    for frame in &frames {
        update::frame(&mut model, Rc::new(frame.clone()));
        let cursor = model.place().cursor;
        assert_eq!(
            scx_fulcrum::tui::rows::ids(&model).get(cursor).copied(),
            held
        );
    }
}

#[test]
fn a_pause_keeps_the_frame_and_letters_of_a_filter_are_no_keys() {
    let frames = sample::frames(2);
    let mut model = screen(&frames[..1], (80, 24), UTF8);
    typed(&mut model, " ");
    let before = text(&model);
    update::frame(&mut model, Rc::new(frames[1].clone()));
    assert_eq!(text(&model), before);
    typed(&mut model, "3/q2<Enter>");
    assert_eq!((model.view, model.filter.as_str()), (View::Tasks, "q2"));
    assert_eq!(typed(&mut model, "<Esc>q"), Effect::Quit);
    assert_eq!(model.filter, "");
    assert_eq!(typed(&mut model, "/x<Ctrl-c>"), Effect::Quit);
}
