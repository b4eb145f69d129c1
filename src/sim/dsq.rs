// SPDX-License-Identifier: GPL-2.0-only
//! Dispatch queues: ordered by virtual time, or first in first out.

use std::cmp::Ordering;
use std::collections::VecDeque;

/// A task's index in the machine.
pub type TaskId = usize;

/// A user queue. FIFO entries carry no order of their own; the kernel forbids
/// both kinds in one queue at a time.
#[derive(Default)]
pub struct Dsq {
    entries: VecDeque<(u64, TaskId)>,
    /// The kind of what is queued.
    pub by_vtime: bool,
}

fn order(a: u64, b: u64) -> Ordering {
    (a.wrapping_sub(b) as i64).cmp(&0)
}

impl Dsq {
    /// Tasks queued.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No task queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The tasks, first to run first.
    pub fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.entries.iter().map(|entry| entry.1)
    }

    /// The task at `position`.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<TaskId> {
        self.entries.get(position).map(|entry| entry.1)
    }

    /// Behind all tasks whose virtual time is not later.
    pub fn insert(&mut self, vtime: u64, task: TaskId) {
        let at = self
            .entries
            .partition_point(|entry| order(entry.0, vtime) != Ordering::Greater);
        self.entries.insert(at, (vtime, task));
        self.by_vtime = true;
    }

    /// At the end, or the beginning, of a FIFO queue.
    pub fn push(&mut self, task: TaskId, front: bool) {
        if front {
            self.entries.push_front((0, task));
        } else {
            self.entries.push_back((0, task));
        }
        self.by_vtime = false;
    }

    /// Takes out the task at `position`.
    pub fn remove_at(&mut self, position: usize) -> Option<TaskId> {
        self.entries.remove(position).map(|entry| entry.1)
    }

    /// Takes out `task`, queued with `vtime`; false: it isn't here.
    pub fn remove(&mut self, vtime: u64, task: TaskId) -> bool {
        let start = if self.by_vtime {
            self.entries
                .partition_point(|entry| order(entry.0, vtime) == Ordering::Less)
        } else {
            0
        };
        let found = (start..self.entries.len()).find(|&at| self.entries[at].1 == task);
        found.is_some_and(|at| self.entries.remove(at).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_wrap_around_and_equal_times_keep_their_turn() {
        let mut queue = Dsq::default();
        for (vtime, task) in [(5, 0), (u64::MAX - 5, 1), (5, 2), (u64::MAX, 3), (0, 4)] {
            queue.insert(vtime, task);
        }
        assert_eq!(queue.iter().collect::<Vec<_>>(), [1, 3, 4, 0, 2]);
        assert!(queue.remove(5, 2) && !queue.remove(5, 2));
        assert_eq!(queue.len(), 4);
    }
}
