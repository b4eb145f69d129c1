// SPDX-License-Identifier: GPL-2.0-only
//! Lists with columns: which rows are shown in which order, and which columns
//! have room.

use std::cmp::Ordering;

use super::canvas::{Canvas, Piece};
use super::look::{Look, Role};
use super::model::Place;

/// A column of rows whose columns are called `C`.
#[derive(Debug)]
pub struct Column<C> {
    /// Which.
    pub id: C,
    /// What stands above it.
    pub title: &'static str,
    /// Cells that it takes at least.
    pub width: u16,
    /// Cells that it takes where the others leave room.
    pub most: u16,
    /// Figures stand on the right.
    pub right: bool,
    /// Where there is no room for all, the lowest ranks are kept. 0: always.
    pub rank: u8,
    /// How rows are sorted by it; `None`: they aren't.
    pub order: Option<Order>,
}

/// A column that keeps its width.
pub const fn column<C: Copy>(
    id: C,
    title: &'static str,
    (width, right): (u16, bool),
    rank: u8,
    order: Option<Order>,
) -> Column<C> {
    Column {
        id,
        title,
        width,
        most: width,
        right,
        rank,
        order,
    }
}

/// Texts stand on the left of a column.
pub const LEFT: bool = false;
/// Figures stand on its right.
pub const RIGHT: bool = true;
/// The least first.
pub const RISING: Option<Order> = Some(Order::Rising);
/// The greatest first.
pub const FALLING: Option<Order> = Some(Order::Falling);

/// The order that is natural for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The least first.
    Rising,
    /// The greatest first.
    Falling,
}

/// What rows are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// A figure.
    Number(f64),
    /// A name.
    Text(String),
}

/// One row.
pub trait Row {
    /// Names of its columns.
    type Column: Copy + PartialEq + 'static;

    /// All columns, from left to right.
    const COLUMNS: &'static [Column<Self::Column>];

    /// What it is called whatever its place.
    fn id(&self) -> u64;

    /// What stands in a column of `width` cells.
    fn cell(&self, column: Self::Column, width: u16, look: Look) -> Piece;

    /// What rows are sorted by.
    fn key(&self, column: Self::Column) -> Key;

    /// The texts that a filter looks into.
    fn words(&self) -> Vec<String>;
}

/// Number of columns that rows can be sorted by.
pub fn orders<R: Row>() -> usize {
    R::COLUMNS.iter().filter(|c| c.order.is_some()).count()
}

/// The column that is number `sort` of those that rows can be sorted by.
pub fn sorted_by<R: Row>(sort: usize) -> Option<&'static Column<R::Column>> {
    R::COLUMNS.iter().filter(|c| c.order.is_some()).nth(sort)
}

/// Number of the column `id` among those that rows can be sorted by.
pub fn order_of<R: Row>(id: R::Column) -> usize {
    let mut columns = R::COLUMNS.iter().filter(|c| c.order.is_some());
    columns.position(|column| column.id == id).unwrap_or(0)
}

/// The rows of `rows` that `filter` lets through, in the order of `place`.
/// Equals stay in the order in which they came.
pub fn arranged<R: Row>(rows: Vec<R>, place: &Place, filter: &str) -> Vec<R> {
    let wanted = filter.to_lowercase();
    let has = |row: &R| {
        let mut words = row.words().into_iter();
        wanted.is_empty() || words.any(|word| word.to_lowercase().contains(&wanted))
    };
    let rows = rows.into_iter().filter(has);
    let Some(column) = sorted_by::<R>(place.sort) else {
        return rows.collect();
    };
    let falling = (column.order == Some(Order::Falling)) != place.reverse;
    let mut keyed: Vec<_> = rows.map(|row| (row.key(column.id), row)).collect();
    keyed.sort_by(|(left, _), (right, _)| {
        let order = compare(left, right);
        if falling { order.reverse() } else { order }
    });
    keyed.into_iter().map(|(_, row)| row).collect()
}

fn compare(left: &Key, right: &Key) -> Ordering {
    match (left, right) {
        (Key::Number(left), Key::Number(right)) => left.total_cmp(right),
        (Key::Text(left), Key::Text(right)) => left.cmp(right),
        (Key::Number(_), Key::Text(_)) => Ordering::Less,
        (Key::Text(_), Key::Number(_)) => Ordering::Greater,
    }
}

/// Columns that have room in `width` cells, and how many each gets. The one
/// that is sorted by stays if any does.
fn fitting<R: Row>(width: u16, sort: usize) -> Vec<(&'static Column<R::Column>, u16)> {
    let sorted = sorted_by::<R>(sort).map(|column| column.id);
    let rank = |column: &Column<R::Column>| {
        let kept = sorted == Some(column.id) && column.rank > 0;
        if kept { 1 } else { column.rank }
    };
    let mut ranked: Vec<_> = R::COLUMNS.iter().enumerate().collect();
    ranked.sort_by_key(|(_, column)| rank(column));
    let mut left = width + 1;
    let mut taken = Vec::new();
    for (at, column) in ranked {
        let Some(rest) = left.checked_sub(column.width + 1) else {
            if column.rank == 0 {
                continue;
            }
            break;
        };
        left = rest;
        taken.push((at, column));
    }
    taken.sort_by_key(|(at, _)| *at);
    let mut widths: Vec<_> = taken.into_iter().map(|(_, c)| (c, c.width)).collect();
    // Those that may grow do so by turns.
    while left > 0 {
        let before = left;
        for (column, width) in &mut widths {
            if *width < column.most && left > 0 {
                *width += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    widths
}

/// What the rest of the screen has to tell a list.
#[derive(Debug)]
pub struct Shown<'a> {
    /// Order and place.
    pub place: &'a Place,
    /// What to say where there are no rows.
    pub none: &'a str,
}

/// Draw the titles and as many rows as there is room for.
pub fn draw<R: Row>(canvas: &mut Canvas<'_>, rows: &[R], shown: &Shown<'_>) {
    let columns = fitting::<R>(canvas.width(), shown.place.sort);
    titles::<R>(canvas, &columns, shown.place);
    if rows.is_empty() {
        canvas.text(0, 1, u16::MAX, shown.none, Role::Dim);
    }
    let visible = rows.iter().enumerate().skip(shown.place.top);
    for (y, (at, row)) in (1..canvas.height()).zip(visible) {
        line(canvas, y, row, &columns);
        if at == shown.place.cursor && shown.place.held.is_some() {
            canvas.paint(y, Role::Cursor);
        }
    }
}

fn titles<R: Row>(
    canvas: &mut Canvas<'_>,
    columns: &[(&'static Column<R::Column>, u16)],
    place: &Place,
) {
    let sorted = sorted_by::<R>(place.sort).map(|column| column.id);
    let mut x = 0;
    for (column, width) in columns {
        let mut title = column.title.to_string();
        let mut role = Role::Head;
        if sorted == Some(column.id) {
            let falling = (column.order == Some(Order::Falling)) != place.reverse;
            let (down, up) = (canvas.look.pick("▼", "v"), canvas.look.pick("▲", "^"));
            let mark = if falling { down } else { up };
            title = if column.right {
                format!("{mark}{title}")
            } else {
                format!("{title}{mark}")
            };
            role = Role::Key;
        }
        put(canvas, (x, 0), (*width, column.right), &(title, role));
        x = x.saturating_add(width + 1);
    }
}

/// Draw one row.
fn line<R: Row>(
    canvas: &mut Canvas<'_>,
    y: u16,
    row: &R,
    columns: &[(&'static Column<R::Column>, u16)],
) {
    let mut x = 0;
    for (column, width) in columns {
        let piece = row.cell(column.id, *width, canvas.look);
        put(canvas, (x, y), (*width, column.right), &piece);
        x = x.saturating_add(width + 1);
    }
}

/// Write a piece into a field of `width` cells.
fn put(canvas: &mut Canvas<'_>, (x, y): (u16, u16), (width, right): (u16, bool), piece: &Piece) {
    let mut field = canvas.part(x, y, width, 1);
    if right {
        field.ending(width, 0, &piece.0, piece.1);
    } else {
        field.text(0, 0, width, &piece.0, piece.1);
    }
}
