// SPDX-License-Identifier: GPL-2.0-only
//! The terminal: taken, and given back whatever happens. Invariant: as long
//! as the screen is ours, a panic gives the terminal back before it says what
//! happened.

use std::io::{self, Stdout, Write};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Take the terminal.
    ///
    /// # Errors
    ///
    /// Those of the terminal.
    pub fn take() -> io::Result<Self> {
        give_back_on_panic();
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let mut screen = Self { terminal };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        TAKEN.store(true, Ordering::Release);
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        self.clear()
    }

    /// Draw with `draw`; only what changed is sent, in one go.
    ///
    /// # Errors
    ///
    /// Those of the terminal: it may be gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        queue!(io::stdout(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| draw(frame.buffer_mut()))?;
        execute!(io::stdout(), EndSynchronizedUpdate)
    }

    /// Its size in cells.
    ///
    /// # Errors
    ///
    /// Those of the terminal.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Forget what is on the screen: the next drawing sends all of it.
    ///
    /// # Errors
    ///
    /// Those of the terminal.
    pub fn clear(&mut self) -> io::Result<()> {
        // The terminal's own way asks where the cursor is, and fails where
        // nobody answers.
        execute!(io::stdout(), Clear(ClearType::All))?;
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    /// Give the terminal to the shell, and take it again once the shell goes
    /// on with this process.
    ///
    /// # Errors
    ///
    /// Those of the terminal and of signals.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        let us = rustix::process::getpid();
        rustix::process::kill_process(us, rustix::process::Signal::TSTP)?;
        self.enter()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Give the terminal back, once. What fails now can't be helped.
fn give_back() {
    if TAKEN.swap(false, Ordering::AcqRel) {
        let _ = execute!(
            io::stdout(),
            EndSynchronizedUpdate,
            Show,
            LeaveAlternateScreen
        );
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

fn give_back_on_panic() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            give_back();
            say(what);
        }));
    });
}
