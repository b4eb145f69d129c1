// SPDX-License-Identifier: GPL-2.0-only
//! Which of sched_ext's functions the running kernel lets BPF programs call.
//!
//! Reading its type information is scx_utils' part. That panics where there is
//! none, so [`Features::read`] tries to load it first.

use libbpf_rs::btf::Btf;
use scx_utils::compat;

/// What the scheduler can't do without, as groups of functions one of which
/// must be callable: those of `bpf/kfuncs.h` that end in doing nothing.
pub const INDISPENSABLE: &[&[&str]] = &[
    &["scx_bpf_create_dsq"],
    &[
        "scx_bpf_dsq_insert___v2",
        "scx_bpf_dsq_insert",
        "scx_bpf_dispatch",
    ],
    &[
        "__scx_bpf_dsq_insert_vtime",
        "scx_bpf_dsq_insert_vtime",
        "scx_bpf_dispatch_vtime",
    ],
    &[
        "scx_bpf_dsq_move_to_local___v2",
        "scx_bpf_dsq_move_to_local",
        "scx_bpf_consume",
    ],
];

/// What the scheduler does in another way where the kernel lacks a function.
const FALLBACKS: &[(&str, &str)] = &[
    (
        "scx_bpf_dsq_peek",
        "the head of a queue is read by an iterator, which takes its lock",
    ),
    (
        "__scx_bpf_select_cpu_and",
        "idle CPUs are picked by an older function, or by our own marks",
    ),
    (
        "__scx_bpf_dsq_insert_vtime",
        "tasks are queued by an older function",
    ),
    ("scx_bpf_task_set_slice", "slices are written into the task"),
    (
        "scx_bpf_dsq_move",
        "a task that waited for seconds is not run out of turn",
    ),
    ("scx_bpf_now", "the clock is read anew at each look"),
    (
        "__preempt_count",
        "wakeups by tasks can't be told from those by interrupts",
    ),
    ("bpf_iter_task", "tasks can't be listed"),
];

/// What the running kernel lacks, and what is done instead, a sentence each.
pub fn fallbacks() -> Vec<String> {
    let hidden = compat::malformed_scx_kfuncs();
    let lacks = |name: &str| {
        hidden.iter().any(|hidden| hidden == name) || !compat::ksym_exists(name).unwrap_or(true)
    };
    let lacking = FALLBACKS.iter().filter(|(name, _)| lacks(name));
    lacking
        .map(|(name, instead)| format!("no {name}: {instead}"))
        .collect()
}

/// What of sched_ext the kernel withholds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Functions that it has but whose faulty type information keeps BPF
    /// programs from calling them.
    pub hidden: Vec<String>,
    /// The groups of [`INDISPENSABLE`] of which no function is callable.
    pub missing: Vec<&'static [&'static str]>,
}

impl Features {
    /// Examine the running kernel.
    ///
    /// # Errors
    ///
    /// A sentence on why its type information can't be read.
    pub fn read() -> Result<Self, String> {
        Btf::from_vmlinux().map_err(|error| format!("{error:#}"))?;
        let exists = |name: &str| compat::ksym_exists(name).unwrap_or(false);
        Ok(Self::of(compat::malformed_scx_kfuncs(), exists))
    }

    fn of(mut hidden: Vec<String>, exists: impl Fn(&str) -> bool) -> Self {
        hidden.sort();
        let callable = |name: &&str| exists(name) && !hidden.iter().any(|hidden| hidden == name);
        let lacks = |group: &&&[&str]| !group.iter().any(callable);
        let missing = INDISPENSABLE.iter().filter(lacks).copied().collect();
        Self { hidden, missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_callable_function_a_group_is_enough() {
        let kernel = [
            "scx_bpf_create_dsq",
            "scx_bpf_dsq_insert___v2",
            "scx_bpf_dsq_insert",
            "scx_bpf_dispatch_vtime",
            "scx_bpf_dsq_move_to_local___v2",
        ];
        let hidden = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let features = Features::of(
            hidden(&["scx_bpf_dsq_move_to_local___v2", "scx_bpf_dsq_insert___v2"]),
            |name| kernel.contains(&name),
        );
        assert_eq!(features.missing, [INDISPENSABLE[3]]);
        assert_eq!(
            features.hidden,
            ["scx_bpf_dsq_insert___v2", "scx_bpf_dsq_move_to_local___v2"]
        );
    }

    #[test]
    fn a_kernel_without_sched_ext_lacks_every_group() {
        assert_eq!(Features::of(Vec::new(), |_| false).missing, INDISPENSABLE);
        assert_eq!(Features::of(Vec::new(), |_| true), Features::default());
    }
}
