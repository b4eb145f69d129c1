// SPDX-License-Identifier: GPL-2.0-only
//! What the screen asks of the running scheduler: the sections that it shows
//! now, and no others.

use std::rc::Rc;

use super::model::{Model, View};
use super::view::machine;
use crate::stats::frame::Frame;
use crate::stats::observer::Sections;

/// The least interval between frames, in milliseconds, that counts as such.
const INTERVAL_MS: u64 = 1000;

/// By how much longer than the interval the next frame takes at most.
const LATE_MS: u64 = 500;

/// The sections to ask for.
pub fn wanted(model: &Model) -> Sections {
    if can_complete(model) {
        return Sections::ALL;
    }
    let tasks = match model.view {
        View::Machine => machine::shows_tasks(model),
        view => view == View::Tasks,
    };
    Sections {
        waits: model.view == View::Machine,
        cpus: model.view == View::Machine,
        tasks,
        groups: model.view == View::Groups || tasks && nameless(model),
        // The log is to have no gaps, whatever is looked at meanwhile.
        decisions: true,
    }
}

/// Whether there are tasks of cgroups whose paths are not known yet.
fn nameless(model: &Model) -> bool {
    let tasks = &model.frame.tasks;
    tasks.is_empty()
        || tasks
            .iter()
            .any(|task| !model.paths.contains_key(&task.group))
}

/// Whether the frame that is shown lacks what other views show.
fn lacks(frame: &Frame) -> bool {
    frame.cpus.is_empty() || frame.groups.is_empty() || frame.tasks.is_empty()
}

/// Whether the screen has just been paused: then what was not asked for is
/// fetched once, so that all views can be looked at.
fn can_complete(model: &Model) -> bool {
    let since = model.latest_ms.saturating_sub(model.frame.time_ms);
    let next = model.frame.interval_ms.max(INTERVAL_MS) + LATE_MS;
    model.paused && model.started() && since <= next && lacks(&model.frame)
}

/// Complete the frame that is shown by what `later` has and it lacks.
pub fn complete(model: &mut Model, later: &Frame) {
    model.latest_ms = model.latest_ms.max(later.time_ms);
    if !can_complete(model) {
        return;
    }
    let shown = Rc::make_mut(&mut model.frame);
    fill(&mut shown.cpus, &later.cpus);
    fill(&mut shown.groups, &later.groups);
    fill(&mut shown.tasks, &later.tasks);
    if shown.waits.queue.count() == 0 {
        shown.waits = later.waits.clone();
    }
    model.learn();
}

fn fill<T: Clone>(part: &mut Vec<T>, later: &[T]) {
    if part.is_empty() {
        part.extend_from_slice(later);
    }
}

#[cfg(test)]
#[path = "sections_tests.rs"]
mod tests;
