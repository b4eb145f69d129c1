// SPDX-License-Identifier: GPL-2.0-only
//! The figures explained to people: the tables of docs/stream.md and the text
//! of `--help-stats`, made of the one definition of each field.

use std::collections::BTreeMap;
use std::fmt::Write;

use scx_stats::Meta;

use super::fields::Section;
use super::frame::SECTIONS;
use super::metrics::Metrics;

/// One row: name, unit, meaning.
type Row = (String, String, String);

/// Name and subject of each section, with its rows, in the order of a frame.
fn sections() -> Vec<(&'static str, &'static str, Vec<Row>)> {
    let rows = |section: &Section| {
        let fields = section.fields.iter();
        fields
            .map(|field| {
                let text = |text: &str| text.to_string();
                (text(field.name), text(field.unit), text(field.meaning))
            })
            .collect()
    };
    let mut all: Vec<_> = SECTIONS
        .iter()
        .map(|section| (section.name, section.about, rows(section)))
        .collect();
    let about = "The whole machine in the interval, as --monitor tells it";
    all.insert(1, ("totals", about, totals()));
    all
}

/// The rows of [`Metrics`], whose descriptions end with their units.
fn totals() -> Vec<Row> {
    let fields: BTreeMap<_, _> = Metrics::meta().fields.into_iter().collect();
    let row = |(name, field): (String, scx_stats::StatsField)| {
        let text = field.attrs.desc.unwrap_or_default();
        match text.rsplit_once(", ") {
            Some((meaning, unit)) if unit.len() < 16 => {
                (name, unit.to_string(), meaning.to_string())
            }
            _ => (name, String::new(), text),
        }
    };
    fields.into_iter().map(row).collect()
}

/// The tables of docs/stream.md.
pub fn tables() -> String {
    let mut text = String::new();
    for (name, about, rows) in sections() {
        // Writing to a text can't fail.
        let _ = writeln!(text, "### `{name}`\n\n{about}.\n");
        let _ = writeln!(text, "| field | unit | meaning |\n| --- | --- | --- |");
        for (field, unit, meaning) in rows {
            let _ = writeln!(text, "| `{field}` | {unit} | {meaning} |");
        }
        text.push('\n');
    }
    text
}

/// The same for a terminal, but for the totals.
pub fn plain() -> String {
    let mut text = String::new();
    for (name, about, rows) in sections().iter().filter(|(name, ..)| *name != "totals") {
        let _ = writeln!(text, "\n[{name}] {about}");
        for (field, unit, meaning) in rows {
            let unit = match unit.as_str() {
                "" => String::new(),
                unit => format!(", {unit}"),
            };
            let _ = writeln!(text, "  {field:<20} {meaning}{unit}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_in_both() {
        let (tables, plain) = (tables(), plain());
        for section in SECTIONS {
            assert!(tables.contains(&format!("### `{}`", section.name)));
            assert!(plain.contains(&format!("[{}]", section.name)));
            for field in section.fields {
                let row = format!("| `{}` | {} | {} |", field.name, field.unit, field.meaning);
                assert!(tables.contains(&row), "{row}");
                assert!(plain.contains(field.meaning));
            }
        }
        assert!(tables.contains("| `busy_pct` | % | Share of all CPUs' time that tasks ran |"));
        assert!(tables.contains("| `lifecycle_errors` |  | Events that a task's life"));
    }
}
