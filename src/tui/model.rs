// SPDX-License-Identifier: GPL-2.0-only
//! All that the screen is drawn from: the frame that is shown and what the
//! user chose. [`super::update`] changes it, [`super::view`] draws it.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::look::Look;
use super::rows;
use crate::stats::frame::{Decision, Frame};

/// Decisions kept for the log.
pub const LOG: usize = 500;

/// Frames of which the trend is kept.
pub const TREND: usize = 240;

/// What can be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// CPUs by cache and node.
    #[default]
    Machine,
    /// cgroups.
    Groups,
    /// Tasks.
    Tasks,
    /// Decisions of the balancer.
    Log,
    /// What to know before trusting the rest.
    Health,
}

impl View {
    /// All views, in the order of their keys.
    pub const ALL: [Self; 5] = [
        Self::Machine,
        Self::Groups,
        Self::Tasks,
        Self::Log,
        Self::Health,
    ];

    /// What users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Groups => "groups",
            Self::Tasks => "tasks",
            Self::Log => "log",
            Self::Health => "health",
        }
    }

    /// The view called `name`.
    ///
    /// # Errors
    ///
    /// A sentence with all names, if there is none.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|view| view.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            format!("not one of {}", names.join(", "))
        })
    }
}

/// How much of each CPU is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zoom {
    /// As much as there is room for.
    #[default]
    Fit,
    /// A line.
    Lines,
    /// A bar.
    Bars,
    /// A cell.
    Cells,
}

/// Order and place in the list of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of the column that is sorted by.
    pub sort: usize,
    /// Against the order that is natural for the column.
    pub reverse: bool,
    /// Row of the cursor.
    pub cursor: usize,
    /// What the cursor is on, once the user moved it: it stays there when the
    /// order changes.
    pub held: Option<u64>,
    /// First row on the screen.
    pub top: usize,
}

/// Where the frames come from, and what is to be said of that.
#[derive(Clone, Debug, PartialEq)]
pub enum Feed {
    /// A running scheduler.
    Live {
        /// Why no frames come now, if none do.
        lost: Option<String>,
    },
    /// A recording.
    Replay {
        /// Frames in it.
        frames: usize,
        /// The one that is shown, from 0.
        at: usize,
        /// How much faster than it was recorded.
        speed: f64,
    },
}

/// What lies over the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Overlay {
    /// Nothing.
    #[default]
    None,
    /// The keys, from a line on.
    Help(usize),
    /// The row of the cursor, explained, from a line on.
    Detail(usize),
    /// The filter is being typed; the one that Esc brings back.
    Filter(String),
    /// What to change.
    Menu {
        /// The entry that is chosen.
        at: usize,
        /// Lines of it that are scrolled over, where it does not fit.
        skip: usize,
    },
    /// A knob's new value is being typed.
    Knob {
        /// Which.
        key: &'static str,
        /// What is typed so far.
        text: String,
        /// What is wrong with it.
        wrong: Option<String>,
    },
    /// Really?
    Confirm {
        /// What is to be set.
        key: &'static str,
        /// And to what.
        value: String,
        /// The first line that is shown, where not all fit.
        top: usize,
    },
}

/// Busy and waiting over the last frames, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// The frame's time in milliseconds since 1970.
    pub time_ms: u64,
    /// Share of all CPUs' time, 0 to 1.
    pub busy: f64,
    /// Wait of 99 % of the wakeups, in microseconds.
    pub wait_us: f64,
}

/// What the user is told for a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// A sentence.
    pub text: String,
    /// Something went wrong.
    pub bad: bool,
}

/// All that the screen is drawn from.
#[derive(Clone, Debug)]
pub struct Model {
    /// What the terminal can show.
    pub look: Look,
    /// Its size in cells.
    pub size: (u16, u16),
    /// Where frames come from.
    pub feed: Feed,
    /// The frame that is shown; empty before the first has come.
    pub frame: Rc<Frame>,
    /// Frames are not taken as they come.
    pub paused: bool,
    /// What is looked at.
    pub view: View,
    /// Order and place of each view.
    pub places: [Place; View::ALL.len()],
    /// Only rows with this text are shown.
    pub filter: String,
    /// How much of each CPU is shown.
    pub zoom: Zoom,
    /// What lies over the view.
    pub overlay: Overlay,
    /// What the user is told.
    pub note: Option<Note>,
    /// Busy and waiting over the last frames.
    pub trend: VecDeque<Moment>,
    /// Decisions up to the newest frame that was ever shown.
    pub log: VecDeque<Decision>,
    /// Decisions that were dropped from it to make room.
    pub forgotten: u64,
    /// Time of that frame.
    pub newest_ms: u64,
    /// Time of the newest frame that came, shown or not.
    pub latest_ms: u64,
    /// Paths of cgroups, as far as a frame told them.
    pub paths: HashMap<u64, String>,
}

impl Model {
    /// Before the first frame.
    pub fn new(look: Look, size: (u16, u16), feed: Feed) -> Self {
        let mut places: [Place; View::ALL.len()] = Default::default();
        for (place, view) in places.iter_mut().zip(View::ALL) {
            place.sort = rows::first_order(view);
        }
        Self {
            look,
            size,
            feed,
            frame: Rc::default(),
            paused: false,
            view: View::default(),
            places,
            filter: String::new(),
            zoom: Zoom::default(),
            overlay: Overlay::default(),
            note: None,
            trend: VecDeque::new(),
            log: VecDeque::new(),
            forgotten: 0,
            newest_ms: 0,
            latest_ms: 0,
            paths: HashMap::new(),
        }
    }

    /// Order and place of the view that is shown.
    pub fn place(&self) -> &Place {
        let [machine, groups, tasks, log, health] = &self.places;
        match self.view {
            View::Machine => machine,
            View::Groups => groups,
            View::Tasks => tasks,
            View::Log => log,
            View::Health => health,
        }
    }

    /// The same, to change it.
    pub fn place_mut(&mut self) -> &mut Place {
        let [machine, groups, tasks, log, health] = &mut self.places;
        match self.view {
            View::Machine => machine,
            View::Groups => groups,
            View::Tasks => tasks,
            View::Log => log,
            View::Health => health,
        }
    }

    /// Whether a frame has come.
    pub fn started(&self) -> bool {
        self.frame.time_ms > 0
    }

    /// Tell the user something.
    pub fn say(&mut self, text: impl Into<String>, bad: bool) {
        let text = text.into();
        self.note = Some(Note { text, bad });
    }

    /// Show `frame`.
    pub fn show(&mut self, frame: Rc<Frame>) {
        let time_ms = frame.time_ms;
        if time_ms > self.newest_ms {
            self.newest_ms = time_ms;
            self.log.extend(frame.decisions.iter().cloned());
            self.trend.push_back(Moment {
                time_ms,
                busy: frame.totals.busy_pct / 100.0,
                wait_us: frame.waits.wakeup_p99_us,
            });
            let surplus = self.log.len().saturating_sub(LOG);
            self.log.drain(..surplus);
            self.forgotten += surplus as u64;
            let surplus = self.trend.len().saturating_sub(TREND);
            self.trend.drain(..surplus);
        }
        self.latest_ms = self.latest_ms.max(time_ms);
        self.frame = frame;
        self.learn();
    }

    /// Learn the paths of the cgroups that the frame tells.
    pub fn learn(&mut self) {
        let frame = &self.frame;
        let told = frame.groups.iter();
        self.paths
            .extend(told.map(|group| (group.id, group.path.clone())));
        // Also one that is gone by now has a name from here on.
        let tasks = frame.tasks.iter().filter(|_| !frame.groups.is_empty());
        for task in tasks {
            let unknown = || format!("(cgroup {})", task.group);
            self.paths.entry(task.group).or_insert_with(unknown);
        }
    }
}
