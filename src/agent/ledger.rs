// SPDX-License-Identifier: GPL-2.0-only
//! What is: how much each CPU has to do, and where it is.
//!
//! Read from words that each CPU writes for itself at its ticks
//! (`struct balance_cpu`), so a look costs one cache line a CPU and no lock, and
//! nobody scans tasks. A tick may be 4 ms ago.

use std::ptr;

use crate::kernel::skeleton::types::{balance_cpu, cpu_state};
use crate::kernel::topology::Topology;

/// Weight of nice 0.
pub const NICE_0: f64 = 1024.0;

/// Where a CPU is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of its domain: CPUs that share a last-level cache.
    pub domain: u16,
    /// Its memory node.
    pub node: u16,
    /// The machine can have this CPU.
    pub exists: bool,
}

/// Where each CPU is, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Places by CPU number.
    pub places: Vec<Place>,
    /// How many domains there are.
    pub domains: usize,
}

impl Shape {
    /// The shape that `topology` describes.
    pub fn of(topology: &Topology) -> Self {
        let count = topology.domains.iter().flat_map(|domain| &domain.cpus);
        let mut places = vec![Place::default(); count.max().map_or(0, |&cpu| cpu + 1)];
        for (number, domain) in topology.domains.iter().enumerate() {
            for &cpu in &domain.cpus {
                if let Some(place) = places.get_mut(cpu) {
                    *place = Place {
                        domain: number as u16,
                        node: domain.node as u16,
                        exists: true,
                    };
                }
            }
        }
        Self {
            places,
            domains: topology.domains.len(),
        }
    }
}

/// What one CPU has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// It runs a task of ours. Any other idles, is offline, or belongs to a
    /// higher scheduling class: it gives and gets nothing.
    pub busy: bool,
    /// Tasks that wait in its queue.
    pub waiting: u32,
    /// The mean weight of its tasks, 1024 = nice 0.
    pub weight: f64,
}

impl Load {
    /// Weight of all that is runnable there.
    pub fn total(&self) -> f64 {
        if self.busy {
            (f64::from(self.waiting) + 1.0) * self.weight
        } else {
            0.0
        }
    }
}

/// What came of the last hint that a CPU dealt with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The hint's number.
    pub generation: u32,
    /// Tasks that it moved.
    pub moved: u32,
    /// It was in time and still made sense, but no task could follow it.
    pub refused: bool,
}

/// A look at one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// What it has to do.
    pub load: Load,
    /// What came of its last hint.
    pub ack: Ack,
    /// Changes of CPU masks that it made.
    pub affinity_changes: u64,
}

impl Sample {
    /// Look at a CPU's words, which the BPF program may be writing.
    pub fn read(cpu: &cpu_state, told: &balance_cpu) -> Self {
        // SAFETY: references to aligned words; volatile, for the BPF program
        // writes them meanwhile. Any mix of older and newer words is valid.
        let word = |word: &u32| unsafe { ptr::read_volatile(word) };
        // SAFETY: as above.
        let inv = unsafe { ptr::read_volatile(&told.inv) };
        // SAFETY: as above.
        let affinity_changes = unsafe { ptr::read_volatile(&cpu.stats.affinity_changes) };
        let running = word(&cpu.online) != 0 && word(&cpu.curr_pid) != 0;
        Self {
            load: Load {
                // Before its first tick nothing is known of its weights.
                busy: running && inv != 0,
                waiting: word(&told.waiting),
                weight: (1_u64 << 32) as f64 / inv.max(1) as f64,
            },
            ack: Ack {
                generation: word(&told.acked),
                moved: word(&told.moved),
                refused: word(&told.refused) != 0,
            },
            affinity_changes,
        }
    }
}
