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

/// Lines of a text that lies over the view for which there is room.
pub fn text_height(model: &Model) -> usize {
    usize::from(model.size.1).saturating_sub(4).max(1)
}

/// Draw it.
pub fn draw(screen: &mut Canvas<'_>, model: &Model) {
    match &model.overlay {
        Overlay::None | Overlay::Filter(_) => {}
        Overlay::Help(top) => help(screen, *top),
        Overlay::Detail(top) => {
            let lines = detail_lines(model);
            text(screen, "explained", &lines, *top, width(model));
        }
        Overlay::Menu(at) => menu(screen, *at),
        Overlay::Knob { key, text, wrong } => knob(screen, model, (key, text), wrong.as_deref()),
        Overlay::Confirm { key, value } => confirm(screen, model, key, value),
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

fn help(screen: &mut Canvas<'_>, top: usize) {
    let line = |binding: &crate::tui::keys::Binding| {
        vec![
            (format!("{:<9} ", binding.keys), Role::Key),
            (binding.text.to_string(), Role::Plain),
        ]
    };
    let lines: Vec<_> = BINDINGS.iter().map(line).collect();
    text(screen, "keys", &lines, top, 86);
}

fn menu(screen: &mut Canvas<'_>, at: usize) {
    let entries = change::entries();
    let height = u16::try_from(entries.len() + 2).unwrap_or(u16::MAX);
    let mut frame = middle(screen, 98, height);
    let mut inside = frame.boxed("change the scheduler");
    let room = inside.height();
    let top = (at + 1).saturating_sub(usize::from(room));
    for (y, (number, entry)) in (0..room).zip(entries.iter().enumerate().skip(top)) {
        let name = match entry.value {
            Some(value) => format!("{}={value}", entry.key),
            None => format!("{}=...", entry.key),
        };
        let pieces = [
            (format!(" {name:<17} "), Role::Key),
            (entry.text.clone(), Role::Plain),
        ];
        inside.pieces(0, y, &pieces);
        if number == at {
            inside.paint(y, Role::Cursor);
        }
    }
    let (end, y) = (
        frame.width().saturating_sub(2),
        frame.height().saturating_sub(1),
    );
    frame.ending(end, y, " Enter chooses, Esc closes ", Role::Dim);
}

fn knob(screen: &mut Canvas<'_>, model: &Model, (key, typed): (&str, &str), wrong: Option<&str>) {
    let mut frame = middle(screen, 64, 5);
    let mut inside = frame.boxed("change the scheduler");
    let cursor = inside.look.pick("▏", "_").to_string();
    let pieces = [
        (format!("{key} = "), Role::Key),
        (typed.to_string(), Role::Plain),
        (cursor, Role::Key),
    ];
    inside.pieces(0, 0, &pieces);
    let scheduler = &model.frame.scheduler;
    let now = match key {
        "slice-us" => scheduler.slice_us,
        _ => scheduler.credit_us,
    };
    let range = change::entries().into_iter().find(|entry| entry.key == key);
    let range = range.map(|entry| entry.text).unwrap_or_default();
    inside.text(0, 1, u16::MAX, &format!("now {now}; {range}"), Role::Dim);
    match wrong {
        Some(why) => inside.text(0, 2, u16::MAX, why, Role::Bad),
        None => inside.text(0, 2, u16::MAX, "Enter goes on, Esc stops", Role::Dim),
    };
}

fn confirm(screen: &mut Canvas<'_>, model: &Model, key: &str, value: &str) {
    let mut frame = middle(screen, 60, 6);
    let mut inside = frame.boxed("really?");
    let scheduler = &model.frame.scheduler;
    let now = format!(
        "now  policy={} slice-us={} credit-us={}",
        scheduler.policy, scheduler.slice_us, scheduler.credit_us
    );
    inside.text(0, 0, u16::MAX, &format!("Set {key}={value}?"), Role::Key);
    inside.text(0, 1, u16::MAX, &now, Role::Dim);
    let then = format!("then {}", change::meaning(key, value));
    inside.text(0, 2, u16::MAX, &then, Role::Plain);
    inside.text(
        0,
        3,
        u16::MAX,
        "y sets it, any other key doesn't",
        Role::Dim,
    );
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
