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

#include "cgroup.h"
#include "recorder.h"

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

/* A task of the group of @slot has waited, since it woke or not. */
static __always_inline void hist_wait(struct memory *m, u32 slot, u32 wait, bool woke)
{
	u32 bucket = hist_bucket(wait);

	/* Else the compiler, knowing the range better, drops what the verifier needs. */
	barrier_var(bucket);
	if (bucket >= FULCRUM_HIST_BUCKETS)
		return;
	if (woke)
		m->wakeup[bucket]++;
	else
		m->other[bucket]++;
	if (knobs.watch)
		__sync_fetch_and_add(&group_waits[slot & GROUP_MASK].count[bucket], 1);
}

#endif /* FULCRUM_HIST_H */
