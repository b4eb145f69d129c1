/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hist.h: how long tasks wait until they run, as log-linear histograms.
 *
 * A wait of less than 16,384 ns is counted in one of 16 equal buckets, a
 * longer one in one of 8 to an octave, so that a bucket is at most an eighth
 * as wide as what is in it; the last one holds all from 4.0 s on. The common
 * short wait costs a comparison.
 *
 * Invariant: a CPU's histograms are written by that CPU only, in memory of its
 * own. Those of cgroups are shared, so they count only while somebody looks
 * (knobs.watch), and their size does not depend on the number of CPUs.
 */
#ifndef FULCRUM_HIST_H
#define FULCRUM_HIST_H

#include "recorder.h"
#include "task.h"

#define HIST_LINEAR		16	/* buckets of 1,024 ns */
#define HIST_OCTAVE_BITS	3	/* 8 buckets an octave */

struct group_waits {
	u32 count[FULCRUM_HIST_BUCKETS];	/* may wrap */
};

struct group_waits group_waits[FULCRUM_MAX_GROUPS];

/* The highest bit that is set in 1 to 15, two bits for each. */
#define HIST_NIBBLE_LOGS	0xffffaa50

/* The number of the highest bit that is set in @x, which is below 2^18 and not 0. */
static __always_inline u32 hist_log2(u32 x)
{
	u32 log = 0;

	/* Few waits take a second round, which is one of 262 us. */
	while (x >> 4) {
		log += 4;
		x >>= 4;
	}
	return log + (HIST_NIBBLE_LOGS >> (2 * x) & 3);
}

/* @wait in units of 1,024 ns, of which each bound is a multiple. */
static __always_inline u32 hist_bucket(u32 wait)
{
	u32 octave;

	if (wait < HIST_LINEAR)
		return wait;
	if (wait >> 22)
		return FULCRUM_HIST_BUCKETS - 1;
	octave = hist_log2(wait / HIST_LINEAR);
	return HIST_LINEAR + (octave << HIST_OCTAVE_BITS) +
	       ((wait >> (octave + 1)) & ((1 << HIST_OCTAVE_BITS) - 1));
}

/* A wait of @t, counted at @at of its CPU, counts in its cgroup too. Not inlined: seldom wanted. */
static __noinline void hist_group_wait(struct task_ctx *t, u32 at)
{
	u32 bucket = at < HIST_WAKEUP ? at : at - HIST_WAKEUP;

	barrier_var(bucket);
	if (bucket < FULCRUM_HIST_BUCKETS)
		__sync_fetch_and_add(&group_waits[t->group & GROUP_MASK].count[bucket], 1);
}

/* @t has waited for @wait. */
static __always_inline void hist_wait(struct memory *m, struct task_ctx *t, u32 wait)
{
	u32 at = t->hist + hist_bucket(wait);

	/* Else the compiler, knowing the range better, drops what the verifier needs. */
	barrier_var(at);
	if (at >= 2 * FULCRUM_HIST_BUCKETS)
		return;
	m->waits[at]++;
	if (knobs.watch)
		hist_group_wait(t, at);
}

#endif /* FULCRUM_HIST_H */
