// SPDX-License-Identifier: GPL-2.0-only
/*
 * Somebody else's scheduler, as small as the kernel accepts: a name. Every
 * callback is the kernel's default, one first-in-first-out queue.
 * `fulcrum-work other` loads it so that tests can show what scx_fulcrum says
 * when it finds another scheduler active.
 */
struct sched_ext_ops {
	char name[128];
};

__attribute__((section(".struct_ops.link"), used))
struct sched_ext_ops other = {
	.name = "other",
};

__attribute__((section("license"), used))
char gpl[] = "GPL";
