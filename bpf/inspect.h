/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inspect.h: what the agent asks for when somebody wants to see it.
 *
 * Invariant: these programs only look; nothing of it runs unless asked for. A
 * kernel that lacks what they need runs the scheduler without them.
 */
#ifndef FULCRUM_INSPECT_H
#define FULCRUM_INSPECT_H

#include "hist.h"
#include "task.h"

#ifndef FULCRUM_SIM

struct task_view {
	u64 group;		/* the cgroup's id; 0: the root */
	u64 inv;		/* 2^32 / weight */
	s64 lag;		/* V - v, ns of virtual time */
	u64 burst;
	u64 request;
	u64 waits;		/* how long by now, ns; 0: it does not */
	u32 last_wait;		/* unit: 1,024 ns */
	u32 max_wait;
	u32 pid;
	u32 tgid;
	u32 woken_by;
	u32 preempted_by;
	u32 cpu;
	u32 cpus_allowed;
	u32 policy;
	s32 nice;
	u8 state;
	u8 way;
	u8 busy;
	u8 level;
	u32 pad;
	char comm[16];
};

_Static_assert(sizeof(struct task_view) == 6 * 8 + 12 * 4 + 16, "task_view");

static __always_inline void inspect_task(struct task_struct *p, struct task_ctx *t,
					 struct task_view *view)
{
	u64 since = t->waiting_since, now = kf_now();
	u64 clock = queue_clock(t->clock_cpu), v = t->vruntime;

	/* Of one that sleeps, what it would be owed if it woke now. */
	if (t->state == TASK_BLOCKED)
		v = task_wake_vruntime(t, t->clock_cpu, clock);
	view->group = t->group ? group_state(t->group)->id : 0;
	view->inv = t->weight.inv;
	view->lag = clock - v;
	view->burst = t->burst_estimate;
	view->request = t->request;
	view->waits = since && (s64)(now - since) > 0 ? now - since : 0;
	view->last_wait = t->last_wait;
	view->max_wait = t->max_wait;
	view->pid = p->pid;
	view->tgid = p->tgid;
	view->woken_by = t->woken_by;
	view->preempted_by = t->preempted_by;
	view->cpu = t->state == TASK_QUEUED ? t->clock_cpu : kf_task_cpu(p);
	view->cpus_allowed = p->nr_cpus_allowed;
	view->policy = p->policy;
	view->nice = p->static_prio - MAX_RT_PRIO - 20;
	view->state = t->state;
	view->way = t->way;
	view->busy = t->busy;
	view->level = t->level;
	bpf_probe_read_kernel_str(view->comm, sizeof(view->comm), p->comm);
}

/* All tasks under our care, a task_view each. */
SEC("iter/task")
int fulcrum_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct task_view view = {};
	struct task_ctx *t;

	if (!p)
		return 0;
	t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	if (!t || t->state == TASK_EXITED || t->state == TASK_CREATED)
		return 0;
	inspect_task(p, t, &view);
	bpf_seq_write(ctx->meta->seq, &view, sizeof(view));
	return 0;
}

/* Tasks that wait in each CPU's queue. */
u32 queue_lengths[FULCRUM_MAX_CPUS];
u64 inspected_at;	/* ns of the kernel's scheduler clock */

SEC("syscall")
int fulcrum_queues(void *ctx)
{
	u32 nr = kf_nr_cpu_ids(), i;

	bounded_for(i, 0, nr)
		queue_lengths[i & (FULCRUM_MAX_CPUS - 1)] =
			READ_HINT(cpu_state(i)->online) ? kf_nr_queued(cpu_queue(i)) : 0;
	inspected_at = kf_now();
	return 0;
}

#endif /* FULCRUM_SIM */

#endif /* FULCRUM_INSPECT_H */
