// SPDX-License-Identifier: GPL-2.0-only
//! What is asked for as views, sizes and pauses change.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::stats::sample;
use crate::tui::look::Look;
use crate::tui::model::Feed;
use crate::tui::update;

fn screen(size: (u16, u16)) -> Model {
    let look = Look {
        colour: false,
        unicode: false,
    };
    Model::new(look, size, Feed::Live { lost: None })
}

fn press(model: &mut Model, key: char) {
    update::key(model, KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
}

/// A frame as the scheduler sends it to who asked for `wanted`.
fn sent(number: usize, wanted: Sections) -> Rc<Frame> {
    fn part<T>(wanted: bool, all: &mut Vec<T>) {
        if !wanted {
            all.clear();
        }
    }
    let mut frame = sample::frames(number as u64 + 1).remove(number);
    part(wanted.cpus, &mut frame.cpus);
    part(wanted.groups, &mut frame.groups);
    part(wanted.tasks, &mut frame.tasks);
    if !wanted.waits {
        frame.waits = Default::default();
    }
    Rc::new(frame)
}

/// The next frame comes, with what is asked for.
fn show(model: &mut Model, number: usize) {
    let frame = sent(number, wanted(model));
    update::frame(model, frame);
}

/// The names of what is asked for besides decisions and what always comes.
fn names(model: &Model) -> String {
    let names = wanted(model).names().into_iter();
    let always = ["scheduler", "totals", "health", "decisions"];
    let names: Vec<_> = names.filter(|name| !always.contains(name)).collect();
    names.join(" ")
}

#[test]
fn only_what_is_shown_is_asked_for() {
    let mut model = screen((80, 24));
    assert_eq!(names(&model), "waits cpus");
    show(&mut model, 0);
    assert_eq!(names(&model), "waits cpus");
    press(&mut model, '2');
    assert_eq!(names(&model), "groups");
    press(&mut model, '4');
    assert_eq!(names(&model), "");
    press(&mut model, '5');
    assert_eq!(names(&model), "");
}

#[test]
fn tasks_are_asked_for_where_they_have_room_and_groups_until_their_names_are_known() {
    let mut model = screen((200, 60));
    show(&mut model, 0);
    assert_eq!(names(&model), "waits cpus groups tasks");
    show(&mut model, 1);
    assert_eq!(names(&model), "waits cpus tasks");
    press(&mut model, '3');
    assert_eq!(names(&model), "tasks");
    // A cgroup that was not there before.
    let mut frame = Frame::clone(&sent(2, wanted(&model)));
    frame.tasks[0].group = 987_654;
    update::frame(&mut model, Rc::new(frame.clone()));
    assert_eq!(names(&model), "groups tasks");
    frame.groups = sample::frames(1).remove(0).groups;
    update::frame(&mut model, Rc::new(frame));
    assert_eq!(names(&model), "tasks");
    assert_eq!(model.paths[&987_654], "(cgroup 987654)");
}

#[test]
fn a_pause_completes_the_moment_once() {
    let mut model = screen((80, 24));
    show(&mut model, 0);
    press(&mut model, ' ');
    assert_eq!(wanted(&model), Sections::ALL);
    let shown = model.frame.time_ms;
    update::frame(&mut model, sent(1, Sections::ALL));
    assert_eq!(model.frame.time_ms, shown);
    assert!(!lacks(&model.frame));
    assert_eq!(names(&model), "waits cpus");
    press(&mut model, '3');
    assert_eq!(names(&model), "tasks");
    assert_eq!(crate::tui::rows::ids(&model).len(), model.frame.tasks.len());
}

#[test]
fn what_comes_late_is_not_of_the_moment() {
    let mut model = screen((80, 24));
    show(&mut model, 0);
    press(&mut model, ' ');
    update::frame(&mut model, sent(5, Sections::ALL));
    assert!(lacks(&model.frame));
    assert_eq!(names(&model), "waits cpus");
}

#[test]
fn the_cursor_stays_where_it_is_while_a_view_is_asked_for() {
    let mut model = screen((80, 24));
    update::frame(&mut model, sent(0, Sections::ALL));
    press(&mut model, '3');
    for _ in 0..4 {
        press(&mut model, 'j');
    }
    let held = model.place().held;
    press(&mut model, '1');
    show(&mut model, 1);
    press(&mut model, '3');
    assert!(crate::tui::rows::ids(&model).is_empty());
    show(&mut model, 2);
    assert!(held.is_some());
    assert_eq!(model.place().held, held);
    let cursor = model.place().cursor;
    assert_eq!(crate::tui::rows::ids(&model).get(cursor).copied(), held);
}
