// SPDX-License-Identifier: GPL-2.0-only
//! Tasks: who waits, who interrupts whom, what each is owed.

use std::collections::HashMap;
use std::rc::Rc;

use crate::stats::frame::Task;
use crate::tui::canvas::{Canvas, Piece};
use crate::tui::look::{Look, Role};
use crate::tui::model::{Model, Place, View};
use crate::tui::rows;
use crate::tui::table::{self, FALLING, Key, LEFT, RIGHT, RISING, Row, Shown, column};
use crate::tui::units;

/// The columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Thread number.
    Pid,
    /// Name.
    Name,
    /// Running, queued or blocked.
    State,
    /// How long it has waited now.
    Waits,
    /// CPU.
    Cpu,
    /// What it is owed.
    Lag,
    /// What it usually uses between two sleeps.
    Burst,
    /// Its last wait.
    Last,
    /// Its longest wait.
    Max,
    /// Nice value.
    Nice,
    /// Policy in the kernel.
    Policy,
    /// Who woke it.
    Woken,
    /// Who took the CPU from it.
    Preempted,
    /// Its cgroup.
    Group,
}

/// What rows need to know of the other tasks and of cgroups.
#[derive(Debug, Default)]
pub struct Names<'a> {
    tasks: HashMap<u32, &'a str>,
    groups: HashMap<u64, &'a str>,
}

/// A task as a row.
#[derive(Debug)]
pub struct TaskRow<'a> {
    task: &'a Task,
    names: Rc<Names<'a>>,
}

/// All tasks: who runs and who waits before the others.
pub fn rows(model: &Model) -> Vec<TaskRow<'_>> {
    let frame = &model.frame;
    let tasks = frame.tasks.iter().map(|task| (task.pid, &*task.comm));
    let groups = model.paths.iter().map(|(&id, path)| (id, &**path));
    let names = Rc::new(Names {
        tasks: tasks.collect(),
        groups: groups.collect(),
    });
    let mut tasks: Vec<_> = frame.tasks.iter().collect();
    tasks.sort_by_key(|task| (liveliness(task), task.pid));
    let row = |task| TaskRow {
        task,
        names: Rc::clone(&names),
    };
    tasks.into_iter().map(row).collect()
}

fn liveliness(task: &Task) -> u8 {
    match task.state.as_str() {
        "queued" => 0,
        "running" => 1,
        _ => 2,
    }
}

impl Row for TaskRow<'_> {
    type Column = Column;

    const COLUMNS: &'static [table::Column<Column>] = &[
        column(Column::Pid, "PID", (7, RIGHT), 2, RISING),
        table::Column {
            most: 16,
            ..column(Column::Name, "NAME", (11, LEFT), 0, RISING)
        },
        column(Column::State, "STATE", (5, LEFT), 3, RISING),
        column(Column::Waits, "WAITS", (units::TIME, RIGHT), 1, FALLING),
        column(Column::Cpu, "CPU", (4, RIGHT), 6, RISING),
        column(Column::Lag, "LAG", (units::LAG, RIGHT), 4, FALLING),
        column(Column::Burst, "BURST", (units::TIME, RIGHT), 7, FALLING),
        column(Column::Last, "LAST", (units::TIME, RIGHT), 9, FALLING),
        column(Column::Max, "MAX", (units::TIME, RIGHT), 10, FALLING),
        column(Column::Nice, "NI", (3, RIGHT), 8, RISING),
        column(Column::Policy, "POL", (6, LEFT), 12, RISING),
        table::Column {
            most: 24,
            ..column(Column::Preempted, "PREEMPTED BY", (16, LEFT), 5, RISING)
        },
        table::Column {
            most: 24,
            ..column(Column::Woken, "WOKEN BY", (16, LEFT), 11, RISING)
        },
        table::Column {
            most: 80,
            ..column(Column::Group, "CGROUP", (20, LEFT), 13, RISING)
        },
    ];

    fn id(&self) -> u64 {
        u64::from(self.task.pid)
    }

    fn cell(&self, column: Column, width: u16, look: Look) -> Piece {
        let task = self.task;
        let asleep = liveliness(task) > 1;
        let figure = if asleep { Role::Dim } else { Role::Plain };
        let time = |us: f64| (units::time(us, look), figure);
        match column {
            Column::Pid => (task.pid.to_string(), Role::Dim),
            Column::Name => (task.comm.clone(), Role::Plain),
            Column::State => state(task),
            Column::Waits if task.waits_since_us <= 0.0 => (String::new(), Role::Plain),
            Column::Waits => waiting(task.waits_since_us, look),
            Column::Cpu => (task.cpu.to_string(), figure),
            Column::Lag if asleep => (units::lag(self.task.lag_us, look), Role::Dim),
            Column::Lag => (units::lag(self.task.lag_us, look), owed(self.task.lag_us)),
            Column::Burst => time(task.burst_us),
            Column::Last => time(task.last_wait_us),
            Column::Max => waiting(task.max_wait_us, look),
            Column::Nice => (task.nice.to_string(), figure),
            Column::Policy => (task.policy.clone(), Role::Dim),
            Column::Woken => self.other(task.woken_by, width, look),
            Column::Preempted => self.other(task.preempted_by, width, look),
            Column::Group => {
                let path = self.group();
                (units::tail(path, usize::from(width), look), Role::Dim)
            }
        }
    }

    fn key(&self, column: Column) -> Key {
        let task = self.task;
        match column {
            Column::Pid => Key::Number(f64::from(task.pid)),
            Column::Name => Key::Text(task.comm.to_lowercase()),
            Column::State => Key::Number(f64::from(liveliness(task))),
            Column::Waits => Key::Number(task.waits_since_us),
            Column::Cpu => Key::Number(f64::from(task.cpu)),
            Column::Lag => Key::Number(self.task.lag_us),
            Column::Burst => Key::Number(task.burst_us),
            Column::Last => Key::Number(task.last_wait_us),
            Column::Max => Key::Number(task.max_wait_us),
            Column::Nice => Key::Number(f64::from(task.nice)),
            Column::Policy => Key::Text(task.policy.clone()),
            Column::Woken => named_first(self.name(task.woken_by)),
            Column::Preempted => named_first(self.name(task.preempted_by)),
            Column::Group => Key::Text(self.group().to_string()),
        }
    }

    fn words(&self) -> Vec<String> {
        let task = self.task;
        vec![
            task.comm.clone(),
            task.pid.to_string(),
            task.state.clone(),
            task.policy.clone(),
            self.group().to_string(),
            format!("cpu{}", task.cpu),
        ]
    }
}

impl<'a> TaskRow<'a> {
    /// The task itself.
    pub const fn raw(&self) -> &'a Task {
        self.task
    }

    fn group(&self) -> &str {
        let found = self.names.groups.get(&self.task.group).copied();
        found.unwrap_or(if self.task.group == 0 { "/" } else { "?" })
    }

    /// The name of another task; nobody has none.
    fn name(&self, pid: u32) -> &str {
        let name = self.names.tasks.get(&pid).copied();
        name.filter(|_| pid != 0).unwrap_or_default()
    }

    /// Another task, by name and number.
    fn other(&self, pid: u32, width: u16, look: Look) -> Piece {
        match self.name(pid) {
            _ if pid == 0 => (String::new(), Role::Plain),
            "" => (pid.to_string(), Role::Dim),
            name => (units::named(name, pid, width, look), Role::Plain),
        }
    }
}

/// Names in order, and after them the rows that have none.
fn named_first(name: &str) -> Key {
    if name.is_empty() {
        Key::Text(char::MAX.to_string())
    } else {
        Key::Text(name.to_lowercase())
    }
}

fn state(task: &Task) -> Piece {
    match task.state.as_str() {
        "running" => ("run".to_string(), Role::Good),
        "queued" => ("wait".to_string(), Role::Warn),
        "blocked" => ("sleep".to_string(), Role::Dim),
        other => (other.to_string(), Role::Dim),
    }
}

/// A wait: 50 ms can be felt, a second is too long.
pub fn waiting(us: f64, look: Look) -> Piece {
    let role = match us {
        us if us >= 1e6 => Role::Bad,
        us if us >= 5e4 => Role::Warn,
        _ => Role::Plain,
    };
    (units::time(us, look), role)
}

/// What a task is owed: more than the usual slices is worth a look.
fn owed(lag_us: f64) -> Role {
    match lag_us {
        lag if lag >= 20_000.0 => Role::Warn,
        lag if lag < 0.0 => Role::Accent,
        _ => Role::Plain,
    }
}

/// The tasks that have waited longest until now, for where there is room.
pub fn longest(canvas: &mut Canvas<'_>, model: &Model) {
    let place = Place {
        sort: table::order_of::<TaskRow<'_>>(Column::Waits),
        ..Place::default()
    };
    let mut tasks = table::arranged(rows(model), &place, "");
    tasks.truncate(usize::from(canvas.height()));
    let shown = Shown {
        place: &place,
        none: super::none(model, View::Tasks),
    };
    table::draw(canvas, &tasks, &shown);
}

/// Draw the view.
pub fn draw(canvas: &mut Canvas<'_>, model: &Model) {
    let shown = Shown {
        place: model.place(),
        none: super::none(model, View::Tasks),
    };
    table::draw(canvas, &rows::tasks(model), &shown);
}
