// SPDX-License-Identifier: GPL-2.0-only
//! The counters of `struct fulcrum_stats`, summed over CPUs, and differences
//! between two looks at them.

use std::time::Duration;

/// What the longest wait is.
pub const WAIT_MAX: &str = "Longest wait of a task that then ran, since the scheduler was attached";

/// A meaning without the dot that ends it as documentation.
fn undotted(text: &'static str) -> &'static str {
    let text = text.trim_ascii();
    text.strip_suffix('.').unwrap_or(text)
}

macro_rules! counters {
    ($(#[doc = $doc:literal] $name:ident,)*) => {
        /// Sums over all CPUs since the scheduler was attached. The names and
        /// meanings are those of `struct fulcrum_stats` in `bpf/abi.h`.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $(#[doc = $doc] pub $name: u64,)*
            /// Longest wait of a task that then ran, in nanoseconds.
            pub wait_max_ns: u64,
        }

        impl Counters {
            /// Add another CPU's counters.
            pub fn add(&mut self, other: &Self) {
                $(self.$name = self.$name.wrapping_add(other.$name);)*
                self.wait_max_ns = self.wait_max_ns.max(other.wait_max_ns);
            }

            /// What was counted between `earlier` and this, both of the same
            /// run of the scheduler. The longest wait has no difference: it
            /// stays that of the whole run.
            pub fn since(&self, earlier: &Self) -> Self {
                Self {
                    $($name: self.$name.wrapping_sub(earlier.$name),)*
                    wait_max_ns: self.wait_max_ns,
                }
            }

            /// Name, meaning and value of each, but for the longest wait.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), undotted($doc), self.$name),)*].into_iter()
            }
        }

        impl From<&crate::kernel::skeleton::types::fulcrum_stats> for Counters {
            fn from(raw: &crate::kernel::skeleton::types::fulcrum_stats) -> Self {
                Self { $($name: raw.$name,)* wait_max_ns: raw.wait_max_ns }
            }
        }
    };
}

counters! {
    /// Tasks that became runnable after sleeping.
    wakeups,
    /// Wakeups placed straight onto an idle CPU.
    idle_hits,
    /// Wakeups handed the waker's CPU because the waker is about to sleep.
    sync_pulls,
    /// Wakeups that run right after the task that woke them.
    next_slots,
    /// Insertions into a CPU's queue.
    enqueues,
    /// Kernel threads and tasks pinned for now put on the local queue.
    local_inserts,
    /// Running tasks interrupted for a more urgent one.
    preempt_kicks,
    /// Idle CPUs told to come and take work.
    idle_kicks,
    /// Times a CPU asked for its next task.
    dispatches,
    /// Dispatches that kept the task that ran.
    keeps,
    /// Tasks that idle CPUs took within their domain.
    steals_near,
    /// Tasks that idle CPUs took from another domain.
    steals_far,
    /// Looks into a queue that gave nothing.
    steal_misses,
    /// Tasks taken at a slice's end because they were owed more.
    exchanges,
    /// Slices ended by the timer, where weights differ.
    timer_ends,
    /// Tasks run out of turn because they had waited for seconds.
    rescues,
    /// Queued tasks moved because their CPU can't run them.
    rehomed,
    /// Wishes corrected because of affinity or an offline CPU.
    place_fixes,
    /// cgroups that run with their parent's weight: too many, or too deep.
    groups_without_slot,
    /// Changes of a task's CPU mask.
    affinity_changes,
    /// Virtual runtimes pulled back into their bounds.
    clock_clamps,
    /// Callbacks for a task without context.
    missing_ctx,
    /// Events that the task state machine does not allow.
    lifecycle_errors,
    /// Waits that ended with the task running.
    waits,
    /// Time that those took, all together.
    wait_ns,
    /// CPU time charged to tasks.
    run_ns,
    /// Hints of the agent's balancer that moved tasks.
    hints_applied,
    /// Tasks that they moved.
    hint_moves,
    /// Hints that no task could follow because of affinity.
    hints_refused,
    /// Hints that came too late or were no longer needed.
    hints_expired,
    /// Hints of an agent that another one had replaced.
    hints_fenced,
    /// Contexts of tasks made.
    contexts_made,
    /// Contexts that ended with their tasks.
    contexts_ended,
    /// Tasks seen in a CPU's queue that should not be in one; not 0 is a bug.
    queue_strays,
}

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Time since the scheduler was attached.
    pub at: Duration,
    /// CPUs that are online.
    pub online: u64,
    /// Everything counted by then.
    pub counters: Counters,
}

impl Snapshot {
    /// What is worth knowing at the end, in half a line.
    pub fn summary(&self) -> String {
        let counters = &self.counters;
        format!(
            "after {:.1} s: {} wakeups, {} lifecycle errors, {} missing contexts, longest wait {:.1} ms",
            self.at.as_secs_f64(),
            counters.wakeups,
            counters.lifecycle_errors,
            counters.missing_ctx,
            counters.wait_max_ns as f64 / 1e6,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_tells_each_figure_in_its_unit() {
        let snapshot = Snapshot {
            at: Duration::from_millis(12_340),
            online: 2,
            counters: Counters {
                wakeups: 5,
                lifecycle_errors: 6,
                missing_ctx: 7,
                wait_max_ns: 8_900_000,
                ..Counters::default()
            },
        };
        assert_eq!(
            snapshot.summary(),
            "after 12.3 s: 5 wakeups, 6 lifecycle errors, 7 missing contexts, longest wait 8.9 ms"
        );
    }

    #[test]
    fn sums_and_differences() {
        let cpu = |wakeups, wait_max_ns| Counters {
            wakeups,
            wait_max_ns,
            ..Counters::default()
        };
        let mut sum = cpu(5, 70);
        sum.add(&cpu(u64::MAX, 30));
        assert_eq!(sum, cpu(4, 70));
        assert_eq!(cpu(4, 90).since(&cpu(u64::MAX, 70)), cpu(5, 90));
    }
}
