// SPDX-License-Identifier: GPL-2.0-only
//! Which key does what: one table for the event loop, the help and the status
//! line.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key asks for while no dialog is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Show the view with this place in [`super::model::View::ALL`].
    Show(usize),
    /// Show the next view, or the one before.
    Turn(isize),
    /// Move the cursor by lines.
    Move(isize),
    /// Move the cursor by pages.
    Page(isize),
    /// To the first line.
    First,
    /// To the last line.
    Last,
    /// Everything that is known of the row of the cursor.
    Detail,
    /// Sort by the next column, or the one before.
    Sort(isize),
    /// Turn the order round.
    Reverse,
    /// Type a filter.
    Filter,
    /// Stop and go on.
    Pause,
    /// To another frame: the one before, or the next.
    Step(isize),
    /// Play a recording at twice the speed, or half.
    Speed(isize),
    /// More or less of each CPU.
    Zoom,
    /// Change the scheduler.
    Change,
    /// The keys.
    Help,
    /// Forget the filter.
    Escape,
    /// Draw everything anew.
    Redraw,
    /// Give the terminal back to the shell for now.
    Suspend,
    /// End.
    Quit,
}

/// One line of the help.
#[derive(Debug)]
pub struct Binding {
    /// The keys, as the help names them.
    pub keys: &'static str,
    /// What they do.
    pub text: &'static str,
    /// A word for the status line; empty: it isn't there.
    pub short: &'static str,
}

const fn binding(keys: &'static str, short: &'static str, text: &'static str) -> Binding {
    Binding { keys, text, short }
}

/// All keys, the most important first.
pub const BINDINGS: &[Binding] = &[
    binding("q", "quit", "Quit; so does Ctrl-C"),
    binding("?", "help", "These keys; so do h and F1"),
    binding(
        "1-5 Tab",
        "view",
        "Choose a view: machine, groups, tasks, log, health",
    ),
    binding(
        "s S r",
        "sort",
        "Sort by the next column, the one before; turn the order round",
    ),
    binding(
        "/",
        "filter",
        "Show only rows that contain a text; Esc forgets it and the cursor",
    ),
    binding("Space", "pause", "Pause and go on; so does p"),
    binding(
        "c",
        "change",
        "Change policy, mode, slice or credit; asks before it does",
    ),
    binding(
        "Enter",
        "detail",
        "All that is known of the row of the cursor, explained",
    ),
    binding(
        "z",
        "zoom",
        "Machine: a line a CPU, a bar a CPU, a cell a CPU, or as it fits",
    ),
    binding(
        ", .",
        "step",
        "One frame back or on; live, the last 60 frames are kept",
    ),
    binding("- +", "", "Play a recording at half or twice the speed"),
    binding("Up Down", "", "Move; also j k, PgUp PgDn, Home End"),
    binding("Ctrl-L", "", "Draw everything anew"),
    binding("Ctrl-Z", "", "Suspend; fg brings it back"),
];

/// What `key` asks for while no dialog is open.
pub fn action(key: KeyEvent) -> Option<Action> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Action::Quit),
            KeyCode::Char('l') => Some(Action::Redraw),
            KeyCode::Char('z') => Some(Action::Suspend),
            KeyCode::Char('f') => Some(Action::Page(1)),
            KeyCode::Char('b') => Some(Action::Page(-1)),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => Action::Help,
        KeyCode::Char(digit @ '1'..='5') => Action::Show(digit as usize - '1' as usize),
        KeyCode::Tab | KeyCode::Right => Action::Turn(1),
        KeyCode::BackTab | KeyCode::Left => Action::Turn(-1),
        KeyCode::Down | KeyCode::Char('j') => Action::Move(1),
        KeyCode::Up | KeyCode::Char('k') => Action::Move(-1),
        KeyCode::PageDown => Action::Page(1),
        KeyCode::PageUp => Action::Page(-1),
        KeyCode::Home | KeyCode::Char('g') => Action::First,
        KeyCode::End | KeyCode::Char('G') => Action::Last,
        KeyCode::Enter => Action::Detail,
        KeyCode::Char('s') => Action::Sort(1),
        KeyCode::Char('S') => Action::Sort(-1),
        KeyCode::Char('r') => Action::Reverse,
        KeyCode::Char('/') => Action::Filter,
        KeyCode::Char(' ' | 'p') => Action::Pause,
        KeyCode::Char(',') => Action::Step(-1),
        KeyCode::Char('.') => Action::Step(1),
        KeyCode::Char('+' | '=') => Action::Speed(1),
        KeyCode::Char('-') => Action::Speed(-1),
        KeyCode::Char('z') => Action::Zoom,
        KeyCode::Char('c') => Action::Change,
        KeyCode::Esc => Action::Escape,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
        action(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn every_key_of_the_help_does_something() {
        for binding in BINDINGS {
            for name in binding.keys.split(' ') {
                let key = match name {
                    "1-5" => pressed(KeyCode::Char('3'), KeyModifiers::NONE),
                    "Tab" => pressed(KeyCode::Tab, KeyModifiers::NONE),
                    "Space" => pressed(KeyCode::Char(' '), KeyModifiers::NONE),
                    "Enter" => pressed(KeyCode::Enter, KeyModifiers::NONE),
                    "Up" => pressed(KeyCode::Up, KeyModifiers::NONE),
                    "Down" => pressed(KeyCode::Down, KeyModifiers::NONE),
                    "Ctrl-L" => pressed(KeyCode::Char('l'), KeyModifiers::CONTROL),
                    "Ctrl-Z" => pressed(KeyCode::Char('z'), KeyModifiers::CONTROL),
                    other => {
                        let mut chars = other.chars();
                        let code = KeyCode::Char(chars.next().unwrap());
                        assert_eq!(chars.next(), None, "{other}");
                        pressed(code, KeyModifiers::NONE)
                    }
                };
                assert!(key.is_some(), "{name}");
            }
        }
    }

    #[test]
    fn control_keys_are_not_letters() {
        let quit = pressed(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(quit, Some(Action::Quit));
        assert_eq!(pressed(KeyCode::Char('s'), KeyModifiers::CONTROL), None);
    }
}
