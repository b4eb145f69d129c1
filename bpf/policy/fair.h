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
 * double the CPU time at a time, and all rotate at the same pace.
 */
#ifndef FULCRUM_POLICY_FAIR_H
#define FULCRUM_POLICY_FAIR_H

#include "vtime.h"

#define REQUEST_MIN		(50 * NSEC_PER_USEC)
#define REQUEST_MAX		(6 * NSEC_PER_MSEC)
#define REQUEST_NEW_TASK	NSEC_PER_MSEC
#define BUSY_REQUEST_MIN	(100 * NSEC_PER_USEC)

/* Less than this left of a request is not worth a switch: it counts as used up. */
#define REQUEST_LEFTOVER	(20 * NSEC_PER_USEC)

/* The new estimate of a task's burst: up at once, down slowly. ns, < 2^33 */
static __always_inline u64 fair_burst(u64 estimate, u64 burst)
{
	if (burst >= estimate)
		return burst > REQUEST_MAX ? REQUEST_MAX : burst;
	return estimate - (estimate - burst) / 4;
}

/* What a task asks for when it wakes, ns. */
static __always_inline u64 fair_wake_request(u64 burst)
{
	if (burst < REQUEST_MIN)
		return REQUEST_MIN;
	if (burst > REQUEST_MAX)
		return REQUEST_MAX;
	return burst;
}

/* What a task asks for when it used up its request and goes on, ns. */
static __always_inline u64 fair_busy_request(u64 slice, u32 weight)
{
	u64 request = slice * weight / NICE_0_WEIGHT;

	if (request < BUSY_REQUEST_MIN)
		return BUSY_REQUEST_MIN;
	if (request > 2 * slice)
		return 2 * slice;
	return request;
}

/*
 * May a task that wakes interrupt the one that runs? Only if it is due
 * earlier and is owed CPU time: a task over its share waits for its turn.
 */
static __always_inline bool fair_preempts(u64 v, u64 deadline, u64 clock, u64 curr_deadline)
{
	return vtime_before(deadline, curr_deadline) && !vtime_before(clock, v);
}

#endif /* FULCRUM_POLICY_FAIR_H */
