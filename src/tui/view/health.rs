// SPDX-License-Identifier: GPL-2.0-only
//! What to know before trusting the rest: errors, the agent, what this kernel
//! lacks, and what somebody should look at.

use crate::stats::frame::Health;
use crate::tui::canvas::{Canvas, Piece};
use crate::tui::look::Role;
use crate::tui::model::{Model, View};
use crate::tui::units;

/// An agent that comes that late, in milliseconds, can't be trusted to balance.
const LATE_MS: u64 = 1000;

/// How many things are wrong.
pub fn alarms(model: &Model) -> usize {
    let health = &model.frame.health;
    let signs = [
        health.lifecycle_errors > 0,
        health.missing_ctx > 0,
        health.late_ms > LATE_MS,
    ];
    signs.into_iter().filter(|&sign| sign).count() + health.warnings.len()
}

/// The whole view, line by line.
pub fn lines(model: &Model) -> Vec<Vec<Piece>> {
    if !model.started() {
        return vec![vec![(
            super::none(model, View::Health).to_string(),
            Role::Dim,
        )]];
    }
    let health = &model.frame.health;
    let mut lines = vec![verdict(alarms(model))];
    let width = usize::from(model.size.0);
    for (value, role, name) in figures(health) {
        let text = about(name, width);
        let parts = wrapped(&text, width.saturating_sub(15));
        for (at, part) in parts.into_iter().enumerate() {
            let value = if at == 0 { value.as_str() } else { "" };
            lines.push(vec![(format!("{value:>11}  "), role), (part, Role::Plain)]);
        }
    }
    list(&mut lines, "Warnings", &health.warnings, Role::Warn, width);
    let title = "What this kernel lacks, done in another way";
    list(&mut lines, title, &health.fallbacks, Role::Plain, width);
    lines
}

fn verdict(alarms: usize) -> Vec<Piece> {
    vec![match alarms {
        0 => ("All is well".to_string(), Role::Good),
        1 => ("1 thing to look at".to_string(), Role::Bad),
        count => (format!("{count} things to look at"), Role::Bad),
    }]
}

/// Each figure with what it says of itself, and the name of its field.
fn figures(health: &Health) -> Vec<(String, Role, &'static str)> {
    let zero = |count: u64| match count {
        0 => ("0".to_string(), Role::Good),
        count => (count.to_string(), Role::Bad),
    };
    let few = |count: u64| match count {
        0 => ("0".to_string(), Role::Good),
        count => (count.to_string(), Role::Warn),
    };
    let late = match health.late_ms {
        ms if ms > LATE_MS => (units::age(ms), Role::Bad),
        ms => (format!("{ms} ms"), Role::Good),
    };
    let plain = |text: String| (text, Role::Plain);
    let rows = [
        (zero(health.lifecycle_errors), "lifecycle_errors"),
        (zero(health.missing_ctx), "missing_ctx"),
        (few(health.rescues), "rescues"),
        (few(health.groups_without_slot), "groups_without_slot"),
        (late, "late_ms"),
        (
            plain(format!("{}/s", units::rate(health.agent_wakeups))),
            "agent_wakeups",
        ),
        (
            plain(format!("{:.2} %", health.agent_cpu_pct)),
            "agent_cpu_pct",
        ),
        (plain(units::memory(health.agent_rss_kib)), "agent_rss_kib"),
        (plain(health.clients.to_string()), "clients"),
        (few(health.dropped_frames), "dropped_frames"),
    ];
    let row = |((text, role), name)| (text, role, name);
    rows.into_iter().map(row).collect()
}

/// What the field `name` means, in as many words as there is room for.
fn about(name: &str, width: usize) -> String {
    let field = Health::SECTION.field(name);
    match field {
        Some(field) if width >= 100 => field.meaning.to_string(),
        Some(field) if width >= 60 => {
            let first = field.meaning.split([',', ';']).next();
            first.unwrap_or_default().to_string()
        }
        _ => name.replace('_', " "),
    }
}

fn list(lines: &mut Vec<Vec<Piece>>, title: &str, items: &[String], role: Role, width: usize) {
    if items.is_empty() {
        return;
    }
    lines.push(Vec::new());
    lines.push(vec![(title.to_string(), Role::Head)]);
    for item in items {
        for (at, part) in wrapped(item, width.saturating_sub(4))
            .into_iter()
            .enumerate()
        {
            let start = if at == 0 { "- " } else { "  " };
            lines.push(vec![(format!("{start}{part}"), role)]);
        }
    }
}

/// `text` in lines of at most `width` cells, broken between words.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
    }
    lines
}

/// Draw the view.
pub fn draw(canvas: &mut Canvas<'_>, model: &Model) {
    let lines = lines(model);
    let top = model.place().top;
    let height = canvas.height();
    for (y, line) in (0..height).zip(lines.iter().skip(top)) {
        canvas.pieces(1, y, line);
    }
    if lines.len() > top + usize::from(height) {
        let more = format!(" {} more ", lines.len() - top - usize::from(height));
        canvas.ending(canvas.width(), height.saturating_sub(1), &more, Role::Key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two", 0), ["one", "two"]);
        assert_eq!(wrapped("", 9), [""]);
    }

    #[test]
    fn every_figure_is_declared() {
        for (_, _, name) in figures(&Health::default()) {
            assert!(Health::SECTION.field(name).is_some(), "{name}");
        }
    }
}
