/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capacity.h: CPUs of different speed.
 *
 * The agent sorts the CPUs into kinds, 0 the fastest. Who needs speed, because
 * it uses up what it asks for, is offered the fastest core that idles as a
 * whole, near first. A core of a slower kind comes next, and a thread beside a
 * busy one last: both threads of a core together do little more than one alone.
 * A short task stays near, where its data is. A busy task that runs on a slow
 * core while a faster one idles goes over at a tick.
 *
 * A CPU can't take what runs elsewhere. So the slow one neither keeps its task
 * nor picks another, and the kernel queues it anew (SCX_ENQ_LAST if nobody else
 * waits here); on the way it is placed on the CPU that was claimed for it.
 *
 * Invariant: a task goes over only to an idle CPU, and leaves none idle that has
 * work: this is about where to run, never about whether. On a machine whose
 * CPUs are all alike nr_kinds is 1, and the verifier removes all of it.
 */
#ifndef FULCRUM_CAPACITY_H
#define FULCRUM_CAPACITY_H

#include "place.h"

/* The agent's, before loading. */
SET_BEFORE_LOAD u32 nr_kinds = 1;
struct speeds speeds;

/*
 * A task that shares its core with another at so many ticks in a row would do
 * better alone on a slow one. Who only wakes now and then beside it is not met
 * that often.
 */
#define SHARED_TICKS 4

/* Each CPU's own; apart, for machines whose CPUs are alike never touch it. */
struct moving {
	u32 to;			/* CPU + 1 that was claimed for the task that runs here; 0: none */
	u32 shared;		/* ticks in a row that found the core shared */
} moving[FULCRUM_MAX_CPUS];

static __always_inline bool is_hybrid(void)
{
	return nr_kinds > 1;
}

static __always_inline u32 cpu_kind(s32 cpu)
{
	return speeds.kind[cpu & (FULCRUM_MAX_CPUS - 1)] & (FULCRUM_KINDS - 1);
}

static __always_inline struct moving *cpu_moving(s32 cpu)
{
	return &moving[cpu & (FULCRUM_MAX_CPUS - 1)];
}

/* CPUs of @kind in @domain that idle. */
static __always_inline u64 idle_of_kind(u32 domain, u32 kind)
{
	return speeds.cpus[domain & (FULCRUM_MAX_DOMAINS - 1)][kind & (FULCRUM_KINDS - 1)] &
	       READ_HINT(domain_state(domain)->idle);
}

/*
 * The searches are not inlined, and not static, so that the verifier checks each
 * once by itself, and not in each loop of its callers again.
 */

/* Is another thread of @cpu's core at work? */
__noinline bool core_shared(s32 cpu)
{
	u64 others = speeds.core[cpu & (FULCRUM_MAX_CPUS - 1)] & ~cpu_bit(cpu) &
		     ~READ_HINT(cpu_domain(cpu)->idle);
	bool shared = false;
	u32 i;

	bounded_for(i, 0, FULCRUM_DOMAIN_CPUS) {
		if (!others)
			break;
		shared = READ_HINT(cpu_state(domain_cpu(cpu_topology(cpu)->domain,
							lowest_bit(others)))->online);
		if (shared)
			break;
		others &= others - 1;
	}
	return shared;
}

/*
 * Is @cpu idle, as a whole core, for @p? With @take it is claimed. Our mark then goes
 * at once, not when the task starts: else the next one takes the core for idle still.
 * The CPU will be asked for its next task in any case, and then marks itself anew.
 */
static __always_inline bool capacity_free(struct task_struct *p, s32 cpu, bool take)
{
	if (!(READ_HINT(cpu_domain(cpu)->idle) & cpu_bit(cpu)) || core_shared(cpu) ||
	    !cpu_usable(p, cpu))
		return false;
	if (!take)
		return true;
	if (!kf_claim_idle(cpu))
		return false;
	__sync_fetch_and_and(&cpu_domain(cpu)->idle, ~cpu_bit(cpu));
	return true;
}

/* An idle core of @kind in @domain for @p; negative: none. */
__noinline s32 capacity_find_in(struct task_struct *p __arg_trusted, u32 domain, u32 kind, bool take)
{
	u64 idle = idle_of_kind(domain, kind);
	s32 cpu, found = -1;
	u32 i;

	bounded_for(i, 0, FULCRUM_DOMAIN_CPUS) {
		if (!idle)
			break;
		cpu = domain_cpu(domain, lowest_bit(idle));
		if (capacity_free(p, cpu, take)) {
			found = cpu;
			break;
		}
		idle &= idle - 1;
	}
	return found;
}

/* ... of @kind: @cpu's own, of its domain, of any. */
__noinline s32 capacity_find_kind(struct task_struct *p __arg_trusted, s32 cpu, u32 kind, bool take)
{
	u32 domain = cpu_topology(cpu)->domain, i;
	s32 found = -1;

	if (cpu_kind(cpu) == kind && capacity_free(p, cpu, take))
		return cpu;
	bounded_for(i, 0, topo.nr_domains) {
		found = capacity_find_in(p, domain, kind, take);
		if (found >= 0)
			break;
		domain = domain + 1 < topo.nr_domains ? domain + 1 : 0;
	}
	return found;
}

/* ... of the fastest of the first @kinds that has one. */
__noinline s32 capacity_find(struct task_struct *p __arg_trusted, s32 cpu, u32 kinds, bool take)
{
	s32 found = -1;
	u32 kind;

	bounded_for(kind, 0, kinds) {
		found = capacity_find_kind(p, cpu, kind, take);
		if (found >= 0)
			break;
	}
	return found;
}

/*
 * For a task that wakes: an idle core that is not of the slowest kind, if it needs
 * speed. What is new may need it. Negative: it does not, or all of them are busy.
 */
static __always_inline s32 capacity_for_waking(struct task_struct *p, struct task_ctx *t, s32 prev)
{
	if (!is_hybrid())
		return -1;
	if (!t->fresh && t->burst_estimate < knobs.slice_ns)
		return -1;
	return capacity_find(p, prev, nr_kinds - 1, true);
}

/* Of how many kinds an idle core would be better for @t than @cpu, where it runs. */
static __always_inline u32 better_kinds(struct task_ctx *t, s32 cpu)
{
	if (!t->busy && !task_request_used_up(t))
		return 0;
	return cpu_moving(cpu)->shared >= SHARED_TICKS ? nr_kinds : cpu_kind(cpu);
}

/* From the tick: does a better core idle while @p runs on @cpu? */
static __always_inline bool capacity_wants_out(struct task_struct *p, struct task_ctx *t, s32 cpu)
{
	u32 kinds;

	if (!is_hybrid())
		return false;
	cpu_moving(cpu)->shared = core_shared(cpu) ? cpu_moving(cpu)->shared + 1 : 0;
	kinds = better_kinds(t, cpu);
	return kinds && capacity_find(p, cpu, kinds, false) >= 0;
}

/* From dispatch: @p, which ran on @cpu, goes over to a better one if one idles. */
static __always_inline bool capacity_leaves(struct task_struct *p, struct task_ctx *t, s32 cpu)
{
	u32 kinds;
	s32 to;

	/* Without kicks the other one would not come for it. */
	if (!is_hybrid() || !kfunc_exists(scx_bpf_kick_cpu))
		return false;
	kinds = better_kinds(t, cpu);
	if (!kinds || must_stay(p))
		return false;
	to = capacity_find(p, cpu, kinds, true);
	if (to < 0)
		return false;
	cpu_moving(cpu)->to = to + 1;
	cpu_moving(cpu)->shared = 0;
	return true;
}

/* A claim that came to nothing, as when the machine was bypassed: that CPU says anew that it idles. */
static __always_inline void capacity_forget(s32 cpu)
{
	u32 to;

	if (!is_hybrid())
		return;
	to = cpu_moving(cpu)->to;
	if (!to)
		return;
	cpu_moving(cpu)->to = 0;
	kf_kick(to - 1, KENUM(scx_kick_flags, SCX_KICK_IDLE));
}

/* Is there work besides what was just placed on @placed? */
static __always_inline bool work_besides(s32 placed)
{
	u32 domain = cpu_topology(placed)->domain, i;
	u64 work = READ_HINT(domain_state(domain)->work) & ~cpu_bit(placed);

	bounded_for(i, 0, topo.nr_domains) {
		if (i != domain)
			work |= READ_HINT(domain_state(i)->work);
		if (work)
			break;
	}
	return work;
}

/*
 * From enqueue: a task that goes over, or that the kernel took from @cpu as the last
 * one there, which then idles without having asked us again. It says so here, and
 * looks for work unless there is none but what it just gave away: that it would
 * take back before the other one is awake. False: an ordinary task.
 */
static __always_inline bool capacity_enqueue(struct task_struct *p, struct task_ctx *t, s32 cpu,
					     u64 enq_flags)
{
	bool last = enq_flags & KENUM(scx_enq_flags, SCX_ENQ_LAST);
	s32 to = cpu;

	if (!is_hybrid())
		return false;
	if (!last && !cpu_moving(cpu)->to)
		return false;
	if (cpu_moving(cpu)->to) {
		to = cpu_moving(cpu)->to - 1;
		cpu_moving(cpu)->to = 0;
		/* Should it take another one that comes in between, the call is passed on. */
		WRITE_HINT(cpu_state(to)->pull_from, to + 1);
	}
	if (t)
		task_arrive(t, to);
	to = place(p, t, to, enq_flags);
	if (!last)
		return true;
	mark_idle(cpu);
	if (to == cpu || work_besides(to))
		kf_kick(cpu, KENUM(scx_kick_flags, SCX_KICK_IDLE));
	return true;
}

#endif /* FULCRUM_CAPACITY_H */
