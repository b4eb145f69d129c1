// SPDX-License-Identifier: GPL-2.0-only
//! A picture of the screen: the cells of a buffer as SVG.
//!
//! Block characters become rectangles, so that bars have no gaps whatever the
//! font; each other piece of text is fitted to its cells.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Size of a cell in the picture's units.
const WIDTH: usize = 8;
const HEIGHT: usize = 17;
const BASELINE: usize = 13;
const MARGIN: usize = 8;

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d5d8de";

/// The picture.
pub fn render(buffer: &Buffer) -> String {
    let (columns, lines) = (
        usize::from(buffer.area.width),
        usize::from(buffer.area.height),
    );
    let (width, height) = (columns * WIDTH + 2 * MARGIN, lines * HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"13\" xml:space=\"preserve\">\n"
    );
    for (y, line) in buffer.content().chunks(columns.max(1)).enumerate() {
        let mut x = 0;
        while let Some(run) = line.get(x..).and_then(run) {
            // Writing to a string cannot fail.
            let _ = draw(&mut svg, (x, y), run);
            x += run.len();
        }
    }
    svg + "</g>\n</svg>\n"
}

/// The cells from the first on that are drawn in one go: of one style, and
/// all blocks, or none.
fn run(cells: &[Cell]) -> Option<&[Cell]> {
    let first = cells.first()?;
    let same = |cell: &&Cell| {
        cell.style() == first.style()
            && block(cell.symbol()).is_some() == block(first.symbol()).is_some()
    };
    cells.get(..cells.iter().take_while(same).count())
}

fn draw(svg: &mut String, (x, y): (usize, usize), run: &[Cell]) -> std::fmt::Result {
    let Some(first) = run.first() else {
        return Ok(());
    };
    let (mut front, mut back) = (colour(first.fg, FOREGROUND), colour(first.bg, BACKGROUND));
    if first.modifier.contains(Modifier::REVERSED) {
        (front, back) = (back, front);
    }
    let (left, top) = (MARGIN + x * WIDTH, MARGIN + y * HEIGHT);
    let width = run.len() * WIDTH;
    if back != BACKGROUND {
        writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{back}\"/>"
        )?;
    }
    if block(first.symbol()).is_some() {
        return blocks(svg, (left, top), run, front);
    }
    let weight = if first.modifier.contains(Modifier::BOLD) {
        " font-weight=\"bold\""
    } else {
        ""
    };
    let line = if first.modifier.contains(Modifier::UNDERLINED) {
        " text-decoration=\"underline\""
    } else {
        ""
    };
    for (start, words) in words(run) {
        let text: String = words.iter().map(Cell::symbol).collect();
        writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{front}\"{weight}{line}>{}</text>",
            left + start * WIDTH,
            top + BASELINE,
            words.len() * WIDTH,
            escaped(&text)
        )?;
    }
    Ok(())
}

/// The cells with text, and where they begin: taken apart at two spaces, so
/// that columns stand where they are whatever the font.
fn words(run: &[Cell]) -> Vec<(usize, &[Cell])> {
    let space = |at: usize| {
        run.get(at)
            .is_none_or(|cell| cell.symbol().trim().is_empty())
    };
    let (mut found, mut start) = (Vec::new(), None);
    for at in 0..=run.len() {
        match start {
            None if !space(at) => start = Some(at),
            Some(from) if space(at) && space(at + 1) => {
                found.extend(run.get(from..at).map(|words| (from, words)));
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Part of the cell that a block character fills: left, top, width and height
/// in eighths.
fn block(symbol: &str) -> Option<(usize, usize, usize, usize)> {
    let mut chars = symbol.chars();
    let (Some(c), None) = (chars.next(), chars.next()) else {
        return None;
    };
    let code = c as usize;
    match code {
        // Lower eighths up to the full block.
        0x2581..=0x2588 => Some((0, 0x2588 - code, 8, code - 0x2580)),
        // Left eighths.
        0x2589..=0x258f => Some((0, 0, 0x2590 - code, 8)),
        0x2595 => Some((7, 0, 1, 8)),
        0x25aa => Some((2, 3, 4, 2)),
        _ => None,
    }
}

/// Draw blocks; full ones that follow each other as one rectangle.
fn blocks(
    svg: &mut String,
    (left, top): (usize, usize),
    run: &[Cell],
    fill: &str,
) -> std::fmt::Result {
    let mut at = 0;
    while let Some(cell) = run.get(at) {
        let Some((x, y, width, height)) = block(cell.symbol()) else {
            break;
        };
        let rest = run.get(at..).unwrap_or_default();
        let same = rest
            .iter()
            .take_while(|other| other.symbol() == cell.symbol())
            .count();
        let repeat = if x == 0 && width == 8 { same.max(1) } else { 1 };
        let eighth = |count: usize, of: usize| count as f64 * of as f64 / 8.0;
        writeln!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"/>",
            (left + at * WIDTH) as f64 + eighth(x, WIDTH),
            top as f64 + eighth(y, HEIGHT),
            eighth(width, WIDTH) + ((repeat - 1) * WIDTH) as f64,
            eighth(height, HEIGHT)
        )?;
        at += repeat;
    }
    Ok(())
}

fn colour(colour: Color, otherwise: &'static str) -> &'static str {
    match colour {
        Color::Black => "#16181d",
        Color::DarkGray => "#7c828d",
        Color::Gray => "#c4c8d0",
        Color::Red => "#f07178",
        Color::Green => "#8cc265",
        Color::Yellow => "#e5c07b",
        Color::Blue => "#61afef",
        Color::Cyan => "#56b6c2",
        _ => otherwise,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn a_picture_has_every_text_and_every_bar() {
        let mut buffer = Buffer::with_lines(["a<b& █▌ ▁", "     xyz "]);
        buffer.set_style(buffer.area, Style::new().fg(Color::Green));
        let svg = render(&buffer);
        assert!(svg.contains(">a&lt;b&amp;</text>"), "{svg}");
        assert!(svg.contains("textLength=\"24\""), "{svg}");
        assert!(svg.contains("fill=\"#8cc265\">xyz</text>"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 4, "{svg}");
        assert!(svg.ends_with("</g>\n</svg>\n"));
    }
}
