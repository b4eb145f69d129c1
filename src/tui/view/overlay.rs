// SPDX-License-Identifier: GPL-2.0-only
//! What lies over the view: the keys, a row explained, and the dialogs that
//! change the scheduler.

use serde_json::Value;

use crate::stats::fields::{Kind, Section};
use crate::stats::frame::{Cpu, Decision, Group, Health, Task};
use crate::stats::histogram::Histogram;
use crate::tui::canvas::{Canvas, Piece};
use crate::tui::change;
use crate::tui::keys::BINDINGS;
use crate::tui::look::{Look, Role};
use crate::tui::model::{Model, Overlay, View};
use crate::tui::{rows, units};

use super::health::wrapped;
use super::machine::{Scale, zoom};
use super::waits;

/// Cells from the names of figures to what is said of them.
const NAME: usize = 17;

/// Cells from a figure to what is said of it, if that is in the same line.
const VALUE: usize = 14;

/// Cells from the names of keys to what they do.
const KEYS: usize = 10;

/// Cells from an entry of the menu to what is said of it.
const ENTRY: usize = 18;

/// Cells below which a text does not stand beside its name.
const LEAST_TEXT: usize = 24;

/// Widths of the boxes where there is room.
const HELP: u16 = 86;
const MENU: u16 = 98;
const KNOB: u16 = 64;
const CONFIRM: u16 = 60;

/// Lines of a text that lies over the view for which there is room.
pub fn text_height(model: &Model) -> usize {
    usize::from(model.size.1).saturating_sub(4).max(1)
}

/// Draw it.
pub fn draw(screen: &mut Canvas<'_>, model: &Model) {
    match &model.overlay {
        Overlay::None | Overlay::Filter(_) => {}
        Overlay::Help(top) => text(screen, "keys", &help_lines(model), *top, HELP),
        Overlay::Detail(top) => {
            let lines = detail_lines(model);
            text(screen, "explained", &lines, *top, width(model));
        }
        Overlay::Menu { at, skip } => menu(screen, model, *at, *skip),
        Overlay::Knob { key, text, wrong } => knob(screen, model, (key, text), wrong.as_deref()),
        Overlay::Confirm { key, value, top } => {
            let lines = confirm_lines(model, key, value);
            dialog(screen, "really?", &lines, *top, CONFIRM);
        }
    }
}

/// Cells of the widest text.
fn width(model: &Model) -> u16 {
    model.size.0.saturating_sub(4).min(96)
}

/// A box of that size in the middle of the screen.
fn middle<'a>(screen: &'a mut Canvas<'_>, width: u16, height: u16) -> Canvas<'a> {
    let (all_width, all_height) = (screen.width(), screen.height());
    let (width, height) = (width.min(all_width), height.min(all_height));
    let (x, y) = ((all_width - width) / 2, (all_height - height) / 2);
    screen.part(x, y, width, height)
}

/// A text with a title, from the line `top` on.
fn text(screen: &mut Canvas<'_>, title: &str, lines: &[Vec<Piece>], top: usize, width: u16) {
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let height = height.min(screen.height().saturating_sub(2).max(3));
    let mut frame = middle(screen, width, height);
    let mut inside = frame.boxed(title);
    let room = inside.height();
    let last = lines.len().saturating_sub(usize::from(room));
    let top = top.min(last);
    for (y, line) in (0..room).zip(lines.iter().skip(top)) {
        inside.pieces(0, y, line);
    }
    let hint = if last > 0 {
        format!(
            " {}-{} of {} ",
            top + 1,
            top + usize::from(room),
            lines.len()
        )
    } else {
        " any key closes it ".to_string()
    };
    let (end, y) = (
        frame.width().saturating_sub(2),
        frame.height().saturating_sub(1),
    );
    frame.ending(end, y, &hint, Role::Dim);
}

/// The keys and what they do, for a screen of that width.
pub fn help_lines(model: &Model) -> Vec<Vec<Piece>> {
    let room = inside(model, HELP);
    BINDINGS
        .iter()
        .flat_map(|binding| beside(binding.keys, KEYS, binding.text, Role::Plain, room))
        .collect()
}

/// A name and a text beside it or, where that would leave too little room,
/// below it.
fn beside(name: &str, width: usize, text: &str, role: Role, room: usize) -> Vec<Vec<Piece>> {
    let below = room < width + LEAST_TEXT;
    let indent = if below { 2 } else { width };
    let mut parts = wrapped(text, room.saturating_sub(indent).max(1)).into_iter();
    let mut first = vec![(format!("{name:<width$}"), Role::Key)];
    if !below {
        first.push((parts.next().unwrap_or_default(), role));
    }
    let rest = parts.map(|part| vec![(format!("{:indent$}{part}", ""), role)]);
    std::iter::once(first).chain(rest).collect()
}

/// Columns inside of a box that is `width` wide where there is room for it.
fn inside(model: &Model, width: u16) -> usize {
    usize::from(model.size.0.min(width).saturating_sub(4))
}

/// One entry of the menu; all of its text only if it is the `chosen` one.
fn entry_lines(entry: &change::Entry, chosen: bool, room: usize) -> Vec<Vec<Piece>> {
    let name = match entry.value {
        Some(value) => format!("{}={value}", entry.key),
        None => format!("{}=...", entry.key),
    };
    let mut lines = beside(&name, ENTRY, &entry.text, Role::Plain, room);
    if !chosen {
        lines.truncate(1);
    }
    lines
}

/// Lines of the text of entry `at` for which the menu has no room.
pub fn menu_hidden(model: &Model, at: usize) -> usize {
    let room = usize::from(model.size.1.saturating_sub(2)).max(1);
    let entries = change::entries();
    let lines = entries
        .get(at)
        .map(|entry| entry_lines(entry, true, inside(model, MENU)));
    lines.map_or(0, |lines| lines.len().saturating_sub(room))
}

fn menu(screen: &mut Canvas<'_>, model: &Model, at: usize, skip: usize) {
    let entries = change::entries();
    let room = inside(model, MENU);
    let lengths = entries
        .iter()
        .map(|entry| entry_lines(entry, true, room).len());
    let tallest = lengths.max().unwrap_or(1);
    let height = u16::try_from(entries.len() + tallest + 1).unwrap_or(u16::MAX);
    let mut frame = middle(screen, MENU, height);
    let mut inside = frame.boxed("change the scheduler");
    let mut lines = Vec::new();
    let (mut first, mut last) = (0, 0);
    for (number, entry) in entries.iter().enumerate() {
        let own = entry_lines(entry, number == at, room);
        if number == at {
            (first, last) = (lines.len(), lines.len() + own.len());
        }
        lines.extend(own);
    }
    // All of the chosen one is seen or, if that is too much, its name and what
    // was scrolled to.
    let visible = inside.height();
    let top = last.saturating_sub(usize::from(visible)).min(first) + skip;
    for (y, (number, line)) in (0..visible).zip(lines.iter().enumerate().skip(top)) {
        inside.pieces(0, y, line);
        if (first..last).contains(&number) {
            inside.paint(y, Role::Cursor);
        }
    }
    let (end, y) = (
        frame.width().saturating_sub(2),
        frame.height().saturating_sub(1),
    );
    let hint = match frame.width() {
        0..28 => " Enter, Esc ",
        _ => " Enter chooses, Esc closes ",
    };
    frame.ending(end, y, hint, Role::Dim);
}

fn knob(screen: &mut Canvas<'_>, model: &Model, (key, typed): (&str, &str), wrong: Option<&str>) {
    let room = inside(model, KNOB);
    let cursor = model.look.pick("▏", "_");
    let scheduler = &model.frame.scheduler;
    let now = match key {
        "slice-us" => scheduler.slice_us,
        _ => scheduler.credit_us,
    };
    let range = change::entries().into_iter().find(|entry| entry.key == key);
    let range = range.map(|entry| entry.text).unwrap_or_default();
    let value = vec![
        (format!("{key} = "), Role::Key),
        (typed.to_string(), Role::Plain),
        (cursor.to_string(), Role::Key),
    ];
    let hint = wrong.unwrap_or("Enter goes on, Esc stops");
    let role = if wrong.is_some() {
        Role::Bad
    } else {
        Role::Dim
    };
    let mut lines = vec![value];
    lines.extend(folded(&format!("now {now}; {range}"), Role::Dim, room));
    lines.extend(folded(hint, role, room));
    if lines.len() > usize::from(screen.height().saturating_sub(2)) {
        // The number, and what it may be.
        let value = vec![
            (typed.to_string(), Role::Plain),
            (cursor.to_string(), Role::Key),
        ];
        lines = vec![vec![(format!("{key} ="), Role::Key)], value];
        lines.extend(folded(&range, role, room));
    }
    dialog(screen, "change the scheduler", &lines, 0, KNOB);
}

/// What is asked before something is set, for a screen of that size.
fn confirm_lines(model: &Model, key: &str, value: &str) -> Vec<Vec<Piece>> {
    let room = inside(model, CONFIRM);
    let scheduler = &model.frame.scheduler;
    let now = format!(
        "now  policy={} slice-us={} credit-us={}",
        scheduler.policy, scheduler.slice_us, scheduler.credit_us
    );
    let then = format!("then {}", change::meaning(key, value));
    let question = folded(&format!("Set {key}={value}?"), Role::Key, room);
    let keys = folded("y sets it, any other key doesn't", Role::Dim, room);
    let (now, then) = (
        folded(&now, Role::Dim, room),
        folded(&then, Role::Plain, room),
    );
    let all = question.len() + keys.len() + now.len() + then.len();
    // Where not all can be seen at once, what matters most comes first.
    if all > usize::from(model.size.1.saturating_sub(2)) {
        [question, keys, then, now].concat()
    } else {
        [question, now, then, keys].concat()
    }
}

/// How far the question whether to set something can be scrolled.
pub fn confirm_hidden(model: &Model, key: &str, value: &str) -> usize {
    let room = usize::from(model.size.1.saturating_sub(2)).max(1);
    confirm_lines(model, key, value).len().saturating_sub(room)
}

/// A text in lines that fit.
fn folded(text: &str, role: Role, room: usize) -> Vec<Vec<Piece>> {
    let parts = wrapped(text, room.max(1)).into_iter();
    parts.map(|part| vec![(part, role)]).collect()
}

/// A box that takes all of the screen if it must.
fn dialog(screen: &mut Canvas<'_>, title: &str, lines: &[Vec<Piece>], top: usize, width: u16) {
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let mut frame = middle(screen, width, height);
    let mut inside = frame.boxed(title);
    let room = inside.height();
    for (y, line) in (0..room).zip(lines.iter().skip(top)) {
        inside.pieces(0, y, line);
    }
    if lines.len() > usize::from(room) {
        let shown = top + 1..=(top + usize::from(room)).min(lines.len());
        let hint = format!(" {}-{} of {} ", shown.start(), shown.end(), lines.len());
        let (end, y) = (
            frame.width().saturating_sub(2),
            frame.height().saturating_sub(1),
        );
        frame.ending(end, y, &hint, Role::Dim);
    }
}

/// All that is known of the row of the cursor, each figure explained.
pub fn detail_lines(model: &Model) -> Vec<Vec<Piece>> {
    let at = model.place().cursor;
    let (section, value): (Section, Option<Value>) = match model.view {
        View::Machine if zoom(model) == Scale::Lines => {
            let row = rows::cpus(model).get(at).map(|row| json(row.0));
            (Cpu::SECTION, row)
        }
        View::Machine => return vec![vec![(CHOOSE.to_string(), Role::Plain)]],
        View::Groups => {
            let row = rows::groups(model).get(at).map(|row| json(row.raw()));
            (Group::SECTION, row)
        }
        View::Tasks => {
            let row = rows::tasks(model).get(at).map(|row| json(row.raw()));
            (Task::SECTION, row)
        }
        View::Log => {
            let row = rows::decisions(model).get(at).map(|row| json(row.raw()));
            (Decision::SECTION, row)
        }
        View::Health => (Health::SECTION, Some(json(&model.frame.health))),
    };
    let Some(value) = value else {
        return vec![vec![("it is gone".to_string(), Role::Dim)]];
    };
    explained(&section, &value, usize::from(width(model)), model.look)
}

const CHOOSE: &str = "z shows a line for each CPU: there one can be chosen";

fn json(row: &impl serde::Serialize) -> Value {
    serde_json::to_value(row).unwrap_or_default()
}

fn explained(section: &Section, value: &Value, width: usize, look: Look) -> Vec<Vec<Piece>> {
    let mut lines = vec![vec![(section.about.to_string(), Role::Head)]];
    for field in section.fields {
        let value = value.get(field.name).unwrap_or(&Value::Null);
        let (text, role) = shown(value, field.kind, look);
        let unit = match field.kind {
            Kind::Buckets => "",
            _ => field.unit,
        };
        let mut line = vec![(format!("{:<NAME$} ", field.name), Role::Key)];
        let value = format!("{text} {unit}");
        let beside = width >= 64 && value.chars().count() < VALUE;
        let indent = if beside { NAME + 1 + VALUE } else { NAME + 1 };
        let mut parts = wrapped(field.meaning, width.saturating_sub(indent + 4)).into_iter();
        if beside {
            line.push((format!("{value:<VALUE$}"), role));
            line.push((parts.next().unwrap_or_default(), Role::Dim));
        } else {
            line.push((value, role));
        }
        lines.push(line);
        for part in parts {
            lines.push(vec![(format!("{:indent$}{part}", ""), Role::Dim)]);
        }
    }
    lines
}

fn shown(value: &Value, kind: Kind, look: Look) -> Piece {
    let text = match (value, kind) {
        (_, Kind::Buckets) => {
            let waits: Histogram = serde_json::from_value(value.clone()).unwrap_or_default();
            let count = units::rate(waits.count() as f64);
            format!(
                "{count} waits, up to 4 us, 16 us, ... 1 s: [{}]",
                waits::small(&waits, look)
            )
        }
        (Value::String(text), _) => text.clone(),
        (Value::Bool(true), _) => "yes".to_string(),
        (Value::Bool(false), _) => "no".to_string(),
        (Value::Array(items), _) => format!("{} of them", items.len()),
        (other, _) => other.to_string(),
    };
    (text, Role::Plain)
}
