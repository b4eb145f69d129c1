/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cgroup_solve.h: from what was runnable to what a task's time costs.
 *
 * Runs in some CPU's tick every GROUP_SOLVE_EVERY while cgroups are active;
 * see cgroup.h for the formula. One pass takes the sums in and averages them,
 * one adds up what is active below each cgroup, one what competes in each,
 * one multiplies along the way to the root.
 *
 * Invariant: only one CPU at a time works here, the one that holds `locked`;
 * the others don't wait for it. Every loop is bounded by the number of slots and the depth.
 * Slots may be freed and taken meanwhile: the result is then wrong for that
 * cgroup until the next solution.
 */
#ifndef FULCRUM_CGROUP_SOLVE_H
#define FULCRUM_CGROUP_SOLVE_H

#include "cgroup.h"
#include "domain.h"

/* After so many solutions without a runnable task a cgroup is left out. */
#define GROUP_FORGET_AFTER	64

/* `load` and `content` are weights with 8 binary digits, `busy` has 10. */
#define GROUP_LOAD_ONE		256
#define GROUP_BUSY_ONE		1024

/* Averages move a quarter of the way: a time constant of some 56 ms. */
static __always_inline u64 group_average(u64 old, u64 sample)
{
	return old - old / 4 + sample / 4;
}

static __always_inline void group_list(u32 slot)
{
	u32 nr = group_solver.nr_listed;

	if (nr >= FULCRUM_MAX_GROUPS)
		return;
	group_solver.listed[nr & GROUP_MASK] = slot;
	group_solver.nr_listed = nr + 1;
}

#define for_each_listed(i, nr, g)					\
	bounded_for(i, 0, nr)						\
		if ((g = group_state(group_solver.listed[(i) & GROUP_MASK])))

/* Takes in what @slot's tasks have done in the last @span ns; false: forget it. */
static __always_inline bool group_sample(u32 slot, u64 span)
{
	struct group_state *g = group_state(slot);
	u64 weighted = g->weighted, runnable = g->runnable;

	__sync_fetch_and_add(&g->weighted, -weighted);
	__sync_fetch_and_add(&g->runnable, -runnable);
	g->load = group_average(g->load, weighted * GROUP_LOAD_ONE / span);
	g->busy = group_average(g->busy, runnable * GROUP_BUSY_ONE / span);
	g->content = g->load;
	g->active = g->busy;
	g->round = group_solver.round;
	g->quiet = runnable ? 0 : g->quiet + 1;
	return g->id && g->quiet < GROUP_FORGET_AFTER;
}

__noinline int group_sample_all(u64 span)
{
	u32 word, i, slot;
	u64 bits;

	if (!span)
		return 0;
	group_solver.nr_listed = 0;
	bounded_for(word, 0, FULCRUM_GROUP_WORDS) {
		bits = READ_HINT(group_solver.active[word & (FULCRUM_GROUP_WORDS - 1)]);
		bounded_for(i, 0, 64) {
			if (!bits)
				break;
			slot = word * 64 + lowest_bit(bits);
			if (group_sample(slot, span))
				group_list(slot);
			else
				__sync_fetch_and_and(&group_solver.active[word & (FULCRUM_GROUP_WORDS - 1)],
						     ~(bits & -bits));
			bits &= bits - 1;
		}
	}
	return group_solver.nr_listed;
}

/* How busy the whole of each ancestor is; those without active tasks join the list. */
__noinline int group_add_ancestors(u32 nr)
{
	struct group_state *g, *up;
	u32 i, level, slot;
	u64 busy;

	for_each_listed(i, nr, g) {
		busy = g->busy;
		slot = g->parent;
		bounded_for(level, 0, FULCRUM_GROUP_DEPTH) {
			if (!slot)
				break;
			up = group_state(slot);
			if (up->round != group_solver.round) {
				up->round = group_solver.round;
				up->content = 0;
				up->active = 0;
				group_list(slot);
			}
			up->active += busy;
			slot = up->parent;
		}
	}
	return group_solver.nr_listed;
}

__noinline int group_add_content(u32 nr)
{
	struct group_state *g;
	u64 part;
	u32 i;

	for_each_listed(i, nr, g) {
		part = g->active < GROUP_BUSY_ONE ? g->active : GROUP_BUSY_ONE;
		if (g->parent)
			group_state(g->parent)->content +=
				g->weight * part * GROUP_LOAD_ONE / GROUP_BUSY_ONE;
	}
	return 0;
}

/* What the levels above @g multiply the cost by; also, whether one has cpu.idle. */
static __always_inline u64 group_factor_above(struct group_state *g, u32 *background)
{
	u64 factor = GROUP_ONE, content, own;
	struct group_state *up;
	u32 level;

	bounded_for(level, 0, FULCRUM_GROUP_DEPTH) {
		if (!g->parent)
			break;
		up = group_state(g->parent);
		*background |= up->idle;
		own = (u64)g->weight * GROUP_LOAD_ONE;
		content = up->content < own ? own : up->content;
		factor = factor * (content * (GROUP_ONE / GROUP_LOAD_ONE) / up->weight) / GROUP_ONE;
		if (factor > GROUP_FACTOR_MAX)
			factor = GROUP_FACTOR_MAX;
		g = up;
	}
	return factor;
}

/* Differences of less than 1/256 are not worth telling every task. */
static __always_inline bool group_cost_differs(u64 old, u64 new)
{
	s64 apart = (s64)(new - old);

	return (apart < 0 ? -apart : apart) > (s64)(old >> 8);
}

static __always_inline void group_publish(struct group_state *g)
{
	u32 background = g->idle;
	u64 factor = group_factor_above(g, &background);
	u64 cost = g->content * (GROUP_ONE / GROUP_LOAD_ONE) / g->weight;
	u64 floor = (1ULL << 32) / g->weight;

	if (cost > GROUP_FACTOR_MAX)
		cost = GROUP_FACTOR_MAX;
	cost = cost * (factor >> 10) >> 10;
	if (cost > GROUP_FACTOR_MAX)
		cost = GROUP_FACTOR_MAX;
	floor = floor * factor / GROUP_ONE;
	WRITE_HINT(g->background, background);
	if (!group_cost_differs(g->cost, cost) && !group_cost_differs(g->floor_inv, floor))
		return;
	WRITE_HINT(g->cost, cost);
	WRITE_HINT(g->floor_inv, floor);
	WRITE_HINT(g->generation, g->generation + 1);
}

__noinline int group_publish_all(u32 nr)
{
	struct group_state *g;
	u32 i;

	for_each_listed(i, nr, g)
		group_publish(g);
	return 0;
}

static __always_inline void group_solve(u64 span)
{
	u32 nr;

	group_solver.round++;
	nr = group_sample_all(span);
	nr = group_add_ancestors(nr);
	group_add_content(nr);
	group_publish_all(nr);
}

/* From every tick: this CPU's sums go out, and the tree is worked out if it is time. */
static __always_inline void group_tick(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 now, span;
	u32 i;

	bounded_for(i, 0, FULCRUM_GROUP_PENDING)
		group_flush(&c->pending[i % FULCRUM_GROUP_PENDING]);
	now = kf_now();
	if ((s64)(now - READ_HINT(group_solver.solved_at)) < (s64)GROUP_SOLVE_EVERY)
		return;
	if (__sync_val_compare_and_swap(&group_solver.locked, 0, 1))
		return;
	span = now - group_solver.solved_at;
	if ((s64)span >= (s64)GROUP_SOLVE_EVERY) {
		group_solve(span);
		WRITE_HINT(group_solver.solved_at, now);
	}
	full_barrier();
	WRITE_HINT(group_solver.locked, 0);
}

#endif /* FULCRUM_CGROUP_SOLVE_H */
