/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rescue.h: nobody waits for ever.
 *
 * Slices end at ticks, so a task of the least weight runs 4 ms at a time,
 * which beside a task of the greatest is owed for two minutes. That is fair,
 * and it is a stall: what depends on the light task stops, and the kernel's
 * watchdog ejects us after 30 s.
 *
 * On the way each task looked at must count as queued: one that does not is a
 * leak, and told.
 *
 * Invariant: a task that has waited in a queue for RESCUE_AGE runs at the next
 * slice's end there or soon after, whatever its deadline. Its time is charged
 * as ever; at most one tick in RESCUE_EVERY goes to it, a fraction of a
 * percent.
 */
#ifndef FULCRUM_RESCUE_H
#define FULCRUM_RESCUE_H

#include "diagnose.h"

#define RESCUE_AGE	(3000 * NSEC_PER_MSEC)
#define RESCUE_EVERY	(1000 * NSEC_PER_MSEC)
#define RESCUE_LOOKS	64	/* tasks looked at, from the tail: the longest waits are there */

static __always_inline bool rescue_is_due(struct cpu_state *c, u64 now)
{
	if (now - c->rescued_at < RESCUE_EVERY)
		return false;
	c->rescued_at = now;
	return true;
}

static __always_inline bool rescue_waits_too_long(struct task_ctx *t, u64 now)
{
	return t && t->waiting_since && (s64)(now - t->waiting_since) > (s64)RESCUE_AGE;
}

/* Moves a task of @cpu's queue that has waited too long to its local queue. Not inlined: rare. */
__noinline bool rescue_one(s32 cpu, u64 now)
{
	struct task_struct *p;
	struct task_ctx *t;
	bool moved = false;
	u64 since;
	u32 looks = 0;

	for_each_queued_from_tail(p, cpu_queue(cpu)) {
		if (++looks > RESCUE_LOOKS)
			break;
		t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
		if (t && t->state != TASK_QUEUED)
			stat_inc(queue_strays);
		if (!rescue_waits_too_long(t, now))
			continue;
		since = t->waiting_since;
		moved = scx_bpf_dsq_move(queue_iterator(), p,
					 KENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL), 0);
		if (moved) {
			diagnose_report(p->pid, t->weight.weight, cpu,
					(now - since) / NSEC_PER_MSEC, diagnose_passed_over(t));
			break;
		}
	}
	return moved;
}

/* From dispatch, with tasks waiting. */
static __always_inline bool rescue(s32 cpu)
{
	u64 now = kf_now();

	if (!rescue_is_due(cpu_state(cpu), now))
		return false;
	if (!kfunc_exists(scx_bpf_dsq_move))
		return false;
	if (!kfunc_exists(bpf_iter_scx_dsq_new) || !rescue_one(cpu, now))
		return false;
	stat_inc(rescues);
	return true;
}

#endif /* FULCRUM_RESCUE_H */
