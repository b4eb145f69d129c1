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

/* Where in struct memory the waits of a kind are counted, hist.h. */
enum task_hist {
	HIST_OTHER	= 0,
	HIST_WAKEUP	= FULCRUM_HIST_BUCKETS,		/* those that began with a wakeup */
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
	u64 waits[2 * FULCRUM_HIST_BUCKETS];	/* two histograms: enum task_hist */
	struct decision ring[FULCRUM_DECISIONS];	/* the next: recorder_next() */
};

/* Whole cache lines, so that no two CPUs write one. */
_Static_assert(sizeof(struct memory) == 2 * 160 * 8 + 256 * 24, "memory");
_Static_assert(sizeof(struct memory) % 64 == 0, "memory");

/* One for each possible CPU: before it loads this, the agent makes room and says how many. */
struct memory memories[1] SEC(".bss.memories") __attribute__((aligned(64)));
const volatile u32 nr_memories = 1;

/*
 * Gives the memory of @cpu; false: it has none. An address and a comparison cost
 * a third of a look into a per-CPU map.
 */
static __always_inline bool cpu_memory(s32 cpu, struct memory **m)
{
	u32 number = cpu;

	/* The verifier has to see the comparison and the address made of one register. */
	barrier_var(number);
	if (number >= nr_memories)
		return false;
	*m = memories;
	/* Else the compiler, which sees one, takes @number for 0. */
	barrier_var(*m);
	*m += number;
	return true;
}

/* The number of @c's next decision: each so far was a start or a keep. */
static __always_inline u64 recorder_next(struct cpu_state *c)
{
	return c->stats.waits + c->stats.keeps;
}

/* Decision @number of a CPU, from 0 on. */
static __always_inline void recorder_note(struct memory *m, u64 number, u64 now, u32 pid, u32 way,
					  s32 from, s64 lag, u32 wait)
{
	struct decision *d = &m->ring[number & (FULCRUM_DECISIONS - 1)];

	d->time = now;
	d->pid = pid;
	d->lag = lag >> 10;
	d->wait = wait;
	d->from = from;
	d->way = way;
}

#endif /* FULCRUM_RECORDER_H */
