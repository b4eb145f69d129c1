/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/latency.h: for desktops, audio and games. Pure decisions.
 *
 * As fair, shares included, but who wakes comes sooner: its request is due in
 * a quarter of the time (that is what the level is for: 1 after a wakeup, 0
 * once the task goes on as a busy one). The knobs that it brings say the rest:
 * shorter slices, and more credit for who has slept.
 */
#ifndef FULCRUM_POLICY_LATENCY_H
#define FULCRUM_POLICY_LATENCY_H

#include "fair.h"

static __always_inline u64 latency_wakes(struct ask *a)
{
	a->level = 1;
	return fair_wakes(a);
}

static __always_inline u64 latency_used_up(struct ask *a)
{
	a->level = 0;
	return fair_used_up(a);
}

static __always_inline u64 latency_deadline(const struct ask *a)
{
	u64 due_in = vtime_scale(a->request, a->weight.inv);

	return a->v + (a->level ? due_in / 4 : due_in);
}

static __always_inline bool latency_preempts(const struct contest *c)
{
	return fair_preempts(c);
}

static __always_inline bool latency_gives_way(u64 head, u64 due)
{
	return fair_gives_way(head, due);
}

#endif /* FULCRUM_POLICY_LATENCY_H */
