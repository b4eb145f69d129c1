// SPDX-License-Identifier: GPL-2.0-only
//! What the balancer decided, a line each, the newest first.

use crate::stats::frame::Decision;
use crate::tui::canvas::{Canvas, Piece};
use crate::tui::look::{Look, Role};
use crate::tui::model::{Model, View};
use crate::tui::rows;
use crate::tui::table::{self, FALLING, Key, LEFT, RIGHT, RISING, Row, Shown, column};
use crate::tui::units;

/// The columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// When.
    Time,
    /// What it decided.
    Kind,
    /// The CPU that tasks are to leave.
    From,
    /// The CPU that is to take them.
    To,
    /// How many.
    Count,
    /// What came of it.
    Outcome,
}

/// A decision as a row.
#[derive(Debug)]
pub struct DecisionRow<'a> {
    decision: &'a Decision,
    /// Which of all that were ever in the log.
    number: u64,
}

/// The decisions up to the frame that is shown, the newest first.
pub fn rows(model: &Model) -> Vec<DecisionRow<'_>> {
    let now = model.frame.time_ms;
    let all = model.log.iter().enumerate().rev();
    all.filter(|(_, decision)| decision.time_ms <= now)
        .map(|(at, decision)| DecisionRow {
            decision,
            number: model.forgotten + at as u64,
        })
        .collect()
}

impl<'a> DecisionRow<'a> {
    /// The decision itself.
    pub const fn raw(&self) -> &'a Decision {
        self.decision
    }
}

impl Row for DecisionRow<'_> {
    type Column = Column;

    const COLUMNS: &'static [table::Column<Column>] = &[
        column(Column::Time, "TIME (UTC)", (11, LEFT), 3, FALLING),
        column(Column::Kind, "DECISION", (10, LEFT), 0, RISING),
        column(Column::From, "FROM", (7, LEFT), 1, RISING),
        column(Column::To, "TO", (7, LEFT), 1, RISING),
        column(Column::Count, "COUNT", (7, RIGHT), 4, FALLING),
        table::Column {
            most: 40,
            ..column(Column::Outcome, "OUTCOME", (8, LEFT), 2, RISING)
        },
    ];

    fn id(&self) -> u64 {
        self.number
    }

    fn cell(&self, column: Column, _width: u16, _look: Look) -> Piece {
        let decision = self.decision;
        match column {
            Column::Time => (units::clock(decision.time_ms), Role::Dim),
            Column::Kind => (decision.kind.clone(), Role::Plain),
            Column::From => (cpu(decision.from_cpu), Role::Plain),
            Column::To => (cpu(decision.to_cpu), Role::Plain),
            Column::Count => (units::count(decision.count), Role::Plain),
            Column::Outcome => (decision.outcome.clone(), outcome(&decision.outcome)),
        }
    }

    fn key(&self, column: Column) -> Key {
        let decision = self.decision;
        match column {
            Column::Time => Key::Number(decision.time_ms as f64),
            Column::Kind => Key::Text(decision.kind.clone()),
            Column::From => Key::Number(f64::from(decision.from_cpu)),
            Column::To => Key::Number(f64::from(decision.to_cpu)),
            Column::Count => Key::Number(decision.count as f64),
            Column::Outcome => Key::Text(decision.outcome.clone()),
        }
    }

    fn words(&self) -> Vec<String> {
        let decision = self.decision;
        vec![
            decision.kind.clone(),
            decision.outcome.clone(),
            cpu(decision.from_cpu),
            cpu(decision.to_cpu),
        ]
    }
}

fn cpu(number: i32) -> String {
    if number < 0 {
        String::new()
    } else {
        format!("cpu{number}")
    }
}

fn outcome(text: &str) -> Role {
    match text {
        "applied" => Role::Good,
        "refused" => Role::Warn,
        "expired" => Role::Bad,
        _ => Role::Plain,
    }
}

/// Draw the view.
pub fn draw(canvas: &mut Canvas<'_>, model: &Model) {
    let shown = Shown {
        place: model.place(),
        none: super::none(model, View::Log),
    };
    table::draw(canvas, &rows::decisions(model), &shown);
}
