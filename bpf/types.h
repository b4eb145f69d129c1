/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * types.h: the kernel's types, cut down to the fields that we touch.
 *
 * Offsets and sizes here mean nothing: every access to a kernel struct is
 * relocated (CO-RE) against the running kernel, and struct_ops members are
 * matched by name. That is why one object loads on every kernel and why the
 * build needs no vmlinux.h.
 */
#ifndef FULCRUM_TYPES_H
#define FULCRUM_TYPES_H

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

/* The names that libbpf's headers expect. */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#define NULL ((void *)0)

#define E2BIG	7
#define EBUSY	16
#define EINVAL	22
#define ENOSYS	38
#define ESTALE	116

/* uapi/linux/bpf.h, as far as needed; fixed for ever by the kernel's ABI. */
enum bpf_map_type { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29 };
enum { BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

#define CLOCK_MONOTONIC		1
#define BPF_F_TIMER_CPU_PIN	2

/* uapi/linux/sched.h and include/linux/sched.h: also fixed. */
#define SCHED_IDLE	5
#define PF_EXITING	0x00000004
#define PF_KTHREAD	0x00200000
#define MAX_RT_PRIO	100

enum scx_exit_kind { SCX_EXIT_NONE };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct bpf_cpumask {
	struct cpumask cpumask;
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
	int tgid;
	char comm[16];
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
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;		/* with CONFIG_EXT_GROUP_SCHED */
};

struct scx_cgroup_init_args {
	u32 weight;
	bool sched_idle;		/* since 7.3 */
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

/* What a task iterator's program is given; no task: the end. */
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
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

#pragma clang attribute pop

/*
 * Argument structs of kernel functions (6.19 and later). We fill them in, so
 * their layout is the kernel's ABI and must not be relocated.
 */
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

/* uapi/linux/bpf.h: a timer in a map's value. */
struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

/* uapi/linux/bpf.h: state of a counted loop. */
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));

/* Its size is ABI: the verifier checks it against the running kernel's. */
struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));

/* Values of kernel 7.3; read them with KENUM(), they differ between kernels. */
enum scx_enq_flags {
	SCX_ENQ_WAKEUP		= 1ULL << 0,
	SCX_ENQ_PREEMPT		= 1ULL << 32,
	SCX_ENQ_IMMED		= 1ULL << 33,	/* since 7.1 */
	SCX_ENQ_LAST		= 1ULL << 41,
};


enum scx_kick_flags {
	SCX_KICK_IDLE		= 1 << 0,
	SCX_KICK_PREEMPT	= 1 << 1,
};

enum scx_wake_flags {
	SCX_WAKE_SYNC		= 1 << 4,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED		= 1 << 0,
};

enum scx_dsq_iter_flags {
	SCX_DSQ_ITER_REV	= 1 << 16,
};

enum scx_dsq_id_flags {
	SCX_DSQ_FLAG_BUILTIN	= 1ULL << 63,
	SCX_DSQ_FLAG_LOCAL_ON	= 1ULL << 62,
	SCX_DSQ_LOCAL		= SCX_DSQ_FLAG_BUILTIN | 2,
	SCX_DSQ_LOCAL_ON	= SCX_DSQ_FLAG_BUILTIN | SCX_DSQ_FLAG_LOCAL_ON,
};

/* include/linux/sched/ext.h; members that a kernel lacks must be left NULL. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);	/* with CONFIG_SCHED_CORE */
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	char name[128];
};

#endif /* FULCRUM_TYPES_H */
