// SPDX-License-Identifier: GPL-2.0-only
//! The ring buffer through which the BPF program wakes the agent
//! (`bpf/events.h`). An event is a hint to look; it holds no truth of its own.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use plain::Plain;

use super::skeleton::types::{fulcrum_event, fulcrum_event_kind};

// SAFETY: the C struct is two 32-bit integers without padding (its size is
// asserted in bpf/events.h), so any bytes are a value of it.
unsafe impl Plain for fulcrum_event {}

/// What was among the events taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The BPF program wants an answer (`bpf/seat.h`).
    pub call: bool,
    /// A task has waited too long (`bpf/diagnose.h`).
    pub wait: bool,
}

/// The receiving end.
pub struct Events {
    ring: RingBuffer<'static>,
    heard: Rc<Cell<Heard>>,
}

impl Events {
    /// Listen to the BPF map `ring`.
    ///
    /// # Errors
    ///
    /// Those of mapping its memory.
    pub(super) fn of(ring: &dyn MapCore) -> libbpf_rs::Result<Self> {
        let mut builder = RingBufferBuilder::new();
        let heard = Rc::new(Cell::new(Heard::default()));
        let hears = Rc::clone(&heard);
        builder.add(ring, move |bytes| {
            log::debug!("{}", describe(bytes));
            hears.set(hear(hears.get(), bytes));
            0
        })?;
        let ring = builder.build()?;
        Ok(Self { ring, heard })
    }

    /// What can be read while events wait.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring buffer owns the descriptor and closes it when
        // dropped, which the borrow of `self` excludes.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    /// Take all events that wait; they show with `-v`.
    ///
    /// # Errors
    ///
    /// If the ring buffer is damaged.
    pub fn take(&self) -> libbpf_rs::Result<Heard> {
        self.ring.consume()?;
        Ok(self.heard.take())
    }
}

/// What one has heard after one more event.
fn hear(before: Heard, bytes: &[u8]) -> Heard {
    let kind = plain::from_bytes::<fulcrum_event>(bytes).map(|event| event.kind);
    Heard {
        call: before.call || kind == Ok(fulcrum_event_kind::FULCRUM_EVENT_CALL),
        wait: before.wait || kind == Ok(fulcrum_event_kind::FULCRUM_EVENT_WAITS),
    }
}

fn describe(bytes: &[u8]) -> String {
    match plain::from_bytes::<fulcrum_event>(bytes) {
        Ok(event) if event.kind == fulcrum_event_kind::FULCRUM_EVENT_EXIT => {
            format!(
                "event: the kernel ends the scheduler, exit kind {}",
                event.code
            )
        }
        Ok(event) if event.kind == fulcrum_event_kind::FULCRUM_EVENT_CALL => {
            format!("event: call {}", event.code)
        }
        Ok(event) if event.kind == fulcrum_event_kind::FULCRUM_EVENT_WAITS => {
            format!("event: report {} of a long wait", event.code)
        }
        Ok(event) => format!(
            "event of unknown kind {}, code {}",
            event.kind.0, event.code
        ),
        Err(error) => format!("event of {} bytes can't be read: {error:?}", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(event: &fulcrum_event) -> &[u8] {
        // SAFETY: see `Plain` above: no padding, so every byte is initialised.
        unsafe { plain::as_bytes(event) }
    }

    #[test]
    fn events_are_told_apart() {
        let event = |kind, code| fulcrum_event {
            kind: fulcrum_event_kind(kind),
            code,
        };
        let exit = describe(bytes(&event(1, 64)));
        assert!(exit.ends_with("exit kind 64"), "{exit}");
        let call = hear(Heard::default(), bytes(&event(2, 5)));
        assert_eq!((call.call, call.wait), (true, false));
        let both = hear(call, bytes(&event(3, 1)));
        assert_eq!((both.call, both.wait), (true, true));
        assert_eq!(hear(both, bytes(&event(1, 64))), both);
        let other = describe(bytes(&event(7, -1)));
        assert!(other.contains("unknown kind 7, code -1"), "{other}");
    }

    #[test]
    fn short_and_shifted_records_are_refused() {
        let event = fulcrum_event::default();
        assert!(describe(&bytes(&event)[..7]).contains("7 bytes"));
        let pair = [event, event];
        // SAFETY: as above.
        let shifted = unsafe { plain::as_bytes(&pair) };
        assert!(describe(&shifted[1..9]).contains("can't be read"));
        assert!(describe(&[]).contains("0 bytes"));
        assert_eq!(hear(Heard::default(), &[]), Heard::default());
    }
}
