// SPDX-License-Identifier: GPL-2.0-only
//! The flags of `scx_fulcrum top`, and which way of showing frames they ask
//! for.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::live::{Asked, ON_THE_WAY, Outbox, follow};
use super::look::Look;
use super::model::{Feed, Model, View};
use super::player::{Live, Player, Replay};
use super::replay::Recording;
use super::session::{Record, Session};
use super::{lines, sections, svg, update, view};
use crate::control::watch;
use crate::exit::{ExitCode, Failure, Outcome};
use crate::stats::observer::Sections;
use crate::wake::Sleeper;

/// Largest picture, in cells each way.
const LARGEST: u16 = 500;

/// Flags of `scx_fulcrum top`.
#[derive(Args, Clone, Debug)]
pub struct TopArgs {
    /// Seconds between two frames (0.1 to 60)
    #[arg(short, long, value_name = "SEC", default_value = "1", value_parser = interval)]
    pub interval: Duration,

    /// The view to begin with: machine, groups, tasks, log or health
    #[arg(long, value_name = "NAME", default_value = "machine", value_parser = View::named)]
    pub view: View,

    /// Play a recorded stream instead of watching the scheduler that runs
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub replay: Option<PathBuf>,

    /// Also write the stream to FILE, for --replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Draw with ASCII characters only, whatever the locale
    #[arg(long)]
    pub ascii: bool,

    /// Print a line for each frame instead of drawing a screen; so it does
    /// where standard output is no terminal
    #[arg(long)]
    pub lines: bool,

    /// Where the stream is served
    #[arg(
        long,
        value_name = "PATH",
        hide = true,
        default_value = watch::SOCKET
    )]
    pub socket: PathBuf,

    /// Draw one screen of the recording as a picture into FILE
    #[arg(long, value_name = "FILE", hide = true, requires = "replay")]
    pub svg: Option<PathBuf>,

    /// Size of the picture in cells
    #[arg(long, value_name = "WxH", hide = true, default_value = "100x30", value_parser = size)]
    pub size: (u16, u16),

    /// Number of the recording's frame that the picture shows [default: the last]
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub frame: Option<usize>,
}

fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not a number of seconds in 0.1..=60".to_string()),
    }
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let cells = |text: &str| text.parse().ok().filter(|n| (1..=LARGEST).contains(n));
    let parts = text.split_once('x');
    let size = parts.and_then(|(width, height)| Some((cells(width)?, cells(height)?)));
    size.ok_or_else(|| format!("not WxH with numbers in 1..={LARGEST}"))
}

/// Show what the flags ask for, until the user or a signal ends it.
///
/// # Errors
///
/// [`ExitCode::NoStatistics`] if there is nobody to watch,
/// [`ExitCode::Usage`] for files that can't be used.
pub fn run(args: &TopArgs, sleeper: &Sleeper) -> Outcome<()> {
    let look = Look::of(|name| std::env::var(name).ok());
    let look = Look {
        unicode: look.unicode && !args.ascii,
        ..look
    };
    match &args.replay {
        Some(file) => replay(args, Recording::open(file)?, look, sleeper),
        None => live(args, look, sleeper),
    }
}

/// Whether a screen can be drawn.
fn has_screen(args: &TopArgs) -> bool {
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    !args.lines && !dumb && io::stdout().is_terminal()
}

fn live(args: &TopArgs, look: Look, sleeper: &Sleeper) -> Outcome<()> {
    let mut model = Model::new(look, (80, 24), Feed::Live { lost: None });
    model.view = args.view;
    // A recording is to have all views.
    let first = match (&args.record, has_screen(args)) {
        (Some(_), _) => Sections::ALL,
        (None, true) => sections::wanted(&model),
        (None, false) => lines::SECTIONS,
    };
    let asked = Asked::new(&args.socket, args.interval, first);
    let stream = asked.subscribe()?;
    let record = args.record.as_deref().map(Record::begin).transpose()?;
    let (sender, inbox) = mpsc::sync_channel(ON_THE_WAY);
    let outbox = Outbox::new(sender, sleeper.waker());
    follow(asked.clone(), stream, outbox.clone());
    if !has_screen(args) {
        return lines::follow(&inbox, record, sleeper);
    }
    let mut session = Session {
        model,
        player: Player::Live(Live::default()),
        asked: record.is_none().then_some(asked),
        record,
        inbox,
        outbox,
        sleeper,
    };
    session.run()
}

fn replay(args: &TopArgs, recording: Recording, look: Look, sleeper: &Sleeper) -> Outcome<()> {
    let replay = Replay::new(recording)?;
    if let Some(file) = &args.svg {
        return picture(args, replay, file);
    }
    if !has_screen(args) {
        return lines::replay(replay, sleeper);
    }
    let (sender, inbox) = mpsc::sync_channel(ON_THE_WAY);
    let mut model = Model::new(look, (80, 24), replay.feed());
    model.view = args.view;
    update::show(&mut model, replay.shown());
    let mut session = Session {
        model,
        player: Player::Replay(replay),
        asked: None,
        record: None,
        inbox,
        outbox: Outbox::new(sender, sleeper.waker()),
        sleeper,
    };
    session.run()
}

/// Draw a screen as it is after the frames up to one, into a file.
fn picture(args: &TopArgs, mut replay: Replay, file: &Path) -> Outcome<()> {
    let look = Look {
        colour: true,
        unicode: !args.ascii,
    };
    let mut model = Model::new(look, args.size, replay.feed());
    model.view = args.view;
    update::show(&mut model, replay.shown());
    let mut number = 1;
    while !replay.ended() && args.frame.is_none_or(|last| number < last) {
        replay.step(1)?;
        number += 1;
        model.feed = replay.feed();
        update::show(&mut model, replay.shown());
    }
    let (width, height) = args.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    view::draw(&mut buffer, &model);
    fs::write(file, svg::render(&buffer)).map_err(|error| {
        let message = format!(
            "{} can't be written ({error}): name a file that can",
            file.display()
        );
        Failure::new(ExitCode::Usage, message)
    })
}
