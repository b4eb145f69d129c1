/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * balance.h: work that local rules would spread too slowly.
 *
 * An idle CPU takes work from anywhere at once, and a busy one looks into one
 * other queue a slice. On a machine with many caches it takes seconds until each
 * has looked at the one that is crowded. Therefore each tick compares its CPU
 * with one other of another cache, each in turn; who sees much less to do there
 * several times in a row calls the agent, whose planner sees the whole machine and
 * gives hints: this CPU may take so many tasks of that one's queue.
 *
 * How much a CPU has to do is the weight of all that is runnable there: the
 * number of tasks by the harmonic mean of their weights. Each runs by its
 * weight, so the average over time of 1 / weight of what runs is just that.
 *
 * Invariant: a hint makes a CPU look into another queue earlier, and nothing
 * else. It is looked at once, and obeyed only if it comes from the agent that
 * sits now, in time, still makes sense, and concerns tasks that may run here;
 * what came of it is counted and told. Without agent nothing here does anything.
 */
#ifndef FULCRUM_BALANCE_H
#define FULCRUM_BALANCE_H

#include "domain.h"
#include "seat.h"
#include "task.h"

/* Seen by so many ticks in a row, much less to do elsewhere is worth a call. */
#define SKEW_LOOKS	6

/* Beyond what factor, and how many tasks more, it is "much". */
#define SKEW_FACTOR	2
#define SKEW_TASKS	2

/* How soon the agent is called again once a task's CPU mask has changed, ns. */
#define BALANCE_SOON	(20 * NSEC_PER_MSEC)

/* The most that one hint may move, and the most tasks looked at for it. */
#define HINT_TASKS_MAX	8
#define HINT_LOOKS	32

static __always_inline u64 balance_average(u64 old, u64 sample)
{
	return old ? old - old / 8 + sample / 8 : sample;
}

/*
 * What a CPU adds to an average; 0: nothing. One that idles takes work by itself,
 * and one without a task of ours is a higher class's.
 */
static __always_inline u64 balance_sample(s32 cpu)
{
	return READ_HINT(cpu_state(cpu)->curr_pid) ? READ_HINT(balance_cpu(cpu)->load) : 0;
}

/* A CPU of @domain, each in turn. */
static __always_inline s32 balance_member(u32 domain, u32 turn)
{
	u32 nr = topo.domain[domain & (FULCRUM_MAX_DOMAINS - 1)].nr_cpus;

	return domain_cpu(domain, nr ? turn % nr : 0);
}

static __always_inline void balance_look(s32 cpu, struct balance_cpu *b)
{
	u32 own = cpu_topology(cpu)->domain, others = topo.nr_domains - 1;
	u32 domain = own + 1 + b->turn % others;
	u64 load = balance_sample(balance_member(own, b->turn));

	if (load)
		b->near = balance_average(b->near, load);
	if (domain >= topo.nr_domains)
		domain -= topo.nr_domains;
	load = balance_sample(balance_member(domain, b->turn / others));
	if (load)
		b->far = balance_average(b->far, load);
	b->turn++;
}

/*
 * Single queues grow and shrink as CPUs of a cache exchange tasks: averages over
 * the caches are what counts.
 */
static __always_inline void balance_watch(s32 cpu, struct balance_cpu *b)
{
	if (topo.nr_domains <= 1)
		return;
	balance_look(cpu, b);
	if (b->waiting < SKEW_TASKS || !b->far ||
	    b->near < SKEW_FACTOR * b->far + SKEW_TASKS * b->load / (b->waiting + 1))
		b->skewed = 0;
	else if (++b->skewed >= SKEW_LOOKS)
		seat_call(bpf_ktime_get_ns());
}

/* What could not move may now. */
static __always_inline void balance_affinity_changed(void)
{
	if (READ_HINT(seat.quiet_ns) > BALANCE_SOON)
		WRITE_HINT(seat.quiet_ns, BALANCE_SOON);
}

/* From the tick of @cpu, which runs @t. */
static __always_inline void balance_tick(s32 cpu, struct task_ctx *t)
{
	struct balance_cpu *b = balance_cpu(cpu);
	u32 waiting = READ_HINT(cpu_state(cpu)->has_work) ? kf_nr_queued(cpu_queue(cpu)) : 0;

	WRITE_HINT(b->waiting, waiting);
	WRITE_HINT(b->inv, balance_average(b->inv, t->weight.inv));
	/* A task alone fills the CPU, whatever its weight. */
	WRITE_HINT(b->load, waiting ? (waiting + 1) * ((1ULL << 32) / b->inv) : NICE_0_WEIGHT);
	seat_tick(b);
	balance_watch(cpu, b);
}

/*
 * Moves up to @tasks that may run on @cpu from the queue of @from to its own. The
 * counters lie in memory: in registers they would make the verifier unroll the loop.
 */
static __always_inline void balance_take(struct balance_cpu *b, s32 cpu, s32 from, u32 tasks)
{
	struct task_struct *p;
	struct task_ctx *t;
	s64 carry;

	if (!kfunc_exists(scx_bpf_dsq_move_vtime))
		return;
	if (!kfunc_exists(bpf_iter_scx_dsq_new))
		return;
	carry = vtime_carry(queue_clock(from), queue_clock(cpu));
	WRITE_HINT(b->looks, 0);
	for_each_queued(p, cpu_queue(from)) {
		WRITE_HINT(b->looks, READ_HINT(b->looks) + 1);
		if (READ_HINT(b->moved) >= tasks || READ_HINT(b->looks) > HINT_LOOKS)
			break;
		t = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
		if (!t || t->clock_cpu != from || !kf_allowed(p, cpu))
			continue;
		scx_bpf_dsq_move_set_vtime(queue_iterator(), t->deadline + carry);
		if (!scx_bpf_dsq_move_vtime(queue_iterator(), p, cpu_queue(cpu), 0))
			continue;
		t->vruntime += carry;
		t->deadline += carry;
		t->clock_cpu = cpu;
		WRITE_HINT(b->moved, READ_HINT(b->moved) + 1);
	}
	if (READ_HINT(b->moved))
		mark_work(cpu);
}

/* Is the hint that @b holds one to obey? Counts what it is if not. */
static __always_inline bool hint_stands(s32 cpu, struct balance_cpu *b)
{
	struct balance_cpu *there = balance_cpu(b->hint_from);

	if (READ_HINT(b->hint_epoch) != READ_HINT(seat.epoch)) {
		stat_inc(hints_fenced);
		return false;
	}
	if ((s64)(READ_HINT(b->hint_expires) - bpf_ktime_get_ns()) < 0 ||
	    READ_HINT(there->load) <= b->load) {
		stat_inc(hints_expired);
		return false;
	}
	return READ_HINT(b->hint_from) != (u32)cpu;
}

/* From dispatch. Not inlined: rare, and the verifier checks it once. */
__noinline int balance_obey(s32 cpu)
{
	struct balance_cpu *b = balance_cpu(cpu);
	u32 generation = READ_HINT(b->hint_generation), tasks;

	WRITE_HINT(cpu_state(cpu)->hinted, 0);
	if (generation == b->acked)
		return 0;
	WRITE_HINT(b->moved, 0);
	b->refused = 0;
	if (hint_stands(cpu, b)) {
		tasks = READ_HINT(b->hint_tasks);
		balance_take(b, cpu, READ_HINT(b->hint_from),
			     tasks < HINT_TASKS_MAX ? tasks : HINT_TASKS_MAX);
		b->refused = !b->moved;
		if (b->moved) {
			stat_inc(hints_applied);
			stat_add(hint_moves, b->moved);
		} else {
			stat_inc(hints_refused);
		}
	}
	full_barrier();
	WRITE_HINT(b->acked, generation);
	return 0;
}

#endif /* FULCRUM_BALANCE_H */
