/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/fair.h: the default policy. Pure decisions, no kernel call.
 *
 * A task asks for CPU time in requests. What it asks for is what it is known
 * to need: the CPU time it used between its last wakeups. A short request has
 * an early deadline (v + request / weight), so tasks that run briefly start
 * at once; they get no more CPU for it because v is charged for all they use.
 *
 * A task that uses its request up without sleeping is busy, and then asks for
 * a slice. Slices are equal in virtual time: a task of double weight gets
 * double the CPU time at a time, and all rotate at the same pace. Where weights
 * differ slices are half as long: a timer ends them in time there, so nobody
 * is ever further ahead, or behind, than such a slice.
 */
#ifndef FULCRUM_POLICY_FAIR_H
#define FULCRUM_POLICY_FAIR_H

#include "ask.h"

static __always_inline u64 fair_wakes(struct ask *a)
{
	if (a->burst < REQUEST_MIN)
		return REQUEST_MIN;
	if (a->burst > REQUEST_MAX)
		return REQUEST_MAX;
	return a->burst;
}

static __always_inline u64 fair_used_up(struct ask *a)
{
	u64 slice = a->mixed ? a->slice / 2 : a->slice;
	u64 request = slice * a->weight.weight / NICE_0_WEIGHT;

	if (request < BUSY_REQUEST_MIN)
		return BUSY_REQUEST_MIN;
	if (request > 2 * a->slice)
		return 2 * a->slice;
	return request;
}

static __always_inline u64 fair_deadline(const struct ask *a)
{
	return a->v + vtime_scale(a->request, a->weight.inv);
}

/* Only if it is due earlier and is owed CPU time: who is over its share waits for its turn. */
static __always_inline bool fair_preempts(const struct contest *c)
{
	return vtime_before(c->deadline, c->curr_deadline) && !vtime_before(c->clock, c->v);
}

static __always_inline bool fair_gives_way(u64 head, u64 due)
{
	return vtime_before(head, due);
}

#endif /* FULCRUM_POLICY_FAIR_H */
