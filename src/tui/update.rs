// SPDX-License-Identifier: GPL-2.0-only
//! What keys and frames do to the model, and what they ask of the outside.

use std::rc::Rc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::change;
use super::keys::{self, Action};
use super::model::{Feed, Model, Overlay, View, Zoom};
use super::{rows, sections, view};
use crate::stats::frame::Frame;

/// What the outside is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// End.
    Quit,
    /// Draw everything anew.
    Redraw,
    /// Stop this process until the shell goes on with it.
    Suspend,
    /// Show the frame that many further on.
    Step(isize),
    /// Play that many times faster, as a power of two.
    Speed(isize),
    /// Ask the scheduler to set a value.
    Set {
        /// Of what.
        key: &'static str,
        /// The value.
        value: String,
    },
}

/// A key was pressed.
pub fn key(model: &mut Model, key: KeyEvent) -> Effect {
    if key.kind == KeyEventKind::Release {
        return Effect::None;
    }
    model.note = None;
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let always = match keys::action(key) {
        Some(Action::Quit) if control => Some(Effect::Quit),
        Some(Action::Suspend) => Some(Effect::Suspend),
        Some(Action::Redraw) => Some(Effect::Redraw),
        _ => None,
    };
    let effect = match always {
        Some(effect) => effect,
        None if control && typing(&model.overlay) => Effect::None,
        None => overlaid(model, key),
    };
    settle(model);
    effect
}

/// Whether letters are text now.
fn typing(overlay: &Overlay) -> bool {
    matches!(overlay, Overlay::Filter(_) | Overlay::Knob { .. })
}

/// The terminal has another size.
pub fn resize(model: &mut Model, size: (u16, u16)) {
    model.size = size;
    settle(model);
}

/// A frame came. While paused, it is not shown.
pub fn frame(model: &mut Model, frame: Rc<Frame>) {
    if let Feed::Live { lost } = &mut model.feed {
        *lost = None;
    }
    if !model.paused || !model.started() {
        show(model, frame);
    } else {
        sections::complete(model, &frame);
        settle(model);
    }
}

/// Show `frame`, whatever it is.
pub fn show(model: &mut Model, frame: Rc<Frame>) {
    model.show(frame);
    settle(model);
}

/// Keep the cursor in the list, on what it was on, and on the screen.
pub fn settle(model: &mut Model) {
    let ids = rows::ids(model);
    let height = view::list_height(model);
    let text = rows::are_lines(model);
    if ids.is_empty() && view::unasked(model, model.view) {
        return;
    }
    let place = model.place_mut();
    if text {
        place.held = None;
    }
    if let Some(at) = place
        .held
        .and_then(|id| ids.iter().position(|&other| other == id))
    {
        place.cursor = at;
    }
    place.cursor = place.cursor.min(ids.len().saturating_sub(1));
    place.top = place
        .top
        .min(place.cursor)
        .max((place.cursor + 1).saturating_sub(height.max(1)))
        .min(ids.len().saturating_sub(height));
    let lines = view::overlay_lines(model);
    if let Overlay::Help(top)
    | Overlay::Detail(top)
    | Overlay::Menu { skip: top, .. }
    | Overlay::Confirm { top, .. } = &mut model.overlay
    {
        *top = (*top).min(lines);
    }
}

fn overlaid(model: &mut Model, key: KeyEvent) -> Effect {
    match std::mem::take(&mut model.overlay) {
        Overlay::None => match keys::action(key) {
            Some(action) => act(model, action),
            None => Effect::None,
        },
        Overlay::Help(top) => {
            model.overlay = scrolled(top, key).map_or(Overlay::None, Overlay::Help);
            Effect::None
        }
        Overlay::Detail(top) => {
            model.overlay = scrolled(top, key).map_or(Overlay::None, Overlay::Detail);
            Effect::None
        }
        Overlay::Filter(before) => {
            filter(model, key, before);
            Effect::None
        }
        other => change::key(model, other, key),
    }
}

/// Where a text is scrolled to; `None`: it is closed.
fn scrolled(top: usize, key: KeyEvent) -> Option<usize> {
    match keys::action(key) {
        Some(Action::Move(by)) => Some(top.saturating_add_signed(by)),
        Some(Action::Page(by)) => Some(top.saturating_add_signed(by * 10)),
        Some(Action::First) => Some(0),
        Some(Action::Last) => Some(usize::MAX),
        _ => None,
    }
}

fn filter(model: &mut Model, key: KeyEvent, before: String) {
    match key.code {
        KeyCode::Enter => return,
        KeyCode::Esc => {
            model.filter = before;
            return;
        }
        KeyCode::Backspace => {
            model.filter.pop();
        }
        KeyCode::Char(c) if !c.is_control() && model.filter.chars().count() < 60 => {
            model.filter.push(c);
        }
        _ => {}
    }
    model.overlay = Overlay::Filter(before);
}

fn act(model: &mut Model, action: Action) -> Effect {
    match action {
        Action::Show(at) => model.view = View::ALL.get(at).copied().unwrap_or_default(),
        Action::Turn(by) => {
            let at = View::ALL.iter().position(|&view| view == model.view);
            let next = around(at.unwrap_or(0), by, View::ALL.len());
            model.view = View::ALL.get(next).copied().unwrap_or_default();
        }
        // The first key shows the cursor where it is.
        Action::Move(1) if model.place().held.is_none() && !rows::are_lines(model) => {
            moved(model, |cursor, _| cursor);
        }
        Action::Move(by) => moved(model, |cursor, _| cursor.saturating_add_signed(by)),
        Action::Page(by) => moved(model, |cursor, height| {
            let page = isize::try_from(height).unwrap_or(isize::MAX);
            cursor.saturating_add_signed(by.saturating_mul(page))
        }),
        Action::First => moved(model, |_, _| 0),
        Action::Last => moved(model, |_, _| usize::MAX),
        Action::Detail => detail(model),
        Action::Sort(by) => {
            let columns = rows::orders(model.view);
            let place = model.place_mut();
            place.sort = around(place.sort, by, columns);
            place.reverse = false;
        }
        Action::Reverse => {
            let place = model.place_mut();
            place.reverse = !place.reverse;
        }
        Action::Filter => model.overlay = Overlay::Filter(model.filter.clone()),
        Action::Pause => model.paused = !model.paused,
        Action::Step(by) => {
            model.paused = true;
            return Effect::Step(by);
        }
        Action::Speed(by) => return Effect::Speed(by),
        Action::Zoom => {
            model.zoom = match model.zoom {
                Zoom::Fit => Zoom::Lines,
                Zoom::Lines => Zoom::Bars,
                Zoom::Bars => Zoom::Cells,
                Zoom::Cells => Zoom::Fit,
            }
        }
        Action::Change => change::open(model),
        Action::Help => model.overlay = Overlay::Help(0),
        Action::Escape => {
            model.filter.clear();
            let place = model.place_mut();
            (place.held, place.cursor, place.top) = (None, 0, 0);
        }
        Action::Redraw => return Effect::Redraw,
        Action::Suspend => return Effect::Suspend,
        Action::Quit => return Effect::Quit,
    }
    Effect::None
}

/// `at` moved by `by` in a circle of `count`.
pub(super) fn around(at: usize, by: isize, count: usize) -> usize {
    let count = isize::try_from(count.max(1)).unwrap_or(1);
    let at = isize::try_from(at).unwrap_or(0);
    (at + by).rem_euclid(count).unsigned_abs()
}

fn moved(model: &mut Model, to: impl Fn(usize, usize) -> usize) {
    let height = view::list_height(model);
    let ids = rows::ids(model);
    let text = rows::are_lines(model);
    let place = model.place_mut();
    if text {
        place.top = to(place.top, height).min(ids.len().saturating_sub(height));
        place.cursor = place.top;
        return;
    }
    place.cursor = to(place.cursor, height).min(ids.len().saturating_sub(1));
    place.held = ids.get(place.cursor).copied();
}

fn detail(model: &mut Model) {
    if rows::ids(model).is_empty() || !model.started() {
        model.say("there is no row to explain here", false);
    } else {
        let cursor = model.place().cursor;
        let held = rows::ids(model).get(cursor).copied();
        model.place_mut().held = held;
        model.overlay = Overlay::Detail(0);
    }
}
