/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * abi.h: what the BPF program, the agent and the simulator share.
 *
 * The agent sees these structs through the generated skeleton, the simulator
 * by compiling this very file; nothing is declared a second time. Only
 * fixed-width types, no kernel types, no padding left to chance: the sizes are
 * asserted below.
 *
 * Who writes what: `cpu_state` belongs to its CPU (others read it without a
 * lock and treat what they read as a hint), `domain_state` is shared by the
 * CPUs of one last-level cache, `group_state` as cgroup.h says, `topology` belongs
 * to the agent, and what it changes while we schedule goes through seat.h.
 */
#ifndef FULCRUM_ABI_H
#define FULCRUM_ABI_H

enum fulcrum_limits {
	FULCRUM_MAX_CPUS	= 4096,	/* possible CPUs; a power of two */
	FULCRUM_MAX_DOMAINS	= 512,	/* groups of at most 64 CPUs of one LLC */
	FULCRUM_DOMAIN_CPUS	= 64,	/* CPUs a domain: one bit each in a word */
	FULCRUM_DOMAIN_WORDS	= FULCRUM_MAX_DOMAINS / 64,
	FULCRUM_MAX_GROUPS	= 1024,	/* cgroups with a weight of their own; a power of two */
	FULCRUM_GROUP_WORDS	= FULCRUM_MAX_GROUPS / 64,
	FULCRUM_GROUP_DEPTH	= 16,	/* levels of cgroups, the root included */
	FULCRUM_HIST_BUCKETS	= 160,	/* of a histogram of waits, hist.h */
	FULCRUM_DECISIONS	= 256,	/* kept of each CPU, recorder.h; a power of two */
	FULCRUM_GROUP_PENDING	= 8,	/* cgroups whose sums a CPU holds back until its tick */
	FULCRUM_KINDS		= 4,	/* of CPUs by speed; a power of two */
	FULCRUM_WAIT_REPORTS	= 16,	/* the last that are kept; a power of two */
};

/*
 * Counters of one CPU since the scheduler was attached, written by that CPU
 * only. Times are nanoseconds of the kernel's scheduler clock.
 */
struct fulcrum_stats {
	u64 wakeups;		/* tasks that became runnable after sleeping */
	u64 idle_hits;		/* wakeups placed straight onto an idle CPU */
	u64 sync_pulls;		/* wakeups handed the waker's CPU: it is about to sleep */
	u64 next_slots;		/* wakeups that run right after the task that woke them */
	u64 enqueues;		/* insertions into a CPU's queue */
	u64 local_inserts;	/* kernel threads and pinned-for-now tasks put on the local queue */
	u64 preempt_kicks;	/* running tasks interrupted for a more urgent one */
	u64 idle_kicks;		/* idle CPUs told to come and take work */
	u64 dispatches;		/* times a CPU asked for its next task */
	u64 keeps;		/* ... and went on with the one it had */
	u64 own_moves;		/* ... and took one from its own queue */
	u64 steals_near;	/* ... and, being idle, took one within its domain */
	u64 steals_far;		/* ... and, being idle, took one from another domain */
	u64 steal_misses;	/* looks into a queue that gave nothing */
	u64 exchanges;		/* tasks taken at a slice's end because they were owed more */
	u64 idles;		/* ... and found nothing to run */
	u64 timer_ends;		/* slices ended by the timer, where weights differ */
	u64 tick_ends;		/* slices ended by the tick because somebody waits */
	u64 rescues;		/* tasks run out of turn because they had waited for seconds */
	u64 rehomed;		/* queued tasks moved because their CPU can't run them */
	u64 place_fixes;	/* wishes corrected by place(): affinity or offline CPU */
	u64 affinity_changes;	/* changes of a task's CPU mask */
	u64 clock_clamps;	/* virtual runtimes pulled back into their bounds */
	u64 groups_without_slot; /* cgroups that run with their parent's weight: too many, or too deep */
	u64 missing_ctx;	/* callbacks for a task without context (ran with defaults) */
	u64 lifecycle_errors;	/* events that the task state machine does not allow */
	u64 waits;		/* waits that ended with the task running */
	u64 wait_ns;		/* ... their sum */
	u64 wait_max_ns;	/* ... the longest */
	u64 run_ns;		/* CPU time charged to tasks */
	u64 hints_applied;	/* hints of the agent's balancer that moved tasks here */
	u64 hint_moves;		/* ... how many tasks */
	u64 hints_refused;	/* ... that no task there could follow: affinity */
	u64 hints_expired;	/* ... that came too late, or were no longer needed */
	u64 hints_fenced;	/* ... by an agent that sits no longer */
	u64 contexts_made;	/* contexts of tasks, made */
	u64 contexts_ended;	/* ... and ended, as their tasks did */
	u64 queue_strays;	/* tasks seen in a queue that should not be in one */
};

/* What the tasks of one cgroup did on one CPU since its last tick. */
struct group_pending {
	u64 weighted;		/* time in which they were runnable, times their weights */
	u64 runnable;		/* that time, ns */
	u64 ran;		/* CPU time that they used, ns */
	u32 slot;
	u32 pad;
};

/*
 * One CPU's queue clock and running task. First cache line: written at every
 * switch by the owner, read by wakers anywhere. Then the owner's own words,
 * then the counters.
 */
struct cpu_state {
	/* read by others */
	u64 vclock;		/* virtual time of this CPU's queue, ns at weight 1024 */
	u64 curr_deadline;	/* virtual deadline of the running task */
	u32 curr_pid;		/* 0: no task of ours is running here */
	u32 online;
	u32 has_work;		/* hint: the queue is not empty */
	u32 idle;		/* hint: found nothing to run and went idle */
	u32 pull_from;		/* CPU + 1 whose queue a waker asks us to look into */
	u32 thief_missed;	/* a thief found the queue empty that was marked */
	u32 curr_burst;		/* what the running task usually runs at a time, ns */
	u32 left_behind;	/* a higher class came while our task could go on */
	u64 queue_turn;		/* when the queue last came to hold a task, or gave one; ns */
	u32 curr_since;		/* when the running task started, unit: 1,024 ns */

	/* the owner's */
	u32 requeues;		/* the kernel queues tasks anew at our request, within the call */
	u32 preemptor;		/* the task that last interrupted one here */
	u16 next_taken;		/* a task already waits on the local queue */
	u16 yielded;		/* the running task gave up the CPU */
	u16 looked_twice;	/* since it last ran something */
	u16 look_elsewhere;	/* no look into another queue since the last tick */
	u32 exchange_turn;	/* slice ends with a look elsewhere */
	u32 exchange_bit;	/* the last one looked at, as a bit of its domain */
	u32 thief_turn;		/* the last idle CPU called, as a bit of the domain */
	u32 lifecycle_pid;	/* the last disallowed event: task, */
	u32 lifecycle_state;	/* ... state it was in, */
	u32 lifecycle_event;	/* ... and event */
	u32 generation;		/* of the knobs, as last seen at a tick */
	u32 mixed;		/* > 0: tasks of different weights meet here */
	u32 watch_turn;		/* the CPU last looked at for tasks left behind, as a bit */
	u64 rescued_at;		/* last look for a task that waits too long */
	u64 slice_end;		/* when the timer is to end the slice; 0: it isn't */

	struct fulcrum_stats stats;
	u64 exit_moves;		/* the owner's: what exiting tasks moved vclock by, in all */
	u32 kicks_made;		/* interruptions by the running task since it started or the last tick */
	u32 hinted;		/* the agent has left a hint (struct balance_cpu) */
	struct group_pending pending[FULCRUM_GROUP_PENDING];
};

/* CPUs that share a last-level cache, 64 at most: one bit each. */
struct domain_state {
	u64 work;		/* CPUs whose queue holds a task */
	u64 idle;		/* CPUs that went idle */
	u64 vclock_max;		/* furthest queue clock, advanced in steps */
	u64 pad[5];
};

/*
 * The machine as the agent read it from sysfs: which domain each CPU belongs
 * to, the CPUs of each domain, and each domain's neighbours within its node
 * ([node_first, node_end) in domain numbers; numbers are sorted by node).
 */
struct domain_topology {
	u16 cpus[FULCRUM_DOMAIN_CPUS];
	u16 nr_cpus;
	u16 node_first;
	u16 node_end;
	u16 pad;
};

struct cpu_topology {
	u16 domain;
	u16 bit;		/* this CPU's bit in its domain's words, 0..63 */
};

struct topology {
	u32 nr_domains;		/* 1..FULCRUM_MAX_DOMAINS */
	u32 pad;
	struct cpu_topology cpu[FULCRUM_MAX_CPUS];
	struct domain_topology domain[FULCRUM_MAX_DOMAINS];
};

/*
 * CPUs of different speed, sorted into kinds, 0 the fastest (capacity.h). The
 * agent's; left alone where all are alike.
 */
struct speeds {
	u64 cpus[FULCRUM_MAX_DOMAINS][FULCRUM_KINDS];	/* of each kind, as bits of the domain */
	u64 core[FULCRUM_MAX_CPUS];	/* the CPUs of this one's core, as bits of its domain */
	u8 kind[FULCRUM_MAX_CPUS];
};

/*
 * A cgroup, in its slot. First cache line: read whenever a task asks for CPU
 * time; the second is written by ticks and by the one who solves the tree.
 */
struct group_state {
	u64 id;			/* the kernel's; 0: the slot is free */
	u64 cost;		/* virtual time that its tasks' time costs, 2^20 = 1 */
	u64 floor_inv;		/* 2^32 / weight that one task has alone in it */
	u32 weight;		/* of cpu.weight 100: 1024 */
	u32 cpu_weight;		/* 1..10000 */
	u32 parent;		/* slot */
	u32 depth;		/* 1: a child of the root */
	u32 idle;		/* cpu.idle */
	u32 generation;		/* of cost and floor_inv */
	u32 background;		/* cpu.idle, here or above */
	u32 pad0;
	u64 pad2;

	u64 weighted;		/* see group_pending; since the last solution */
	u64 runnable;
	u64 load;		/* average weight of its runnable tasks, 2^8 = 1 */
	u64 busy;		/* average number of its runnable tasks, 2^10 = 1 */
	u64 content;		/* load and the weights of its active children */
	u64 active;		/* busy, of the whole subtree */
	u32 round;		/* of the solution that these belong to */
	u32 quiet;		/* solutions since a task was last runnable */
	u64 ran;		/* CPU time that its tasks used since it exists, ns */
};

struct group_solver {
	u64 solved_at;		/* ns of the kernel's scheduler clock */
	u32 locked;
	u32 round;
	u32 nr_listed;
	u32 pad0;
	u64 pad1[5];
	u64 active[FULCRUM_GROUP_WORDS];	/* slots with something in their sums lately */
	u32 listed[FULCRUM_MAX_GROUPS];
};

/*
 * What the agent may change while the scheduler runs. Each word is read where
 * it is needed, and every mix of old and new words is a valid setting, so there
 * is nothing to switch over at once. The generation is written last; each CPU
 * repeats the one it has seen (cpu_state).
 */
struct knobs {
	u32 policy;		/* enum fulcrum_policy */
	u32 generation;		/* counts the changes */
	u64 slice_ns;		/* CPU time a busy nice-0 task gets at a time, 100,000..100,000,000 */
	u64 credit_ns;		/* how far a waking task may be behind V, 0..30,000,000 */
	u32 watch;		/* somebody looks: count the waits of each cgroup */
	u32 pad;
};

/*
 * What a CPU tells the balancer, and what that asks of it. First cache line: the
 * owner's, told at its ticks; second: a hint of the agent's, and what came of it.
 */
struct balance_cpu {
	u64 inv;		/* average over time of 2^32 / weight of what it runs; 0: unknown */
	u64 load;		/* weight of all that is runnable, 1024 = a task of nice 0 */
	u64 near;		/* average of the loads of its cache's CPUs */
	u64 far;		/* ... and of those of other caches */
	u32 waiting;		/* tasks in its queue */
	u32 turn;		/* looks at other CPUs */
	u64 seat_seen;		/* when it last looked whether the agent lives, ns */
	u64 diagnosed_at;	/* ... and at a neighbour's queue, ns */
	u32 watched;		/* that neighbour, as a bit */
	u32 skewed;		/* looks in a row that found much less to do far than near */

	u32 hint_generation;	/* written last */
	u32 hint_epoch;
	u32 hint_from;		/* the CPU from whose queue to take */
	u32 hint_tasks;		/* how many at most */
	u64 hint_expires;	/* ns of CLOCK_MONOTONIC */
	u32 acked;		/* generation of the last hint dealt with */
	u32 moved;		/* tasks that it moved */
	u32 refused;		/* it stood, but none could */
	u32 looks;		/* at tasks of a queue, in this call */
	u32 crowded;		/* the owner's: ticks since seat_seen with a task waiting */
	u32 pad2[5];
};

enum agent_command_kind {
	AGENT_TAKES_SEAT = 1,
	AGENT_SETS_KNOBS,
	AGENT_HINTS,
	AGENT_ANSWERS,
};

/* What the agent wants (seat.h); fields that a kind does not name are ignored. */
struct agent_command {
	u32 kind;		/* enum agent_command_kind */
	u32 epoch;
	u32 generation;		/* higher with each command of an epoch */
	u32 cpu;		/* hint: who may take */
	u32 from;		/* hint: from whom */
	u32 tasks;		/* hint: how many at most */
	u32 answer;		/* answer: the call that is answered */
	u32 policy;		/* knobs, as there */
	u32 knobs_generation;
	u32 pad;
	u64 valid_ns;		/* hint: for so long; answer: no call for so long */
	u64 slice_ns;		/* knobs */
	u64 credit_ns;		/* knobs */
};

/* Who steers (seat.h). Times are ns of CLOCK_MONOTONIC. */
struct agent_seat {
	u32 epoch;		/* of the agent that sits; 0: none ever did */
	u32 generation;		/* of its last command */
	u32 calls;		/* made to the agent */
	u32 answered;		/* the last of them that it answered */
	u64 called_at;
	u64 answered_at;
	u64 unanswered_since;	/* first call that waits, if one does */
	u64 quiet_ns;		/* no call sooner than this after another */
	u32 locked;
	u32 refused;		/* commands of older epochs or generations */
	u64 pad;
};

enum wait_reason {
	WAITS_BEHIND_OTHERS = 1,
	WAITS_AT_LOW_WEIGHT,	/* below that of nice 13 */
	WAITS_IN_BACKGROUND,	/* its cgroup, or one above, has cpu.idle */
	WAITS_BEHIND_HIGHER,	/* a higher scheduling class keeps the CPU */
	WAITS_OFFLINE,		/* its CPU is offline */
};

/* A task that had waited for seconds (diagnose.h). */
struct wait_report {
	u32 number;		/* of all reports, from 1; 0: being written */
	u32 pid;
	u32 cpu;		/* in whose queue it waited */
	u32 reason;		/* enum wait_reason */
	u32 weight;		/* 1024 = nice 0, in the whole machine */
	u32 waited_ms;
};

struct wait_reports {
	u32 nr;			/* made so far; each is kept at its number's place */
	u32 pad;
	struct wait_report last[FULCRUM_WAIT_REPORTS];
};

_Static_assert(sizeof(struct fulcrum_stats) == 38 * 8, "fulcrum_stats");
_Static_assert(sizeof(struct cpu_state) == 64 + 64 + 320 + 256, "cpu_state");
_Static_assert(sizeof(struct domain_state) == 64, "domain_state");
_Static_assert(sizeof(struct group_state) == 128, "group_state");
_Static_assert(sizeof(struct domain_topology) == 136, "domain_topology");
_Static_assert(sizeof(struct knobs) == 32, "knobs");
_Static_assert(sizeof(struct balance_cpu) == 128, "balance_cpu");
_Static_assert(sizeof(struct agent_command) == 64, "agent_command");
_Static_assert(sizeof(struct agent_seat) == 64, "agent_seat");
_Static_assert(sizeof(struct wait_report) == 24, "wait_report");

#endif /* FULCRUM_ABI_H */
