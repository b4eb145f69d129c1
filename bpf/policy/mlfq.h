/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/mlfq.h: multi-level feedback, as textbooks have it. Pure decisions.
 *
 * A new task starts on level 0, with half a slice. It falls a level when it
 * uses its request up, to twice the slice, and rises one when it wakes and its
 * bursts would have fitted the level above. Nice levels mean nothing.
 *
 * A level is a distance: on level 2 a task is due two ages after the moment it
 * joined the queue. So whoever waits ages by itself as the queue's clock goes
 * on, and after so long even a task of the last level comes before those that
 * join the first. Equal deadlines run in order of arrival.
 */
#ifndef FULCRUM_POLICY_MLFQ_H
#define FULCRUM_POLICY_MLFQ_H

#include "ask.h"

#define MLFQ_LAST_LEVEL	3
#define MLFQ_AGE	(16 * NSEC_PER_MSEC)

/* Half the slice knob on level 0, four times as much on the last: 50 us .. 400 ms */
static __always_inline u64 mlfq_slice(u64 slice, u32 level)
{
	return slice / 2 << (level & MLFQ_LAST_LEVEL);
}

static __always_inline u64 mlfq_wakes(struct ask *a)
{
	if (a->level > MLFQ_LAST_LEVEL)
		a->level = MLFQ_LAST_LEVEL;
	if (a->level && a->burst < mlfq_slice(a->slice, a->level - 1))
		a->level--;
	return mlfq_slice(a->slice, a->level);
}

static __always_inline u64 mlfq_used_up(struct ask *a)
{
	a->level = a->level < MLFQ_LAST_LEVEL ? a->level + 1 : MLFQ_LAST_LEVEL;
	return mlfq_slice(a->slice, a->level);
}

static __always_inline u64 mlfq_deadline(const struct ask *a)
{
	return a->clock + (a->level & MLFQ_LAST_LEVEL) * MLFQ_AGE;
}

static __always_inline bool mlfq_preempts(const struct contest *c)
{
	return vtime_before(c->deadline, c->curr_deadline);
}

static __always_inline bool mlfq_gives_way(u64 head, u64 due)
{
	return vtime_before(head, due);
}

#endif /* FULCRUM_POLICY_MLFQ_H */
