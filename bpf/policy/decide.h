/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/decide.h: asks the policy with a given number. Pure, like them all.
 *
 * Invariant: an unknown number means fair's slices, so any word that could
 * stand in the knobs is safe.
 */
#ifndef FULCRUM_POLICY_DECIDE_H
#define FULCRUM_POLICY_DECIDE_H

#include "table.h"
#include "fair.h"
#include "latency.h"
#include "batch.h"
#include "mlfq.h"
#include "fifo.h"

enum ask_moment {
	ASK_WAKES,		/* slept, or is new */
	ASK_USED_UP,		/* used up its request and goes on */
	ASK_AGAIN,		/* same request, new weight */
};

#define POLICY_ANSWERS(ID, name, slice, credit, text)			\
	case POLICY_##ID:						\
		if (moment == ASK_WAKES)				\
			a->request = name##_wakes(a);			\
		else if (moment == ASK_USED_UP)				\
			a->request = name##_used_up(a);			\
		return name##_deadline(a);

/* The deadline; request and level are answered in @a. */
static __always_inline u64 policy_answer(u32 policy, struct ask *a, enum ask_moment moment)
{
	switch (policy) {
	FULCRUM_POLICIES(POLICY_ANSWERS)
	}
	a->request = fair_used_up(a);
	return fair_deadline(a);
}

#define POLICY_PREEMPTS(ID, name, slice, credit, text)			\
	case POLICY_##ID: return name##_preempts(c);

static __always_inline bool policy_preempts(u32 policy, const struct contest *c)
{
	if (policy == POLICY_FAIR)	/* the usual case: one compare */
		return fair_preempts(c);
	switch (policy) {
	FULCRUM_POLICIES(POLICY_PREEMPTS)
	}
	return fair_preempts(c);
}

#define POLICY_GIVES_WAY(ID, name, slice, credit, text)			\
	case POLICY_##ID: return name##_gives_way(head, due);

static __always_inline bool policy_gives_way(u32 policy, u64 head, u64 due)
{
	switch (policy) {
	FULCRUM_POLICIES(POLICY_GIVES_WAY)
	}
	return fair_gives_way(head, due);
}

#endif /* FULCRUM_POLICY_DECIDE_H */
