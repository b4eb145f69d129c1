// SPDX-License-Identifier: GPL-2.0-only
//! Who steers, and whether somebody is there (`bpf/seat.h`): as the agent sees
//! it, and for others who ask while the agent may be stuck.

use std::time::Duration;

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use plain::Plain;
use rustix::time::{ClockId, clock_gettime};

use super::skeleton::types::agent_seat;

/// The map's name, in the kernel's list of all.
const MAP: &str = ".data.fulcrum";

/// So long without an answer, and the agent counts as stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(2);

// SAFETY: integers without padding (the size is asserted in bpf/abi.h), so any
// bytes are a value of it.
unsafe impl Plain for agent_seat {}

/// The seat at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// Of the agent that sits; 0: none ever did.
    pub epoch: u32,
    /// Number of its last command.
    pub generation: u32,
    /// Calls made to the agent.
    pub calls: u32,
    /// Commands refused: those of agents that another one had replaced.
    pub refused: u32,
    /// Since when the agent owes an answer, if it does.
    pub unanswered: Option<Duration>,
    /// Since it last answered, if it ever did.
    pub answered: Option<Duration>,
}

impl Seat {
    pub(super) fn of(raw: &agent_seat, now: Duration) -> Self {
        let since = |at: u64| now.saturating_sub(Duration::from_nanos(at));
        Self {
            epoch: raw.epoch,
            generation: raw.generation,
            calls: raw.calls,
            refused: raw.refused,
            unanswered: (raw.calls != raw.answered).then(|| since(raw.unanswered_since)),
            answered: (raw.answered_at != 0).then(|| since(raw.answered_at)),
        }
    }

    /// The seat of the scheduler that is loaded now, whoever loaded it; `None`
    /// if there is none, or this user may not look.
    pub fn find() -> Option<Self> {
        let info = MapInfoIter::default().find(|info| info.name == MAP)?;
        let map = MapHandle::from_map_id(info.id).ok()?;
        let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        let mut raw = agent_seat::default();
        raw.copy_from_bytes(&bytes).ok()?;
        Some(Self::of(&raw, monotonic()))
    }

    /// Does the agent owe an answer for longer than it could have a reason to?
    pub fn is_stuck(&self) -> bool {
        self.unanswered.is_some_and(|since| since >= STUCK_AFTER)
    }
}

/// The clock that the BPF program stamps with.
pub fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(
        now.tv_sec.try_into().unwrap_or(0),
        now.tv_nsec.try_into().unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_owes_an_answer_for_long_is_stuck() {
        let now = Duration::from_secs(100);
        let mut raw = agent_seat {
            epoch: 3,
            calls: 7,
            answered: 7,
            answered_at: 60_000_000_000,
            unanswered_since: 59_000_000_000,
            ..agent_seat::default()
        };
        let seat = Seat::of(&raw, now);
        assert_eq!(seat.answered, Some(Duration::from_secs(40)));
        // Nobody called: it may sleep.
        assert!(!seat.is_stuck());
        raw.calls = 8;
        raw.unanswered_since = 99_000_000_000;
        assert!(!Seat::of(&raw, now).is_stuck());
        raw.unanswered_since = 97_000_000_000;
        assert!(Seat::of(&raw, now).is_stuck());
        assert_eq!(Seat::of(&agent_seat::default(), now), Seat::default());
    }
}
