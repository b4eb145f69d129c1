/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * platform.h: the one place that knows in which world this source is compiled.
 *
 * For BPF the names below are libbpf's. With FULCRUM_SIM defined the same
 * source is compiled for the host and the simulator supplies them: the kernel
 * functions as ordinary functions, the kernel's structs with the fields that
 * we touch, and the handful of macros defined here. Every other header is
 * written against these names only.
 */
#ifndef FULCRUM_PLATFORM_H
#define FULCRUM_PLATFORM_H

#ifdef FULCRUM_SIM
#include "sim_platform.h"

#define barrier_var(var) ((void)(var))

/* The simulator loads one object for many machines. */
#define SET_BEFORE_LOAD

/* The simulated agent listens. */
#define RING_BUFFER(name, bytes) static const u8 name
#define ring_output(ring, record, size) ((void)(ring), world.kernel->event(record, size))

#else

#include "types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* A kernel function: resolved at load time, absent where the kernel lacks it. */
#define KFUNC extern
#define KFUNC_ATTR __ksym __weak

#define kfunc_exists(func) bpf_ksym_exists(func)

/*
 * A kernel enum's value, taken from the running kernel's BTF when the program
 * is loaded: several moved between releases (kernel 6.19 moved two bits of
 * scx_enq_flags). 0 where the kernel does not have it.
 */
#define KENUM(type, name)						\
	(bpf_core_enum_value_exists(enum type, name) ?			\
	 bpf_core_enum_value(enum type, name) : 0)

#define kfield_exists(expr) bpf_core_field_exists(expr)

/* The agent writes it before it loads the program; the verifier takes it for a constant. */
#define SET_BEFORE_LOAD const volatile

#define STRUCT_OP(name, args...)					\
	SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define STRUCT_OP_SLEEPABLE(name, args...)				\
	SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

/* What a process calls, with a struct of its own. */
#define SYSCALL_PROG(name, arg) SEC("syscall") name(arg)

/* A loop that the verifier can bound: i from first to last - 1. */
#define bounded_for(i, first, last) bpf_for(i, first, last)

/* Every step takes the queue's lock: for repair and dumps, not for hot paths. */
#define for_each_queued(p, dsq_id) bpf_for_each(scx_dsq, p, dsq_id, 0)
#define for_each_queued_from_tail(p, dsq_id)				\
	bpf_for_each(scx_dsq, p, dsq_id, KENUM(scx_dsq_iter_flags, SCX_DSQ_ITER_REV))
#define queue_iterator() (&___it)

/* @bytes: a power of two and whole pages. */
#define RING_BUFFER(name, bytes)					\
	struct {							\
		__uint(type, BPF_MAP_TYPE_RINGBUF);			\
		__uint(max_entries, bytes);				\
	} name SEC(".maps")
#define ring_output(ring, record, size) bpf_ringbuf_output(ring, record, size, 0)

#endif /* FULCRUM_SIM */

#define READ_HINT(x) (*(volatile typeof(x) *)&(x))
#ifndef WRITE_HINT
#define WRITE_HINT(x, val) (*(volatile typeof(x) *)&(x) = (val))
#endif

/* Orders everything before it against everything after it, on every CPU. */
static __always_inline void full_barrier(void)
{
	u64 word = 0;

	__sync_fetch_and_or(&word, 0);
}

#endif /* FULCRUM_PLATFORM_H */
