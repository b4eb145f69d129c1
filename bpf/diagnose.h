/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * diagnose.h: who waits too long, and why.
 *
 * A CPU that a higher class keeps asks us nothing, nor does one that is
 * offline: its neighbours look.
 *
 * Invariant: a look costs at most DIAGNOSE_LOOKS steps once a second a CPU, and
 * at most one report comes of it. The last reports stay in memory; the event
 * only says that there is a new one.
 */
#ifndef FULCRUM_DIAGNOSE_H
#define FULCRUM_DIAGNOSE_H

#include "balance.h"

#define DIAGNOSE_AGE	(3000 * NSEC_PER_MSEC)
#define DIAGNOSE_EVERY	(1000 * NSEC_PER_MSEC)
#define DIAGNOSE_LOOKS	64

struct wait_reports wait_reports;

/*
 * Task @pid of weight @weight had waited for @waited_ms in the queue of @cpu. Not
 * inlined: it is called from within loops, which the verifier would follow again.
 */
__noinline int diagnose_report(u32 pid, u32 weight, s32 cpu, u32 waited_ms, u32 reason)
{
	u32 number = __sync_fetch_and_add(&wait_reports.nr, 1);
	struct wait_report *r = &wait_reports.last[number % FULCRUM_WAIT_REPORTS];

	WRITE_HINT(r->number, 0);
	r->pid = pid;
	r->cpu = cpu;
	r->reason = reason;
	r->weight = weight;
	r->waited_ms = waited_ms;
	full_barrier();
	WRITE_HINT(r->number, number + 1);
	event_send(FULCRUM_EVENT_WAITS, number + 1);
	return 0;
}

/* Of a task that its own CPU has passed over for so long. */
static __always_inline u32 diagnose_passed_over(struct task_ctx *t)
{
	if (READ_HINT(group_state(t->group)->background))
		return WAITS_IN_BACKGROUND;
	return t->weight.weight < 64 ? WAITS_AT_LOW_WEIGHT : WAITS_BEHIND_OTHERS;
}

/* The counter lies in memory: one in a register would make the verifier unroll the loop. */
static __always_inline void diagnose_queue(struct balance_cpu *b, s32 cpu, u32 reason, u64 now)
{
	struct task_struct *p;
	struct task_ctx *t;

	if (!kfunc_exists(bpf_iter_scx_dsq_new))
		return;
	WRITE_HINT(b->looks, 0);
	for_each_queued_from_tail(p, cpu_queue(cpu)) {
		WRITE_HINT(b->looks, READ_HINT(b->looks) + 1);
		if (READ_HINT(b->looks) > DIAGNOSE_LOOKS)
			break;
		t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
		if (!t || !t->waiting_since || (s64)(now - t->waiting_since) < (s64)DIAGNOSE_AGE)
			continue;
		diagnose_report(p->pid, t->weight.weight, cpu,
				(now - t->waiting_since) / NSEC_PER_MSEC, reason);
		break;
	}
}

/* A neighbour, another one each second: does anything wait there that nobody will run? */
__noinline int diagnose_neighbour(s32 cpu)
{
	const struct cpu_topology *where = cpu_topology(cpu);
	u32 nr = topo.domain[where->domain & (FULCRUM_MAX_DOMAINS - 1)].nr_cpus;
	struct balance_cpu *b = balance_cpu(cpu);
	struct cpu_state *c;
	s32 other;

	b->watched = b->watched + 1 < nr ? b->watched + 1 : 0;
	other = domain_cpu(where->domain, b->watched);
	c = cpu_state(other);
	if (other == cpu || !READ_HINT(c->has_work) || READ_HINT(c->curr_pid) || READ_HINT(c->idle))
		return 0;
	diagnose_queue(b, other, READ_HINT(c->online) ? WAITS_BEHIND_HIGHER : WAITS_OFFLINE, kf_now());
	return 0;
}

/* From every tick. */
static __always_inline void diagnose_tick(s32 cpu)
{
	struct balance_cpu *b = balance_cpu(cpu);
	u64 now = kf_now();

	if ((s64)(now - b->diagnosed_at) < (s64)DIAGNOSE_EVERY)
		return;
	b->diagnosed_at = now;
	diagnose_neighbour(cpu);
}

#endif /* FULCRUM_DIAGNOSE_H */
