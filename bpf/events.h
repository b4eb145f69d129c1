/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * events.h: what wakes the agent.
 *
 * Invariant: an event is a hint to look, never the only place where something
 * is kept, so a full ring buffer loses nothing. None is sent from a hot path.
 */
#ifndef FULCRUM_EVENTS_H
#define FULCRUM_EVENTS_H

#include "platform.h"

enum fulcrum_event_kind {
	FULCRUM_EVENT_EXIT = 1,	/* uei says why; code: enum scx_exit_kind */
	FULCRUM_EVENT_CALL,	/* seat.h; code: its number */
	FULCRUM_EVENT_WAITS,	/* diagnose.h; code: the report's number */
};

struct fulcrum_event {
	enum fulcrum_event_kind kind;
	s32 code;
};

_Static_assert(sizeof(struct fulcrum_event) == 8, "fulcrum_event");

RING_BUFFER(events, 4096);

/* Sent once a life; in .bss rather than on the stack so that the agent's bindings know it. */
struct fulcrum_event exit_event;

static __always_inline void event_send(enum fulcrum_event_kind kind, s32 code)
{
	struct fulcrum_event event = { .kind = kind, .code = code };

	ring_output(&events, &event, sizeof(event));
}

static __always_inline void event_exit(s32 code)
{
	exit_event.kind = FULCRUM_EVENT_EXIT;
	exit_event.code = code;
	ring_output(&events, &exit_event, sizeof(exit_event));
}

#endif /* FULCRUM_EVENTS_H */
