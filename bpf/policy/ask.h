/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/ask.h: what a policy is asked, and may answer. Types and bounds only.
 *
 * A task gets CPU time in requests. A policy decides how long each is and when
 * it is due; tasks wait in the order in which they are due. Five pure functions
 * make a policy (policy/decide.h calls them, docs/policies.md teaches them):
 *
 *	u64 NAME_wakes(struct ask *a)		request of a task that wakes or is new, ns
 *	u64 NAME_used_up(struct ask *a)		request of one that used up its last and goes on, ns
 *	u64 NAME_deadline(const struct ask *a)	when a->request is due
 *	bool NAME_preempts(const struct contest *c)	may a wakeup interrupt the running task?
 *	bool NAME_gives_way(u64 head, u64 due)	does the running task, due at @due, make room at a
 *						tick for the one that waits, due at @head?
 *
 * Invariant: requests are 50 us to 400 ms, and deadlines lie at most some
 * seconds of virtual time from the queue's clock. So tasks that were queued
 * under different policies share a queue, and a change of policy needs no pass
 * over the tasks: those that wait run in their turn, and ask the new one next.
 */
#ifndef FULCRUM_POLICY_ASK_H
#define FULCRUM_POLICY_ASK_H

#include "vtime.h"

#define REQUEST_MIN		(50 * NSEC_PER_USEC)
#define REQUEST_MAX		(6 * NSEC_PER_MSEC)
#define REQUEST_NEW_TASK	NSEC_PER_MSEC
#define BUSY_REQUEST_MIN	(100 * NSEC_PER_USEC)

/* Less than this left of a request is not worth a switch: it counts as used up. */
#define REQUEST_LEFTOVER	(20 * NSEC_PER_USEC)

struct ask {
	u64 v;			/* the task's virtual runtime */
	u64 clock;		/* virtual time of the queue that it joins */
	u64 burst;		/* what it usually runs between two sleeps, ns, <= REQUEST_MAX */
	u64 request;		/* what is left of its request, ns; for NAME_deadline(): the new one */
	u64 slice;		/* the knob: 100 us .. 100 ms */
	struct weight weight;
	u32 level;		/* the policy's to change: kept with the task, starts at 0 */
	u32 mixed;		/* > 0: tasks of other weights wait in the same queue */
};

/* A task that wakes against the one that runs. */
struct contest {
	u64 v;
	u64 deadline;
	u64 clock;		/* of the queue of both */
	u64 curr_deadline;	/* of the running one */
	u64 slice;		/* the knob */
};

/* The new estimate of a task's burst: up at once, down slowly. ns, < 2^33 */
static __always_inline u64 ask_burst(u64 estimate, u64 burst)
{
	if (burst >= estimate)
		return burst > REQUEST_MAX ? REQUEST_MAX : burst;
	return estimate - (estimate - burst) / 4;
}

#endif /* FULCRUM_POLICY_ASK_H */
