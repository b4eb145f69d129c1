/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kfuncs.h: every kernel function that we call, and what to do without it.
 *
 * Invariant: every kernel function is declared here, and each of them may be
 * absent; the few without a substitute are tested where they are called. Names
 * and signatures changed between 6.12 and 7.3, and some distribution kernels
 * (7.1, 7.2) hide a random subset by a fault in their BTF. So each is declared
 * weak and tested; the loader resolves the tests, and the verifier drops the
 * branches not taken.
 *
 * A name's part after three underscores is ours: libbpf strips it. The tests
 * are nested rather than joined by || because that would OR two addresses.
 */
#ifndef FULCRUM_KFUNCS_H
#define FULCRUM_KFUNCS_H

#include "platform.h"
#include "abi.h"

KFUNC s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) KFUNC_ATTR;
KFUNC s32 scx_bpf_dsq_nr_queued(u64 dsq_id) KFUNC_ATTR;

KFUNC bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, u64 dsq_id, u64 slice,
					 u64 enq_flags) KFUNC_ATTR;
KFUNC void scx_bpf_dsq_insert___v1(struct task_struct *p, u64 dsq_id, u64 slice,
				   u64 enq_flags) KFUNC_ATTR;
KFUNC void scx_bpf_dispatch___v0(struct task_struct *p, u64 dsq_id, u64 slice,
				 u64 enq_flags) KFUNC_ATTR;

KFUNC bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
				      struct scx_bpf_dsq_insert_vtime_args *args) KFUNC_ATTR;
KFUNC void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice,
				    u64 vtime, u64 enq_flags) KFUNC_ATTR;
KFUNC void scx_bpf_dispatch_vtime___v0(struct task_struct *p, u64 dsq_id, u64 slice,
				       u64 vtime, u64 enq_flags) KFUNC_ATTR;

KFUNC bool scx_bpf_dsq_move_to_local___v2___new(u64 dsq_id, u64 enq_flags) KFUNC_ATTR;
KFUNC bool scx_bpf_dsq_move_to_local___v1(u64 dsq_id) KFUNC_ATTR;
KFUNC bool scx_bpf_consume___v0(u64 dsq_id) KFUNC_ATTR;

KFUNC int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) KFUNC_ATTR;
KFUNC struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) KFUNC_ATTR;
KFUNC void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) KFUNC_ATTR;
KFUNC struct task_struct *scx_bpf_dsq_peek(u64 dsq_id) KFUNC_ATTR;
KFUNC bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
			    u64 dsq_id, u64 enq_flags) KFUNC_ATTR;
KFUNC void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it__iter, u64 vtime) KFUNC_ATTR;
KFUNC bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
				  u64 dsq_id, u64 enq_flags) KFUNC_ATTR;

KFUNC u32 scx_bpf_reenqueue_local(void) KFUNC_ATTR;
KFUNC void scx_bpf_dsq_reenq(u64 dsq_id, u64 reenq_flags) KFUNC_ATTR;

KFUNC s32 __scx_bpf_select_cpu_and(struct task_struct *p, const struct cpumask *cpus_allowed,
				   struct scx_bpf_select_cpu_and_args *args) KFUNC_ATTR;
KFUNC s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				 const struct cpumask *cpus_allowed, u64 flags) KFUNC_ATTR;
KFUNC s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, u64 flags) KFUNC_ATTR;
KFUNC bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) KFUNC_ATTR;
KFUNC void scx_bpf_kick_cpu(s32 cpu, u64 flags) KFUNC_ATTR;

KFUNC bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) KFUNC_ATTR;
KFUNC u64 scx_bpf_now(void) KFUNC_ATTR;
KFUNC s32 scx_bpf_task_cpu(const struct task_struct *p) KFUNC_ATTR;
KFUNC u32 scx_bpf_nr_cpu_ids(void) KFUNC_ATTR;
KFUNC const struct cpumask *scx_bpf_get_online_cpumask(void) KFUNC_ATTR;
KFUNC void scx_bpf_put_cpumask(const struct cpumask *cpumask) KFUNC_ATTR;
KFUNC void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data__sz) KFUNC_ATTR;

KFUNC bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) KFUNC_ATTR;
KFUNC u32 bpf_cpumask_first(const struct cpumask *cpumask) KFUNC_ATTR;
KFUNC u32 bpf_cpumask_any_and_distribute(const struct cpumask *src1,
					 const struct cpumask *src2) KFUNC_ATTR;

#ifndef FULCRUM_SIM
extern const int __preempt_count __ksym __weak;	/* a per-CPU variable */
#endif

/* Puts @p at the tail of a FIFO queue: the local queue of its CPU. */
static __always_inline void kf_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	if (kfunc_exists(scx_bpf_dsq_insert___v2___new))
		scx_bpf_dsq_insert___v2___new(p, dsq_id, slice, enq_flags);
	else if (kfunc_exists(scx_bpf_dsq_insert___v1))
		scx_bpf_dsq_insert___v1(p, dsq_id, slice, enq_flags);
	else if (kfunc_exists(scx_bpf_dispatch___v0))
		scx_bpf_dispatch___v0(p, dsq_id, slice, enq_flags);
}

/* Puts @p into a CPU's queue in the order of @vtime. */
static __always_inline void kf_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice,
					    u64 vtime, u64 enq_flags)
{
	if (kfunc_exists(__scx_bpf_dsq_insert_vtime)) {
		struct scx_bpf_dsq_insert_vtime_args args = {
			.dsq_id = dsq_id,
			.slice = slice,
			.vtime = vtime,
			.enq_flags = enq_flags,
		};

		__scx_bpf_dsq_insert_vtime(p, &args);
	} else if (kfunc_exists(scx_bpf_dsq_insert_vtime)) {
		scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, enq_flags);
	} else if (kfunc_exists(scx_bpf_dispatch_vtime___v0)) {
		scx_bpf_dispatch_vtime___v0(p, dsq_id, slice, vtime, enq_flags);
	}
}

/* Takes the first task of the queue that this CPU may run; false: none. */
static __always_inline bool kf_move_to_local(u64 dsq_id)
{
	if (kfunc_exists(scx_bpf_dsq_move_to_local___v2___new))
		return scx_bpf_dsq_move_to_local___v2___new(dsq_id, 0);
	if (kfunc_exists(scx_bpf_dsq_move_to_local___v1))
		return scx_bpf_dsq_move_to_local___v1(dsq_id);
	if (kfunc_exists(scx_bpf_consume___v0))
		return scx_bpf_consume___v0(dsq_id);
	return false;
}

/*
 * The lockless peek is trusted from 7.1 on, recognised by a flag that came
 * then (a function might be hidden).
 */
static __always_inline bool kf_can_peek(void)
{
	if (kfunc_exists(scx_bpf_dsq_peek))
		return KENUM(scx_enq_flags, SCX_ENQ_IMMED);
	return false;
}

/*
 * The vtime of a queue's first task; false: empty. Without peek, one step of
 * the iterator, which takes the queue's lock.
 */
static __always_inline bool kf_head_vtime(u64 dsq_id, u64 *vtime)
{
	struct task_struct *p;
	bool found = false;

	if (kf_can_peek()) {
		p = scx_bpf_dsq_peek(dsq_id);
		if (!p)
			return false;
		*vtime = p->scx.dsq_vtime;
		return true;
	}
	if (kfunc_exists(bpf_iter_scx_dsq_new)) {
		for_each_queued(p, dsq_id) {
			*vtime = p->scx.dsq_vtime;
			found = true;
			break;
		}
	}
	return found;
}

/* How many tasks wait in the queue; "some" where the kernel can't tell. */
static __always_inline s32 kf_nr_queued(u64 dsq_id)
{
	if (kfunc_exists(scx_bpf_dsq_nr_queued))
		return scx_bpf_dsq_nr_queued(dsq_id);
	return 1;
}

/* Interrupts @cpu's task (SCX_KICK_PREEMPT) or wakes it if it is idle. */
static __always_inline void kf_kick(s32 cpu, u64 flags)
{
	if (kfunc_exists(scx_bpf_kick_cpu))
		scx_bpf_kick_cpu(cpu, flags);
}

static __always_inline bool kf_claim_idle(s32 cpu)
{
	if (kfunc_exists(scx_bpf_test_and_clear_cpu_idle))
		return scx_bpf_test_and_clear_cpu_idle(cpu);
	return false;
}

/*
 * Claims an idle CPU that @p may run on, near @prev_cpu first (core, LLC,
 * node, anywhere); negative: none. The kernel isn't told of a sync wakeup: its
 * answer would be the waker's own, busy CPU, whatever waits there (wake.h).
 */
static __always_inline s32 kf_pick_idle(struct task_struct *p, s32 prev_cpu)
{
	if (kfunc_exists(__scx_bpf_select_cpu_and)) {
		struct scx_bpf_select_cpu_and_args args = {
			.prev_cpu = prev_cpu,
		};

		return __scx_bpf_select_cpu_and(p, p->cpus_ptr, &args);
	}
	if (kfunc_exists(scx_bpf_select_cpu_and))
		return scx_bpf_select_cpu_and(p, prev_cpu, 0, p->cpus_ptr, 0);
	if (kf_claim_idle(prev_cpu))
		return prev_cpu;
	if (kfunc_exists(scx_bpf_pick_idle_cpu))
		return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	return -1;
}

/* An online CPU of @p's mask, another one each time; out of range: none. */
static __always_inline s32 kf_pick_any(struct task_struct *p)
{
	const struct cpumask *online;
	s32 cpu;

	if (kfunc_exists(bpf_cpumask_any_and_distribute)) {
		if (kfunc_exists(scx_bpf_get_online_cpumask)) {
			online = scx_bpf_get_online_cpumask();
			cpu = bpf_cpumask_any_and_distribute(p->cpus_ptr, online);
			scx_bpf_put_cpumask(online);
			return cpu;
		}
	}
	if (kfunc_exists(bpf_cpumask_first))
		return bpf_cpumask_first(p->cpus_ptr);
	return -1;
}

static __always_inline bool kf_allowed(struct task_struct *p, s32 cpu)
{
	if (kfunc_exists(bpf_cpumask_test_cpu))
		return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
	return true;
}

static __always_inline void kf_set_slice(struct task_struct *p, u64 slice)
{
	if (kfunc_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

/* Nanoseconds of the scheduler's clock; comparable on one CPU only. */
static __always_inline u64 kf_now(void)
{
	if (kfunc_exists(scx_bpf_now))
		return scx_bpf_now();
	return bpf_ktime_get_ns();
}

static __always_inline s32 kf_task_cpu(struct task_struct *p)
{
	if (kfield_exists(p->thread_info.cpu))
		return p->thread_info.cpu;
	if (kfunc_exists(scx_bpf_task_cpu))
		return scx_bpf_task_cpu(p);
	return 0;
}

static __always_inline u32 kf_nr_cpu_ids(void)
{
	if (kfunc_exists(scx_bpf_nr_cpu_ids))
		return scx_bpf_nr_cpu_ids();
	return FULCRUM_MAX_CPUS;
}

#ifndef FULCRUM_SIM
/*
 * Which bits of preempt_count say that an interrupt runs: hardirq, NMI and
 * serving-softirq. The first two moved in 7.3, and nothing in BTF tells, so
 * the layout is learned from a tick, which comes from a timer interrupt.
 */
#define IN_SOFTIRQ		(1 << 8)
#define IN_IRQ_BEFORE_7_3	0x00ff0000
#define IN_IRQ_SINCE_7_3	0x1f000000

u32 in_interrupt_bits;		/* 0: not learned yet */

static __always_inline void kf_learn_interrupt_bits(void)
{
	u32 count;

	if (in_interrupt_bits || !kfunc_exists(&__preempt_count))
		return;
	count = *(int *)bpf_this_cpu_ptr(&__preempt_count);
	/* The newer layout counts something else in the older one's bits. */
	if (count & IN_IRQ_SINCE_7_3)
		in_interrupt_bits = IN_IRQ_SINCE_7_3 | IN_SOFTIRQ;
	else if (count & IN_IRQ_BEFORE_7_3)
		in_interrupt_bits = IN_IRQ_BEFORE_7_3 | IN_SOFTIRQ;
}

/*
 * Does the current task itself run here, rather than an interrupt above it?
 * "No" where the kernel does not show it, or it isn't learned yet.
 */
static __always_inline bool kf_in_task(void)
{
	if (!in_interrupt_bits || !kfunc_exists(&__preempt_count))
		return false;
	return !(*(int *)bpf_this_cpu_ptr(&__preempt_count) & in_interrupt_bits);
}
#endif

#endif /* FULCRUM_KFUNCS_H */
