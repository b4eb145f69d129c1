/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/latency.h: for desktops, audio and games. Pure decisions.
 *
 * As fair, shares included, but whoever runs briefly comes sooner: its request
 * is due in a quarter of the time, and it may interrupt even if it has had a
 * little more than its share (a frame that takes longer than usual). Its own
 * knobs say the rest: short slices, and more credit for who has slept.
 */
#ifndef FULCRUM_POLICY_LATENCY_H
#define FULCRUM_POLICY_LATENCY_H

#include "fair.h"

/* So far over its share, in virtual time, may a task still interrupt. */
#define LATENCY_GRACE (2 * NSEC_PER_MSEC)

static __always_inline u64 latency_wakes(struct ask *a)
{
	return fair_wakes(a);
}

static __always_inline u64 latency_used_up(struct ask *a)
{
	return fair_used_up(a);
}

static __always_inline u64 latency_deadline(const struct ask *a)
{
	u64 due_in = vtime_scale(a->request, a->weight.inv);

	return a->v + (a->request < a->slice ? due_in / 4 : due_in);
}

static __always_inline bool latency_preempts(const struct contest *c)
{
	return vtime_before(c->deadline, c->curr_deadline) &&
	       !vtime_before(c->clock + LATENCY_GRACE, c->v);
}

static __always_inline bool latency_gives_way(u64 head, u64 due)
{
	return vtime_before(head, due);
}

#endif /* FULCRUM_POLICY_LATENCY_H */
