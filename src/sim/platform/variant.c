// SPDX-License-Identifier: GPL-2.0-only
/*
 * variant.c: the scheduler, compiled for the host as one object that exports
 * a single name, SIM_EXPORT: its callbacks, its globals, and a few windows
 * into what it keeps of a task.
 */
#include "fulcrum.bpf.c"

struct sim_task_view {
	u64 vruntime;
	u64 deadline;
	u64 request;
	u64 clock;		/* of the queue that vruntime is measured on */
	u64 inv;		/* 2^32 / weight, which may be a fraction */
	u32 weight;
	u32 known;
	u32 level;
	u32 pad;
};

/* vtime.h, the policies and hist.h, for tests of the arithmetic alone. */
struct sim_arithmetic {
	struct weight (*weight)(int static_prio, u32 policy);
	u64 (*scale)(u64 ns, u64 inv);
	bool (*before)(u64 a, u64 b);
	u64 (*max)(u64 a, u64 b);
	u64 (*bound)(u64 v, u64 clock, u64 behind, u64 ahead);
	s64 (*carry)(u64 from, u64 to);
	u64 (*reweight)(u64 v, u64 clock, struct weight from, struct weight to);
	u64 (*burst)(u64 estimate, u64 burst);
	u64 (*answer)(u32 policy, struct ask *a, u32 moment);
	bool (*preempts)(u32 policy, const struct contest *c);
	bool (*gives_way)(u32 policy, u64 head, u64 due);
	u32 (*hist_bucket)(u32 wait);
};

struct sim_variant {
	const struct sched_ext_ops *ops;
	struct sim_world *world;
	struct cpu_state *cpus;
	struct domain_state *domains;
	struct topology *topo;
	struct knobs *knobs;
	struct speeds *speeds;
	u32 *nr_kinds;
	struct balance_cpu *balance;
	struct agent_seat *seat;
	struct wait_reports *waits;
	s32 (*steer)(struct agent_command *cmd);
	void (*reset)(void);
	void (*set_kernel)(u32 release);
	void (*view_task)(struct task_struct *p, struct sim_task_view *view);
	void (*fire_timer)(struct bpf_timer *timer);
	const struct sim_arithmetic *arithmetic;
	const char *const *kfunc_names;
	u32 nr_kfuncs;
	u32 sizes[14];
};

static const char *const kfunc_names[] = {
#define X(name, since, until) #name,
	SIM_KFUNCS(X)
#undef X
};

static void clear(void *memory, u64 size)
{
	__builtin_memset(memory, 0, size);
}

/* As freshly loaded. */
static void sim_reset(void)
{
	static struct knobs initial_knobs;
	static bool known;

	if (!known) {
		initial_knobs = knobs;
		known = true;
	}
	knobs = initial_knobs;
	clear(cpus, sizeof(cpus));
	clear(domains, sizeof(domains));
	clear(&topo, sizeof(topo));
	clear(&speeds, sizeof(speeds));
	clear(moving, sizeof(moving));
	nr_kinds = 1;
	clear(&uei, sizeof(uei));
	clear(&world, sizeof(world));
	sim_maps_reset();
	clear(groups, sizeof(groups));
	clear(&group_solver, sizeof(group_solver));
	clear(&seat, sizeof(seat));
	clear(balance, sizeof(balance));
	clear(&wait_reports, sizeof(wait_reports));
	topo.nr_domains = 1;
}

/* @release: 616 is 6.16. */
static void sim_set_kernel(u32 release)
{
	struct sim_enums *e = &world.enums;

	world.kfuncs = 0;
#define X(name, since, until)						\
	if (release >= since && release < until)			\
		world.kfuncs |= 1ULL << KF_##name;
	SIM_KFUNCS(X)
#undef X
	e->SCX_ENQ_WAKEUP = 1;
	e->SCX_ENQ_CPU_SELECTED = release >= 619 ? 1ULL << 20 : 1ULL << 10;
	e->SCX_ENQ_PREEMPT = 1ULL << 32;
	e->SCX_ENQ_LAST = 1ULL << 41;
	e->SCX_ENQ_IMMED = release >= 701 ? 1ULL << 33 : 0;
	e->SCX_DEQ_SLEEP = 1;
	e->SCX_DEQ_CORE_SCHED_EXEC = 1ULL << 32;
	e->SCX_KICK_IDLE = 1;
	e->SCX_KICK_PREEMPT = 2;
	e->SCX_WAKE_FORK = 1 << 2;
	e->SCX_WAKE_SYNC = 1 << 4;
	e->SCX_TASK_QUEUED = 1;
	e->SCX_DSQ_ITER_REV = 1 << 16;
	e->SCX_DSQ_LOCAL = 1ULL << 63 | 2;
	e->SCX_DSQ_LOCAL_ON = 1ULL << 63 | 1ULL << 62;
}

static void sim_view_task(struct task_struct *p, struct sim_task_view *view)
{
	struct task_ctx *t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);

	view->known = !!t;
	if (!t)
		return;
	view->vruntime = t->vruntime;
	view->deadline = t->deadline;
	view->request = t->request;
	view->clock = queue_clock(t->clock_cpu);
	view->weight = t->weight.weight;
	view->inv = t->weight.inv;
	view->level = t->level;
}

static struct weight a_weight(int static_prio, u32 policy)
{
	return vtime_weight(static_prio, policy);
}

static u64 a_scale(u64 ns, u64 inv)
{
	return vtime_scale(ns, inv);
}

static bool a_before(u64 a, u64 b)
{
	return vtime_before(a, b);
}

static u64 a_max(u64 a, u64 b)
{
	return vtime_max(a, b);
}

static u64 a_bound(u64 v, u64 clock, u64 behind, u64 ahead)
{
	return vtime_bound(v, clock, behind, ahead);
}

static s64 a_carry(u64 from, u64 to)
{
	return vtime_carry(from, to);
}

static u64 a_reweight(u64 v, u64 clock, struct weight from, struct weight to)
{
	return vtime_reweight(v, clock, from, to);
}

static u64 a_burst(u64 estimate, u64 burst)
{
	return ask_burst(estimate, burst);
}

static u64 a_answer(u32 policy, struct ask *a, u32 moment)
{
	return policy_answer(policy, a, moment);
}

static bool a_preempts(u32 policy, const struct contest *c)
{
	return policy_preempts(policy, c);
}

static bool a_gives_way(u32 policy, u64 head, u64 due)
{
	return policy_gives_way(policy, head, due);
}

static u32 a_hist_bucket(u32 wait)
{
	return hist_bucket(wait);
}

static const struct sim_arithmetic arithmetic = {
	.weight = a_weight,
	.scale = a_scale,
	.before = a_before,
	.max = a_max,
	.bound = a_bound,
	.carry = a_carry,
	.reweight = a_reweight,
	.burst = a_burst,
	.answer = a_answer,
	.preempts = a_preempts,
	.gives_way = a_gives_way,
	.hist_bucket = a_hist_bucket,
};

const struct sim_variant SIM_EXPORT = {
	.ops = &fulcrum_ops,
	.world = &world,
	.cpus = cpus,
	.domains = domains,
	.topo = &topo,
	.knobs = &knobs,
	.speeds = &speeds,
	.nr_kinds = &nr_kinds,
	.balance = balance,
	.seat = &seat,
	.waits = &wait_reports,
	.steer = fulcrum_steer,
	.reset = sim_reset,
	.set_kernel = sim_set_kernel,
	.view_task = sim_view_task,
	.fire_timer = sim_fire_timer,
	.arithmetic = &arithmetic,
	.kfunc_names = kfunc_names,
	.nr_kfuncs = SIM_NR_KFUNCS,
	/* Compared with the engine's own before the first run. */
	.sizes = {
		sizeof(struct task_struct), sizeof(struct sim_world),
		sizeof(struct sim_variant), sizeof(struct cpu_state),
		sizeof(struct domain_state), sizeof(struct topology),
		sizeof(struct knobs), sizeof(struct sim_task_view),
		sizeof(struct cgroup), sizeof(struct sched_ext_ops),
		sizeof(struct balance_cpu), sizeof(struct agent_seat),
		sizeof(struct agent_command), sizeof(struct speeds),
	},
};
