/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exit.h: why the kernel let us go, kept where the agent can read it.
 *
 * The names and the layout are those that scx_utils' user_exit_info reads.
 */
#ifndef FULCRUM_EXIT_H
#define FULCRUM_EXIT_H

#include "platform.h"
#include "events.h"

struct user_exit_info {
	s32 kind;		/* enum scx_exit_kind; 0 = still scheduling */
	s64 exit_code;
	s32 exit_cpu;		/* -1 = the kernel doesn't say (before 7.2) */
	char reason[128];
	char msg[1024];
};

struct user_exit_info uei SEC(".data");
char uei_dump[1] SEC(".data.uei_dump");		/* resized by the agent */
const volatile u32 uei_dump_len;

static __always_inline void exit_record(struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(uei.reason, sizeof(uei.reason), info->reason);
	bpf_probe_read_kernel_str(uei.msg, sizeof(uei.msg), info->msg);
	if (uei_dump_len)
		bpf_probe_read_kernel_str(uei_dump, uei_dump_len, info->dump);
	if (kfield_exists(info->exit_code))
		uei.exit_code = info->exit_code;
	uei.exit_cpu = kfield_exists(info->exit_cpu) ? info->exit_cpu : -1;
	/* Last, and as one: the agent takes it as the sign that all is there. */
	__atomic_exchange_n(&uei.kind, info->kind, __ATOMIC_RELEASE);
	event_exit(info->kind);
}

#endif /* FULCRUM_EXIT_H */
