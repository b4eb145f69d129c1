// SPDX-License-Identifier: GPL-2.0-only
//! CPUs by node and cache: a line each where there is room, else a bar each,
//! else a cell each, so that 4 CPUs and 512 can both be looked at.

use crate::stats::frame::Cpu;
use crate::tui::canvas::{Canvas, Piece};
use crate::tui::look::{Look, Role};
use crate::tui::model::{Model, View, Zoom};
use crate::tui::rows;
use crate::tui::table::{self, FALLING, Key, LEFT, RIGHT, RISING, Row, Shown, column};
use crate::tui::units;

use super::map;
use super::summary;
use super::tasks::{self, waiting};

/// Tasks in a queue from which on it is called long.
const LONG_QUEUE: u32 = 8;

/// Lines below the CPUs from which on something is put there.
const LEAST_REST: u16 = 8;

/// Lines of histograms there.
const HISTOGRAM_LINES: u16 = 13;

/// A wait in microseconds that can be felt.
const LONG_WAIT_US: f64 = 50_000.0;

/// How much of each CPU is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A line.
    Lines,
    /// A bar.
    Bars,
    /// A cell.
    Cells,
}

/// The columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Node and cache.
    Place,
    /// Number.
    Cpu,
    /// Busy, as a bar.
    Bar,
    /// Busy.
    Busy,
    /// Tasks in its queue.
    Queue,
    /// Half of the waits were no longer.
    P50,
    /// 99 % of the waits were no longer.
    P99,
    /// The longest wait.
    Max,
    /// Tasks that began to run.
    Switches,
    /// Tasks taken from others.
    Steals,
    /// Looks elsewhere that gave nothing.
    Misses,
    /// Interruptions for wakeups.
    Preempts,
    /// Idle CPUs called.
    Kicks,
    /// What runs.
    Task,
}

/// A CPU as a row.
#[derive(Debug)]
pub struct CpuRow<'a>(pub &'a Cpu);

impl Row for CpuRow<'_> {
    type Column = Column;

    const COLUMNS: &'static [table::Column<Column>] = &[
        column(Column::Place, "N:LLC", (6, LEFT), 7, RISING),
        column(Column::Cpu, "CPU", (4, RIGHT), 0, RISING),
        table::Column {
            most: 40,
            order: None,
            ..column(Column::Bar, "", (8, LEFT), 0, RISING)
        },
        column(Column::Busy, "BUSY%", (6, RIGHT), 1, FALLING),
        column(Column::Queue, "QUEUE", (8, LEFT), 2, FALLING),
        column(Column::P50, "p50", (units::TIME, RIGHT), 5, FALLING),
        column(Column::P99, "p99", (units::TIME, RIGHT), 3, FALLING),
        column(Column::Max, "max", (units::TIME, RIGHT), 8, FALLING),
        column(Column::Steals, "STEAL/s", (11, LEFT), 6, FALLING),
        column(Column::Misses, "MISS/s", (6, RIGHT), 11, FALLING),
        column(Column::Switches, "SWITCH/s", (8, RIGHT), 9, FALLING),
        column(Column::Preempts, "PREEMPT/s", (9, RIGHT), 10, FALLING),
        column(Column::Kicks, "KICK/s", (6, RIGHT), 12, FALLING),
        table::Column {
            most: 26,
            ..column(Column::Task, "RUNS", (16, LEFT), 4, RISING)
        },
    ];

    fn id(&self) -> u64 {
        u64::from(self.0.cpu)
    }

    fn cell(&self, column: Column, width: u16, look: Look) -> Piece {
        let cpu = self.0;
        if !cpu.online && column != Column::Cpu && column != Column::Place {
            let text = if column == Column::Bar { "offline" } else { "" };
            return (text.to_string(), Role::Dim);
        }
        let rate = |value: f64| (units::rate(value), Role::Plain);
        match column {
            Column::Place => (format!("{}:{}", cpu.node, cpu.llc), Role::Dim),
            Column::Cpu => (cpu.cpu.to_string(), Role::Plain),
            Column::Bar => (look.bar(cpu.busy_pct / 100.0, width), load(cpu)),
            Column::Busy => (units::percent(cpu.busy_pct), Role::Plain),
            Column::Queue => (queue(cpu.waiting, look), load(cpu)),
            Column::P50 => waiting(cpu.wait_p50_us, look),
            Column::P99 => waiting(cpu.wait_p99_us, look),
            Column::Max => waiting(cpu.wait_max_us, look),
            Column::Switches => rate(cpu.switches),
            Column::Steals => (steals(cpu, look), Role::Accent),
            Column::Misses => rate(cpu.steal_misses),
            Column::Preempts => rate(cpu.preemptions),
            Column::Kicks => rate(cpu.kicks),
            Column::Task if cpu.pid == 0 => ("-".to_string(), Role::Dim),
            Column::Task => (units::named(&cpu.comm, cpu.pid, width, look), Role::Plain),
        }
    }

    fn key(&self, column: Column) -> Key {
        let cpu = self.0;
        Key::Number(match column {
            Column::Place => f64::from(cpu.node) * 1e6 + f64::from(cpu.llc),
            Column::Cpu | Column::Bar => f64::from(cpu.cpu),
            Column::Busy => cpu.busy_pct,
            Column::Queue => f64::from(cpu.waiting),
            Column::P50 => cpu.wait_p50_us,
            Column::P99 => cpu.wait_p99_us,
            Column::Max => cpu.wait_max_us,
            Column::Switches => cpu.switches,
            Column::Steals => cpu.steals,
            Column::Misses => cpu.steal_misses,
            Column::Preempts => cpu.preemptions,
            Column::Kicks => cpu.kicks,
            Column::Task => return Key::Text(cpu.comm.to_lowercase()),
        })
    }

    fn words(&self) -> Vec<String> {
        words(self.0)
    }
}

/// The texts by which a filter finds a CPU.
pub fn words(cpu: &Cpu) -> Vec<String> {
    vec![
        format!("cpu{}", cpu.cpu),
        format!("llc{}", cpu.llc),
        format!("node{}", cpu.node),
        cpu.comm.clone(),
    ]
}

/// Nobody waits, somebody does, or many or for long.
pub fn load(cpu: &Cpu) -> Role {
    match cpu.waiting {
        _ if !cpu.online => Role::Dim,
        waiting if waiting >= LONG_QUEUE || cpu.wait_p99_us >= LONG_WAIT_US => Role::Bad,
        0 => Role::Good,
        _ => Role::Warn,
    }
}

/// A number and as many marks, if those are few.
fn queue(waiting: u32, look: Look) -> String {
    let marks = look.pick("▪", "*").repeat(waiting.min(4) as usize);
    format!("{waiting:>3} {marks}")
}

/// Tasks taken from other CPUs, and which part they are of all that began to
/// run.
fn steals(cpu: &Cpu, look: Look) -> String {
    let part = cpu.steals / cpu.switches.max(1.0);
    format!("{:>5} {}", units::rate(cpu.steals), look.bar(part, 5))
}

/// How much of each CPU is shown, if the view has `body` lines.
fn scale(model: &Model, width: u16, body: u16) -> Scale {
    let room = body - summary::height(body);
    let (rows, map) = (room.saturating_sub(1), map::map_height(room));
    match model.zoom {
        Zoom::Lines => Scale::Lines,
        Zoom::Bars => Scale::Bars,
        Zoom::Cells => Scale::Cells,
        Zoom::Fit if model.frame.cpus.len() <= usize::from(rows) => Scale::Lines,
        Zoom::Fit => {
            let bars = map::lines(model, Scale::Bars, width);
            if bars <= usize::from(map) {
                Scale::Bars
            } else {
                Scale::Cells
            }
        }
    }
}

/// How much of each CPU is shown now.
pub fn zoom(model: &Model) -> Scale {
    let (width, height) = model.size;
    let (width, body) = (list_width(width, height), super::body_height(height));
    scale(model, width, body)
}

/// Lines of the map of CPUs, if there is one.
pub fn map_lines(model: &Model) -> usize {
    let (width, height) = model.size;
    map::lines(model, zoom(model), list_width(width, height))
}

/// Rows for which there is room in a view of `body` lines.
pub fn list_height(model: &Model, body: u16) -> u16 {
    let room = body - summary::height(body);
    match zoom(model) {
        Scale::Lines => (room - caches_height(model, Scale::Lines, room)).saturating_sub(1),
        Scale::Bars | Scale::Cells => map::map_height(room),
    }
}

/// Columns that the list gets: histograms stand beside it where there is room.
const fn list_width(width: u16, height: u16) -> u16 {
    if width >= 150 && height >= 24 {
        width - summary::HISTOGRAMS - 2
    } else {
        width
    }
}

/// Lines for the caches, above the CPUs.
fn caches_height(model: &Model, scale: Scale, room: u16) -> u16 {
    let cpus = model.frame.cpus.len();
    let caches = map::caches(model).len();
    let fits = cpus + caches + 3 <= usize::from(room);
    if scale == Scale::Lines && caches > 1 && fits {
        caches as u16 + 1
    } else {
        0
    }
}

/// Draw the view.
pub fn draw(canvas: &mut Canvas<'_>, model: &Model) {
    let (width, body) = (canvas.width(), canvas.height());
    let above = summary::height(body);
    summary::draw(&mut canvas.part(0, 0, width, above), model);
    let list_width = list_width(width, model.size.1);
    let room = body - above;
    if list_width < width {
        let x = list_width + 2;
        summary::histograms(&mut canvas.part(x, above, summary::HISTOGRAMS, room), model);
    }
    let mut list = canvas.part(0, above, list_width, room);
    let scale = zoom(model);
    if scale != Scale::Lines || model.frame.cpus.is_empty() {
        map::draw(&mut list, model, scale);
        let map = map::map_height(room);
        let left = left_below(map::lines(model, scale, list_width), map);
        if left >= LEAST_REST && !model.frame.cpus.is_empty() {
            let mut rest = list.part(0, map - left, list_width, left);
            histograms_below(&mut rest, model, list_width < width);
        }
        return;
    }
    let caches = caches_height(model, scale, room);
    if caches > 0 {
        map::draw_caches(&mut list.part(0, 0, list_width, caches), model);
    }
    let shown = Shown {
        place: model.place(),
        none: super::none(model, View::Machine),
    };
    let rows = rows::cpus(model);
    let mut table = list.part(0, caches, list_width, room - caches);
    table::draw(&mut table, &rows, &shown);
    let left = left_below(rows.len(), room - caches);
    if left >= LEAST_REST {
        let mut rest = list.part(0, room - left, list_width, left);
        below(&mut rest, model, list_width < width);
    }
}

/// Lines that a table of so many rows leaves of `room`.
fn left_below(rows: usize, room: u16) -> u16 {
    let used = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2);
    room.saturating_sub(used)
}

/// Lines that histograms take of `height` below the CPUs, if they are there
/// and not `beside` them.
const fn histogram_lines(width: u16, height: u16, beside: bool) -> u16 {
    match (beside, width) {
        (false, 80..) if height < HISTOGRAM_LINES => height,
        (false, 80..) => HISTOGRAM_LINES,
        _ => 0,
    }
}

/// Whether there is room for who waits.
pub fn shows_tasks(model: &Model) -> bool {
    let (width, height) = model.size;
    let body = super::body_height(height);
    let room = body - summary::height(body);
    if zoom(model) != Scale::Lines || model.frame.cpus.is_empty() {
        return false;
    }
    let caches = caches_height(model, Scale::Lines, room);
    let left = left_below(rows::cpus(model).len(), room - caches);
    let beside = list_width(width, height) < width;
    left - histogram_lines(width, left, beside) >= LEAST_REST
}

/// What stands below the CPUs where they leave room: histograms, unless they
/// are beside them, and who waits.
fn below(canvas: &mut Canvas<'_>, model: &Model, beside: bool) {
    let (width, height) = (canvas.width(), canvas.height());
    let used = histograms_below(canvas, model, beside);
    if height - used >= LEAST_REST {
        tasks::longest(
            &mut canvas.part(0, used + 1, width, height - used - 1),
            model,
        );
    }
}

/// Histograms, unless they are `beside` the CPUs; the lines that they take.
fn histograms_below(canvas: &mut Canvas<'_>, model: &Model, beside: bool) -> u16 {
    let (width, height) = (canvas.width(), canvas.height());
    let used = histogram_lines(width, height, beside);
    if used > 0 {
        let half = width / 2;
        summary::wakeups_by_wait(&mut canvas.part(0, 0, half - 2, used), model);
        summary::waits_by_length(&mut canvas.part(half, 0, width - half, used), model);
    }
    used
}
