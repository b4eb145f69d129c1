/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * higher.h: CPUs that a higher scheduling class takes away.
 *
 * A real-time task that comes leaves the one that ran, and the next, on the
 * CPU's local queue, where nobody can take them; our own queue is open to all.
 *
 * Invariant: what waits on a local queue when a higher class comes is queued
 * anew through place(), once for each time that it comes, so that other CPUs
 * can have it. What must stay stays.
 *
 * Up to 7.0 the kernel tells us, in ops.cpu_release(). Later it grumbles about
 * that callback but can queue another CPU's tasks anew: there each tick looks
 * at one CPU of the domain in turn.
 */
#ifndef FULCRUM_HIGHER_H
#define FULCRUM_HIGHER_H

#include "domain.h"

/* ops.stopping() of a task that could go on: with time left, it was pushed aside. */
static __always_inline void higher_stopping(struct cpu_state *c, struct task_struct *p,
					    bool runnable)
{
	if (runnable && p->scx.slice)
		WRITE_HINT(c->left_behind, 1);
}

static __always_inline void higher_released(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	WRITE_HINT(c->left_behind, 0);
	c->next_taken = 0;
	c->requeues = 1;
	if (kfunc_exists(scx_bpf_reenqueue_local))
		scx_bpf_reenqueue_local();
	c->requeues = 0;
}

/* From the tick of @cpu. */
static __always_inline void higher_watch(s32 cpu)
{
	const struct cpu_topology *where = cpu_topology(cpu);
	u32 nr = topo.domain[where->domain & (FULCRUM_MAX_DOMAINS - 1)].nr_cpus;
	struct cpu_state *c = cpu_state(cpu), *other;
	s32 watched;

	if (!kfunc_exists(scx_bpf_dsq_reenq))
		return;
	c->watch_turn = c->watch_turn + 1 < nr ? c->watch_turn + 1 : 0;
	watched = domain_cpu(where->domain, c->watch_turn);
	other = cpu_state(watched);
	if (!READ_HINT(other->left_behind) || READ_HINT(other->curr_pid))
		return;
	WRITE_HINT(other->left_behind, 0);
	other->next_taken = 0;
	scx_bpf_dsq_reenq(KENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON) | watched, 0);
}

#endif /* FULCRUM_HIGHER_H */
