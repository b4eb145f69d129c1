/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/fifo.h: first come, first served, for comparison. Pure decisions.
 *
 * Who joins a queue is due a slice after its clock, whatever it is: in order
 * of arrival, because the clock never goes back and equal deadlines keep their
 * order. A slice later the task goes to the end. Nobody is interrupted; nice
 * levels mean nothing.
 */
#ifndef FULCRUM_POLICY_FIFO_H
#define FULCRUM_POLICY_FIFO_H

#include "ask.h"

static __always_inline u64 fifo_wakes(struct ask *a)
{
	return a->slice;
}

static __always_inline u64 fifo_used_up(struct ask *a)
{
	return a->slice;
}

static __always_inline u64 fifo_deadline(const struct ask *a)
{
	return a->clock + a->slice;
}

static __always_inline bool fifo_preempts(const struct contest *c)
{
	return false;
}

static __always_inline bool fifo_gives_way(u64 head, u64 due)
{
	return false;
}

#endif /* FULCRUM_POLICY_FIFO_H */
