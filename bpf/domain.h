/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * domain.h: who has work, who is idle: one word each for up to 64 CPUs that
 * share a last-level cache, so that either is found without a scan.
 *
 * Invariant (no task waits beside an idle CPU that could run it): the one who
 * queues a task sets the queue's work bit, then looks for idle CPUs; the CPU
 * that goes idle sets its idle bit, then looks for work. Both put a full
 * barrier between, so at least one of them sees the other.
 *
 * There is a catch. An insertion made in ops.enqueue() takes effect only when
 * the callback has returned, so for a moment a set bit stands for a task that
 * is not there yet. Hence: only a queue's own CPU clears its bit, under its
 * run-queue lock, which the insertion holds as well; a thief that finds the
 * queue empty leaves the bit, says so (thief_missed), and looks a second time
 * before it rests. The tick of the owner repairs what is left: a task that was
 * queued from another run queue, or a thief that gave up too early.
 */
#ifndef FULCRUM_DOMAIN_H
#define FULCRUM_DOMAIN_H

#include "cpu.h"

/*
 * Position of the lowest set bit; @word is not 0. BPF has no instruction for
 * it. The lowest bit times a de Bruijn constant puts a different 6-bit number
 * for each position into the top bits; no branches, which the verifier would
 * have to follow one by one.
 */
static const u8 bit_position[64] = {
	0, 1, 48, 2, 57, 49, 28, 3, 61, 58, 50, 42, 38, 29, 17, 4,
	62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30, 24, 18, 12, 5,
	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11,
	46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9, 13, 8, 7, 6,
};

static __always_inline u32 lowest_bit(u64 word)
{
	return bit_position[((word & -word) * 0x03f79d71b4cb0a89ULL) >> 58];
}

/* The next set bit of @word above @after, round the end; @word is not 0. */
static __always_inline u32 next_bit(u64 word, u32 after)
{
	u64 above = after >= 63 ? 0 : word & (~0ULL << (after + 1));

	return lowest_bit(above ? above : word);
}

static __always_inline s32 domain_cpu(u32 domain, u32 bit)
{
	return topo.domain[domain & (FULCRUM_MAX_DOMAINS - 1)].cpus[bit & 63];
}

/* Call with an insertion, before looking for idle CPUs. */
static __always_inline void mark_work(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	if (!READ_HINT(c->has_work)) {
		WRITE_HINT(c->queue_turn, kf_now());
		WRITE_HINT(c->has_work, 1);
		__sync_fetch_and_or(&cpu_domain(cpu)->work, cpu_bit(cpu));
	}
	full_barrier();
}

/* Sets the work bit right; for the queue's own CPU, under its run-queue lock. */
static __always_inline bool recheck_work(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	if (kf_nr_queued(cpu_queue(cpu)) > 0) {
		mark_work(cpu);
		return true;
	}
	if (READ_HINT(c->has_work)) {
		WRITE_HINT(c->has_work, 0);
		__sync_fetch_and_and(&cpu_domain(cpu)->work, ~cpu_bit(cpu));
	}
	return false;
}

static __always_inline void mark_idle(s32 cpu)
{
	WRITE_HINT(cpu_state(cpu)->idle, 1);
	__sync_fetch_and_or(&cpu_domain(cpu)->idle, cpu_bit(cpu));
}

static __always_inline void unmark_idle(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	if (!c->idle)
		return;
	WRITE_HINT(c->idle, 0);
	__sync_fetch_and_and(&cpu_domain(cpu)->idle, ~cpu_bit(cpu));
}

/* A domain with an idle CPU, the own one first; negative: all are busy. */
static __always_inline s32 idle_domain(s32 cpu)
{
	u32 own = cpu_topology(cpu)->domain;
	s32 found = -1;
	u32 i;

	if (READ_HINT(domain_state(own)->idle))
		return own;
	if (topo.nr_domains <= 1)
		return -1;
	bounded_for(i, 0, topo.nr_domains) {
		if (READ_HINT(domain_state(i)->idle)) {
			found = i;
			break;
		}
	}
	return found;
}

static __always_inline bool any_idle(s32 cpu)
{
	return idle_domain(cpu) >= 0;
}

#endif /* FULCRUM_DOMAIN_H */
