// SPDX-License-Identifier: GPL-2.0-only
//! CPUs as a map: by node and cache, a bar or a cell each.

use std::collections::BTreeMap;

use crate::stats::frame::Cpu;
use crate::tui::canvas::{Canvas, Piece};
use crate::tui::look::{Look, Role};
use crate::tui::model::{Model, View};
use crate::tui::units;

use super::machine::{Scale, load, words};
use super::summary;
use super::tasks::waiting;

/// Cells that a CPU takes as a bar, with the gap after it.
const BAR: u16 = 21;

/// From this width on a cache has its node before its CPUs, and who waits
/// after them.
const WIDE: u16 = 36;

/// The CPUs that share a cache.
#[derive(Debug)]
pub struct Cache<'a> {
    node: u32,
    llc: u32,
    cpus: Vec<&'a Cpu>,
}

impl Cache<'_> {
    fn online(&self) -> impl Iterator<Item = &Cpu> {
        self.cpus.iter().copied().filter(|cpu| cpu.online)
    }

    /// Share of the time of its CPUs, 0 to 1.
    fn busy(&self) -> f64 {
        let sum: f64 = self.online().map(|cpu| cpu.busy_pct / 100.0).sum();
        sum / self.online().count().max(1) as f64
    }

    fn waiting(&self) -> u64 {
        self.online().map(|cpu| u64::from(cpu.waiting)).sum()
    }

    /// The longest of its CPUs' waits that 99 % did not exceed.
    fn wait_us(&self) -> f64 {
        self.online().map(|cpu| cpu.wait_p99_us).fold(0.0, f64::max)
    }

    fn role(&self) -> Role {
        let mut roles = self.online().map(load);
        let worst = |worst, role| match (worst, role) {
            (Role::Bad, _) | (_, Role::Bad) => Role::Bad,
            (Role::Warn, _) | (_, Role::Warn) => Role::Warn,
            _ => role,
        };
        roles
            .next()
            .map_or(Role::Dim, |first| roles.fold(first, worst))
    }
}

/// All caches with CPUs that the filter lets through, by node.
pub fn caches(model: &Model) -> Vec<Cache<'_>> {
    let wanted = model.filter.to_lowercase();
    let has = |cpu: &&Cpu| {
        let mut words = words(cpu).into_iter();
        wanted.is_empty() || words.any(|word| word.to_lowercase().contains(&wanted))
    };
    let mut found: BTreeMap<(u32, u32), Vec<&Cpu>> = BTreeMap::new();
    for cpu in model.frame.cpus.iter().filter(has) {
        found.entry((cpu.node, cpu.llc)).or_default().push(cpu);
    }
    let cache = |((node, llc), cpus)| Cache { node, llc, cpus };
    found.into_iter().map(cache).collect()
}

/// How the cells of caches are laid out: blocks side by side.
struct Blocks {
    /// Cells for the name of a cache before its CPUs.
    name: u16,
    /// CPUs in a line of a block.
    cells: u16,
    /// Lines of a block.
    lines: usize,
    /// Blocks side by side.
    columns: usize,
    /// Cells of a block, with the gap after it.
    width: u16,
}

impl Blocks {
    fn of(caches: &[Cache<'_>], width: u16) -> Self {
        let most = caches.iter().map(|cache| cache.cpus.len()).max();
        let most = most.unwrap_or(1).max(1);
        let (name, figures) = if width < WIDE { (5, 5) } else { (9, 14) };
        let room = width.saturating_sub(name + figures).max(1);
        let cells = room.min(u16::try_from(most).unwrap_or(u16::MAX));
        let block = name + cells + figures + 2;
        Self {
            name,
            cells,
            lines: most.div_ceil(usize::from(cells)),
            columns: usize::from((width + 2) / block).max(1),
            width: block,
        }
    }
}

/// Lines of the map of `scale` if it is `width` cells wide.
pub fn lines(model: &Model, scale: Scale, width: u16) -> usize {
    let caches = caches(model);
    if scale == Scale::Bars {
        let columns = usize::from(width / BAR).max(1);
        let lines = |cache: &Cache<'_>| 1 + cache.cpus.len().div_ceil(columns);
        return caches.iter().map(lines).sum();
    }
    let blocks = Blocks::of(&caches, width);
    caches.len().div_ceil(blocks.columns) * blocks.lines
}

/// Draw the map from the line on that the view is scrolled to, and below it
/// what the colours mean.
pub fn draw(canvas: &mut Canvas<'_>, model: &Model, scale: Scale) {
    let caches = caches(model);
    if caches.is_empty() {
        let none = super::none(model, View::Machine);
        canvas.text(0, 0, u16::MAX, none, Role::Dim);
        return;
    }
    let (width, height) = (canvas.width(), map_height(canvas.height()));
    let top = model.place().top;
    let mut map = canvas.part(0, 0, width, height);
    if scale == Scale::Bars {
        bars(&mut map, &caches, top);
    } else {
        cells(&mut map, &caches, top);
    }
    if height < canvas.height() {
        legend(&mut canvas.part(0, height, width, 1), scale);
    }
}

/// Lines for the map itself: what the colours mean stands below it.
pub const fn map_height(height: u16) -> u16 {
    if height > 4 { height - 1 } else { height }
}

fn legend(canvas: &mut Canvas<'_>, scale: Scale) {
    let what = match scale {
        Scale::Cells => canvas.look.pick("▁ idle to █ busy", "0 idle to 9 busy"),
        _ => "number, busy, tasks waiting",
    };
    let item = |text: &str, role| vec![(text.to_string(), role)];
    let items = [
        item("nobody waits", Role::Good),
        item("somebody waits", Role::Warn),
        item("8 or more, or 50 ms", Role::Bad),
        item(what, Role::Dim),
    ];
    summary::items(canvas, 0, &items);
}

/// Lines of the whole map that can be seen: where each is on the screen.
fn visible(line: usize, top: usize, height: u16) -> Option<u16> {
    let y = u16::try_from(line.checked_sub(top)?).ok()?;
    (y < height).then_some(y)
}

fn bars(canvas: &mut Canvas<'_>, caches: &[Cache<'_>], top: usize) {
    let columns = usize::from(canvas.width() / BAR).max(1);
    let mut line = 0;
    for cache in caches {
        if let Some(y) = visible(line, top, canvas.height()) {
            about(canvas, y, cache);
        }
        line += 1;
        for row in cache.cpus.chunks(columns) {
            if let Some(y) = visible(line, top, canvas.height()) {
                for (x, cpu) in (0_u16..).zip(row) {
                    bar(&mut canvas.part(x * BAR, y, BAR - 1, 1), cpu);
                }
            }
            line += 1;
        }
    }
}

/// One CPU as `  12 ######    82%  3`.
fn bar(canvas: &mut Canvas<'_>, cpu: &Cpu) {
    canvas.ending(4, 0, &cpu.cpu.to_string(), Role::Dim);
    if !cpu.online {
        canvas.text(5, 0, u16::MAX, "offline", Role::Dim);
        return;
    }
    let bar = canvas.look.bar(cpu.busy_pct / 100.0, 8);
    canvas.text(5, 0, 8, &bar, load(cpu));
    canvas.ending(
        17,
        0,
        &format!("{:.0}%", cpu.busy_pct.clamp(0.0, 999.0)),
        Role::Plain,
    );
    if cpu.waiting > 0 {
        canvas.ending(20, 0, &cpu.waiting.min(99).to_string(), load(cpu));
    }
}

/// The line of a cache above its CPUs.
fn about(canvas: &mut Canvas<'_>, y: u16, cache: &Cache<'_>) {
    let look = canvas.look;
    let name = format!("node {} LLC {}", cache.node, cache.llc);
    canvas.text(0, y, u16::MAX, &name, Role::Head);
    let mut x = 17;
    x = canvas
        .text(x, y, 12, &look.bar(cache.busy(), 12), cache.role())
        .max(29)
        + 1;
    let (wait, role) = waiting(cache.wait_us(), look);
    let pieces: [Piece; 5] = [
        (
            format!("{:>3.0}%", 100.0 * cache.busy().clamp(0.0, 9.0)),
            Role::Plain,
        ),
        (format!("  {:>3} CPUs", cache.online().count()), Role::Plain),
        (format!("  {:>3} waiting", cache.waiting()), Role::Plain),
        ("  worst p99 ".to_string(), Role::Dim),
        (format!("{wait:>6}"), role),
    ];
    canvas.pieces(x, y, &pieces);
}

/// The caches, a line each.
pub fn draw_caches(canvas: &mut Canvas<'_>, model: &Model) {
    for (y, cache) in (0..canvas.height()).zip(caches(model)) {
        about(canvas, y, &cache);
    }
}

fn cells(canvas: &mut Canvas<'_>, caches: &[Cache<'_>], top: usize) {
    let blocks = Blocks::of(caches, canvas.width());
    for (number, cache) in caches.iter().enumerate() {
        let first = number / blocks.columns * blocks.lines;
        let x = (number % blocks.columns) as u16 * blocks.width;
        for (line, row) in cache.cpus.chunks(usize::from(blocks.cells)).enumerate() {
            let Some(y) = visible(first + line, top, canvas.height()) else {
                continue;
            };
            let mut block = canvas.part(x, y, blocks.width, 1);
            if line == 0 {
                ends(&mut block, cache, &blocks);
            }
            for (at, cpu) in (blocks.name..).zip(row) {
                let (text, role) = cell(cpu, block.look);
                block.text(at, 0, 1, &text, role);
            }
        }
    }
}

/// What stands before and after the cells of a cache.
fn ends(canvas: &mut Canvas<'_>, cache: &Cache<'_>, blocks: &Blocks) {
    let after = blocks.name + blocks.cells;
    let wide = blocks.name > 5;
    let node = if wide {
        format!("n{} ", cache.node)
    } else {
        String::new()
    };
    let name = format!("{node}L{}", cache.llc);
    canvas.text(0, 0, blocks.name - 1, &name, Role::Head);
    let busy = format!("{:>4.0}%", 100.0 * cache.busy().clamp(0.0, 9.0));
    let waits = match cache.waiting() {
        count if count > 0 && wide => format!(" {} wait", units::count(count)),
        _ => String::new(),
    };
    canvas.pieces(after, 0, &[(busy, Role::Plain), (waits, cache.role())]);
}

fn cell(cpu: &Cpu, look: Look) -> Piece {
    if !cpu.online {
        return (look.pick("×", "x").to_string(), Role::Dim);
    }
    (look.tenths(cpu.busy_pct / 100.0).to_string(), load(cpu))
}
