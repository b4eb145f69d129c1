/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sim_platform.h: the kernel as bpf/ sees it, when bpf/ is compiled for the
 * simulator.
 *
 * What needs no knowledge of the simulated machine is answered right here;
 * everything else goes through `world.kernel`, a table of functions that the
 * engine fills in. The kernel functions and the releases that have them are
 * listed once, in SIM_KFUNCS; an enum value that moved is set in
 * sim_set_kernel(). Whatever bpf/ uses and this file lacks does not compile.
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

#define ENOSYS	38
#define E2BIG	7

#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define SEC(name)

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

struct scx_init_task_args {
	bool fork;
};

struct scx_exit_task_args {
	bool cancelled;
};

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
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
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
	u64 calls[SIM_NR_KFUNCS];
	u64 barriers;			/* full barriers */
	u64 shared_writes;		/* atomic writes to words that CPUs share */
};

static struct sim_world world;

#define KFUNC extern
#define KFUNC_ATTR
#define kfunc_exists(func) (world.kfuncs >> KF_##func & 1)
#define KENUM(type, name) (world.enums.name)
#define kfield_exists(expr) 1

#define STRUCT_OP(name, args...) name(args)
#define STRUCT_OP_SLEEPABLE(name, args...) name(args)

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

#define __sync_fetch_and_or(word, val)					\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_fetch_and_or(word, val))
#define __sync_fetch_and_and(word, val)					\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_fetch_and_and(word, val))
#define __sync_fetch_and_add(word, val)					\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_fetch_and_add(word, val))
#define __sync_val_compare_and_swap(word, old, val)			\
	(sim_atomic(word, __builtin_frame_address(0)), __sync_val_compare_and_swap(word, old, val))

static inline void *sim_task_storage(struct task_struct *p, const void *map, u64 size, u64 flags)
{
	for (u32 i = 0; i < SIM_STORAGE_SLOTS; i++) {
		if (p->sim_storage_map[i] == map)
			return p->sim_storage[i];
		if (p->sim_storage_map[i])
			continue;
		if (!(flags & BPF_LOCAL_STORAGE_GET_F_CREATE) || p->sim_storage_denied)
			return NULL;
		p->sim_storage_map[i] = map;
		return p->sim_storage[i];
	}
	return NULL;
}

#define bpf_task_storage_get(map, p, init, flags)			\
({									\
	_Static_assert(sizeof(*(map)->value) <= SIM_STORAGE_BYTES,	\
		       "raise SIM_STORAGE_BYTES");			\
	sim_task_storage(p, map, sizeof(*(map)->value), flags);		\
})

#define counted(name) (world.calls[KF_##name]++, world.kernel)

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

#endif /* FULCRUM_SIM_PLATFORM_H */
