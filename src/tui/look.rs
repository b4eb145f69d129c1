// SPDX-License-Identifier: GPL-2.0-only
//! What the terminal can show: colours or none, UTF-8 or ASCII; and what each
//! kind of text looks like there.

use ratatui::style::{Color, Modifier, Style};

/// What a text tells. Without colours, the same is told by bold, underlined
/// and reversed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A figure or a name.
    Plain,
    /// What only helps to read the rest.
    Dim,
    /// The title of a column or a part.
    Head,
    /// A key to press, and what is chosen.
    Key,
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Wrong.
    Bad,
    /// A figure that stands out without being good or bad.
    Accent,
    /// The bar on top.
    Title,
    /// The bar on top while what it shows is not the present.
    Stale,
    /// The row of the cursor.
    Cursor,
}

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Colours may be used.
    pub colour: bool,
    /// Characters outside ASCII may be used.
    pub unicode: bool,
}

const UNICODE_LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_LEVELS: [&str; 9] = [" ", ".", ":", "-", "=", "+", "*", "#", "#"];
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

impl Look {
    /// As the environment says: `NO_COLOR`, `TERM`, and the locale.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        let plain = term == "dumb" || term.starts_with("vt") || term.ends_with("-m");
        Self {
            colour: set("NO_COLOR").is_none() && !plain,
            // The console of Linux has no glyphs for eighths of a block.
            unicode: (locale.contains("utf-8") || locale.contains("utf8"))
                && !plain
                && term != "linux",
        }
    }

    /// How a text of this role is drawn.
    pub fn style(self, role: Role) -> Style {
        let style = Style::new();
        if !self.colour {
            return match role {
                Role::Plain | Role::Dim | Role::Good => style,
                Role::Head => style.add_modifier(Modifier::UNDERLINED),
                Role::Key | Role::Warn | Role::Accent => style.add_modifier(Modifier::BOLD),
                Role::Bad => style.add_modifier(Modifier::BOLD | Modifier::REVERSED),
                Role::Title | Role::Stale | Role::Cursor => style.add_modifier(Modifier::REVERSED),
            };
        }
        match role {
            Role::Plain => style,
            Role::Dim => style.fg(Color::DarkGray),
            Role::Head => style.fg(Color::Cyan),
            Role::Key => style.fg(Color::Cyan).add_modifier(Modifier::BOLD),
            Role::Good => style.fg(Color::Green),
            Role::Warn => style.fg(Color::Yellow),
            Role::Bad => style.fg(Color::Red).add_modifier(Modifier::BOLD),
            Role::Accent => style.fg(Color::Blue),
            Role::Title => style.fg(Color::Black).bg(Color::Cyan),
            Role::Stale => style.fg(Color::Black).bg(Color::Yellow),
            Role::Cursor => style.fg(Color::Black).bg(Color::Gray),
        }
    }

    /// A bar that fills the part `part` (0 to 1) of `width` cells.
    pub fn bar(self, part: f64, width: u16) -> String {
        let part = if part.is_finite() { part } else { 0.0 };
        let eighths = (part.clamp(0.0, 1.0) * f64::from(width) * 8.0).round() as usize;
        let (full, rest) = (eighths / 8, eighths % 8);
        if self.unicode {
            "█".repeat(full) + EIGHTHS.get(rest).copied().unwrap_or_default()
        } else {
            "#".repeat(full + rest / 4)
        }
    }

    /// One cell filled from below to the part `part` (0 to 1): anything above
    /// 0 can be seen.
    pub fn level(self, part: f64) -> &'static str {
        let at = if part > 0.0 {
            (part * 8.0).ceil().clamp(1.0, 8.0) as usize
        } else {
            0
        };
        let levels = if self.unicode {
            UNICODE_LEVELS
        } else {
            ASCII_LEVELS
        };
        levels.get(at).copied().unwrap_or(" ")
    }

    /// One cell for a share of time: a level, or the tenths as a digit.
    pub fn tenths(self, part: f64) -> &'static str {
        if self.unicode {
            return self.level(part.max(0.01));
        }
        let at = (part * 10.0).clamp(0.0, 9.0) as usize;
        DIGITS.get(at).copied().unwrap_or("0")
    }

    /// `unicode` where it can be shown, else `ascii`.
    pub fn pick<'a>(self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }

    /// `text` as this terminal can show it: nothing in it moves the cursor.
    pub fn clean(self, text: &str) -> String {
        let shown = |c: char| match c {
            c if c.is_control() => '?',
            c if c.is_ascii() || self.unicode => c,
            _ => '?',
        };
        text.chars().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Look {
        Look::of(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_string())
        })
    }

    #[test]
    fn the_environment_decides() {
        let term = ("TERM", "xterm-256color");
        let look = |colour, unicode| Look { colour, unicode };
        assert_eq!(of(&[term, ("LANG", "de_DE.UTF-8")]), look(true, true));
        assert_eq!(of(&[term, ("LANG", "C.utf8")]), look(true, true));
        assert_eq!(of(&[term]), look(true, false));
        let all = [term, ("LANG", "C.UTF-8"), ("LC_ALL", "C")];
        assert_eq!(of(&all), look(true, false));
        let none = [term, ("LANG", "C.UTF-8"), ("NO_COLOR", "1")];
        assert_eq!(of(&none), look(false, true));
        assert_eq!(
            of(&[term, ("LANG", "C.UTF-8"), ("NO_COLOR", "")]),
            look(true, true)
        );
        assert_eq!(
            of(&[("TERM", "dumb"), ("LANG", "C.UTF-8")]),
            look(false, false)
        );
        assert_eq!(
            of(&[("TERM", "linux"), ("LANG", "C.UTF-8")]),
            look(true, false)
        );
    }

    #[test]
    fn bars_and_levels_stay_in_their_cells() {
        for (colour, unicode) in [(true, true), (false, false)] {
            let look = Look { colour, unicode };
            for part in [-1.0, 0.0, 0.004, 0.5, 0.99, 1.0, 7.0, f64::NAN, 1e308] {
                for width in [0, 1, 8, 40] {
                    let bar = look.bar(part, width);
                    assert!(bar.chars().count() <= usize::from(width), "{part} {bar}");
                }
                assert_eq!(look.level(part).chars().count(), 1);
                assert_eq!(look.tenths(part).chars().count(), 1);
            }
            assert_ne!(look.level(0.001), " ");
            assert_eq!(look.level(0.0), " ");
        }
    }

    #[test]
    fn names_cannot_carry_escapes() {
        let look = |unicode| Look {
            colour: true,
            unicode,
        };
        assert_eq!(look(true).clean("a\x1b[2Jä\u{9b}\n"), "a?[2Jä??");
        assert_eq!(look(false).clean("a\x1bä"), "a??");
    }
}
