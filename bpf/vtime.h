/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vtime.h: weights, virtual time, lag and deadlines.
 *
 * Pure integer arithmetic: no kernel call, no global, so it is tested alone.
 *
 * Virtual time runs at CPU time / weight, in nanoseconds of a task of weight
 * 1024 (nice 0). Each CPU's queue has a clock V of its own; a task's virtual
 * runtime v is measured on the clock of the queue that it was last in, and
 * lag = V - v says how much it is owed. Invariants:
 *
 *  - all comparisons are signed differences, so that a clock may start
 *    anywhere and wrap; no two values that are compared are ever 2^63 apart
 *    because v is bounded around V (vtime_bound) at every wakeup and start;
 *  - a clock never runs backwards (vtime_max);
 *  - moving between queues keeps v as long as the two clocks differ by no more
 *    than a small drift, and translates only the excess (vtime_carry): tasks
 *    that rotate over several CPUs share one clock in effect, while clocks
 *    that pinned load drove apart stay separate. Between clocks that are far
 *    apart all of it is translated.
 */
#ifndef FULCRUM_VTIME_H
#define FULCRUM_VTIME_H

#include "platform.h"

#define NSEC_PER_USEC		1000ULL
#define NSEC_PER_MSEC		1000000ULL

/* Queue clocks start here: near nothing special, far from zero. */
#define VTIME_BASE		(1ULL << 40)

/*
 * A single charge is cut at 8.6 s, so that ns * inv fits 64 bits, and at 268 ms
 * for weights below 2. The tick charges every 4 ms.
 */
#define VTIME_MAX_CHARGE	(1ULL << 33)
#define VTIME_MAX_CHARGE_LIGHT	(1ULL << 28)

/*
 * How far v may be behind (credit) and ahead (debt) of V when a task wakes,
 * in CPU time of the task. The credit is what lets a task that uses less than
 * its share preempt at once; more would let sleepers shut out the others.
 */
#define VTIME_CREDIT		(12 * NSEC_PER_MSEC)	/* if the agent says nothing else */
#define VTIME_DEBT		(20 * NSEC_PER_MSEC)

/* Clocks that differ by less are treated as one. */
#define VTIME_DRIFT		(12 * NSEC_PER_MSEC)

/*
 * Clocks that differ by more have nothing to do with each other: a light task
 * that ran alone took one of them along. Whoever came there 12 ms behind it
 * would for long be before all who wake.
 */
#define VTIME_STRANGERS		(100 * NSEC_PER_MSEC)

/*
 * Wider, for a task that starts to run: beyond it, and twice the drift, v must
 * be a mistake.
 */
#define VTIME_SANE		(40 * NSEC_PER_MSEC)

#define NICE_0_WEIGHT		1024
#define IDLE_POLICY_WEIGHT	3
#define IDLE_POLICY_INV		1431655765

/*
 * The kernel's weights of nice -20..19 (each step is about 1.25), and 2^32
 * divided by them, so that a division becomes a multiplication.
 */
static const u32 nice_weight[40] = {
	88761, 71755, 56483, 46273, 36291,
	29154, 23254, 18705, 14949, 11916,
	9548, 7620, 6100, 4904, 3906,
	3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423,
	335, 272, 215, 172, 137,
	110, 87, 70, 56, 45,
	36, 29, 23, 18, 15,
};

static const u32 nice_inv_weight[40] = {
	48388, 59856, 76039, 92817, 118348,
	147320, 184698, 229616, 287308, 360437,
	449829, 563644, 704092, 875808, 1099582,
	1376151, 1717299, 2157191, 2708049, 3363325,
	4194304, 5237764, 6557201, 8165337, 10153586,
	12820797, 15790320, 19976592, 24970740, 31350126,
	39045157, 49367440, 61356675, 76695844, 95443717,
	119304647, 148102320, 186737708, 238609294, 286331153,
};

struct weight {
	u64 inv;		/* 2^32 / weight */
	u32 weight;		/* 1024 = nice 0; of a task by itself 3..88761 */
	u32 pad;
};

/*
 * Weights that come from cgroups may be fractions: their inverse tells, while
 * `weight`, rounded, is for what needs no such precision.
 */
#define WEIGHT_INV_MAX		(1ULL << 36)
#define WEIGHT_INV_MIN		(1ULL << 5)

static __always_inline struct weight vtime_weight_of(u64 inv)
{
	struct weight w = {};

	if (inv > WEIGHT_INV_MAX)
		inv = WEIGHT_INV_MAX;
	if (inv < WEIGHT_INV_MIN)
		inv = WEIGHT_INV_MIN;
	w.inv = inv;
	w.weight = (1ULL << 32) / inv;
	if (!w.weight)
		w.weight = 1;
	return w;
}

/* @static_prio: 100 + nice + 20; anything else counts as the nearest nice. */
static __always_inline struct weight vtime_weight(int static_prio, u32 policy)
{
	u32 index = static_prio < MAX_RT_PRIO ? 0 : static_prio - MAX_RT_PRIO;
	struct weight w = {};

	if (policy == SCHED_IDLE) {
		w.weight = IDLE_POLICY_WEIGHT;
		w.inv = IDLE_POLICY_INV;
		return w;
	}
	if (index > 39)
		index = 39;
	w.weight = nice_weight[index];
	w.inv = nice_inv_weight[index];
	return w;
}

/* Virtual time that @ns of CPU time are worth: ns * 1024 / weight. */
static __always_inline u64 vtime_scale(u64 ns, u64 inv)
{
	u64 max = inv >> 31 ? VTIME_MAX_CHARGE_LIGHT : VTIME_MAX_CHARGE;

	if (ns > max)
		ns = max;
	return (ns * inv) >> 22;
}

/* CPU time that @virtual ns are worth, rounded up; what is worth at most 2^26 ns fits. */
static __always_inline u64 vtime_cpu_time(u64 virtual, u64 inv)
{
	return ((virtual << 22) + inv - 1) / inv;
}

static __always_inline bool vtime_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static __always_inline u64 vtime_max(u64 a, u64 b)
{
	return vtime_before(a, b) ? b : a;
}

/* @v kept within [@clock - @behind, @clock + @ahead]. */
static __always_inline u64 vtime_bound(u64 v, u64 clock, u64 behind, u64 ahead)
{
	if (vtime_before(v, clock - behind))
		return clock - behind;
	if (vtime_before(clock + ahead, v))
		return clock + ahead;
	return v;
}

static __always_inline bool vtime_strangers(u64 a, u64 b)
{
	s64 apart = (s64)(a - b);

	return apart > (s64)VTIME_STRANGERS || apart < -(s64)VTIME_STRANGERS;
}

/* How much a virtual time changes when it moves from clock @from to @to. */
static __always_inline s64 vtime_carry(u64 from, u64 to)
{
	s64 apart = (s64)(to - from);

	if (vtime_strangers(from, to))
		return apart;
	if (apart > (s64)VTIME_DRIFT)
		return apart - (s64)VTIME_DRIFT;
	if (apart < -(s64)VTIME_DRIFT)
		return apart + (s64)VTIME_DRIFT;
	return 0;
}

/*
 * The credit in virtual time. Light tasks get no more of it than nice 0: 12 ms
 * of theirs would be seconds of the clock, and put them before everybody.
 */
static __always_inline u64 vtime_credit(u64 credit, u64 inv)
{
	u64 scaled = vtime_scale(credit, inv);

	return scaled < credit ? scaled : credit;
}

/*
 * v after a change of weight: lag in CPU time stays, so virtual lag scales
 * with old weight / new weight (as the kernel's reweight does). By way of the
 * CPU time, from the inverses: weights may be fractions. The lag is bounded
 * first, to 2^26 ns of CPU time, which with inverses below 2^36 fits 64 bits.
 */
static __always_inline u64 vtime_reweight(u64 v, u64 clock, struct weight from, struct weight to)
{
	u64 bound = vtime_scale(VTIME_SANE, from.inv);
	s64 lag = (s64)(clock - vtime_bound(v, clock, bound, bound));
	u64 size = lag < 0 ? -lag : lag;

	size = vtime_scale(vtime_cpu_time(size, from.inv), to.inv);
	return lag < 0 ? clock + size : clock - size;
}

#endif /* FULCRUM_VTIME_H */
