/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * seat.h: who steers, and whether somebody is there.
 *
 * Agents may overlap: one that was stopped for a minute wakes up when another
 * has long taken over. So there is one seat. Who sits down gets an epoch, one
 * higher than any before, and numbers each command.
 *
 * Invariant: fulcrum_steer() is the only way in which an agent changes anything
 * while we schedule. A command of another epoch than the last, or with a number
 * that is not higher than the last, changes nothing; testing and doing are one
 * step, for one command at a time. A hint is checked when it is acted on, so
 * the worst one costs a few migrations; the ranges of knobs are the agent's to
 * keep. One word is not fenced: knobs.watch, which only says what to count.
 *
 * An agent that has nothing to do sleeps. Hence no heartbeat that it would have
 * to wake up for: we call, now and then while tasks wait for CPUs, and it answers.
 * A machine on which nobody waits needs no agent, and does not wake it.
 */
#ifndef FULCRUM_SEAT_H
#define FULCRUM_SEAT_H

#include "cpu.h"
#include "events.h"

/* A call that nobody answers is repeated this often, ns. */
#define SEAT_CALL_AGAIN		(1000 * NSEC_PER_MSEC)
/* So long without a call, and one is made to see whether the agent lives, ns. */
#define SEAT_CALL_EVERY		(10000 * NSEC_PER_MSEC)
/* ... by a CPU where, in that time, somebody waited at more ticks than that. */
#define SEAT_CROWDED		64
#define SEAT_LOCK_TRIES		16

/* In a map of its own, so that `status` finds it without the agent. */
struct agent_seat seat SEC(".data.fulcrum");
struct agent_command last_command;	/* that was obeyed */
struct balance_cpu balance[FULCRUM_MAX_CPUS] __attribute__((aligned(64)));

static __always_inline struct balance_cpu *balance_cpu(s32 cpu)
{
	return &balance[cpu & (FULCRUM_MAX_CPUS - 1)];
}

/*
 * Calls the agent, unless a call is under way or it wants to be left alone. The
 * clock is the one that all CPUs agree on.
 */
static __always_inline void seat_call(u64 now)
{
	u64 before = READ_HINT(seat.called_at);
	u32 calls = READ_HINT(seat.calls);
	bool waits = calls != READ_HINT(seat.answered);

	if ((s64)(now - before) < (s64)(waits ? SEAT_CALL_AGAIN : READ_HINT(seat.quiet_ns)))
		return;
	if (__sync_val_compare_and_swap(&seat.called_at, before, now) != before)
		return;
	if (!waits)
		WRITE_HINT(seat.unanswered_since, now);
	WRITE_HINT(seat.calls, calls + 1);
	event_send(FULCRUM_EVENT_CALL, calls + 1);
}

/* From every tick. */
static __always_inline void seat_tick(struct balance_cpu *b)
{
	u64 now = kf_now();
	bool wanted;

	if (READ_HINT(b->waiting))
		b->crowded++;
	/* Our clock and the seat's may differ: this only says when to look closely. */
	if ((s64)(now - b->seat_seen) < (s64)SEAT_CALL_EVERY)
		return;
	b->seat_seen = now;
	/* The first call of all shows that it can be heard. */
	wanted = b->crowded > SEAT_CROWDED || !READ_HINT(seat.calls);
	b->crowded = 0;
	now = bpf_ktime_get_ns();
	if (wanted && (s64)(now - READ_HINT(seat.called_at)) >= (s64)SEAT_CALL_EVERY)
		seat_call(now);
}

static __always_inline bool seat_lock(void)
{
	bool taken = false;
	u32 i;

	bounded_for(i, 0, SEAT_LOCK_TRIES) {
		taken = !__sync_val_compare_and_swap(&seat.locked, 0, 1);
		if (taken)
			break;
	}
	return taken;
}

static __always_inline void seat_unlock(void)
{
	full_barrier();
	WRITE_HINT(seat.locked, 0);
}

static __always_inline s32 seat_take(void)
{
	seat.epoch++;
	seat.generation = 0;
	seat.answered = seat.calls;
	WRITE_HINT(seat.quiet_ns, 0);
	return seat.epoch;
}

static __always_inline s32 seat_set_knobs(const struct agent_command *cmd)
{
	WRITE_HINT(knobs.slice_ns, cmd->slice_ns);
	WRITE_HINT(knobs.credit_ns, cmd->credit_ns);
	WRITE_HINT(knobs.policy, cmd->policy);
	full_barrier();
	WRITE_HINT(knobs.generation, cmd->knobs_generation);
	return 0;
}

/* A hint lies beside the CPU that is to act on it: the last one counts. */
static __always_inline s32 seat_hint(const struct agent_command *cmd)
{
	struct balance_cpu *b;

	if (cmd->cpu >= FULCRUM_MAX_CPUS || cmd->from >= FULCRUM_MAX_CPUS)
		return -EINVAL;
	b = balance_cpu(cmd->cpu);
	WRITE_HINT(b->hint_from, cmd->from);
	WRITE_HINT(b->hint_tasks, cmd->tasks);
	WRITE_HINT(b->hint_expires, bpf_ktime_get_ns() + cmd->valid_ns);
	WRITE_HINT(b->hint_epoch, cmd->epoch);
	full_barrier();
	WRITE_HINT(b->hint_generation, cmd->generation);
	WRITE_HINT(cpu_state(cmd->cpu)->hinted, 1);
	return 0;
}

static __always_inline s32 seat_answer(const struct agent_command *cmd)
{
	WRITE_HINT(seat.answered, cmd->answer);
	WRITE_HINT(seat.answered_at, bpf_ktime_get_ns());
	WRITE_HINT(seat.quiet_ns, cmd->valid_ns);
	return 0;
}

static __always_inline s32 seat_obey(const struct agent_command *cmd)
{
	if (cmd->kind == AGENT_TAKES_SEAT)
		return seat_take();
	if (cmd->epoch != seat.epoch || (s32)(cmd->generation - seat.generation) <= 0) {
		seat.refused++;
		return -ESTALE;
	}
	seat.generation = cmd->generation;
	last_command = *cmd;
	switch (cmd->kind) {
	case AGENT_SETS_KNOBS:	return seat_set_knobs(cmd);
	case AGENT_HINTS:	return seat_hint(cmd);
	case AGENT_ANSWERS:	return seat_answer(cmd);
	}
	return -EINVAL;
}

/* What the agent calls. At most 0 but for the first command, which gives the epoch. */
s32 SYSCALL_PROG(fulcrum_steer, struct agent_command *cmd)
{
	s32 result;

	if (!seat_lock())
		return -EBUSY;
	result = seat_obey(cmd);
	seat_unlock();
	return result;
}

#endif /* FULCRUM_SEAT_H */
