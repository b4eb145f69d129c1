// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF program counts of its tasks, beside what there is: if the two
//! drift apart, something leaks ([`crate::agent::leaks`]).

use std::ptr;

use libbpf_rs::ProgramInput;

use super::scheduler::Scheduler;
use super::view::SystemView;

/// Both at one moment, without stopping anything: each figure may be a moment
/// older than the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Contexts of tasks that were made and have not ended.
    pub contexts: u64,
    /// Contexts that have ended.
    pub ended: u64,
    /// Threads of the machine, those of the kernel included; `None` if /proc
    /// does not tell.
    pub threads: Option<u64>,
    /// Tasks that were found in a queue though they should not be in one.
    pub strays: u64,
    /// CPUs whose queue holds tasks and is not marked as holding any.
    pub unmarked: Vec<usize>,
}

impl Scheduler<'_> {
    /// Count. Costs a look at each CPU, none at tasks.
    pub fn tally(&self) -> Tally {
        let counters = self.snapshot().counters;
        Tally {
            contexts: counters
                .contexts_made
                .saturating_sub(counters.contexts_ended),
            ended: counters.contexts_ended,
            threads: SystemView::host()
                .read("/proc/loadavg")
                .ok()
                .and_then(|text| threads(&text)),
            strays: counters.queue_strays,
            unmarked: self.unmarked(),
        }
    }

    fn unmarked(&self) -> Vec<usize> {
        let lengths = self
            .skel
            .progs
            .fulcrum_queues
            .test_run(ProgramInput::default());
        let (Ok(_), Some(bss)) = (lengths, self.skel.maps.bss_data.as_deref()) else {
            return Vec::new();
        };
        let both = bss.cpus.iter().zip(&bss.queue_lengths);
        let cpus = both.take(self.cpu_limit()).enumerate();
        cpus.filter(|(_, (cpu, waiting))| {
            // SAFETY: shared with the BPF program, which may write meanwhile;
            // any value is valid.
            unsafe { ptr::read_volatile(*waiting) > 0 && ptr::read_volatile(&cpu.has_work) == 0 }
        })
        .map(|(cpu, _)| cpu)
        .collect()
    }
}

/// The number of threads in the text of `/proc/loadavg`.
fn threads(text: &str) -> Option<u64> {
    let both = text.split_whitespace().nth(3)?;
    both.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_behind_the_stroke() {
        assert_eq!(threads("0.52 0.58 0.59 3/1234 56789"), Some(1234));
        for bad in ["", "0.5 0.5 0.5", "0.5 0.5 0.5 3 5", "0.5 0.5 0.5 3/x 5"] {
            assert_eq!(threads(bad), None, "{bad}");
        }
        assert!(threads(&std::fs::read_to_string("/proc/loadavg").unwrap()) > Some(0));
    }
}
