/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * life.h: what happens to clocks and accounts as a task lives.
 *
 * Invariant: a task's time is charged when it stops, and at every tick and
 * pick between, always from sum_exec_runtime: exact CPU time, as user space
 * sees it, whoever interrupted the task in between. V of a queue follows the
 * v of the tasks that start on it, and of a task that runs alone.
 */
#ifndef FULCRUM_LIFE_H
#define FULCRUM_LIFE_H

#include "higher.h"
#include "hist.h"
#include "place.h"
#include "slice_timer.h"

/* A wait goes on over changes of weight and affinity, which look like a new one. */
static __always_inline void life_waits(struct task_ctx *t)
{
	if (!t->waiting_since)
		t->waiting_since = kf_now();
}

/* Returns the time, which costs something to read. */
static __always_inline u64 life_wait_ends(struct task_ctx *t, struct cpu_state *c)
{
	u64 now = kf_now();
	s64 waited = now - t->waiting_since;
	u32 units;

	if (!t->waiting_since) {
		t->last_wait = 0;	/* the kernel placed it by itself */
		return now;
	}
	t->waiting_since = 0;
	if (waited < 0)			/* the clocks of two CPUs */
		waited = 0;
	group_account(t->group, t->own.weight, waited, 0);
	units = waited >> 10;
	t->last_wait = units;
	c->stats.wait_ns += waited;
	/* The machine's longest wait was the longest of some task. */
	if (units >= t->max_wait) {
		t->max_wait = units;
		if ((u64)waited > c->stats.wait_max_ns)
			c->stats.wait_max_ns = waited;
	}
	return now;
}

/*
 * It has slept, and wakes: what it used in between says what it will ask for.
 * Called by whichever comes first, select_cpu or enqueue.
 */
static __always_inline void life_wakes(struct task_ctx *t)
{
	struct cpu_state *here;

	if (t->state != TASK_BLOCKED || t->origin != FROM_SLICE_END)
		return;
	t->origin = FROM_SLEEP;
	t->burst_estimate = ask_burst(t->burst_estimate, t->burst);
	t->burst = 0;
	here = this_cpu();
	t->hist = HIST_WAKEUP;
	t->woken_by = here->curr_pid;
	here->stats.wakeups++;
}

static __always_inline void life_queued(struct task_struct *p, struct task_ctx *t)
{
	task_event(p, t, EV_QUEUED);
	life_waits(t);
}

/*
 * A new task is not owed what tasks that exited moved V by while it waited for
 * its first start. Else a chain of short lives, each of which starts the next
 * before its own exit is counted, gets two turns for one.
 */
static __always_inline void life_first_start(struct task_ctx *t, struct cpu_state *c, u64 clock)
{
	u64 moved = c->exit_moves - t->exits_seen;
	s64 owed = clock - t->vruntime;

	if (owed <= 0)
		return;
	if (moved > (u64)owed)
		moved = owed;
	t->deadline += moved;
	t->vruntime += moved;
}

static __always_inline void life_running(struct task_struct *p, struct task_ctx *t)
{
	s32 cpu = kf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	u64 clock, bound, sane, now, number;
	s32 from = t->clock_cpu;
	struct memory *m;

	task_event(p, t, EV_RUNNING);
	now = life_wait_ends(t, c);

	clock = queue_clock(cpu);
	if (t->origin != FROM_SLICE_END)
		task_arrive(t, cpu);	/* the kernel placed it by itself */
	if (t->fresh && t->clock_cpu == cpu)
		life_first_start(t, c, clock);
	task_move_clock(t, cpu);
	bound = vtime_scale(VTIME_SANE, t->weight.inv) + 2 * VTIME_DRIFT;
	sane = vtime_bound(t->vruntime, clock, bound, bound);
	if (sane != t->vruntime) {
		c->stats.clock_clamps++;
		t->deadline += sane - t->vruntime;
		t->vruntime = sane;
	}

	number = recorder_next(c);
	c->stats.waits++;
	if (cpu_memory(cpu, &m)) {
		u32 wait = t->last_wait;

		recorder_note(m, number, now, p->pid, t->way, from, clock - t->vruntime, wait);
		hist_wait(m, t, wait);
	}
	t->hist = HIST_OTHER;
	t->fresh = 0;
	unmark_idle(cpu);
	queue_clock_follows(cpu, vtime_max(clock, t->vruntime));
	t->charged_to = p->se.sum_exec_runtime;
	c->next_taken = 0;
	c->kicks_made = 0;
	WRITE_HINT(c->left_behind, 0);
	c->looked_twice = 0;
	c->yielded = 0;
	WRITE_HINT(c->curr_deadline, t->deadline);
	WRITE_HINT(c->curr_burst, t->burst_estimate);
	WRITE_HINT(c->curr_since, now >> 10);
	slice_timer_begin(c, cpu, t);
	WRITE_HINT(c->curr_pid, p->pid);
}

/* What an exiting task has used counts here, or a chain of short lives pays nothing. */
static __always_inline void life_exits(struct cpu_state *c, s32 cpu, struct task_ctx *t)
{
	u64 before = c->vclock;

	queue_clock_follows(cpu, t->vruntime);
	c->exit_moves += c->vclock - before;
}

static __always_inline void life_stopping(struct task_struct *p, struct task_ctx *t, bool runnable)
{
	s32 cpu = kf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);

	task_event(p, t, runnable ? EV_PREEMPTED : EV_LEAVING);
	task_charge(p, t);
	if (!READ_HINT(c->has_work))
		queue_clock_follows(cpu, t->vruntime);
	else if (!runnable && (p->flags & PF_EXITING))
		life_exits(c, cpu, t);
	WRITE_HINT(c->curr_pid, 0);
	WRITE_HINT(c->slice_end, 0);
	higher_stopping(c, p, runnable);
	if (runnable) {
		life_waits(t);
		t->preempted_by = c->preemptor;
	}
	/* Also of one that slept before it could be interrupted: the next was not. */
	c->preemptor = 0;
}

/*
 * Comes under our care: new, or back from another scheduling class, with the
 * lag that it left with.
 */
static __always_inline void life_enable(struct task_struct *p, struct task_ctx *t)
{
	task_event(p, t, EV_ENABLE);
	t->origin = t->vruntime ? FROM_SLEEP : FROM_BIRTH;
	t->waiting_since = 0;
	t->burst = 0;
	task_reweight(p, t);
}

#endif /* FULCRUM_LIFE_H */
