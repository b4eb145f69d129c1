// SPDX-License-Identifier: GPL-2.0-only
//! The whole machine in a few lines, and its waits as histograms.

use crate::tui::canvas::{Canvas, Piece};
use crate::tui::look::{Look, Role};
use crate::tui::model::{Model, Moment};
use crate::tui::units;

use super::tasks::waiting;
use super::waits;

/// Cells that the histograms take.
pub const HISTOGRAMS: u16 = 44;

/// Lines for the summary in a view of `body` lines.
pub const fn height(body: u16) -> u16 {
    match body {
        0..=2 => 0,
        3..=6 => 1,
        7..=11 => 2,
        _ => 4,
    }
}

/// Draw as many of its lines as there is room for.
pub fn draw(canvas: &mut Canvas<'_>, model: &Model) {
    if !model.started() {
        return;
    }
    let lines = [busy(model), wakeups(model), moves(model)];
    for (y, line) in (0..canvas.height()).zip(&lines) {
        let x = items(canvas, y, line);
        if y == 0 {
            trend(canvas, x + 2, model);
        }
    }
}

/// Figures that belong together.
pub type Item = Vec<Piece>;

/// Write whole items while there is room; the column after them.
pub fn items(canvas: &mut Canvas<'_>, y: u16, items: &[Item]) -> u16 {
    let mut x = 0;
    for item in items {
        let length: usize = item.iter().map(|(text, _)| text.chars().count()).sum();
        let gap = if x == 0 { 0 } else { 2 };
        if usize::from(x + gap) + length > usize::from(canvas.width()) {
            break;
        }
        x = canvas.pieces(x + gap, y, item);
    }
    x
}

/// A figure after its name, in `width` cells so that what follows stays put.
fn figure(name: &str, value: String, width: usize) -> Item {
    vec![
        (format!("{name} "), Role::Dim),
        (format!("{value:>width$}"), Role::Plain),
    ]
}

fn rate(name: &str, value: f64) -> Item {
    figure(name, format!("{}/s", units::rate(value)), 7)
}

fn share(name: &str, value: f64) -> Item {
    figure(name, format!("{:.0}%", value.clamp(0.0, 100.0)), 4)
}

fn time(name: &str, us: f64, look: Look) -> Item {
    let (text, role) = waiting(us, look);
    vec![
        (format!("{name} "), Role::Dim),
        (format!("{text:>6}"), role),
    ]
}

fn busy(model: &Model) -> Vec<Item> {
    let part = model.frame.totals.busy_pct / 100.0;
    let wide = model.size.0 >= 60;
    let width = if wide { 24 } else { 8 };
    let bar = model.look.bar(part, width);
    let waiting: u64 = model
        .frame
        .cpus
        .iter()
        .map(|cpu| u64::from(cpu.waiting))
        .sum();
    let role = if waiting > 0 { Role::Warn } else { Role::Good };
    vec![
        vec![
            ("busy ".to_string(), Role::Dim),
            (format!("{bar:<width$}", width = usize::from(width)), role),
            (
                format!(" {:>3.0}%", 100.0 * part.clamp(0.0, 9.0)),
                Role::Plain,
            ),
        ],
        vec![
            (format!("{waiting:>3}"), role),
            (" waiting".to_string(), Role::Dim),
        ],
    ]
}

fn wakeups(model: &Model) -> Vec<Item> {
    let (totals, waits, look) = (&model.frame.totals, &model.frame.waits, model.look);
    vec![
        rate("wakeups", totals.wakeups),
        time("wait p50", waits.wakeup_p50_us, look),
        time("p99", waits.wakeup_p99_us, look),
        time("max", waits.wakeup_max_us, look),
        share("to idle CPUs", totals.idle_hit_pct),
        share("for the waker", totals.sync_pull_pct),
        share("next", totals.next_slot_pct),
        time("all waits p50", waits.queue_p50_us, look),
        time("p99", waits.queue_p99_us, look),
    ]
}

fn moves(model: &Model) -> Vec<Item> {
    let totals = &model.frame.totals;
    vec![
        rate("steals near", totals.steals_near),
        rate("far", totals.steals_far),
        rate("missed", totals.steal_misses),
        rate("swaps", totals.exchanges),
        rate("preempted", totals.preemptions),
        rate("dispatches", totals.dispatches),
        share("kept", totals.keep_pct),
        rate("CPU masks", totals.affinity_changes),
    ]
}

/// How busy the machine was in the frames before, the newest on the right.
fn trend(canvas: &mut Canvas<'_>, x: u16, model: &Model) {
    let width = usize::from(canvas.width().saturating_sub(x + 6).min(60));
    let now = model.frame.time_ms;
    let past: Vec<&Moment> = model.trend.iter().filter(|m| m.time_ms <= now).collect();
    if width < 8 || past.len() < 2 {
        return;
    }
    let look = canvas.look;
    let shown = past.iter().skip(past.len().saturating_sub(width));
    let cells: String = shown.map(|moment| look.tenths(moment.busy)).collect();
    let end = canvas.width();
    canvas.ending(end, 0, &cells, Role::Accent);
    let start = end.saturating_sub(u16::try_from(cells.chars().count()).unwrap_or(end) + 1);
    canvas.ending(start, 0, "trend", Role::Dim);
}

/// Draw the histograms of the machine's waits, one below the other.
pub fn histograms(canvas: &mut Canvas<'_>, model: &Model) {
    let (width, height) = (canvas.width(), canvas.height());
    let half = height / 2;
    wakeups_by_wait(&mut canvas.part(0, 0, width, half.saturating_sub(1)), model);
    waits_by_length(&mut canvas.part(0, half, width, height - half), model);
}

/// Draw the histogram of waits from waking to running.
pub fn wakeups_by_wait(canvas: &mut Canvas<'_>, model: &Model) {
    waits::tall(canvas, "wakeups by their wait", &model.frame.waits.wakeup);
}

/// Draw the histogram of all waits until a task ran.
pub fn waits_by_length(canvas: &mut Canvas<'_>, model: &Model) {
    waits::tall(
        canvas,
        "all waits until a task ran",
        &model.frame.waits.queue,
    );
}
