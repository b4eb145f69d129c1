/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/batch.h: for builds and number crunching. Pure decisions.
 *
 * Shares as under fair, in few and long turns: every request is a whole slice,
 * whether the task slept before or not, and it is left to be used up. A wakeup
 * interrupts only a task that is due much later: one of little weight, or of
 * the policy SCHED_IDLE.
 */
#ifndef FULCRUM_POLICY_BATCH_H
#define FULCRUM_POLICY_BATCH_H

#include "fair.h"

static __always_inline u64 batch_wakes(struct ask *a)
{
	return fair_used_up(a);
}

static __always_inline u64 batch_used_up(struct ask *a)
{
	return fair_used_up(a);
}

static __always_inline u64 batch_deadline(const struct ask *a)
{
	return fair_deadline(a);
}

static __always_inline bool batch_preempts(const struct contest *c)
{
	return vtime_before(c->deadline + 2 * c->slice, c->curr_deadline) &&
	       !vtime_before(c->clock, c->v);
}

static __always_inline bool batch_gives_way(u64 head, u64 due)
{
	return false;
}

#endif /* FULCRUM_POLICY_BATCH_H */
