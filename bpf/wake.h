/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wake.h: where a waking task goes, and whether it interrupts.
 *
 * In this order: the waker's CPU if the waker is about to sleep (it says so,
 * and is known to run too briefly for a wakeup elsewhere to be faster); an
 * idle CPU near the last one (a fast one first: capacity.h); with no idle CPU,
 * the waker's if it says that it will sleep; a CPU whose running task is due
 * later, unless that is about to sleep; else the queue of the last CPU. In the first and third case only if nobody waits there, if the queue
 * has had its turn lately (PULL_BATCH), or if the task is owed CPU time.
 *
 * Invariant (no thrashing): a wakeup done by the task that runs on that same
 * CPU never interrupts it. The woken task runs next instead, if it is owed
 * CPU time and that place is free; the tick ends the waker's slice if it
 * doesn't sleep by itself. A wakeup from an interrupt interrupts at once, and so
 * do the first few that a task makes on other CPUs between two ticks
 * (WAKE_KICKS); there is no minimum run.
 */
#ifndef FULCRUM_WAKE_H
#define FULCRUM_WAKE_H

#include "capacity.h"
#include "life.h"

/* CPUs besides the last one that are tried for a task worth interrupting. */
#define WAKE_TRIES 3

/*
 * Waking an idle CPU takes an interrupt, leaving an idle state and a cold
 * cache: several to some tens of microseconds. A waker whose bursts are
 * shorter is gone by then.
 */
#define WAKE_REMOTE_COST (50 * NSEC_PER_USEC)

/*
 * Tasks that wake each other and sleep may do so this long beside a queue that
 * waits, whatever they are owed: to alternate with it at each wakeup costs
 * more than to do so by the millisecond.
 */
#define PULL_BATCH NSEC_PER_MSEC

/*
 * So many tasks on other CPUs may be interrupted for what one task wakes while
 * it runs, until the next tick. Who wakes more at a time hands out work in
 * bulk: each interruption would cost two switches and hurry nothing.
 */
#define WAKE_KICKS 4

/*
 * Who usually runs no longer than that, and has not yet, is about to sleep: an
 * interruption would cost two switches more and hurry the woken one by less.
 * Many short tasks would else interrupt each other at each wakeup.
 */
#define WAKE_LETS_FINISH (100 * NSEC_PER_USEC)

/* SCHED_IDLE never interrupts anybody, nor do tasks of a cgroup with cpu.idle. */
static __always_inline bool is_background(struct task_ctx *t)
{
	if (t->own.weight == IDLE_POLICY_WEIGHT)
		return true;
	return t->group && READ_HINT(group_state(t->group)->background);
}

static __always_inline bool is_owed(u64 v, u64 clock)
{
	return !vtime_before(clock, v);
}

/* Is what runs on @c about to sleep, as far as is known when @t wakes? */
static __always_inline bool wake_lets_finish(struct cpu_state *c, struct task_ctx *t)
{
	return READ_HINT(c->curr_burst) < WAKE_LETS_FINISH &&
	       (s32)((u32)(t->waiting_since >> 10) - READ_HINT(c->curr_since)) <
		       (s32)(WAKE_LETS_FINISH >> 10);
}

/* Would @t, waking on @cpu, interrupt what runs there? */
static __always_inline bool wake_preempts(struct task_ctx *t, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 clock, v;

	if (!READ_HINT(c->curr_pid) || is_background(t) || wake_lets_finish(c, t))
		return false;
	clock = queue_clock(cpu);
	v = task_wake_vruntime(t, cpu, clock);
	return task_preempts(v, task_would_be_due(t, v, cpu, ASK_WAKES), clock,
			     READ_HINT(c->curr_deadline));
}

/* May a task whose waker is about to sleep on @cpu run there right after it? */
static __always_inline bool wake_may_pull(struct task_struct *p, struct task_ctx *t, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 clock;

	if (c->next_taken || !c->curr_pid || !cpu_usable(p, cpu))
		return false;
	if (!READ_HINT(c->has_work))
		return true;
	if ((s64)(t->waiting_since - READ_HINT(c->queue_turn)) < (s64)PULL_BATCH)
		return true;
	clock = queue_clock(cpu);
	return is_owed(task_wake_vruntime(t, cpu, clock), clock);
}

/* From select_cpu: straight onto the local queue of @cpu, which it returns. */
static __always_inline s32 wake_direct(struct task_struct *p, struct task_ctx *t, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	task_event(p, t, EV_QUEUED);
	task_arrive(t, cpu);
	if (READ_HINT(c->curr_pid))
		c->next_taken = 1;
	place_local(p, t, 0);
	return cpu;
}

/* A CPU near @prev whose running task @t may interrupt; negative: none. */
static __always_inline s32 wake_find_victim(struct task_struct *p, struct task_ctx *t, s32 prev)
{
	const struct cpu_topology *where = cpu_topology(prev);
	u32 domain = where->domain & (FULCRUM_MAX_DOMAINS - 1);
	u32 nr = topo.domain[domain].nr_cpus;
	u32 i, bit;
	s32 cpu;

	for (i = 1; i <= WAKE_TRIES; i++) {
		if (i >= nr)
			break;
		bit = where->bit + i;
		if (bit >= nr)
			bit -= nr;
		cpu = domain_cpu(domain, bit);
		if (wake_preempts(t, cpu) && cpu_usable(p, cpu))
			return cpu;
	}
	return -1;
}

static __always_inline s32 wake_select(struct task_struct *p, struct task_ctx *t, s32 prev,
				       u64 wake_flags)
{
	s32 here = bpf_get_smp_processor_id();
	struct cpu_state *c = cpu_state(here);
	bool by_task = kf_in_task();
	bool sync = by_task && (wake_flags & KENUM(scx_wake_flags, SCX_WAKE_SYNC));
	bool idle = any_idle(prev);
	s32 cpu;

	if (sync && (!idle || c->curr_burst < WAKE_REMOTE_COST) &&
	    wake_may_pull(p, t, here)) {
		c->stats.sync_pulls++;
		t->way = WAY_SYNC;
		return wake_direct(p, t, here);
	}
	if (idle) {
		cpu = capacity_for_waking(p, t, prev);
		if (cpu < 0)
			cpu = kf_pick_idle(p, prev);
		if (cpu >= 0) {
			c->stats.idle_hits++;
			t->way = WAY_IDLE;
			return wake_direct(p, t, cpu);
		}
	}
	if (!cpu_usable(p, prev))
		return place_cpu(p, prev);
	if (!(by_task && prev == here) && wake_preempts(t, prev))
		return prev;
	/* Tasks that wake each other stay put; what comes from outside may look around. */
	if (by_task)
		return prev;
	cpu = wake_find_victim(p, t, prev);
	return cpu >= 0 ? cpu : prev;
}

/* A woken task joins the queue of @cpu, or runs next there. */
static __always_inline void wake_enqueue(struct task_struct *p, struct task_ctx *t, s32 cpu,
					 u64 enq_flags)
{
	struct cpu_state *c = cpu_state(cpu);
	bool by_own_task = bpf_get_smp_processor_id() == cpu && kf_in_task();
	struct cpu_state *waker = this_cpu();
	bool urgent;

	task_arrive(t, cpu);
	/* Our bit may be stale, and one wakeup of many gets the CPU: the kernel's decides. */
	if (READ_HINT(c->idle) && cpu_usable(p, cpu) && kf_claim_idle(cpu)) {
		stat_inc(idle_hits);
		t->way = WAY_IDLE;
		place_local(p, t, enq_flags);
		return;
	}
	urgent = c->curr_pid && !is_background(t) && cpu_usable(p, cpu) &&
		 task_preempts(t->vruntime, t->deadline, queue_clock(cpu), c->curr_deadline);
	if (urgent && !by_own_task && wake_lets_finish(c, t))
		urgent = false;
	if (urgent && kf_in_task() && !by_own_task && waker->kicks_made++ >= WAKE_KICKS)
		urgent = false;
	if (urgent && !c->next_taken) {
		c->next_taken = 1;
		if (by_own_task) {
			stat_inc(next_slots);
			t->way = WAY_NEXT;
		} else {
			stat_inc(preempt_kicks);
			t->way = WAY_PREEMPT;
			c->preemptor = p->pid;
			enq_flags |= KENUM(scx_enq_flags, SCX_ENQ_PREEMPT);
		}
		place_local(p, t, enq_flags);
		return;
	}
	cpu = place(p, t, cpu, enq_flags);
	if (urgent && !by_own_task) {
		stat_inc(preempt_kicks);
		WRITE_HINT(cpu_state(cpu)->preemptor, p->pid);
		kf_kick(cpu, KENUM(scx_kick_flags, SCX_KICK_PREEMPT));
	}
	offer_to_idle(p, cpu);
}

#endif /* FULCRUM_WAKE_H */
