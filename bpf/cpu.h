/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.h: each CPU's queue, clock and counters.
 *
 * Invariant: a CPU's clock and running task are written by callbacks that run
 * on it or for it under its run-queue lock, the counters by the CPU that the
 * callback runs on. Others read them without a lock, as hints, and three words
 * (pull_from, thief_missed, next_taken) are hints that others write: a stale
 * value may cost a worse placement, never a lost task. Indexes are masked, so an odd CPU number
 * can't reach outside the array.
 *
 * A CPU's queue is the dispatch queue (DSQ) whose id is the CPU's number.
 */
#ifndef FULCRUM_CPU_H
#define FULCRUM_CPU_H

#include "kfuncs.h"
#include "vtime.h"

struct cpu_state cpus[FULCRUM_MAX_CPUS] __attribute__((aligned(64)));
struct domain_state domains[FULCRUM_MAX_DOMAINS] __attribute__((aligned(64)));

/* The agent's: the machine as it found it, and what may change any time. */
struct topology topo __attribute__((aligned(64))) = { .nr_domains = 1 };
struct knobs knobs __attribute__((aligned(64))) = {
	.slice_ns = 3 * NSEC_PER_MSEC,
	.credit_ns = VTIME_CREDIT,
};

static __always_inline struct cpu_state *cpu_state(s32 cpu)
{
	return &cpus[cpu & (FULCRUM_MAX_CPUS - 1)];
}

static __always_inline struct cpu_state *this_cpu(void)
{
	return cpu_state(bpf_get_smp_processor_id());
}

#define stat_inc(counter) (this_cpu()->stats.counter++)
#define stat_add(counter, n) (this_cpu()->stats.counter += (n))

static __always_inline u64 cpu_queue(s32 cpu)
{
	return (u32)cpu;
}

static __always_inline const struct cpu_topology *cpu_topology(s32 cpu)
{
	return &topo.cpu[cpu & (FULCRUM_MAX_CPUS - 1)];
}

static __always_inline struct domain_state *domain_state(u32 domain)
{
	return &domains[domain & (FULCRUM_MAX_DOMAINS - 1)];
}

static __always_inline struct domain_state *cpu_domain(s32 cpu)
{
	return domain_state(cpu_topology(cpu)->domain);
}

static __always_inline u64 cpu_bit(s32 cpu)
{
	return 1ULL << (cpu_topology(cpu)->bit & 63);
}

/*
 * The clock that a task placed on @cpu will meet. The clock of an idle CPU
 * stands still; when it starts again it joins the furthest of its domain, so
 * that tasks which rotate among CPUs keep comparable virtual runtimes.
 */
static __always_inline u64 queue_clock(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 clock = READ_HINT(c->vclock);

	if (READ_HINT(c->idle))
		clock = vtime_max(clock, READ_HINT(cpu_domain(cpu)->vclock_max));
	return clock;
}

/* The domain's furthest clock moves in steps, to leave its cache line alone. */
#define CLOCK_STEP NSEC_PER_MSEC

static __always_inline void domain_clock_advance(s32 cpu, u64 clock)
{
	struct domain_state *d = cpu_domain(cpu);
	u64 max = READ_HINT(d->vclock_max);

	if (vtime_before(max + CLOCK_STEP, clock))
		__sync_val_compare_and_swap(&d->vclock_max, max, clock);
}

static __always_inline void queue_clock_advance(s32 cpu, u64 v)
{
	struct cpu_state *c = cpu_state(cpu);

	if (!vtime_before(c->vclock, v))
		return;
	WRITE_HINT(c->vclock, v);
	domain_clock_advance(cpu, v);
}

#endif /* FULCRUM_CPU_H */
