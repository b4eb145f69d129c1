// SPDX-License-Identifier: GPL-2.0-only
//! The screen: a bar on top, the view, a line of keys below, and what lies
//! over them. Drawing changes nothing: the same model gives the same screen.

pub mod decisions;
pub mod groups;
pub mod health;
pub mod machine;
pub mod map;
pub mod overlay;
pub mod summary;
pub mod tasks;
pub mod waits;

use ratatui::buffer::Buffer;

use super::canvas::{Canvas, Piece};
use super::keys::BINDINGS;
use super::look::Role;
use super::model::{Feed, Model, Overlay, View};
use super::units;

/// Lines above the view: the bar, and the names of the views where there is
/// room for them.
const fn above(height: u16) -> u16 {
    match height {
        0..=2 => 0,
        3..=9 => 1,
        _ => 2,
    }
}

/// Lines below the view.
const fn below(height: u16) -> u16 {
    if height >= 3 { 1 } else { 0 }
}

/// Lines that the view gets.
const fn body_height(height: u16) -> u16 {
    height - above(height) - below(height)
}

/// Rows of the list of the view that is shown for which there is room.
pub fn list_height(model: &Model) -> usize {
    let body = body_height(model.size.1);
    usize::from(match model.view {
        View::Machine => machine::list_height(model, body),
        View::Groups | View::Tasks | View::Log => body.saturating_sub(1),
        View::Health => body,
    })
}

/// How far what lies over the view can be scrolled.
pub fn overlay_lines(model: &Model) -> usize {
    let lines = match &model.overlay {
        Overlay::Help(_) => overlay::help_lines(model).len(),
        Overlay::Detail(_) => overlay::detail_lines(model).len(),
        Overlay::Menu { at, .. } => return overlay::menu_hidden(model, *at),
        Overlay::Confirm { key, value, .. } => return overlay::confirm_hidden(model, key, value),
        _ => 0,
    };
    lines.saturating_sub(overlay::text_height(model))
}

/// Whether the frame lacks what the view shows, as nobody asked for that then.
pub fn unasked(model: &Model, view: View) -> bool {
    let live = matches!(model.feed, Feed::Live { .. });
    live && match view {
        View::Machine => model.frame.cpus.is_empty(),
        View::Groups => model.frame.groups.is_empty(),
        View::Tasks => model.frame.tasks.is_empty(),
        View::Log | View::Health => false,
    }
}

/// What is said where a list is empty.
pub fn none(model: &Model, view: View) -> &'static str {
    if !model.started() {
        return "waiting for the first frame";
    }
    if unasked(model, view) {
        return match model.paused {
            true => "nobody looked at this then: Space goes on",
            false => "asked for: it comes with the next frame",
        };
    }
    if !model.filter.is_empty() {
        return "nothing contains the text of the filter: Esc forgets it";
    }
    match view {
        View::Machine => "this stream carries no CPUs",
        View::Groups => "no cgroup has tasks of the scheduler",
        View::Tasks => "no tasks are in this frame",
        View::Log => "the balancer has decided nothing yet",
        View::Health => "",
    }
}

/// Draw the whole screen into `buffer`.
pub fn draw(buffer: &mut Buffer, model: &Model) {
    let area = buffer.area;
    let mut screen = Canvas::new(buffer, area, model.look);
    let (width, height) = (area.width, area.height);
    let (top, bottom) = (above(height), below(height));
    if top > 0 {
        title(&mut screen.part(0, 0, width, 1), model);
    }
    if top > 1 {
        tabs(&mut screen.part(0, 1, width, 1), model);
    }
    let mut body = screen.part(0, top, width, height - top - bottom);
    match model.view {
        View::Machine => machine::draw(&mut body, model),
        View::Groups => groups::draw(&mut body, model),
        View::Tasks => tasks::draw(&mut body, model),
        View::Log => decisions::draw(&mut body, model),
        View::Health => health::draw(&mut body, model),
    }
    if bottom > 0 {
        status(&mut screen.part(0, height - 1, width, 1), model);
    }
    overlay::draw(&mut screen, model);
}

/// The bar on top: who schedules, how it is set, and whether this is now.
fn title(canvas: &mut Canvas<'_>, model: &Model) {
    let width = canvas.width();
    let (state, role) = feed(model);
    canvas.text(0, 0, width, &" ".repeat(usize::from(width)), role);
    let short = above(model.size.1) < 2;
    let mut left = if short {
        format!(" {} ", model.view.name())
    } else {
        " scx_fulcrum ".to_string()
    };
    let room = usize::from(width).saturating_sub(state.chars().count() + 1);
    for part in facts(model) {
        if left.chars().count() + part.chars().count() + 2 > room {
            break;
        }
        left += &part;
        left += "  ";
    }
    canvas.text(0, 0, width, &left, role);
    canvas.ending(width, 0, &format!("{state} "), role);
}

/// What is known of the scheduler, the most important first.
fn facts(model: &Model) -> Vec<String> {
    if !model.started() {
        return Vec::new();
    }
    let (scheduler, look) = (&model.frame.scheduler, model.look);
    let time = |us: u64| units::time(us as f64, look);
    let mode = match scheduler.mode.as_str() {
        "" => String::new(),
        mode => format!(" ({mode})"),
    };
    let up = model
        .frame
        .time_ms
        .saturating_sub(scheduler.active_since_ms);
    let plural =
        |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let machine = format!(
        "{}, {}, {}",
        plural(scheduler.cpus, "CPU"),
        plural(scheduler.llcs, "cache"),
        plural(scheduler.nodes, "node")
    );
    let mut facts = vec![
        format!("{}{mode}", scheduler.policy),
        format!("slice {}", time(scheduler.slice_us)),
        format!("credit {}", time(scheduler.credit_us)),
        format!("up {}", units::age(up)),
        machine,
        format!("Linux {}", scheduler.kernel),
        scheduler.version.clone(),
    ];
    if scheduler.partial {
        facts.insert(1, "partial".to_string());
    }
    facts
}

/// Whether what is shown is the present, for the right end of the bar.
fn feed(model: &Model) -> (String, Role) {
    let look = model.look;
    let (stop, play) = (look.pick("‖", "||"), look.pick("▶", ">"));
    match &model.feed {
        Feed::Live { lost: Some(_) } => ("no scheduler".to_string(), Role::Stale),
        Feed::Live { .. } if model.paused => {
            let clock = units::clock(model.frame.time_ms);
            (format!("{stop} paused at {clock}"), Role::Stale)
        }
        Feed::Live { .. } => (format!("{play} live"), Role::Title),
        Feed::Replay { frames, at, speed } => {
            let number = (at + 1).min(*frames);
            let place = format!("recording {number}/{frames}");
            match (model.paused, *speed == 1.0) {
                (true, _) => (format!("{stop} {place}"), Role::Stale),
                (false, true) => (format!("{play} {place}"), Role::Title),
                (false, false) => (format!("{play} {place} x{speed}"), Role::Title),
            }
        }
    }
}

/// The names of the views, and the filter.
fn tabs(canvas: &mut Canvas<'_>, model: &Model) {
    let narrow = canvas.width() < 54;
    let mut x = 1;
    for (number, view) in (1..).zip(View::ALL) {
        let chosen = view == model.view;
        let role = if chosen { Role::Title } else { Role::Plain };
        let warned = view == View::Health && health::alarms(model) > 0;
        let mark = if warned { "!" } else { "" };
        let gap = if narrow { "" } else { " " };
        x = canvas.text(x, 0, u16::MAX, &format!("{number}{gap}"), Role::Key);
        x = canvas.text(x, 0, u16::MAX, view.name(), role);
        x = canvas.text(x, 0, u16::MAX, mark, Role::Bad) + if narrow { 1 } else { 2 };
    }
    if !model.filter.is_empty() {
        let text = format!("filter: {} ", model.filter);
        let end = canvas.width();
        if usize::from(end - x.min(end)) >= text.chars().count() {
            canvas.ending(end, 0, &text, Role::Warn);
        }
    }
}

/// The line of keys; what is typed or said stands there instead.
fn status(canvas: &mut Canvas<'_>, model: &Model) {
    if let Overlay::Filter(_) = model.overlay {
        let cursor = model.look.pick("▏", "_").to_string();
        canvas.pieces(
            0,
            0,
            &[
                (" filter: ".to_string(), Role::Key),
                (model.filter.clone(), Role::Plain),
                (cursor, Role::Key),
                ("  Enter keeps it, Esc doesn't".to_string(), Role::Dim),
            ],
        );
        return;
    }
    let lost = match &model.feed {
        Feed::Live { lost } => lost.as_ref(),
        Feed::Replay { .. } => None,
    };
    if let Some(note) = &model.note {
        let role = if note.bad { Role::Bad } else { Role::Good };
        canvas.text(1, 0, u16::MAX, &note.text, role);
    } else if let Some(why) = lost {
        canvas.text(1, 0, u16::MAX, why, Role::Bad);
    } else {
        canvas.pieces(1, 0, &hints(canvas.width()));
    }
}

/// As many keys as there is room for.
fn hints(width: u16) -> Vec<Piece> {
    let mut left = usize::from(width).saturating_sub(1);
    let mut pieces = Vec::new();
    for binding in BINDINGS.iter().filter(|binding| !binding.short.is_empty()) {
        let length = binding.keys.len() + binding.short.len() + 3;
        if length > left {
            break;
        }
        left -= length;
        pieces.push((binding.keys.to_string(), Role::Key));
        pieces.push((format!(" {}  ", binding.short), Role::Plain));
    }
    pieces
}
