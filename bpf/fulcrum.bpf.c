// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_fulcrum: the scheduler, one sched_ext callback after the other in the
 * order in which a task and the machine meet them. Each is a few lines; what
 * they do is in the headers, one concern each:
 *
 *	vtime.h		weights, virtual time, lag		(arithmetic only)
 *	policy/		what a task asks for, who interrupts	(arithmetic only)
 *	cgroup.h	weights of cgroups, nested; cgroup_solve.h works them out
 *	task.h		what we know of a task, its states
 *	life.h		clocks and accounts over a task's life
 *	cpu.h domain.h	each CPU's queue; who has work, who is idle
 *	place.h		the one door into every queue
 *	capacity.h	CPUs of different speed
 *	wake.h		where a waking task goes
 *	pick.h steal.h	what a CPU runs next; taking work from others
 *	balance.h	... and what the agent hints at; seat.h: who that is
 *	higher.h	CPUs that a higher class takes away
 *	hotplug.h	CPUs that come and go
 *	hist.h recorder.h what was: waits, and the last decisions
 *	diagnose.h	who waits too long, and why
 *	dump.h exit.h	what is left to read afterwards
 *	inspect.h	what can be asked while it runs
 *	events.h	what wakes the agent
 */
#include "platform.h"
#include "abi.h"
#include "kfuncs.h"
#include "cpu.h"
#include "domain.h"
#include "task.h"
#include "place.h"
#include "capacity.h"
#include "life.h"
#include "wake.h"
#include "steal.h"
#include "pick.h"
#include "hotplug.h"
#include "dump.h"
#include "exit.h"
#include "inspect.h"

char _license[] SEC("license") = "GPL";

s32 STRUCT_OP_SLEEPABLE(fulcrum_init)
{
	hotplug_note_online();
	return hotplug_create_queues();
}

s32 STRUCT_OP_SLEEPABLE(fulcrum_cgroup_init, struct cgroup *cgrp,
			struct scx_cgroup_init_args *args)
{
	group_created(cgrp, args->weight,
		      kfield_exists(args->sched_idle) && args->sched_idle);
	return 0;
}

void STRUCT_OP_SLEEPABLE(fulcrum_cgroup_exit, struct cgroup *cgrp)
{
	group_removed(cgrp);
}

void STRUCT_OP(fulcrum_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	group_set_weight(cgrp, weight);
}

void STRUCT_OP(fulcrum_cgroup_set_idle, struct cgroup *cgrp, bool idle)
{
	group_set_idle(cgrp, idle);
}

void STRUCT_OP(fulcrum_cpu_online, s32 cpu)
{
	hotplug_online(cpu);
}

void STRUCT_OP(fulcrum_cpu_offline, s32 cpu)
{
	hotplug_offline(cpu);
}

s32 STRUCT_OP(fulcrum_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *t = bpf_task_storage_get(&task_ctxs, p, NULL,
						  BPF_LOCAL_STORAGE_GET_F_CREATE);

	/* No memory is no reason to refuse a fork: it runs with defaults. */
	if (!t)
		return 0;
	task_created(p, t);
	stat_inc(contexts_made);
	if (kfield_exists(args->cgroup))
		task_regroup(p, t, args->cgroup);
	return 0;
}

void STRUCT_OP(fulcrum_enable, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		life_enable(p, t);
}

void STRUCT_OP(fulcrum_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *t = task_ctx(p);

	/* @weight is rounded (1..10000); nice is exact. */
	if (t)
		task_reweight(p, t);
}

void STRUCT_OP(fulcrum_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		task_regroup(p, t, to);
}

void STRUCT_OP(fulcrum_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	/* A queued task is queued anew by the kernel, through place(). */
	stat_inc(affinity_changes);
	balance_affinity_changed();
}

s32 STRUCT_OP(fulcrum_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return prev_cpu;
	life_wakes(t);
	life_waits(t);
	return wake_select(p, t, prev_cpu, wake_flags);
}

void STRUCT_OP(fulcrum_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = kf_task_cpu(p);

	if (!t) {
		if (capacity_enqueue(p, NULL, cpu, enq_flags))
			return;
		offer_to_idle(p, place(p, NULL, cpu, enq_flags));
		return;
	}
	if (enq_flags & KENUM(scx_enq_flags, SCX_ENQ_WAKEUP))
		life_wakes(t);
	life_queued(p, t);
	if (capacity_enqueue(p, t, cpu, enq_flags))
		return;
	if (must_stay(p))
		place_staying(p, t, cpu, enq_flags);
	else if (t->origin != FROM_SLICE_END)
		wake_enqueue(p, t, cpu, enq_flags);
	else
		place_again(p, t, cpu, enq_flags);
}

void STRUCT_OP(fulcrum_dispatch, s32 cpu, struct task_struct *prev)
{
	pick_next(cpu, prev);
}

void STRUCT_OP(fulcrum_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		life_running(p, t);
}

void STRUCT_OP(fulcrum_tick, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	kf_learn_interrupt_bits();
	if (t)
		pick_tick(p, t);
}

bool STRUCT_OP(fulcrum_yield, struct task_struct *from, struct task_struct *to)
{
	/* To whom we can't say; @from steps back behind all who wait here. */
	this_cpu()->yielded = 1;
	kf_set_slice(from, 0);
	return false;
}

bool STRUCT_OP(fulcrum_core_sched_before, struct task_struct *a, struct task_struct *b)
{
	return task_more_owed(a, b);
}

void STRUCT_OP(fulcrum_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		life_stopping(p, t, runnable);
}

void STRUCT_OP(fulcrum_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	higher_released(cpu);
}

void STRUCT_OP(fulcrum_disable, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		task_event(p, t, EV_DISABLE);
}

void STRUCT_OP(fulcrum_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	task_event(p, t, EV_EXIT);
	stat_inc(contexts_ended);
}

void STRUCT_OP(fulcrum_dump, struct scx_dump_ctx *dctx)
{
	dump_machine();
}

void STRUCT_OP(fulcrum_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	dump_cpu_state(cpu);
}

void STRUCT_OP(fulcrum_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	dump_one_task(p);
}

void STRUCT_OP(fulcrum_exit, struct scx_exit_info *info)
{
	exit_record(info);
}

/* flags, timeout_ms, exit_dump_len and hotplug_seq are the agent's to set. */
SEC(".struct_ops.link")
struct sched_ext_ops fulcrum_ops = {
	.init		= (void *)fulcrum_init,
	.cgroup_init	= (void *)fulcrum_cgroup_init,
	.cgroup_exit	= (void *)fulcrum_cgroup_exit,
	.cgroup_set_weight = (void *)fulcrum_cgroup_set_weight,
	.cgroup_set_idle = (void *)fulcrum_cgroup_set_idle,
	.cpu_online	= (void *)fulcrum_cpu_online,
	.cpu_offline	= (void *)fulcrum_cpu_offline,
	.init_task	= (void *)fulcrum_init_task,
	.enable		= (void *)fulcrum_enable,
	.set_weight	= (void *)fulcrum_set_weight,
	.cgroup_move	= (void *)fulcrum_cgroup_move,
	.set_cpumask	= (void *)fulcrum_set_cpumask,
	.select_cpu	= (void *)fulcrum_select_cpu,
	.enqueue	= (void *)fulcrum_enqueue,
	.dispatch	= (void *)fulcrum_dispatch,
	.running	= (void *)fulcrum_running,
	.tick		= (void *)fulcrum_tick,
	.yield		= (void *)fulcrum_yield,
	.core_sched_before = (void *)fulcrum_core_sched_before,
	.stopping	= (void *)fulcrum_stopping,
	.cpu_release	= (void *)fulcrum_cpu_release,
	.disable	= (void *)fulcrum_disable,
	.exit_task	= (void *)fulcrum_exit_task,
	.dump		= (void *)fulcrum_dump,
	.dump_cpu	= (void *)fulcrum_dump_cpu,
	.dump_task	= (void *)fulcrum_dump_task,
	.exit		= (void *)fulcrum_exit,
	.name		= "fulcrum",
};
