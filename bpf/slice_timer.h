/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slice_timer.h: slices that end when they should, where it matters.
 *
 * The kernel looks at a slice in its tick, every 4 ms at 250 Hz. For equal
 * tasks that is precise enough, as all overrun alike. A light task beside a
 * heavy one is owed a fraction of a tick at a time, and 4 ms of it would have
 * to be paid back over many slices. So each CPU has a timer, started only if
 * the task that begins a slice is busy and its weight differs from that of
 * the next in the queue.
 *
 * Invariant: a timer that fires ends the slice only if that is over; one left
 * by a task that stopped earlier does nothing. A lost timer costs precision,
 * never progress: the tick still ends the slice.
 */
#ifndef FULCRUM_SLICE_TIMER_H
#define FULCRUM_SLICE_TIMER_H

#include "task.h"

/* So many equal neighbours in a row, and the weights count as equal again. */
#define MIXED_FOR 8

struct slice_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FULCRUM_MAX_CPUS);
	__type(key, u32);
	__type(value, struct slice_timer);
} slice_timers SEC(".maps");

static int slice_timer_fired(void *map, u32 *key, struct slice_timer *timer)
{
	s32 cpu = *key;
	struct cpu_state *c = cpu_state(cpu);
	u64 end = READ_HINT(c->slice_end);

	if (!end || (s64)(end - kf_now()) > (s64)REQUEST_LEFTOVER)
		return 0;
	stat_inc(timer_ends);
	kf_kick(cpu, KENUM(scx_kick_flags, SCX_KICK_PREEMPT));
	return 0;
}

static __always_inline void slice_timer_create(s32 cpu)
{
	struct slice_timer *timer;
	u32 key = cpu;

	timer = bpf_map_lookup_elem(&slice_timers, &key);
	if (!timer)
		return;
	bpf_timer_init(&timer->timer, &slice_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&timer->timer, slice_timer_fired);
}

/* Weights that differ by less than 1/64 are equal here: cgroup costs are averages. */
static __always_inline bool slice_weights_differ(u64 a, u64 b)
{
	u64 apart = a > b ? a - b : b - a;

	return apart > a >> 6;
}

/* Does the next task of @cpu's queue differ in weight from @t, lately? */
static __always_inline bool slice_is_mixed(struct cpu_state *c, s32 cpu, struct task_ctx *t)
{
	struct task_ctx *next = queue_head(cpu);

	if (next && slice_weights_differ(next->weight.inv, t->weight.inv))
		c->mixed = MIXED_FOR;
	else if (c->mixed)
		c->mixed--;
	return c->mixed;
}

/* @t begins a slice, or goes on with one, on @cpu. */
static __always_inline void slice_timer_begin(struct cpu_state *c, s32 cpu, struct task_ctx *t)
{
	struct slice_timer *timer;
	u32 key = cpu;

	if (!t->busy || !READ_HINT(c->has_work) || !slice_is_mixed(c, cpu, t))
		return;
	timer = bpf_map_lookup_elem(&slice_timers, &key);
	if (!timer)
		return;
	WRITE_HINT(c->slice_end, kf_now() + t->request);
	bpf_timer_start(&timer->timer, t->request, BPF_F_TIMER_CPU_PIN);
}

#endif /* FULCRUM_SLICE_TIMER_H */
