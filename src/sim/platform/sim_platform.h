/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sim_platform.h: the kernel as bpf/ sees it, when bpf/ is compiled for the
 * simulator.
 *
 * What needs no knowledge of the simulated machine is answered right here;
 * everything else goes through `world.kernel`, a table of functions that the
 * engine fills in. The kernel functions and the releases that have them are
 * listed once, in SIM_KFUNCS; an enum value that moved is set in
 * sim_set_kernel(). Maps are in sim_maps.h, the kernel functions in
 * sim_kfuncs.h. Whatever bpf/ uses and these lack does not compile.
 */
#ifndef FULCRUM_SIM_PLATFORM_H
#define FULCRUM_SIM_PLATFORM_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
enum { false = 0, true = 1 };

#define NULL ((void *)0)

#define ENOENT	2
#define E2BIG	7
#define ENOMEM	12
#define EBUSY	16
#define EEXIST	17
#define EINVAL	22
#define ENOSYS	38
#define ESTALE	116

#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __arg_trusted
#define SEC(name)

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_F_TIMER_CPU_PIN 2
#define CLOCK_MONOTONIC 1
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_F_NO_PREALLOC 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name

#define SCHED_BATCH	3
#define SCHED_IDLE	5
#define PF_EXITING	0x00000004
#define PF_KTHREAD	0x00200000
#define MAX_RT_PRIO	100

#define SIM_MASK_WORDS		64	/* 4096 CPUs */
#define SIM_STORAGE_SLOTS	2
#define SIM_STORAGE_BYTES	384

enum scx_exit_kind { SCX_EXIT_NONE, SCX_EXIT_ERROR = 1024 };

struct cpumask {
	unsigned long bits[SIM_MASK_WORDS];
};

struct thread_info {
	u32 cpu;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};

/* The fields that bpf/ touches, then the simulator's own. */
struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int static_prio;
	unsigned int policy;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	struct sched_entity se;
	struct sched_ext_entity scx;
	int pid;
	char comm[16];
	u32 sim_index;
	u32 sim_storage_denied;		/* task storage can't be allocated */
	const void *sim_storage_map[SIM_STORAGE_SLOTS];
	u64 sim_storage[SIM_STORAGE_SLOTS][SIM_STORAGE_BYTES / 8];
};

struct kernfs_node {
	u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	int level;
	u32 sim_index;
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_cgroup_init_args {
	u32 weight;
	bool sched_idle;		/* 7.3 and later, else false */
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_cpu_release_args;

struct scx_exit_info {
	enum scx_exit_kind kind;
	s32 exit_cpu;
	s64 exit_code;
	const char *reason;
	char *msg;
	char *dump;
};

struct scx_dump_ctx {
	u64 at_ns;
};

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

struct scx_bpf_select_cpu_and_args {
	s32 prev_cpu;
	u64 wake_flags;
	u64 flags;
};

struct bpf_timer {
	void *map;
	int (*callback)(void *map, void *key, void *value);
};

struct bpf_iter_scx_dsq {
	u64 opaque[6];
};

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	s32 (*cgroup_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_cancel_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	char name[128];
};

/* name, first release that has it, first release that has it no more */
#define SIM_KFUNCS(X)							\
	X(scx_bpf_create_dsq, 612, 9999)				\
	X(scx_bpf_dsq_nr_queued, 612, 9999)				\
	X(scx_bpf_dsq_insert___v2___new, 619, 9999)			\
	X(scx_bpf_dsq_insert___v1, 613, 9999)				\
	X(scx_bpf_dispatch___v0, 612, 617)				\
	X(__scx_bpf_dsq_insert_vtime, 619, 9999)			\
	X(scx_bpf_dsq_insert_vtime, 613, 9999)				\
	X(scx_bpf_dispatch_vtime___v0, 612, 617)			\
	X(scx_bpf_dsq_move_to_local___v2___new, 701, 9999)		\
	X(scx_bpf_dsq_move_to_local___v1, 613, 9999)			\
	X(scx_bpf_consume___v0, 612, 617)				\
	X(bpf_iter_scx_dsq_new, 612, 9999)				\
	X(bpf_iter_scx_dsq_next, 612, 9999)				\
	X(bpf_iter_scx_dsq_destroy, 612, 9999)				\
	X(scx_bpf_dsq_peek, 619, 9999)					\
	X(scx_bpf_dsq_move, 613, 9999)					\
	X(scx_bpf_dsq_move_set_vtime, 613, 9999)			\
	X(scx_bpf_dsq_move_vtime, 613, 9999)				\
	X(__scx_bpf_select_cpu_and, 619, 9999)				\
	X(scx_bpf_select_cpu_and, 616, 9999)				\
	X(scx_bpf_pick_idle_cpu, 612, 9999)				\
	X(scx_bpf_test_and_clear_cpu_idle, 612, 9999)			\
	X(scx_bpf_kick_cpu, 612, 9999)					\
	X(scx_bpf_reenqueue_local, 612, 9999)				\
	X(scx_bpf_dsq_reenq, 701, 9999)					\
	X(scx_bpf_task_set_slice, 619, 9999)				\
	X(scx_bpf_now, 614, 9999)					\
	X(scx_bpf_task_cpu, 612, 9999)					\
	X(scx_bpf_nr_cpu_ids, 612, 9999)				\
	X(scx_bpf_get_online_cpumask, 612, 9999)			\
	X(scx_bpf_put_cpumask, 612, 9999)				\
	X(scx_bpf_dump_bstr, 612, 9999)					\
	X(bpf_cpumask_test_cpu, 612, 9999)				\
	X(bpf_cpumask_first, 612, 9999)					\
	X(bpf_cpumask_any_and_distribute, 612, 9999)

enum sim_kfunc {
#define X(name, since, until) KF_##name,
	SIM_KFUNCS(X)
#undef X
	SIM_NR_KFUNCS,
};

/* The enum values that bpf/ asks for with KENUM(). */
struct sim_enums {
	u64 SCX_ENQ_WAKEUP;
	u64 SCX_ENQ_CPU_SELECTED;
	u64 SCX_ENQ_PREEMPT;
	u64 SCX_DEQ_SLEEP;
	u64 SCX_DEQ_CORE_SCHED_EXEC;
	u64 SCX_KICK_IDLE;
	u64 SCX_KICK_PREEMPT;
	u64 SCX_WAKE_FORK;
	u64 SCX_WAKE_SYNC;
	u64 SCX_TASK_QUEUED;
	u64 SCX_DSQ_ITER_REV;
	u64 SCX_DSQ_LOCAL;
	u64 SCX_DSQ_LOCAL_ON;
	u64 SCX_ENQ_IMMED;
	u64 SCX_ENQ_LAST;
};

/* The engine's side of the kernel functions. */
struct sim_kernel {
	s32 (*create_dsq)(u64 dsq_id, s32 node);
	s32 (*nr_queued)(u64 dsq_id);
	bool (*insert)(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags);
	bool (*insert_vtime)(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			     u64 enq_flags);
	bool (*move_to_local)(u64 dsq_id, u64 enq_flags);
	struct task_struct *(*queued)(u64 dsq_id, u64 position);
	bool (*move_between)(struct task_struct *p, u64 from, u64 to, u64 vtime, u64 enq_flags);
	s32 (*select_cpu_and)(struct task_struct *p, s32 prev, u64 wake_flags,
			      const struct cpumask *allowed, u64 flags);
	s32 (*pick_idle)(const struct cpumask *allowed, u64 flags);
	bool (*claim_idle)(s32 cpu);
	void (*kick)(s32 cpu, u64 flags);
	void (*set_slice)(struct task_struct *p, u64 slice);
	const struct cpumask *(*online)(void);
	u32 (*any_and)(const struct cpumask *a, const struct cpumask *b);
	void (*pause)(void);		/* other CPUs may act in between */
	void (*start_timer)(struct bpf_timer *timer, u64 ns);
	u32 (*reenqueue_local)(void);
	void (*reenqueue)(u64 dsq_id, u64 flags);
	void (*event)(const void *record, u64 size);
};

/* What the engine sets before it calls, and reads afterwards. */
struct sim_world {
	const struct sim_kernel *kernel;
	u64 now;
	u32 cpu;			/* the CPU that the callback runs on */
	u32 nr_cpu_ids;
	u32 in_task;			/* not above an interrupt */
	u32 pad;
	struct task_struct *current;
	u64 kfuncs;			/* one bit each: the kernel has it */
	struct sim_enums enums;
	const void *own;		/* what that CPU writes without sharing */
	u64 own_size;
	u64 nr_calls;			/* of kernel functions */
	u64 calls[SIM_NR_KFUNCS];
	u64 barriers;			/* full barriers */
	u64 shared_writes;		/* atomic writes, and those to others' words */
};

static struct sim_world world;

#define KFUNC extern
#define KFUNC_ATTR
#define kfunc_exists(func) (world.kfuncs >> KF_##func & 1)
#define KENUM(type, name) (world.enums.name)
#define kfield_exists(expr) 1

#define STRUCT_OP(name, args...) name(args)
#define STRUCT_OP_SLEEPABLE(name, args...) name(args)
#define SYSCALL_PROG(name, arg) name(arg)

#define bounded_for(i, first, last) for ((i) = (first); (i) < (last); (i)++)

/* The engine knows whether an interrupt runs; there is no layout to learn. */
static inline void kf_learn_interrupt_bits(void)
{
}

static inline bool kf_in_task(void)
{
	return world.in_task;
}

static inline u32 bpf_get_smp_processor_id(void)
{
	return world.cpu;
}

static inline struct task_struct *bpf_get_current_task_btf(void)
{
	return world.current;
}

static inline u64 bpf_ktime_get_ns(void)
{
	return world.now;
}

/* Atomics on the stack are full barriers, all others write a shared word. */
static inline void sim_atomic(const volatile void *word, const void *frame)
{
	s64 apart = (const char *)word - (const char *)frame;

	world.kernel->pause();

	if (apart > -4096 && apart < 4096)
		world.barriers++;
	else
		world.shared_writes++;
}

#define WRITE_HINT(x, val)						\
	(sim_note_write(&(x)), *(volatile typeof(x) *)&(x) = (val))

static inline void sim_note_write(const volatile void *word)
{
	u64 offset = (const char *)word - (const char *)world.own;

	world.shared_writes += offset >= world.own_size;
}

#define __sync_fetch_and_or(word, val)					\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_fetch_and_or(word, val))
#define __sync_fetch_and_and(word, val)					\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_fetch_and_and(word, val))
#define __sync_fetch_and_add(word, val)					\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_fetch_and_add(word, val))
#define __sync_fetch_and_sub(word, val)					\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_fetch_and_sub(word, val))
#define __sync_val_compare_and_swap(word, old, val)			\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_val_compare_and_swap(word, old, val))

#include "sim_maps.h"
#include "sim_kfuncs.h"

#endif /* FULCRUM_SIM_PLATFORM_H */
