/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steal.h: taking work from other CPUs.
 *
 * An idle CPU takes whatever it may run, nearest first: the queue that a waker
 * pointed to, then its domain, then the domains of its node, then all. A busy
 * CPU looks into one other queue at the end of each slice and takes its head
 * if that is due earlier than its own best; this is what gives N + 1 busy
 * tasks on N CPUs equal shares.
 *
 * Invariant: every loop is bounded, and a thief never touches another queue's
 * work bit (domain.h). The kernel moves only tasks that may run here, so
 * stealing needs no affinity test of its own.
 */
#ifndef FULCRUM_STEAL_H
#define FULCRUM_STEAL_H

#include "domain.h"
#include "seat.h"
#include "task.h"

#define EXCHANGE_FAR_EVERY	8	/* every so many slices, look beyond the domain */

/* CPUs of @domain besides @cpu whose queues hold a task. */
static __always_inline u64 others_work(u32 domain, s32 cpu)
{
	u64 work = READ_HINT(domain_state(domain)->work);

	return domain == cpu_topology(cpu)->domain ? work & ~cpu_bit(cpu) : work;
}

static __always_inline bool steal_from(s32 cpu, s32 victim)
{
	if (kf_move_to_local(cpu_queue(victim)))
		return true;
	stat_inc(steal_misses);
	/*
	 * Tasks that are there may not run here; one that isn't there yet may. Its
	 * CPU calls thieves of its own domain only.
	 */
	if (cpu_topology(victim)->domain == cpu_topology(cpu)->domain &&
	    kf_nr_queued(cpu_queue(victim)) == 0)
		WRITE_HINT(cpu_state(victim)->thief_missed, 1);
	return false;
}

/*
 * Takes a task from some queue of @domain other than @cpu's own. Not inlined,
 * and not static: the verifier then checks it once by itself, instead of again
 * on each path that leads here.
 */
__noinline bool steal_in_domain(u32 domain, s32 cpu, u32 after)
{
	u64 work = others_work(domain, cpu);
	u32 i, bit = after;
	bool taken = false;

	for (i = 0; work && i < FULCRUM_DOMAIN_CPUS; i++) {
		bit = next_bit(work, bit & 63);
		taken = steal_from(cpu, domain_cpu(domain, bit));
		if (taken)
			break;
		work &= ~(1ULL << (bit & 63));
	}
	return taken;
}

/* Domains @first..@end - 1, starting after the own one, round the end. */
static __always_inline bool steal_in_range(s32 cpu, u32 first, u32 end)
{
	u32 own = cpu_topology(cpu)->domain;
	u32 span = end - first, i, domain;
	bool taken = false;

	if (end <= first || end > FULCRUM_MAX_DOMAINS)
		return false;
	bounded_for(i, 1, span) {
		domain = own + i;
		if (domain >= end)
			domain -= span;
		if (!READ_HINT(domain_state(domain)->work))
			continue;
		taken = steal_in_domain(domain, cpu, 0);
		if (taken)
			break;
	}
	return taken;
}

__noinline bool steal_when_idle(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	const struct cpu_topology *where = cpu_topology(cpu);
	const struct domain_topology *d = &topo.domain[where->domain & (FULCRUM_MAX_DOMAINS - 1)];
	u32 hint = READ_HINT(c->pull_from);

	if (hint) {
		WRITE_HINT(c->pull_from, 0);
		if (steal_from(cpu, hint - 1)) {
			stat_inc(steals_near);
			return true;
		}
	}
	if (steal_in_domain(where->domain, cpu, where->bit)) {
		stat_inc(steals_near);
		return true;
	}
	if (topo.nr_domains <= 1)
		return false;
	if (steal_in_range(cpu, d->node_first, d->node_end) ||
	    steal_in_range(cpu, 0, topo.nr_domains)) {
		stat_inc(steals_far);
		return true;
	}
	return false;
}

/*
 * Whose queue to compare with at the end of this slice; negative: nobody's.
 * The own domain's CPUs take turns; every so often, and whenever nobody waits
 * near, the other domains do.
 */
static __always_inline s32 exchange_partner(s32 cpu)
{
	u32 turn = cpu_state(cpu)->exchange_turn;
	u32 domain = cpu_topology(cpu)->domain;
	u64 work = others_work(domain, cpu);

	if (topo.nr_domains > 1 && (!work || turn % EXCHANGE_FAR_EVERY == 0)) {
		domain += 1 + (turn + turn / EXCHANGE_FAR_EVERY) % (topo.nr_domains - 1);
		if (domain >= topo.nr_domains)
			domain -= topo.nr_domains;
		work = others_work(domain, cpu);
	}
	return work ? domain_cpu(domain, next_bit(work, cpu_state(cpu)->exchange_bit)) : -1;
}

/* Could a look elsewhere at the end of a slice find anything? */
static __always_inline bool exchange_possible(s32 cpu)
{
	return exchange_partner(cpu) >= 0;
}

/*
 * @lone ran on @cpu and nobody waits there, so it had all that it can use. If the
 * clock here has still fallen behind that of @partner, where somebody waits, @lone
 * weighs more than it can use, and would be owed more and more. What it is owed beyond
 * the drift is forgiven: as an idle CPU's clock does, the one here joins the other, and
 * @lone goes along. Else the clocks would end up so far apart that they say nothing, and
 * @lone would make room by turns for who waits there, which it can't make up for.
 * Returns by how much.
 */
static __always_inline u64 exchange_catches_up(s32 cpu, s32 partner, struct task_ctx *lone)
{
	u64 from = queue_clock(cpu), to = queue_clock(partner);

	if (!vtime_strangers(from, to))
		to -= VTIME_DRIFT;
	if (!vtime_before(from, to))
		return 0;
	lone->vruntime += to - from;
	lone->deadline += to - from;
	queue_clock_advance(cpu, to);
	return to - from;
}

/*
 * What there is to do on @cpu: the weight of @lone, the only task there, or of all, by
 * the harmonic mean of those that ran (balance.h), for @cpu's own number of lone tasks
 * counts one as a CPU.
 */
static __always_inline u64 exchange_load(s32 cpu, struct task_ctx *lone)
{
	u64 inv = READ_HINT(balance_cpu(cpu)->inv);

	if (lone)
		return lone->weight.weight;
	return inv ? ((kf_nr_queued(cpu_queue(cpu)) + 1ULL) << 32) / inv : 0;
}

/*
 * Does the head of @partner's queue, due at @theirs there, come before what is due
 * at @deadline here? Clocks that are far apart say nothing about who is owed more:
 * there, who has less to do takes.
 */
static __always_inline bool exchange_is_due(s32 cpu, s32 partner, u64 theirs, u64 deadline,
					    struct task_ctx *lone)
{
	u64 from = queue_clock(partner), to = queue_clock(cpu);

	theirs += vtime_carry(from, to);
	if (vtime_strangers(from, to)) {
		if (exchange_load(partner, NULL) <= exchange_load(cpu, lone))
			return false;
		if (lone)
			return true;
		theirs -= VTIME_DRIFT;
	}
	return !vtime_before(deadline, theirs);
}

/*
 * Takes the head of another queue if it is due before @deadline here. @lone has just
 * run and could go on, and nobody waits here; NULL: somebody does. A queue whose bit
 * has outlived its tasks costs a second look, not the turn: else two CPUs in step
 * could meet an empty queue every time.
 */
static __always_inline bool exchange(s32 cpu, u64 deadline, struct task_ctx *lone)
{
	struct cpu_state *c = cpu_state(cpu);
	s32 partner;
	u64 theirs;
	u32 i;

	c->look_elsewhere = 0;
	for (i = 0; i < 2; i++) {
		partner = exchange_partner(cpu);
		c->exchange_turn++;
		if (partner < 0)
			return false;
		c->exchange_bit = cpu_topology(partner)->bit;
		if (!kf_head_vtime(cpu_queue(partner), &theirs))
			continue;
		if (lone)
			deadline += exchange_catches_up(cpu, partner, lone);
		if (!exchange_is_due(cpu, partner, theirs, deadline, lone) ||
		    !steal_from(cpu, partner))
			return false;
		stat_inc(exchanges);
		return true;
	}
	return false;
}

#endif /* FULCRUM_STEAL_H */
