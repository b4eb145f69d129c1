/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recorder.h: the last decisions of each CPU, for whoever asks afterwards.
 *
 * A decision is what a CPU began to run, or went on with: when, which task,
 * how it got there (set where a task is placed), from which CPU's queue, how
 * long it had waited and how much CPU time it was owed.
 *
 * Invariant: a CPU's ring is written by that CPU only, in memory of its own,
 * once a switch and never to decide anything. Readers may meet a record that
 * is being overwritten: a line that makes no sense, nothing else.
 */
#ifndef FULCRUM_RECORDER_H
#define FULCRUM_RECORDER_H

#include "cpu.h"

/* How a task came to run. */
enum task_way {
	WAY_KERNEL,		/* not by us: the kernel placed it by itself */
	WAY_IDLE,		/* woke, straight onto an idle CPU */
	WAY_SYNC,		/* woke, and got the CPU of its waker, about to sleep */
	WAY_NEXT,		/* woke, and ran after the task that woke it */
	WAY_PREEMPT,		/* woke, and interrupted what ran */
	WAY_QUEUE,		/* waited its turn in a queue */
	WAY_STAYS,		/* may not move: waited on the local queue */
	WAY_KEPT,		/* went on: nobody waits, or nobody is due earlier */
};

struct decision {
	u64 time;		/* ns of the kernel's scheduler clock of this CPU */
	u32 pid;
	s32 lag;		/* what it was owed, in virtual time, unit: 1,024 ns */
	u32 wait;		/* unit: 1,024 ns */
	u16 from;		/* the CPU whose queue it was in */
	u16 way;		/* enum task_way */
};

/* What a CPU remembers: one value, so that one lookup a switch will do. */
struct memory {
	u64 wakeup[FULCRUM_HIST_BUCKETS];	/* waits that began with a wakeup, hist.h */
	u64 other[FULCRUM_HIST_BUCKETS];	/* the other waits */
	u64 decided;				/* counts all decisions */
	struct decision ring[FULCRUM_DECISIONS];
};

_Static_assert(sizeof(struct memory) == (2 * 160 + 1) * 8 + 256 * 24, "memory");

PER_CPU(memories, struct memory);

static __always_inline void recorder_note(struct memory *m, u64 now, u32 pid, u32 way, s32 from,
					  s64 lag, u64 wait)
{
	struct decision *d = &m->ring[m->decided++ & (FULCRUM_DECISIONS - 1)];

	d->time = now;
	d->pid = pid;
	d->lag = lag >> 10;
	d->wait = wait;
	d->from = from;
	d->way = way;
}

#endif /* FULCRUM_RECORDER_H */
