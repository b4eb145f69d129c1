/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hotplug.h: CPUs that come and go while we schedule.
 *
 * Invariant: a queue exists for every possible CPU, from the first moment to
 * the last, so no CPU number is ever invalid. A CPU that goes offline takes
 * no new tasks from the moment its flag is cleared, and nothing stays in its
 * queue; one that comes online joins its domain's clock.
 */
#ifndef FULCRUM_HOTPLUG_H
#define FULCRUM_HOTPLUG_H

#include "place.h"
#include "slice_timer.h"

static __always_inline s32 hotplug_create_queue(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	c->vclock = VTIME_BASE;
	cpu_domain(cpu)->vclock_max = VTIME_BASE;
	slice_timer_create(cpu);
	/* Weak like all; the loader refuses kernels that hide this one. */
	if (!kfunc_exists(scx_bpf_create_dsq))
		return -ENOSYS;
	return scx_bpf_create_dsq(cpu_queue(cpu), -1);
}

static __always_inline s32 hotplug_create_queues(void)
{
	u32 nr = kf_nr_cpu_ids(), i;
	s32 err;

	if (nr > FULCRUM_MAX_CPUS)
		return -E2BIG;
	bounded_for(i, 0, nr) {
		err = hotplug_create_queue(i);
		if (err)
			return err;
	}
	return 0;
}

static __always_inline void hotplug_note_online(void)
{
	const struct cpumask *online;
	u32 nr = kf_nr_cpu_ids(), i;

	if (!kfunc_exists(scx_bpf_get_online_cpumask))
		return;
	online = scx_bpf_get_online_cpumask();
	bounded_for(i, 0, nr) {
		if (bpf_cpumask_test_cpu(i, online))
			WRITE_HINT(cpu_state(i)->online, 1);
	}
	scx_bpf_put_cpumask(online);
}

static __always_inline void hotplug_online(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	WRITE_HINT(c->vclock, vtime_max(c->vclock, READ_HINT(cpu_domain(cpu)->vclock_max)));
	c->next_taken = 0;
	c->yielded = 0;
	WRITE_HINT(c->online, 1);
}

/*
 * What waits for a CPU that goes away. The kernel pushes a leaving CPU's tasks
 * off as it picks them, breaking affinities if it must, and waits until the
 * last one is gone. So they go to its local queue: in ours they would stay, as
 * we are not asked again for this CPU, and in another CPU's queue they would
 * still be counted here, with nobody to tell when they leave. Tasks of other
 * run queues that wait here simply wait elsewhere.
 */
static __always_inline void hotplug_drain(s32 cpu)
{
	struct task_struct *p;
	struct task_ctx *t;
	s32 to;

	/* The others of its family came with it. */
	if (!kfunc_exists(scx_bpf_dsq_move_vtime))
		return;
	if (!kfunc_exists(bpf_iter_scx_dsq_new))
		return;
	for_each_queued(p, cpu_queue(cpu)) {
		if (kf_task_cpu(p) == cpu) {
			scx_bpf_dsq_move(queue_iterator(), p,
					 KENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON) | cpu, 0);
			continue;
		}
		to = place_cpu(p, cpu);
		if (to == cpu)
			continue;
		t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
		if (t) {
			task_move_clock(t, to);
			scx_bpf_dsq_move_set_vtime(queue_iterator(), t->deadline);
		}
		if (!scx_bpf_dsq_move_vtime(queue_iterator(), p, cpu_queue(to), 0))
			continue;
		stat_inc(rehomed);
		mark_work(to);
		kf_kick(to, KENUM(scx_kick_flags, SCX_KICK_IDLE));
	}
}

static __always_inline void hotplug_offline(s32 cpu)
{
	WRITE_HINT(cpu_state(cpu)->online, 0);
	unmark_idle(cpu);
	full_barrier();
	hotplug_drain(cpu);
	kf_kick(cpu, KENUM(scx_kick_flags, SCX_KICK_PREEMPT));
	recheck_work(cpu);
}

#endif /* FULCRUM_HOTPLUG_H */
