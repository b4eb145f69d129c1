/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * task.h: what we know of a task, and the life that it may lead.
 *
 * Invariant: `state` changes only in task_event(), and only along this table.
 * An event that the table does not allow is counted, remembered with task and
 * event (see dump_cpu) and otherwise taken as it comes: the state follows the
 * event. The tests require the count to be 0 on every kernel.
 *
 *	event		from			to
 *	enable		created			blocked
 *	queued		blocked, queued		queued
 *	running		blocked, queued		running
 *	preempted	running			queued
 *	leaving		running			blocked
 *	disable		blocked, queued		created
 *	exit		created, blocked	exited
 *
 * "queued" is an insertion, "preempted" ops.stopping() of a task that stays
 * runnable, "leaving" of one that does not: it sleeps, or one of its attributes
 * changes and it is queued again at once. A task runs from "blocked" if the
 * kernel placed it by itself (bypass, a CPU going offline). ops.runnable() and
 * ops.quiescent() would tell more, and cost two more calls a wakeup.
 *
 * A missing context is never an error: such a task runs with defaults.
 */
#ifndef FULCRUM_TASK_H
#define FULCRUM_TASK_H

#include "cgroup.h"
#include "policy/decide.h"
#include "recorder.h"

enum task_state {
	TASK_EXITED,		/* also: never seen */
	TASK_CREATED,
	TASK_BLOCKED,
	TASK_QUEUED,
	TASK_RUNNING,
};

enum task_event {
	EV_ENABLE,
	EV_QUEUED,
	EV_RUNNING,
	EV_PREEMPTED,
	EV_LEAVING,
	EV_DISABLE,
	EV_EXIT,
};

/* Where the task comes from when it is queued next. */
enum task_origin {
	FROM_SLICE_END,		/* it ran, or was moved: v and request stand */
	FROM_SLEEP,		/* it slept: v is bounded, it asks anew */
	FROM_BIRTH,		/* it is new here: v starts at the clock */
};

struct task_ctx {
	u64 vruntime;		/* virtual time received, on the clock of clock_cpu */
	u64 deadline;		/* virtual time by which its request is due */
	u64 charged_to;		/* sum_exec_runtime up to which vruntime is charged */
	u64 burst;		/* CPU time since it woke, ns */
	u64 burst_estimate;	/* what that usually comes to, ns */
	u64 request;		/* CPU time left of what it asked for, ns */
	u64 exits_seen;		/* the queue's `exit_moves` when it was born into it */
	u64 waiting_since;	/* clock of clock_cpu; 0 = does not wait */
	struct weight weight;	/* in the whole machine: what vruntime is charged by */
	struct weight own;	/* of nice and policy alone */
	s32 clock_cpu;		/* the queue that vruntime is measured on */
	u32 group;		/* slot of its cgroup */
	u32 generation;		/* of the cgroup's cost that weight was made with */
	u32 last_wait;		/* until it ran last, unit: 1,024 ns */
	u32 max_wait;
	u32 woken_by;		/* the task that ran where it was woken */
	u32 preempted_by;
	u8 state;
	u8 origin;
	u8 level;		/* the policy's */
	u8 busy;		/* it used up a request without sleeping */
	u8 hist;		/* which counts its wait: enum task_hist */
	u8 fresh;		/* it has not run yet */
	u8 way;			/* how it came, or comes, to run: enum task_way */
	u8 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

static __always_inline struct task_ctx *task_ctx(struct task_struct *p)
{
	struct task_ctx *t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);

	if (!t)
		stat_inc(missing_ctx);
	return t;
}

/* The context of the first task in @cpu's queue; NULL: none. */
static __always_inline struct task_ctx *queue_head(s32 cpu)
{
	struct task_ctx *t = NULL;
	struct task_struct *p;

	if (kf_can_peek()) {
		p = scx_bpf_dsq_peek(cpu_queue(cpu));
		return p ? bpf_task_storage_get(&task_ctxs, p, NULL, 0) : NULL;
	}
	if (kfunc_exists(bpf_iter_scx_dsq_new)) {
		for_each_queued(p, cpu_queue(cpu)) {
			t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
			break;
		}
	}
	return t;
}

/* V goes on by steps that small without a look at who waits. */
#define CLOCK_LEAP (6 * NSEC_PER_MSEC)

/*
 * V follows the @v of a task of @cpu, but leaps over nobody who waits there: a
 * light task is far ahead of all others, and if it took V along, they would be
 * owed all that at once, and come before everybody who wakes.
 */
static __always_inline void queue_clock_follows(s32 cpu, u64 v)
{
	struct cpu_state *c = cpu_state(cpu);
	struct task_ctx *next;

	if (READ_HINT(c->has_work) && vtime_before(c->vclock + CLOCK_LEAP, v)) {
		next = queue_head(cpu);
		if (next && vtime_before(next->vruntime, v))
			v = next->vruntime;
	}
	queue_clock_advance(cpu, v);
}

#define ONE(state) (1 << (state))

static __always_inline u32 task_event_from(enum task_event event)
{
	switch (event) {
	case EV_ENABLE:		return ONE(TASK_CREATED);
	case EV_QUEUED:		return ONE(TASK_BLOCKED) | ONE(TASK_QUEUED);
	case EV_RUNNING:	return ONE(TASK_BLOCKED) | ONE(TASK_QUEUED);
	case EV_PREEMPTED:	return ONE(TASK_RUNNING);
	case EV_LEAVING:	return ONE(TASK_RUNNING);
	case EV_DISABLE:	return ONE(TASK_BLOCKED) | ONE(TASK_QUEUED);
	case EV_EXIT:		return ONE(TASK_CREATED) | ONE(TASK_BLOCKED);
	}
	return 0;
}

static __always_inline enum task_state task_event_to(enum task_event event)
{
	switch (event) {
	case EV_ENABLE:		return TASK_BLOCKED;
	case EV_QUEUED:		return TASK_QUEUED;
	case EV_RUNNING:	return TASK_RUNNING;
	case EV_PREEMPTED:	return TASK_QUEUED;
	case EV_LEAVING:	return TASK_BLOCKED;
	case EV_DISABLE:	return TASK_CREATED;
	case EV_EXIT:		return TASK_EXITED;
	}
	return TASK_EXITED;
}

static __always_inline void task_event(struct task_struct *p, struct task_ctx *t,
				       enum task_event event)
{
	if (!(task_event_from(event) & ONE(t->state))) {
		struct cpu_state *c = this_cpu();

		c->stats.lifecycle_errors++;
		c->lifecycle_pid = p->pid;
		c->lifecycle_state = t->state;
		c->lifecycle_event = event;
	}
	t->state = task_event_to(event);
}

/* Charges what @p ran since the last charge; call with its runtime current. */
static __always_inline void task_charge(struct task_struct *p, struct task_ctx *t)
{
	u64 total = p->se.sum_exec_runtime;
	s64 ran = total - t->charged_to;

	t->charged_to = total;
	if (ran <= 0)
		return;
	t->vruntime += vtime_scale(ran, t->weight.inv);
	group_account(t->group, t->own.weight, ran, ran);
	t->burst += ran;
	t->request = t->request > (u64)ran ? t->request - ran : 0;
	stat_add(run_ns, ran);
}

/* Another weight: lag in CPU time stays. */
static __always_inline void task_set_weight(struct task_ctx *t, struct weight to)
{
	if (to.inv == t->weight.inv)
		return;
	if (t->weight.inv && t->origin != FROM_BIRTH)
		t->vruntime = vtime_reweight(t->vruntime, queue_clock(t->clock_cpu), t->weight, to);
	t->weight = to;
}

/* Takes over what its cgroup's time costs now; call before a new request. */
static __always_inline void task_refresh_weight(struct task_ctx *t)
{
	struct group_state *g;

	if (!t->group)
		return;
	g = group_state(t->group);
	if (READ_HINT(g->generation) == t->generation)
		return;
	t->generation = READ_HINT(g->generation);
	task_set_weight(t, group_task_weight(g, t->own));
}

static __always_inline struct ask task_ask(struct task_ctx *t, u64 v, u64 clock)
{
	struct ask a = {
		.v = v,
		.clock = clock,
		.burst = t->burst_estimate,
		.request = t->request,
		.slice = knobs.slice_ns,
		.weight = t->weight,
		.level = t->level,
		.mixed = READ_HINT(cpu_state(t->clock_cpu)->mixed),
	};

	return a;
}

/*
 * Asks whichever policy is in force, for a v on the clock of @cpu; the answer
 * is a deadline and, with @keep, the task's. Not inlined, and not static: the
 * default policy stays short, and the verifier checks this once.
 */
__noinline u64 task_ask_policy(struct task_ctx *t, u64 v, s32 cpu, u32 moment, u32 keep)
{
	struct ask a;
	u64 deadline;

	if (!t)
		return v;
	a = task_ask(t, v, queue_clock(cpu));
	deadline = policy_answer(knobs.policy, &a, moment);
	if (keep) {
		t->request = a.request;
		t->level = a.level;
	}
	return deadline;
}

/* When a request made now, with @v on the clock of @cpu, would be due. */
static __always_inline u64 task_would_be_due(struct task_ctx *t, u64 v, s32 cpu,
					     enum ask_moment moment)
{
	struct ask a;

	if (knobs.policy != POLICY_FAIR)
		return task_ask_policy(t, v, cpu, moment, 0);
	a = task_ask(t, v, 0);
	return policy_answer(POLICY_FAIR, &a, moment);
}

/* Makes a request, due in its turn. */
static __always_inline void task_request(struct task_ctx *t, enum ask_moment moment)
{
	struct ask a;

	if (moment != ASK_AGAIN) {
		t->busy = moment == ASK_USED_UP;
		task_refresh_weight(t);
	}
	if (knobs.policy != POLICY_FAIR) {
		t->deadline = task_ask_policy(t, t->vruntime, t->clock_cpu, moment, 1);
		return;
	}
	a = task_ask(t, t->vruntime, 0);
	t->deadline = policy_answer(POLICY_FAIR, &a, moment);
	t->request = a.request;
}

/* May a wakeup with @v and @deadline interrupt what runs until @curr_deadline? */
static __always_inline bool task_preempts(u64 v, u64 deadline, u64 clock, u64 curr_deadline)
{
	struct contest c = { v, deadline, clock, curr_deadline, knobs.slice_ns };

	return policy_preempts(knobs.policy, &c);
}

static __always_inline bool task_request_used_up(struct task_ctx *t)
{
	return t->request < REQUEST_LEFTOVER;
}

/* Puts the task on the clock of @cpu: v and deadline move by the same amount. */
static __always_inline void task_move_clock(struct task_ctx *t, s32 cpu)
{
	s64 carry;

	if (t->clock_cpu == cpu)
		return;
	carry = vtime_carry(queue_clock(t->clock_cpu), queue_clock(cpu));
	t->vruntime += carry;
	t->deadline += carry;
	t->clock_cpu = cpu;
}

/*
 * The v that a waking task will have on @cpu, whose clock reads @clock. Over
 * sleep v stands still while V goes on, so debt decays and credit grows, each
 * up to its bound.
 */
static __always_inline u64 task_wake_vruntime(struct task_ctx *t, s32 cpu, u64 clock)
{
	u64 v = t->vruntime;

	if (t->origin == FROM_BIRTH)
		return clock;
	if (t->clock_cpu != cpu)
		v += clock - queue_clock(t->clock_cpu);
	return vtime_bound(v, clock, vtime_credit(knobs.credit_ns, t->weight.inv),
			   vtime_scale(VTIME_DEBT, t->weight.inv));
}

/* What @t is owed, ns of CPU time; bounded, so that it fits. */
static __always_inline s64 task_lag(struct task_ctx *t)
{
	u64 bound = vtime_scale(VTIME_SANE, t->weight.inv);
	u64 clock = queue_clock(t->clock_cpu);
	s64 lag = clock - vtime_bound(t->vruntime, clock, bound, bound);

	return lag < 0 ? -(s64)(vtime_cpu_time(-lag, t->weight.inv)) : (s64)vtime_cpu_time(lag, t->weight.inv);
}

/*
 * For core scheduling, where siblings of a core must run tasks that trust each
 * other: is @a owed more than @b? Their queues may have different clocks, so
 * lags are compared; in CPU time, or the light ones would always come first.
 */
static __always_inline bool task_more_owed(struct task_struct *a, struct task_struct *b)
{
	struct task_ctx *ta = task_ctx(a), *tb = task_ctx(b);

	return ta && tb && task_lag(ta) > task_lag(tb);
}

/* Settles v and the request of a task that comes to @cpu's queue. */
static __always_inline void task_arrive(struct task_ctx *t, s32 cpu)
{
	if (t->origin != FROM_SLICE_END) {
		t->vruntime = task_wake_vruntime(t, cpu, queue_clock(cpu));
		t->clock_cpu = cpu;
		if (t->fresh)
			t->exits_seen = cpu_state(cpu)->exit_moves;
		t->origin = FROM_SLICE_END;
		task_request(t, ASK_WAKES);
		return;
	}
	task_move_clock(t, cpu);
	if (task_request_used_up(t))
		task_request(t, ASK_USED_UP);
}

/* Its weight anew: from the exact nice level and policy, and its cgroup. */
static __always_inline void task_reweight(struct task_struct *p, struct task_ctx *t)
{
	struct group_state *g = group_state(t->group);

	t->own = vtime_weight(p->static_prio, p->policy);
	t->generation = READ_HINT(g->generation);
	task_set_weight(t, t->group ? group_task_weight(g, t->own) : t->own);
	if (t->origin == FROM_SLICE_END)
		task_request(t, ASK_AGAIN);
}

static __always_inline void task_regroup(struct task_struct *p, struct task_ctx *t,
					 struct cgroup *to)
{
	t->group = group_slot(to);
	task_reweight(p, t);
}

static __always_inline void task_created(struct task_struct *p, struct task_ctx *t)
{
	t->state = TASK_CREATED;
	t->origin = FROM_BIRTH;
	t->fresh = 1;
	t->burst_estimate = REQUEST_NEW_TASK;
	t->level = 0;
	t->clock_cpu = kf_task_cpu(p);
	t->own = vtime_weight(p->static_prio, p->policy);
	t->weight = t->own;
}

#endif /* FULCRUM_TASK_H */
