/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cgroup.h: the weights of cgroups, nested, over the whole machine.
 *
 * cpu.weight says how siblings share what their parent gets: the child
 * cgroups, and beside them the parent's own tasks, each with the weight of its
 * nice level (cpu.weight 100 counts as nice 0). We keep no queues per cgroup.
 * Instead a task's time costs more or less virtual time, so that all tasks of
 * a cgroup together advance as one entity of the cgroup's weight would. With W
 * the weight of a cgroup and L the weight of what is runnable in it, time of a
 * task in cgroup c costs
 *
 *	L(c) / W(c) * L(parent) / W(parent) * ...	up to the root: 1
 *
 * times what its nice level makes it cost. L is an average over the time in
 * which something is runnable, so it is never less than the one task, or
 * child, that the factor is for.
 *
 * Where L comes from: when a task has waited or run, the time is added, times
 * its weight, to its cgroup's sum: first to a small write-back cache of the
 * CPU, which every tick empties into the shared sums, so no wakeup or switch
 * writes a shared line unless more than FULCRUM_GROUP_PENDING cgroups meet on
 * a CPU within a tick. Some CPU's tick then works the tree out, every
 * GROUP_SOLVE_EVERY, over the cgroups that were active.
 *
 * Invariants: a slot's id, parent and weight change under the kernel's cgroup
 * lock only; cost and floor are written by the one who solves the tree; a task
 * takes a new cost over when it asks for CPU time, never in between. A cgroup
 * that finds no slot is as its parent: its tasks run with that one's weight.
 */
#ifndef FULCRUM_CGROUP_H
#define FULCRUM_CGROUP_H

#include "cpu.h"

#define GROUP_SOLVE_EVERY	(16 * NSEC_PER_MSEC)
#define GROUP_MASK		(FULCRUM_MAX_GROUPS - 1)

/* A longer wait is counted as this, so that sums of time * weight fit 64 bits. */
#define GROUP_WAIT_MAX		(1ULL << 31)

/* Factors have 20 binary digits; the cap keeps their products in 64 bits. */
#define GROUP_ONE		(1ULL << 20)
#define GROUP_FACTOR_MAX	(1ULL << 32)

struct group_state groups[FULCRUM_MAX_GROUPS] __attribute__((aligned(64)));
struct group_solver group_solver __attribute__((aligned(64)));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FULCRUM_MAX_GROUPS);
	__type(key, u64);
	__type(value, u32);
} group_slots SEC(".maps");

static __always_inline struct group_state *group_state(u32 slot)
{
	/* Else the compiler, knowing the range better, drops the mask that the verifier needs. */
	barrier_var(slot);
	return &groups[slot & GROUP_MASK];
}

/* The slot of @cgrp, or of the nearest ancestor that has one; 0: the root's. */
static __always_inline u32 group_slot(struct cgroup *cgrp)
{
	struct cgroup_subsys_state *css;
	u64 id;
	u32 *slot;
	u32 i;

	bounded_for(i, 0, FULCRUM_GROUP_DEPTH) {
		if (!cgrp)
			break;
		id = cgrp->kn->id;
		slot = bpf_map_lookup_elem(&group_slots, &id);
		if (slot)
			return *slot;
		css = cgrp->self.parent;
		if (!css)
			break;
		cgrp = css->cgroup;
	}
	return 0;
}

/* The slot of just this cgroup; NULL: it has none. */
static __always_inline struct group_state *group_of(struct cgroup *cgrp)
{
	u64 id = cgrp->kn->id;
	u32 *slot = bpf_map_lookup_elem(&group_slots, &id);

	return slot ? group_state(*slot) : NULL;
}

/* cpu.weight, 1..10000, in the unit of task weights. */
static __always_inline u32 group_weight(u32 cpu_weight, bool idle)
{
	u32 weight = cpu_weight * NICE_0_WEIGHT / 100;

	return idle ? IDLE_POLICY_WEIGHT : weight ? weight : 1;
}

static __always_inline u32 group_free_slot(void)
{
	u32 free = 0, i;

	bounded_for(i, 1, FULCRUM_MAX_GROUPS) {
		if (!group_state(i)->id) {
			free = i;
			break;
		}
	}
	return free;
}

/* What a cgroup costs of which nothing has been seen: one nice-0 task in it. */
static __always_inline void group_reset_cost(struct group_state *g)
{
	g->cost = GROUP_ONE * NICE_0_WEIGHT / g->weight;
	g->floor_inv = (1ULL << 32) / g->weight;
	g->generation++;
}

static __always_inline void group_created(struct cgroup *cgrp, u32 cpu_weight, bool idle)
{
	struct cgroup_subsys_state *css = cgrp->self.parent;
	u64 id = cgrp->kn->id;
	struct group_state *g;
	u32 parent, slot;

	if (!css)
		return;				/* the root, slot 0 */
	parent = group_slot(css->cgroup);
	slot = group_free_slot();
	if (!slot || group_state(parent)->depth + 1 >= FULCRUM_GROUP_DEPTH) {
		stat_inc(groups_without_slot);
		return;
	}
	g = group_state(slot);
	g->parent = parent;
	g->depth = group_state(parent)->depth + 1;
	g->cpu_weight = cpu_weight;
	g->idle = idle;
	g->weight = group_weight(cpu_weight, idle);
	/* The slot may have been another one's. Its sums may be in use: what is left in them counts. */
	g->background = idle || group_state(parent)->background;
	g->load = 0;
	g->busy = 0;
	g->ran = 0;
	g->quiet = 0;
	g->round = 0;
	group_reset_cost(g);
	g->id = id;
	bpf_map_update_elem(&group_slots, &id, &slot, 0);
}

static __always_inline void group_removed(struct cgroup *cgrp)
{
	struct group_state *g = group_of(cgrp);
	u64 id = cgrp->kn->id;

	if (!g)
		return;
	g->id = 0;
	bpf_map_delete_elem(&group_slots, &id);
}

/* In force from the next solution on. */
static __always_inline void group_set_weight(struct cgroup *cgrp, u32 cpu_weight)
{
	struct group_state *g = group_of(cgrp);

	if (!g)
		return;
	g->cpu_weight = cpu_weight;
	WRITE_HINT(g->weight, group_weight(cpu_weight, g->idle));
}

static __always_inline void group_set_idle(struct cgroup *cgrp, bool idle)
{
	struct group_state *g = group_of(cgrp);

	if (!g)
		return;
	g->idle = idle;
	WRITE_HINT(g->weight, group_weight(g->cpu_weight, idle));
}

/* Weight that a task of weight @own has in the whole machine, in group @g. */
static __always_inline struct weight group_task_weight(struct group_state *g, struct weight own)
{
	u64 inv = own.inv * READ_HINT(g->cost) / GROUP_ONE;
	u64 floor = READ_HINT(g->floor_inv);

	return vtime_weight_of(inv < floor ? floor : inv);
}

static __always_inline void group_flush(struct group_pending *pending)
{
	struct group_state *g = group_state(pending->slot);
	u32 slot = pending->slot & GROUP_MASK;

	if (!pending->runnable)
		return;
	__sync_fetch_and_add(&g->weighted, pending->weighted);
	__sync_fetch_and_add(&g->runnable, pending->runnable);
	__sync_fetch_and_add(&g->ran, pending->ran);
	pending->weighted = 0;
	pending->runnable = 0;
	pending->ran = 0;
	if (!(READ_HINT(group_solver.active[slot / 64]) >> (slot % 64) & 1))
		__sync_fetch_and_or(&group_solver.active[slot / 64], 1ULL << (slot % 64));
}

/* A task of weight @weight was runnable for @ns in the group of @slot, of which it @ran. */
static __always_inline void group_account(u32 slot, u32 weight, u64 ns, u64 ran)
{
	struct group_pending *pending;

	if (!slot)
		return;
	pending = &this_cpu()->pending[slot % FULCRUM_GROUP_PENDING];
	if (pending->slot != slot) {
		group_flush(pending);
		pending->slot = slot;
	}
	if (ns > GROUP_WAIT_MAX)
		ns = GROUP_WAIT_MAX;
	pending->weighted += ns * weight;
	pending->runnable += ns;
	pending->ran += ran;
}

#endif /* FULCRUM_CGROUP_H */
