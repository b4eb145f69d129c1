/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy/table.h: the policies that there are, one a line.
 *
 * X(ID, name, slice, credit, text): the slice and the credit, in microseconds,
 * are what the two knobs are set to when the policy is chosen; the text is
 * what users read. The first is the default. build/policies.rs reads this file
 * too, so a policy is one X(...) on one line.
 */
#ifndef FULCRUM_POLICY_TABLE_H
#define FULCRUM_POLICY_TABLE_H

#define FULCRUM_POLICIES(X) \
	X(FAIR, fair, 3000, 12000, "exact shares by weight, short tasks wake fast") \
	X(LATENCY, latency, 1500, 24000, "desktop, audio, games: fair, and short tasks come sooner still") \
	X(BATCH, batch, 12000, 4000, "throughput: fair shares in long turns, hardly any preemption") \
	X(MLFQ, mlfq, 2000, 12000, "multi-level feedback: who uses its slice up falls a level; no weights") \
	X(FIFO, fifo, 5000, 12000, "first come, first served, for comparison; no weights, no preemption")

#define FULCRUM_POLICY_ID(ID, name, slice, credit, text) POLICY_##ID,

enum fulcrum_policy {
	FULCRUM_POLICIES(FULCRUM_POLICY_ID)
	NR_POLICIES,
};

#endif /* FULCRUM_POLICY_TABLE_H */
