// SPDX-License-Identifier: GPL-2.0-only
//! The rows of each view, filtered and in order.

use super::model::{Model, View};
use super::table::{self, arranged};
use super::view::{self, decisions, groups, machine, tasks};

/// How many columns the rows of `view` can be sorted by.
pub fn orders(view: View) -> usize {
    match view {
        View::Machine => table::orders::<machine::CpuRow<'_>>(),
        View::Groups => table::orders::<groups::GroupRow<'_>>(),
        View::Tasks => table::orders::<tasks::TaskRow<'_>>(),
        View::Log => table::orders::<decisions::DecisionRow<'_>>(),
        View::Health => 1,
    }
}

/// The column that the rows of `view` are sorted by at first.
pub fn first_order(view: View) -> usize {
    match view {
        View::Tasks => table::order_of::<tasks::TaskRow<'_>>(tasks::Column::Waits),
        _ => 0,
    }
}

/// Whether the view that is shown is a text, in which there is no cursor.
pub fn are_lines(model: &Model) -> bool {
    match model.view {
        View::Machine => machine::zoom(model) != machine::Scale::Lines,
        View::Health => true,
        _ => false,
    }
}

/// What is in the list of the view that is shown: names that stay the same
/// when the order changes.
pub fn ids(model: &Model) -> Vec<u64> {
    match model.view {
        View::Machine if machine::zoom(model) == machine::Scale::Lines => of(&cpus(model)),
        View::Groups => of(&groups(model)),
        View::Tasks => of(&tasks(model)),
        View::Log => of(&decisions(model)),
        View::Machine => (0..machine::map_lines(model) as u64).collect(),
        View::Health => (0..view::health::lines(model).len() as u64).collect(),
    }
}

fn of<R: table::Row>(rows: &[R]) -> Vec<u64> {
    rows.iter().map(table::Row::id).collect()
}

/// CPUs.
pub fn cpus(model: &Model) -> Vec<machine::CpuRow<'_>> {
    let [place, ..] = &model.places;
    let rows = model.frame.cpus.iter().map(machine::CpuRow);
    arranged(rows.collect(), place, &model.filter)
}

/// cgroups.
pub fn groups(model: &Model) -> Vec<groups::GroupRow<'_>> {
    let [_, place, ..] = &model.places;
    arranged(groups::rows(model, place), place, &model.filter)
}

/// Tasks.
pub fn tasks(model: &Model) -> Vec<tasks::TaskRow<'_>> {
    let [_, _, place, ..] = &model.places;
    arranged(tasks::rows(model), place, &model.filter)
}

/// Decisions up to the frame that is shown.
pub fn decisions(model: &Model) -> Vec<decisions::DecisionRow<'_>> {
    let [_, _, _, place, _] = &model.places;
    arranged(decisions::rows(model), place, &model.filter)
}
