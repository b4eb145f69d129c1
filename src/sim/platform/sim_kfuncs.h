/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sim_kfuncs.h: the kernel functions, each counted and then answered, here or
 * by the engine.
 */
#ifndef FULCRUM_SIM_KFUNCS_H
#define FULCRUM_SIM_KFUNCS_H

#define counted(name) (world.nr_calls++, world.calls[KF_##name]++, world.kernel)

static inline s32 scx_bpf_create_dsq(u64 dsq_id, s32 node)
{
	return counted(scx_bpf_create_dsq)->create_dsq(dsq_id, node);
}

static inline s32 scx_bpf_dsq_nr_queued(u64 dsq_id)
{
	return counted(scx_bpf_dsq_nr_queued)->nr_queued(dsq_id);
}

static inline bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, u64 dsq_id, u64 slice,
						 u64 enq_flags)
{
	return counted(scx_bpf_dsq_insert___v2___new)->insert(p, dsq_id, slice, enq_flags);
}

static inline void scx_bpf_dsq_insert___v1(struct task_struct *p, u64 dsq_id, u64 slice,
					   u64 enq_flags)
{
	counted(scx_bpf_dsq_insert___v1)->insert(p, dsq_id, slice, enq_flags);
}

static inline void scx_bpf_dispatch___v0(struct task_struct *p, u64 dsq_id, u64 slice,
					 u64 enq_flags)
{
	counted(scx_bpf_dispatch___v0)->insert(p, dsq_id, slice, enq_flags);
}

static inline bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
					      struct scx_bpf_dsq_insert_vtime_args *args)
{
	return counted(__scx_bpf_dsq_insert_vtime)->insert_vtime(p, args->dsq_id, args->slice,
								 args->vtime, args->enq_flags);
}

static inline void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice,
					    u64 vtime, u64 enq_flags)
{
	counted(scx_bpf_dsq_insert_vtime)->insert_vtime(p, dsq_id, slice, vtime, enq_flags);
}

static inline void scx_bpf_dispatch_vtime___v0(struct task_struct *p, u64 dsq_id, u64 slice,
					       u64 vtime, u64 enq_flags)
{
	counted(scx_bpf_dispatch_vtime___v0)->insert_vtime(p, dsq_id, slice, vtime, enq_flags);
}

static inline bool scx_bpf_dsq_move_to_local___v2___new(u64 dsq_id, u64 enq_flags)
{
	return counted(scx_bpf_dsq_move_to_local___v2___new)->move_to_local(dsq_id, enq_flags);
}

static inline bool scx_bpf_dsq_move_to_local___v1(u64 dsq_id)
{
	return counted(scx_bpf_dsq_move_to_local___v1)->move_to_local(dsq_id, 0);
}

static inline bool scx_bpf_consume___v0(u64 dsq_id)
{
	return counted(scx_bpf_consume___v0)->move_to_local(dsq_id, 0);
}

/*
 * opaque: the queue, the position of the next task, the last one given out, the
 * flags, and, if that is set, the vtime to move it with.
 */
static inline int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags)
{
	it->opaque[0] = dsq_id;
	it->opaque[1] = 0;
	it->opaque[2] = 0;
	it->opaque[3] = flags;
	it->opaque[4] = 0;
	counted(bpf_iter_scx_dsq_new);
	return 0;
}

static inline struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it)
{
	const struct sim_kernel *kernel = counted(bpf_iter_scx_dsq_next);
	u64 position = it->opaque[1];
	s32 nr = kernel->nr_queued(it->opaque[0]);
	struct task_struct *p = NULL;

	if (it->opaque[3])	/* from the tail */
		position = nr - 1 - position;
	if (position < (u64)nr)
		p = kernel->queued(it->opaque[0], position);
	it->opaque[1]++;
	it->opaque[2] = (u64)p;
	return p;
}

static inline void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it)
{
	counted(bpf_iter_scx_dsq_destroy);
}

#define for_each_queued(p, dsq_id) sim_for_each_queued(p, dsq_id, 0)
#define for_each_queued_from_tail(p, dsq_id)				\
	sim_for_each_queued(p, dsq_id, KENUM(scx_dsq_iter_flags, SCX_DSQ_ITER_REV))
#define sim_for_each_queued(p, dsq_id, flags)				\
	for (struct bpf_iter_scx_dsq ___it				\
		__attribute__((cleanup(bpf_iter_scx_dsq_destroy))),	\
	     *___once __attribute__((unused)) =				\
		(bpf_iter_scx_dsq_new(&___it, dsq_id, flags), NULL);	\
	     ((p) = bpf_iter_scx_dsq_next(&___it));)
#define queue_iterator() (&___it)

static inline struct task_struct *scx_bpf_dsq_peek(u64 dsq_id)
{
	return counted(scx_bpf_dsq_peek)->queued(dsq_id, 0);
}

static inline bool sim_dsq_move(const struct sim_kernel *kernel, struct bpf_iter_scx_dsq *it,
				struct task_struct *p, u64 dsq_id, u64 enq_flags)
{
	if (!kernel->move_between(p, it->opaque[0], dsq_id, it->opaque[4], enq_flags))
		return false;
	if (it->opaque[2] == (u64)p)
		it->opaque[1]--;
	it->opaque[4] = 0;
	return true;
}

static inline bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
				    u64 enq_flags)
{
	return sim_dsq_move(counted(scx_bpf_dsq_move), it, p, dsq_id, enq_flags);
}

static inline void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime)
{
	counted(scx_bpf_dsq_move_set_vtime);
	it->opaque[4] = vtime;
}

static inline bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					  u64 dsq_id, u64 enq_flags)
{
	return sim_dsq_move(counted(scx_bpf_dsq_move_vtime), it, p, dsq_id, enq_flags);
}

static inline s32 __scx_bpf_select_cpu_and(struct task_struct *p, const struct cpumask *allowed,
					   struct scx_bpf_select_cpu_and_args *args)
{
	return counted(__scx_bpf_select_cpu_and)->select_cpu_and(p, args->prev_cpu,
								 args->wake_flags, allowed,
								 args->flags);
}

static inline s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
					 const struct cpumask *allowed, u64 flags)
{
	return counted(scx_bpf_select_cpu_and)->select_cpu_and(p, prev_cpu, wake_flags, allowed,
							       flags);
}

static inline s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags)
{
	return counted(scx_bpf_pick_idle_cpu)->pick_idle(allowed, flags);
}

static inline bool scx_bpf_test_and_clear_cpu_idle(s32 cpu)
{
	return counted(scx_bpf_test_and_clear_cpu_idle)->claim_idle(cpu);
}

static inline void scx_bpf_kick_cpu(s32 cpu, u64 flags)
{
	counted(scx_bpf_kick_cpu)->kick(cpu, flags);
}

static inline u32 scx_bpf_reenqueue_local(void)
{
	return counted(scx_bpf_reenqueue_local)->reenqueue_local();
}

static inline void scx_bpf_dsq_reenq(u64 dsq_id, u64 flags)
{
	counted(scx_bpf_dsq_reenq)->reenqueue(dsq_id, flags);
}

static inline bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	counted(scx_bpf_task_set_slice)->set_slice(p, slice);
	return true;
}

static inline u64 scx_bpf_now(void)
{
	counted(scx_bpf_now);
	return world.now;
}

static inline s32 scx_bpf_task_cpu(const struct task_struct *p)
{
	counted(scx_bpf_task_cpu);
	return p->thread_info.cpu;
}

static inline u32 scx_bpf_nr_cpu_ids(void)
{
	counted(scx_bpf_nr_cpu_ids);
	return world.nr_cpu_ids;
}

static inline const struct cpumask *scx_bpf_get_online_cpumask(void)
{
	return counted(scx_bpf_get_online_cpumask)->online();
}

static inline void scx_bpf_put_cpumask(const struct cpumask *cpumask)
{
	counted(scx_bpf_put_cpumask);
}

static inline void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data__sz)
{
	counted(scx_bpf_dump_bstr);
}

static inline bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask)
{
	counted(bpf_cpumask_test_cpu);
	return cpu < world.nr_cpu_ids && (cpumask->bits[cpu / 64] >> (cpu % 64) & 1);
}

static inline u32 bpf_cpumask_first(const struct cpumask *cpumask)
{
	return counted(bpf_cpumask_first)->any_and(cpumask, cpumask);
}

static inline u32 bpf_cpumask_any_and_distribute(const struct cpumask *a, const struct cpumask *b)
{
	return counted(bpf_cpumask_any_and_distribute)->any_and(a, b);
}

/* Dumps go nowhere, so their arguments needn't be packed. */
static inline void sim_ignore(void *first, ...)
{
}

#define ___bpf_narg(args...) 1
#define ___bpf_fill(arr, args...) sim_ignore(arr, ##args)

static inline long bpf_probe_read_kernel_str(void *dst, u32 size, const void *src)
{
	char *to = dst;
	const char *from = src;
	u32 i = 0;

	if (!size)
		return 0;
	for (; from && i + 1 < size && from[i]; i++)
		to[i] = from[i];
	to[i] = 0;
	return i + 1;
}

#endif /* FULCRUM_SIM_KFUNCS_H */
