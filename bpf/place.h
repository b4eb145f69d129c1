/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * place.h: the one door through which every task enters a queue.
 *
 * Invariant: nothing else inserts (what waits already may be moved on, by steal.h,
 * rescue.h, balance.h and hotplug.h: the kernel lets it go only where it may run).
 * Whatever the policy, a waker or the agent wished, the task lands on a CPU that is
 * online and that it may use: place() corrects the wish and can't fail. Affinity,
 * migration-disabled sections and hotplug change under our hands and are normal
 * states, never errors.
 *
 * The local queue is the one of the CPU that the kernel chose for the task, so
 * place_local() has nothing to correct. It holds what must not move (per-CPU
 * kernel threads, tasks with migration disabled) and at most one other task,
 * the next to run; all else waits in the CPU's own queue, where other CPUs can
 * take it.
 */
#ifndef FULCRUM_PLACE_H
#define FULCRUM_PLACE_H

#include "domain.h"
#include "task.h"

static __always_inline bool cpu_usable(struct task_struct *p, s32 cpu)
{
	return READ_HINT(cpu_state(cpu)->online) && kf_allowed(p, cpu);
}

/* @want if @p can run there, else its own CPU, else any that it may use. */
static __always_inline s32 place_cpu(struct task_struct *p, s32 want)
{
	s32 own = kf_task_cpu(p), cpu;
	u32 i;

	if (cpu_usable(p, want))
		return want;
	stat_inc(place_fixes);
	if (own != want && cpu_usable(p, own))
		return own;
	/* The kernel's online mask may be a moment ahead of or behind ours. */
	for (i = 0; i < 4; i++) {
		cpu = kf_pick_any(p);
		if (cpu >= 0 && cpu < FULCRUM_MAX_CPUS && READ_HINT(cpu_state(cpu)->online))
			return cpu;
	}
	return own;
}

/*
 * Must @p stay where it is? On the current task's account each program that
 * runs counts as migration-disabled once: one, or two if the kernel queues
 * tasks anew at our request (higher.h).
 */
static __always_inline bool must_stay(struct task_struct *p)
{
	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)
		return true;
	if (!p->migration_disabled)
		return false;
	return p->migration_disabled > 1 + this_cpu()->requeues ||
	       p != bpf_get_current_task_btf();
}

static __always_inline u64 place_slice(struct task_ctx *t)
{
	if (!t)
		return knobs.slice_ns;
	return t->request < REQUEST_MIN ? REQUEST_MIN : t->request;
}

/* Onto the local queue of the CPU that the kernel has chosen for @p. */
static __always_inline void place_local(struct task_struct *p, struct task_ctx *t, u64 enq_flags)
{
	kf_insert(p, KENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL), place_slice(t), enq_flags);
}

/* Into the queue of @want or, if that can't be, of the CPU returned. */
static __always_inline s32 place(struct task_struct *p, struct task_ctx *t, s32 want,
				 u64 enq_flags)
{
	s32 cpu = place_cpu(p, want);
	u64 deadline;

	if (t) {
		task_move_clock(t, cpu);
		deadline = t->deadline;
		t->way = WAY_QUEUE;
	} else {
		deadline = queue_clock(cpu) + knobs.slice_ns;
	}
	kf_insert_vtime(p, cpu_queue(cpu), place_slice(t), deadline, enq_flags);
	stat_inc(enqueues);
	mark_work(cpu);
	/* The kernel reschedules the task's own CPU; another one has to be told. */
	if (cpu != kf_task_cpu(p))
		kf_kick(cpu, KENUM(scx_kick_flags, SCX_KICK_IDLE));
	return cpu;
}

/*
 * The idle CPU to offer @p, queued on @cpu, to; negative: none. A CPU sets our
 * mark, in @domain's word, before the kernel's: between the two the kernel
 * knows of no idle CPU, but we do. It also takes a task for migration-disabled
 * that it queues anew within a call of ours: then our marks lead the way, and
 * the kernel's say whether a higher class has taken that CPU too.
 */
static __always_inline s32 idle_for(struct task_struct *p, s32 cpu, u32 domain)
{
	s32 idle = kf_pick_idle(p, cpu);
	bool requeued = this_cpu()->requeues;
	u32 tries = requeued ? FULCRUM_DOMAIN_CPUS : 1;
	u32 bit = cpu_topology(cpu)->bit & 63, i;
	s32 found = -1;
	u64 marked;

	if (idle >= 0 && idle < FULCRUM_MAX_CPUS)
		return idle;
	marked = READ_HINT(domain_state(domain)->idle);
	bounded_for(i, 0, tries) {
		if (!marked)
			break;
		bit = next_bit(marked, bit & 63);
		idle = domain_cpu(domain, bit);
		if (kf_allowed(p, idle) && (!requeued || kf_claim_idle(idle))) {
			found = idle;
			break;
		}
		marked &= ~(1ULL << (bit & 63));
	}
	/* A higher class has all that are marked here: the kernel's search looks elsewhere. */
	if (found < 0 && requeued && kfunc_exists(scx_bpf_pick_idle_cpu))
		found = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	return found;
}

/* An idle CPU that may run @p, queued on @cpu, is told to come and get it. */
static __always_inline void offer_to_idle(struct task_struct *p, s32 cpu)
{
	s32 domain = idle_domain(cpu), idle;

	if (domain < 0)
		return;
	idle = idle_for(p, cpu, domain);
	if (idle < 0)
		return;
	WRITE_HINT(cpu_state(idle)->pull_from, cpu + 1);
	stat_inc(idle_kicks);
	kf_kick(idle, KENUM(scx_kick_flags, SCX_KICK_IDLE));
}

/*
 * A task that must stay: next on its CPU's local queue, without interrupting;
 * but once it has used up its request it waits its turn like everybody.
 */
static __always_inline void place_staying(struct task_struct *p, struct task_ctx *t, s32 cpu,
					  u64 enq_flags)
{
	bool again = t->origin == FROM_SLICE_END && task_request_used_up(t);

	task_arrive(t, cpu);
	if (again) {
		place(p, t, cpu, enq_flags);
		return;
	}
	cpu_state(cpu)->next_taken = 1;
	t->way = WAY_STAYS;
	stat_inc(local_inserts);
	place_local(p, t, enq_flags);
}

/* A task whose slice ended, that was interrupted, or that the kernel moved. */
static __always_inline void place_again(struct task_struct *p, struct task_ctx *t, s32 cpu,
					u64 enq_flags)
{
	task_arrive(t, cpu);
	offer_to_idle(p, place(p, t, cpu, enq_flags));
}

#endif /* FULCRUM_PLACE_H */
