// SPDX-License-Identifier: GPL-2.0-only
//! A part of the screen with coordinates of its own. Invariant: whatever is
//! drawn outside it is cut off, and names are shown without control characters.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::look::{Look, Role};

/// A part of the screen.
pub struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    /// What the terminal can show.
    pub look: Look,
}

/// A piece of text and what it tells.
pub type Piece = (String, Role);

impl<'a> Canvas<'a> {
    /// The part `area` of `buffer`, as far as there is one.
    pub fn new(buffer: &'a mut Buffer, area: Rect, look: Look) -> Self {
        let area = area.intersection(buffer.area);
        Self { buffer, area, look }
    }

    /// Cells in a line.
    pub const fn width(&self) -> u16 {
        self.area.width
    }

    /// Lines.
    pub const fn height(&self) -> u16 {
        self.area.height
    }

    /// The part of this part from column `x` and line `y` on.
    pub fn part(&mut self, x: u16, y: u16, width: u16, height: u16) -> Canvas<'_> {
        let (x, y) = (x.min(self.area.width), y.min(self.area.height));
        let area = Rect {
            x: self.area.x + x,
            y: self.area.y + y,
            width: width.min(self.area.width - x),
            height: height.min(self.area.height - y),
        };
        Canvas {
            buffer: self.buffer,
            area,
            look: self.look,
        }
    }

    /// Write at most `limit` cells of `text`; the column after it.
    pub fn text(&mut self, x: u16, y: u16, limit: u16, text: &str, role: Role) -> u16 {
        if y >= self.area.height || x >= self.area.width {
            return x;
        }
        let limit = limit.min(self.area.width - x);
        let style = self.look.style(role);
        let text = self.look.clean(text);
        let (column, line) = (self.area.x + x, self.area.y + y);
        let (end, _) = self
            .buffer
            .set_stringn(column, line, text, usize::from(limit), style);
        end - self.area.x
    }

    /// Write pieces one after the other; the column after them.
    pub fn pieces(&mut self, x: u16, y: u16, pieces: &[Piece]) -> u16 {
        pieces
            .iter()
            .fold(x, |x, (text, role)| self.text(x, y, u16::MAX, text, *role))
    }

    /// Write `text` so that it ends before column `end`.
    pub fn ending(&mut self, end: u16, y: u16, text: &str, role: Role) {
        let length = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
        let x = end.saturating_sub(length);
        self.text(x, y, end - x, text, role);
    }

    /// Give a whole line the style of `role`.
    pub fn paint(&mut self, y: u16, role: Role) {
        if y >= self.area.height {
            return;
        }
        let style = self.look.style(role);
        for x in 0..self.area.width {
            let cell = self.buffer.cell_mut((self.area.x + x, self.area.y + y));
            // Bars keep their colour.
            if let Some(cell) = cell.filter(|cell| !is_block(cell.symbol())) {
                cell.set_style(style);
            }
        }
    }

    /// Empty this part, and draw a frame with a title around its inside, which
    /// is returned.
    pub fn boxed(&mut self, title: &str) -> Canvas<'_> {
        let (width, height) = (self.area.width, self.area.height);
        for y in 0..height {
            for x in 0..width {
                if let Some(cell) = self.buffer.cell_mut((self.area.x + x, self.area.y + y)) {
                    cell.reset();
                }
            }
        }
        let look = self.look;
        let across = look
            .pick("─", "-")
            .repeat(usize::from(width.saturating_sub(2)));
        let upright = look.pick("│", "|");
        let top = format!("{}{across}{}", look.pick("┌", "+"), look.pick("┐", "+"));
        let bottom = format!("{}{across}{}", look.pick("└", "+"), look.pick("┘", "+"));
        for y in 0..height {
            self.text(0, y, 1, upright, Role::Head);
            self.text(width.saturating_sub(1), y, 1, upright, Role::Head);
        }
        self.text(0, 0, width, &top, Role::Head);
        self.text(0, height.saturating_sub(1), width, &bottom, Role::Head);
        let room = width.saturating_sub(4);
        self.text(2, 0, room, &format!(" {title} "), Role::Key);
        self.part(2, 1, room, height.saturating_sub(2))
    }
}

/// Whether a cell is part of a bar.
fn is_block(symbol: &str) -> bool {
    symbol.starts_with(|c| matches!(c, '\u{2580}'..='\u{259f}' | '▪'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_part() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 4));
        let look = Look {
            colour: false,
            unicode: true,
        };
        let mut all = Canvas::new(&mut buffer, Rect::new(0, 0, 99, 99), look);
        let mut part = all.part(2, 1, 4, 2);
        assert_eq!(part.text(0, 0, 99, "abcdefgh", Role::Plain), 4);
        assert_eq!(part.text(3, 1, 99, "界界", Role::Plain), 3);
        part.text(4, 0, 9, "x", Role::Plain);
        part.text(0, 2, 9, "x", Role::Plain);
        part.ending(2, 1, "xyz", Role::Plain);
        part.part(9, 9, 9, 9).text(0, 0, 9, "x", Role::Plain);
        let expected = Buffer::with_lines(["          ", "  abcd    ", "  xy      ", "          "]);
        assert_eq!(buffer, expected);
    }

    #[test]
    fn boxes_of_any_size() {
        for (width, height) in [(0, 0), (1, 1), (2, 2), (3, 9), (9, 3)] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 9, 9));
            let look = Look {
                colour: false,
                unicode: false,
            };
            let area = Rect::new(0, 0, width, height);
            let mut canvas = Canvas::new(&mut buffer, area, look);
            let mut inside = canvas.boxed("title");
            inside.text(0, 0, 9, "inside", Role::Plain);
        }
    }
}
