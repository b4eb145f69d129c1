// SPDX-License-Identifier: GPL-2.0-only
//! Screens without a terminal: machines of several sizes, keys typed by name,
//! and the screen as text.

#![allow(dead_code)] // Each test uses a part.

use std::rc::Rc;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use scx_fulcrum::stats::frame::{Cpu, Frame};
use scx_fulcrum::stats::sample;
use scx_fulcrum::tui::look::Look;
use scx_fulcrum::tui::model::{Feed, Model};
use scx_fulcrum::tui::update::{self, Effect};
use scx_fulcrum::tui::view;

pub const UTF8: Look = Look {
    colour: true,
    unicode: true,
};

pub const ASCII: Look = Look {
    colour: false,
    unicode: false,
};

pub fn live() -> Feed {
    Feed::Live { lost: None }
}

/// A screen on which the frames were shown, one after the other.
pub fn screen(frames: &[Frame], size: (u16, u16), look: Look) -> Model {
    let mut model = Model::new(look, size, live());
    for frame in frames {
        update::frame(&mut model, Rc::new(frame.clone()));
    }
    model
}

/// Frames of a machine with `count` CPUs, `in_cache` of them in each cache and
/// four caches in each node.
pub fn machine(count: u32, in_cache: u32) -> Vec<Frame> {
    let mut frames = sample::frames(12);
    for frame in &mut frames {
        let some = std::mem::take(&mut frame.cpus);
        frame.scheduler.cpus = count;
        frame.scheduler.llcs = count.div_ceil(in_cache);
        frame.scheduler.nodes = frame.scheduler.llcs.div_ceil(4);
        let cpu = |number: u32| {
            let like = some.get((number * 5 + number / 7) as usize % some.len());
            Cpu {
                cpu: number,
                llc: number / in_cache,
                node: number / in_cache / 4,
                ..like.cloned().unwrap_or_default()
            }
        };
        frame.cpus = (0..count).map(cpu).collect();
    }
    frames
}

/// Type keys: single characters, and `<Enter>`, `<Esc>`, `<Down>` and so on.
/// What the last one asked of the outside.
pub fn typed(model: &mut Model, keys: &str) -> Effect {
    let mut effect = Effect::None;
    let mut rest = keys;
    while let Some(first) = rest.chars().next() {
        let (name, after) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((name, after)) => (Some(name), after),
            None => (None, &rest[first.len_utf8()..]),
        };
        effect = update::key(model, key(name, first));
        rest = after;
    }
    effect
}

fn key(name: Option<&str>, letter: char) -> KeyEvent {
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    match name {
        None => plain(KeyCode::Char(letter)),
        Some("Enter") => plain(KeyCode::Enter),
        Some("Esc") => plain(KeyCode::Esc),
        Some("Tab") => plain(KeyCode::Tab),
        Some("Up") => plain(KeyCode::Up),
        Some("Down") => plain(KeyCode::Down),
        Some("PageDown") => plain(KeyCode::PageDown),
        Some("PageUp") => plain(KeyCode::PageUp),
        Some("Home") => plain(KeyCode::Home),
        Some("End") => plain(KeyCode::End),
        Some("Backspace") => plain(KeyCode::Backspace),
        Some(name) => match name.strip_prefix("Ctrl-") {
            Some(letter) => KeyEvent::new(
                KeyCode::Char(letter.chars().next().unwrap()),
                KeyModifiers::CONTROL,
            ),
            None => panic!("no key {name}"),
        },
    }
}

/// What is on the screen.
pub fn drawn(model: &Model) -> Buffer {
    let (width, height) = model.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    view::draw(&mut buffer, model);
    buffer
}

/// The screen as text, a line each.
pub fn text(model: &Model) -> String {
    let buffer = drawn(model);
    let width = usize::from(buffer.area.width).max(1);
    let mut text = String::new();
    for line in buffer.content().chunks(width) {
        let line: String = line.iter().map(|cell| cell.symbol()).collect();
        text += line.trim_end();
        text.push('\n');
    }
    text
}
