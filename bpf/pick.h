/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pick.h: what a CPU runs next.
 *
 * Invariant: slices are given out here and at insertion, nowhere else, and
 * are always finite. So no task runs on without the queues having been looked
 * at, and a change of policy or weight is in force within one slice.
 */
#ifndef FULCRUM_PICK_H
#define FULCRUM_PICK_H

#include "balance.h"
#include "capacity.h"
#include "cgroup_solve.h"
#include "diagnose.h"
#include "higher.h"
#include "place.h"
#include "rescue.h"
#include "slice_timer.h"
#include "steal.h"

/*
 * A task that nobody waits behind is asked again only this often, ns. Should
 * somebody come to wait, here or elsewhere in the domain, the tick ends it.
 */
#define LONE_SLICE (20 * NSEC_PER_MSEC)

/* Calls an idle CPU of the domain, each in turn, to look into @cpu's queue. */
static __always_inline void pick_call_thief(s32 cpu)
{
	u64 idle = READ_HINT(cpu_domain(cpu)->idle);
	struct cpu_state *c = cpu_state(cpu);
	s32 thief;

	WRITE_HINT(c->thief_missed, 0);
	if (!idle)
		return;
	c->thief_turn = next_bit(idle, c->thief_turn);
	thief = domain_cpu(cpu_topology(cpu)->domain, c->thief_turn);
	WRITE_HINT(cpu_state(thief)->pull_from, cpu + 1);
	stat_inc(idle_kicks);
	kf_kick(thief, KENUM(scx_kick_flags, SCX_KICK_IDLE));
}

/*
 * We were called for a task of queue @called - 1 and took one of our own, maybe
 * one that came in between: the call is passed on.
 */
static __always_inline void pick_pass_on(s32 cpu, u32 called)
{
	s32 queue = called - 1;

	WRITE_HINT(cpu_state(cpu)->pull_from, 0);
	unmark_idle(cpu);	/* to somebody else */
	if (queue == cpu ? recheck_work(cpu) : READ_HINT(cpu_state(queue)->has_work))
		pick_call_thief(queue);
}

static __always_inline bool pick_own(s32 cpu)
{
	u32 called;

	if (kf_move_to_local(cpu_queue(cpu))) {
		stat_inc(own_moves);
		WRITE_HINT(cpu_state(cpu)->queue_turn, kf_now());
		called = READ_HINT(cpu_state(cpu)->pull_from);
		if (called)
			pick_pass_on(cpu, called);
		return true;
	}
	if (READ_HINT(cpu_state(cpu)->has_work))
		recheck_work(cpu);
	return false;
}

/* The running task goes on: with a new request if it has used up the last. */
static __always_inline void pick_keep(s32 cpu, struct task_struct *prev, struct task_ctx *t)
{
	struct cpu_state *c = cpu_state(cpu);
	struct memory *m;
	u64 slice, number;

	if (task_request_used_up(t))
		task_request(t, ASK_USED_UP);
	slice = place_slice(t);
	/* Also if others wait: a light one may wait for long, and who wakes meanwhile must not come before all. */
	queue_clock_follows(cpu, t->vruntime);
	if (!READ_HINT(c->has_work))
		slice = slice < LONE_SLICE ? LONE_SLICE : slice;
	WRITE_HINT(c->curr_deadline, t->deadline);
	c->yielded = 0;
	slice_timer_begin(c, cpu, t);
	kf_set_slice(prev, slice);
	number = recorder_next(c);
	c->stats.keeps++;
	if (cpu_memory(cpu, &m))
		recorder_note(m, number, kf_now(), prev->pid, WAY_KEPT, cpu, c->vclock - t->vruntime, 0);
}

/*
 * The running task's slice is over and it could go on: the earliest deadline
 * among it, the own queue and one other queue wins. True: the matter is
 * settled, whoever runs.
 */
static __always_inline bool pick_among(s32 cpu, struct task_struct *prev, struct task_ctx *t)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 best = t->deadline, head;
	bool queued, keep;

	if (task_request_used_up(t))
		best = task_would_be_due(t, t->vruntime, cpu, ASK_USED_UP);
	queued = READ_HINT(c->has_work) && kf_head_vtime(cpu_queue(cpu), &head);
	keep = !c->yielded;
	/* Of two that are due at the same time, the one that waits. */
	if (queued && (c->yielded || !vtime_before(best, head))) {
		best = head;
		keep = false;
	}
	/* Who yields may do so every few microseconds; other queues are looked into by the tick. */
	if ((!c->yielded || c->look_elsewhere) && exchange(cpu, best, queued ? NULL : t))
		return true;
	if (keep && capacity_leaves(prev, t, cpu)) {
		if (queued)
			pick_own(cpu);
		return true;
	}
	if (keep) {
		pick_keep(cpu, prev, t);
		return true;
	}
	return queued && pick_own(cpu);
}

/*
 * Tasks that sleep before their slices end leave no slice's end to compare at:
 * so a CPU compares once a tick.
 */
static __always_inline bool pick_elsewhere(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 head;

	if (!c->look_elsewhere)
		return false;
	c->look_elsewhere = 0;
	return kf_head_vtime(cpu_queue(cpu), &head) && exchange(cpu, head, NULL);
}

/*
 * Nothing to run: says so, then looks once more, into the own queue even if
 * its work bit is clear (domain.h). A miss may be a task whose insertion is
 * under way, so the first miss is followed by a second look.
 */
static __always_inline void pick_idle(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 misses = this_cpu()->stats.steal_misses;

	mark_idle(cpu);
	if (pick_own(cpu) || steal_when_idle(cpu))
		return;
	if (misses != this_cpu()->stats.steal_misses && !c->looked_twice) {
		c->looked_twice = 1;
		kf_kick(cpu, KENUM(scx_kick_flags, SCX_KICK_IDLE));
	}
	stat_inc(idles);
}

static __always_inline void pick_next(s32 cpu, struct task_struct *prev)
{
	bool runnable = prev && (prev->scx.flags & KENUM(scx_ent_flags, SCX_TASK_QUEUED));
	struct task_ctx *t = runnable ? task_ctx(prev) : NULL;

	stat_inc(dispatches);
	capacity_forget(cpu);
	if (READ_HINT(cpu_state(cpu)->has_work) && rescue(cpu))
		return;
	if (READ_HINT(cpu_state(cpu)->hinted))
		balance_obey(cpu);
	/* We are only asked when the local queue is empty. */
	cpu_state(cpu)->next_taken = 0;
	if (t) {
		task_charge(prev, t);
		if (pick_among(cpu, prev, t))
			return;
	} else if (READ_HINT(cpu_state(cpu)->has_work) && (pick_elsewhere(cpu) || pick_own(cpu))) {
		return;
	}
	if (steal_when_idle(cpu))
		return;
	if (t)
		pick_keep(cpu, prev, t);
	else if (!runnable)
		pick_idle(cpu);
}

/*
 * Nobody waits, so the running task goes on unasked. But V has gone on with it,
 * and left its deadline behind: who wakes would seem to be due later.
 */
static __always_inline void pick_lone(s32 cpu, struct task_ctx *t)
{
	task_request(t, ASK_USED_UP);
	WRITE_HINT(cpu_state(cpu)->curr_deadline, t->deadline);
}

/* From the tick: is the running task's time up although its slice is not? */
static __always_inline bool pick_wants_tick_end(struct task_ctx *t, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 head;

	if (c->next_taken || READ_HINT(c->hinted))
		return true;
	if (task_request_used_up(t))
		return READ_HINT(c->has_work) || exchange_possible(cpu);
	return READ_HINT(c->has_work) && kf_head_vtime(cpu_queue(cpu), &head) &&
	       policy_gives_way(knobs.policy, head, t->deadline);
}

static __always_inline void pick_tick(struct task_struct *p, struct task_ctx *t)
{
	s32 cpu = kf_task_cpu(p);

	task_charge(p, t);
	cpu_state(cpu)->generation = knobs.generation;
	cpu_state(cpu)->kicks_made = 0;
	/* It runs longer than usual. */
	WRITE_HINT(cpu_state(cpu)->curr_burst, NSEC_PER_MSEC);
	if (!recheck_work(cpu))
		queue_clock_advance(cpu, t->vruntime);
	else if (READ_HINT(cpu_state(cpu)->thief_missed))
		pick_call_thief(cpu);	/* it looked before the task had arrived */
	cpu_state(cpu)->look_elsewhere = 1;
	group_tick(cpu);
	higher_watch(cpu);
	balance_tick(cpu, t);
	diagnose_tick(cpu);
	if (pick_wants_tick_end(t, cpu) || capacity_wants_out(p, t, cpu)) {
		stat_inc(tick_ends);
		kf_set_slice(p, 0);
	} else if (task_request_used_up(t)) {
		pick_lone(cpu, t);
	}
}

#endif /* FULCRUM_PICK_H */
