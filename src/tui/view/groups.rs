// SPDX-License-Identifier: GPL-2.0-only
//! cgroups: the share that each got against the share it is owed, and how long
//! its tasks waited.

use std::collections::{HashMap, HashSet};

use crate::stats::frame::Group;
use crate::tui::canvas::{Canvas, Piece};
use crate::tui::look::{Look, Role};
use crate::tui::model::{Model, Place, View};
use crate::tui::rows;
use crate::tui::table::{self, FALLING, Key, LEFT, RIGHT, RISING, Row, Shown, column};
use crate::tui::units;

use super::tasks::waiting;
use super::waits;

/// The columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Path, or the name below the one above.
    Path,
    /// `cpu.weight`.
    Weight,
    /// Tasks that ran or waited.
    Runnable,
    /// Share got.
    Got,
    /// Share owed.
    Owed,
    /// Both as a bar.
    Bar,
    /// Half of the waits were no longer.
    P50,
    /// 99 % of the waits were no longer.
    P99,
    /// The longest wait.
    Max,
    /// All waits.
    Waits,
}

/// A cgroup as a row.
#[derive(Debug)]
pub struct GroupRow<'a> {
    group: &'a Group,
    /// Its place in the tree, from top to bottom.
    at: usize,
    /// Levels that it is moved to the right, below the one that it belongs to.
    /// `None`: the whole path is shown.
    indent: Option<usize>,
}

/// All cgroups; as a tree where nothing takes it apart.
pub fn rows<'a>(model: &'a Model, place: &Place) -> Vec<GroupRow<'a>> {
    let tree = place.sort == 0 && !place.reverse && model.filter.is_empty();
    let row = |(at, (group, depth)): (usize, (&'a Group, usize))| GroupRow {
        group,
        at,
        indent: tree.then_some(depth),
    };
    walk(&model.frame.groups)
        .into_iter()
        .enumerate()
        .map(row)
        .collect()
}

/// From the top down, each below its parent; siblings by path.
fn walk(groups: &[Group]) -> Vec<(&Group, usize)> {
    let known: HashSet<u64> = groups.iter().map(|group| group.id).collect();
    let mut below: HashMap<u64, Vec<&Group>> = HashMap::new();
    for group in groups {
        let has_parent = known.contains(&group.parent) && group.parent != group.id;
        let parent = if has_parent { group.parent } else { 0 };
        below.entry(parent).or_default().push(group);
    }
    for siblings in below.values_mut() {
        siblings.sort_by(|left, right| right.path.cmp(&left.path));
    }
    let mut open: Vec<_> = below.remove(&0).unwrap_or_default();
    let mut open: Vec<_> = open.drain(..).map(|group| (group, 0)).collect();
    let mut sorted = Vec::with_capacity(groups.len());
    while let Some((group, depth)) = open.pop() {
        sorted.push((group, depth));
        let children = below.remove(&group.id).unwrap_or_default();
        open.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    sorted
}

impl Row for GroupRow<'_> {
    type Column = Column;

    const COLUMNS: &'static [table::Column<Column>] = &[
        table::Column {
            most: 60,
            ..column(Column::Path, "CGROUP", (12, LEFT), 0, RISING)
        },
        column(Column::Weight, "WEIGHT", (6, RIGHT), 6, FALLING),
        column(Column::Runnable, "RUN", (units::RATE, RIGHT), 7, FALLING),
        column(Column::Got, "GOT%", (5, RIGHT), 1, FALLING),
        column(Column::Owed, "OWED%", (5, RIGHT), 2, FALLING),
        table::Column {
            most: 40,
            ..column(Column::Bar, "SHARE", (16, LEFT), 5, None)
        },
        column(Column::P50, "p50", (units::TIME, RIGHT), 4, FALLING),
        column(Column::P99, "p99", (units::TIME, RIGHT), 3, FALLING),
        column(Column::Max, "max", (units::TIME, RIGHT), 8, FALLING),
        column(
            Column::Waits,
            waits::SCALE,
            (waits::SMALL as u16, LEFT),
            9,
            None,
        ),
    ];

    fn id(&self) -> u64 {
        self.group.id
    }

    fn cell(&self, column: Column, width: u16, look: Look) -> Piece {
        let group = self.group;
        match column {
            Column::Path => self.path(width, look),
            Column::Weight if group.idle => ("idle".to_string(), Role::Dim),
            Column::Weight => (group.weight.to_string(), Role::Plain),
            Column::Runnable => (units::rate(group.runnable), Role::Plain),
            Column::Got => (units::percent(group.got_pct), verdict(group)),
            Column::Owed => (units::percent(group.owed_pct), Role::Plain),
            Column::Bar => (share(group, width, look), verdict(group)),
            Column::P50 => waiting(group.wait_p50_us, look),
            Column::P99 => waiting(group.wait_p99_us, look),
            Column::Max => waiting(group.wait_max_us, look),
            Column::Waits => (waits::small(&group.waits, look), Role::Accent),
        }
    }

    fn key(&self, column: Column) -> Key {
        let group = self.group;
        Key::Number(match column {
            Column::Path | Column::Bar | Column::Waits => self.at as f64,
            Column::Weight => f64::from(group.weight),
            Column::Runnable => group.runnable,
            Column::Got => group.got_pct,
            Column::Owed => group.owed_pct,
            Column::P50 => group.wait_p50_us,
            Column::P99 => group.wait_p99_us,
            Column::Max => group.wait_max_us,
        })
    }

    fn words(&self) -> Vec<String> {
        vec![self.group.path.clone()]
    }
}

impl<'a> GroupRow<'a> {
    /// The cgroup itself.
    pub const fn raw(&self) -> &'a Group {
        self.group
    }

    fn path(&self, width: u16, look: Look) -> Piece {
        let (path, width) = (&self.group.path, usize::from(width));
        let Some(depth) = self.indent.filter(|&depth| depth > 0) else {
            return (units::tail(path, width, look), Role::Plain);
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let indent = (2 * (depth - 1)).min(width / 2);
        let branch = look.pick("└ ", "` ");
        let room = width.saturating_sub(indent + 2);
        let text = format!(
            "{}{branch}{}",
            " ".repeat(indent),
            units::head(name, room, look)
        );
        (text, Role::Plain)
    }
}

/// Did it get what it is owed? A cgroup that asks for less is never owed more.
fn verdict(group: &Group) -> Role {
    match group.got_pct - group.owed_pct {
        _ if group.runnable <= 0.0 => Role::Dim,
        less if less <= -5.0 => Role::Bad,
        less if less <= -2.0 => Role::Warn,
        more if more >= 2.0 => Role::Accent,
        _ => Role::Good,
    }
}

/// The share got as a bar, the share owed as a mark in it.
fn share(group: &Group, width: u16, look: Look) -> String {
    let owed = (group.owed_pct / 100.0).clamp(0.0, 1.0);
    let mark = (owed * f64::from(width)).ceil().max(1.0) as usize - 1;
    let bar = look.bar(group.got_pct / 100.0, width);
    let filled = bar.chars().chain(std::iter::repeat(' '));
    let mut cells: Vec<_> = filled.take(usize::from(width)).collect();
    if let Some(cell) = cells.get_mut(mark) {
        let inside = *cell == '█' || *cell == '#';
        let shown = if inside {
            look.pick("▓", "|")
        } else {
            look.pick("▕", "|")
        };
        *cell = shown.chars().next().unwrap_or('|');
    }
    cells.into_iter().collect()
}

/// Draw the view.
pub fn draw(canvas: &mut Canvas<'_>, model: &Model) {
    let shown = Shown {
        place: model.place(),
        none: super::none(model, View::Groups),
    };
    table::draw(canvas, &rows::groups(model), &shown);
}
