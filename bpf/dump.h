/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump.h: our state in the kernel's debug dump (on ejection or SysRq-D).
 *
 * Printed for people: virtual times as distances to the queue's clock, in
 * microseconds, so that a line can be judged without arithmetic.
 */
#ifndef FULCRUM_DUMP_H
#define FULCRUM_DUMP_H

#include "recorder.h"
#include "seat.h"
#include "task.h"

#define dump_line(fmt, args...)						\
({									\
	static char ___fmt[] = fmt "\n";				\
	unsigned long long ___param[___bpf_narg(args) ?: 1] = {};	\
									\
	___bpf_fill(___param, args);					\
	if (kfunc_exists(scx_bpf_dump_bstr))				\
		scx_bpf_dump_bstr(___fmt, ___param, sizeof(___param));	\
})

static __always_inline s64 dump_us(u64 ns_from, u64 ns_to)
{
	s64 apart = (s64)(ns_to - ns_from);

	return apart < 0 ? -(s64)((u64)-apart / 1000) : (s64)((u64)apart / 1000);
}

static __always_inline void dump_machine(void)
{
	u64 errors = 0, missing = 0, clamps = 0, fixes = 0, rehomed = 0;
	u32 nr = kf_nr_cpu_ids(), i;

	bounded_for(i, 0, nr) {
		struct fulcrum_stats *s = &cpu_state(i)->stats;

		errors += s->lifecycle_errors;
		missing += s->missing_ctx;
		clamps += s->clock_clamps;
		fixes += s->place_fixes;
		rehomed += s->rehomed;
	}
	dump_line("fulcrum: policy=%d slice=%lluus credit=%lluus generation=%d", knobs.policy,
		  knobs.slice_ns / 1000, knobs.credit_ns / 1000, knobs.generation);
	dump_line("fulcrum: lifecycle_errors=%llu missing_ctx=%llu clock_clamps=%llu "
		  "place_fixes=%llu rehomed=%llu",
		  errors, missing, clamps, fixes, rehomed);
	dump_line("fulcrum: agent %d, %d calls, the last answered %d; %d refused; last command "
		  "%d, kind=%d cpu=%d from=%d", seat.epoch, seat.calls, seat.answered,
		  seat.refused, seat.generation, last_command.kind, last_command.cpu,
		  last_command.from);
}

/* So few of the last decisions of each CPU that all CPUs fit the dump; the agent tells all. */
#define DUMP_DECISIONS 8

static __always_inline void dump_decisions(s32 cpu)
{
	u64 now = kf_now(), next = recorder_next(cpu_state(cpu));
	struct decision *d;
	struct memory *m;
	u32 i;

	if (!cpu_memory(cpu, &m))
		return;
	bounded_for(i, 0, DUMP_DECISIONS) {
		if (i >= next)
			break;
		d = &m->ring[(next - 1 - i) & (FULCRUM_DECISIONS - 1)];
		dump_line("fulcrum: %lldus ago: pid=%d way=%d from=%d waited=%uus lag=%dus",
			  dump_us(d->time, now), d->pid, d->way,
			  d->from, d->wait, d->lag);
	}
}

static __always_inline void dump_cpu_state(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	dump_line("fulcrum: queued=%d work=%d idle=%d online=%d next_taken=%d curr=%d "
		  "curr_due=%lldus waits=%llu wait_max=%lluus",
		  kf_nr_queued(cpu_queue(cpu)), c->has_work, c->idle, c->online, c->next_taken,
		  c->curr_pid, c->curr_pid ? dump_us(c->vclock, c->curr_deadline) : 0,
		  c->stats.waits, c->stats.wait_max_ns / 1000);
	if (c->stats.lifecycle_errors)
		dump_line("fulcrum: %llu lifecycle errors, last: pid=%d state=%d event=%d",
			  c->stats.lifecycle_errors, c->lifecycle_pid, c->lifecycle_state,
			  c->lifecycle_event);
	dump_decisions(cpu);
}

static __always_inline void dump_one_task(struct task_struct *p)
{
	struct task_ctx *t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	u64 clock;

	if (!t)
		return;
	clock = queue_clock(t->clock_cpu);
	dump_line("fulcrum: state=%d clock_cpu=%d lag=%lldus due=%lldus request=%lluus "
		  "burst=%lluus weight=%d",
		  t->state, t->clock_cpu, dump_us(t->vruntime, clock),
		  dump_us(clock, t->deadline), t->request / 1000, t->burst_estimate / 1000,
		  t->weight.weight);
}

#endif /* FULCRUM_DUMP_H */
