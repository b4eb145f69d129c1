// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's built-in idle tracking: which CPUs and which whole cores are
//! idle, and the search for one near another.
//!
//! Where the kernel takes "any" CPU of a set, a seed-chosen position decides
//! where the search starts.

use super::ffi::{CpuMask, MASK_WORDS};
use super::rng::Rng;
use super::topology::Topology;

/// Idle CPUs and idle cores.
pub struct IdleMasks {
    cpus: CpuMask,
    /// All threads of every core that is idle as a whole.
    cores: CpuMask,
    count: usize,
    smt: bool,
}

impl IdleMasks {
    /// All busy.
    #[must_use]
    pub const fn new(topology: &Topology) -> Self {
        Self {
            cpus: CpuMask::empty(),
            cores: CpuMask::empty(),
            count: 0,
            smt: topology.threads > 1,
        }
    }

    /// Is any CPU marked idle?
    #[must_use]
    pub const fn any(&self) -> bool {
        self.count > 0
    }

    /// Is a CPU of `mask` marked idle?
    #[must_use]
    pub fn intersects(&self, mask: &CpuMask) -> bool {
        let pairs = self.cpus.bits.iter().zip(&mask.bits);
        self.count > 0 && pairs.into_iter().any(|(a, b)| a & b != 0)
    }

    /// `cpu` enters or leaves idle.
    pub fn update(&mut self, topology: &Topology, cpu: usize, idle: bool) {
        if idle {
            if !self.cpus.has(cpu) {
                self.cpus.set(cpu);
                self.count += 1;
            }
        } else {
            self.claim(topology, cpu);
        }
        if !self.smt {
            return;
        }
        let (first, end) = topology.core_range(cpu);
        let whole = idle && (first..end).all(|sibling| self.cpus.has(sibling));
        for sibling in first..end {
            if whole {
                self.cores.set(sibling);
            } else if !idle {
                self.cores.clear(sibling);
            }
        }
    }

    /// Takes `cpu`'s idle mark away; false: it had none.
    pub fn claim(&mut self, topology: &Topology, cpu: usize) -> bool {
        if self.smt {
            let (first, end) = topology.core_range(cpu);
            (first..end).for_each(|sibling| self.cores.clear(sibling));
        }
        if !self.cpus.has(cpu) {
            return false;
        }
        self.cpus.clear(cpu);
        self.count -= 1;
        true
    }

    /// Claims a CPU of `allowed` within `range`.
    fn claim_in(
        &mut self,
        topology: &Topology,
        allowed: &CpuMask,
        range: (usize, usize),
        cores: bool,
        rng: &mut Rng,
    ) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let from = if cores { &self.cores } else { &self.cpus };
        let cpu = any_in(&from.bits, &allowed.bits, range, rng)?;
        self.claim(topology, cpu).then_some(cpu)
    }

    /// `scx_bpf_pick_idle_cpu()`: whole cores first.
    pub fn pick(&mut self, topology: &Topology, allowed: &CpuMask, rng: &mut Rng) -> Option<usize> {
        let all = (0, topology.cpus);
        if self.smt
            && let Some(cpu) = self.claim_in(topology, allowed, all, true, rng)
        {
            return Some(cpu);
        }
        self.claim_in(topology, allowed, all, false, rng)
    }

    /// The search of `scx_bpf_select_cpu_and()` after its SYNC rule: idle
    /// core at `prev`, in its cache, node, anywhere; then `prev`, then any
    /// thread in its cache, node, anywhere.
    pub fn pick_near(
        &mut self,
        topology: &Topology,
        prev: usize,
        allowed: &CpuMask,
        rng: &mut Rng,
    ) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let prev_allowed = allowed.has(prev);
        let mut ranges = Vec::with_capacity(3);
        if topology.llcs() > 1 {
            ranges.push(topology.llc_range(prev));
        }
        if topology.nodes() > 1 {
            ranges.push(topology.node_range(prev));
        }
        ranges.push((0, topology.cpus));
        if self.smt {
            if prev_allowed && self.cores.has(prev) && self.claim(topology, prev) {
                return Some(prev);
            }
            for &range in &ranges {
                if let Some(cpu) = self.claim_in(topology, allowed, range, true, rng) {
                    return Some(cpu);
                }
            }
        }
        if prev_allowed && self.claim(topology, prev) {
            return Some(prev);
        }
        ranges
            .into_iter()
            .find_map(|range| self.claim_in(topology, allowed, range, false, rng))
    }
}

/// A CPU that is in `a` and `b` within `range`; the search starts anywhere.
pub fn any_in(
    a: &[u64; MASK_WORDS],
    b: &[u64; MASK_WORDS],
    (first, end): (usize, usize),
    rng: &mut Rng,
) -> Option<usize> {
    if first >= end {
        return None;
    }
    let start = first + rng.below((end - first) as u64) as usize;
    next_in(a, b, start, end).or_else(|| next_in(a, b, first, start))
}

fn next_in(
    a: &[u64; MASK_WORDS],
    b: &[u64; MASK_WORDS],
    first: usize,
    end: usize,
) -> Option<usize> {
    let mut cpu = first;
    while cpu < end {
        let word = (a[cpu / 64] & b[cpu / 64]) >> (cpu % 64);
        if word != 0 {
            let found = cpu + word.trailing_zeros() as usize;
            return (found < end).then_some(found);
        }
        cpu = (cpu / 64 + 1) * 64;
    }
    None
}
