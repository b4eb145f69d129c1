// SPDX-License-Identifier: GPL-2.0-only
//! Changing the scheduler from the screen: choose, type, confirm.

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::keys::{self, Action};
use super::model::{Feed, Model, Overlay};
use super::update::Effect;
use super::view::overlay;
use crate::control::settings::{CREDIT_US, MODES, POLICIES, SLICE_US, Settings};

/// Longest number that can be typed.
const DIGITS: usize = 9;

/// One line of the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it sets.
    pub key: &'static str,
    /// To what; `None`: that is typed.
    pub value: Option<&'static str>,
    /// What is good about it, or its range.
    pub text: String,
}

/// All that can be changed.
pub fn entries() -> Vec<Entry> {
    let policy = |policy: &'static crate::control::settings::PolicyInfo| Entry {
        key: "policy",
        value: Some(policy.name),
        text: policy.text.to_string(),
    };
    let mode = |mode: &'static crate::control::settings::Mode| Entry {
        key: "mode",
        value: Some(mode.name),
        text: mode.text.to_string(),
    };
    let knob = |key, range: &std::ops::RangeInclusive<u64>| Entry {
        key,
        value: None,
        text: format!("{} to {} microseconds", range.start(), range.end()),
    };
    let mut entries: Vec<_> = POLICIES.iter().map(policy).collect();
    entries.extend(MODES.iter().map(mode));
    entries.push(knob("slice-us", &SLICE_US));
    entries.push(knob("credit-us", &CREDIT_US));
    entries
}

/// Open the menu, if there is something that can be changed.
pub fn open(model: &mut Model) {
    match model.feed {
        Feed::Replay { .. } => model.say("a recording can't be changed", true),
        Feed::Live { lost: Some(_) } => model.say("there is no scheduler to change now", true),
        Feed::Live { lost: None } => {
            model.overlay = Overlay::Menu {
                at: chosen_now(model),
                skip: 0,
            }
        }
    }
}

/// The line of the policy that is in force.
fn chosen_now(model: &Model) -> usize {
    let policy = &model.frame.scheduler.policy;
    let now = |entry: &Entry| entry.key == "policy" && entry.value == Some(policy);
    entries().iter().position(now).unwrap_or(0)
}

/// A key while a dialog of ours is open.
pub fn key(model: &mut Model, overlay: Overlay, key: KeyEvent) -> Effect {
    match overlay {
        Overlay::Menu { at, skip } => menu(model, (at, skip), key),
        Overlay::Knob {
            key: knob, text, ..
        } => typed(model, knob, text, key),
        Overlay::Confirm {
            key: what,
            value,
            top,
        } => {
            if matches!(key.code, KeyCode::Char('y' | 'Y')) {
                return Effect::Set { key: what, value };
            }
            let hidden = overlay::confirm_hidden(model, what, &value);
            match keys::action(key) {
                Some(Action::Move(by) | Action::Page(by)) if hidden > 0 => {
                    model.overlay = Overlay::Confirm {
                        key: what,
                        value,
                        top: top.saturating_add_signed(by).min(hidden),
                    };
                }
                _ => model.say("nothing was changed", false),
            }
        }
        _ => {}
    }
    Effect::None
}

fn menu(model: &mut Model, (at, skip): (usize, usize), key: KeyEvent) {
    let entries = entries();
    let last = entries.len().saturating_sub(1);
    // Through the text of an entry that does not fit, line by line.
    let hidden = overlay::menu_hidden(model, at);
    let (at, skip) = match keys::action(key) {
        Some(Action::Move(1)) if skip < hidden => (at, skip + 1),
        Some(Action::Move(-1)) if skip > 0 => (at, (skip - 1).min(hidden)),
        Some(Action::Move(by)) => (at.saturating_add_signed(by).min(last), 0),
        Some(Action::Page(by)) => (at.saturating_add_signed(by * 5).min(last), 0),
        Some(Action::First) => (0, 0),
        Some(Action::Last) => (last, 0),
        Some(Action::Detail) => {
            if let Some(entry) = entries.get(at) {
                model.overlay = chosen(entry);
            }
            return;
        }
        _ => return,
    };
    model.overlay = Overlay::Menu { at, skip };
}

fn chosen(entry: &Entry) -> Overlay {
    let key = entry.key;
    match entry.value {
        Some(value) => Overlay::Confirm {
            key,
            value: value.to_string(),
            top: 0,
        },
        None => Overlay::Knob {
            key,
            text: String::new(),
            wrong: None,
        },
    }
}

fn typed(model: &mut Model, knob: &'static str, mut text: String, key: KeyEvent) {
    let mut wrong = None;
    match key.code {
        KeyCode::Esc => {
            model.say("nothing was changed", false);
            return;
        }
        KeyCode::Enter => match Settings::default().with(&[(knob.to_string(), text.clone())]) {
            Ok(_) => {
                model.overlay = Overlay::Confirm {
                    key: knob,
                    value: text,
                    top: 0,
                };
                return;
            }
            Err(why) => wrong = Some(why),
        },
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(digit) if digit.is_ascii_digit() && text.len() < DIGITS => text.push(digit),
        _ => {}
    }
    model.overlay = Overlay::Knob {
        key: knob,
        text,
        wrong,
    };
}

/// What setting `key` to `value` means, in one sentence.
pub fn meaning(key: &str, value: &str) -> String {
    let settings = Settings::default().with(&[(key.to_string(), value.to_string())]);
    match settings {
        Ok(settings) if key == "policy" || key == "mode" => settings.to_string(),
        Ok(_) => format!("{key}={value}, the rest as it is"),
        Err(why) => why,
    }
}
