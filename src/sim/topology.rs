// SPDX-License-Identifier: GPL-2.0-only
//! The simulated machine's CPUs: which share a core, a last-level cache, a node.
//!
//! CPUs are numbered core by core, threads of a core next to each other, caches
//! and nodes in order; the last cache may hold fewer than the others.

use crate::kernel::capacity::{self, FULL, Kind};
use crate::kernel::topology::{DOMAIN_CPUS, Domain, MAX_CPUS, Topology as Domains};

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Possible CPUs, 1 to 4,096.
    pub cpus: usize,
    /// Hardware threads of a core.
    pub threads: usize,
    /// CPUs of a last-level cache.
    pub llc_cpus: usize,
    /// Caches of a node.
    pub node_llcs: usize,
    /// What each CPU does in a time, [`FULL`] at most; none: all are alike.
    pub capacities: Vec<u32>,
    /// The CPUs sorted by that.
    pub kinds: Vec<Kind>,
}

impl Topology {
    /// The usual shape of a machine with `cpus` CPUs: up to 8 share a cache
    /// and have a core each; larger ones have caches of 16 CPUs in 8 cores,
    /// and nodes of 8 caches.
    #[must_use]
    pub const fn of(cpus: usize) -> Self {
        if cpus <= 8 {
            return Self {
                cpus,
                threads: 1,
                llc_cpus: cpus,
                node_llcs: 1,
                capacities: Vec::new(),
                kinds: Vec::new(),
            };
        }
        Self {
            cpus,
            threads: 2,
            llc_cpus: 16,
            node_llcs: 8,
            capacities: Vec::new(),
            kinds: Vec::new(),
        }
    }

    /// Parses `NODESxCACHESxCORESxTHREADS` (caches of a node, cores of a
    /// cache, threads of a core) or a number of CPUs; then, if they differ,
    /// `:` and the capacities of all CPUs in order, as `4x1024,4x446`.
    ///
    /// # Errors
    ///
    /// What is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((shape, capacities)) = text.split_once(':') else {
            return Self::parse_shape(text);
        };
        let mut topology = Self::parse_shape(shape)?;
        topology.capacities = parse_capacities(capacities)
            .filter(|capacities| capacities.len() == topology.cpus)
            .ok_or_else(|| {
                format!(
                    "{capacities:?} is not a capacity of 1..={FULL} for each of {} CPUs, as \
                     4x1024,4x446",
                    topology.cpus
                )
            })?;
        let figures: Vec<_> = topology.capacities.iter().copied().enumerate().collect();
        topology.kinds = capacity::by_capacity(&figures);
        Ok(topology)
    }

    fn parse_shape(text: &str) -> Result<Self, String> {
        let parts: Option<Vec<usize>> = text
            .split('x')
            .map(|part| part.trim().parse().ok().filter(|n| *n > 0))
            .collect();
        let topology = match parts.as_deref() {
            Some([cpus]) if *cpus <= MAX_CPUS => Self::of(*cpus),
            Some([nodes, llcs, cores, threads])
                if [nodes, llcs, cores, threads]
                    .iter()
                    .all(|n| **n <= MAX_CPUS) =>
            {
                Self {
                    cpus: nodes * llcs * cores * threads,
                    threads: *threads,
                    llc_cpus: cores * threads,
                    node_llcs: *llcs,
                    capacities: Vec::new(),
                    kinds: Vec::new(),
                }
            }
            _ => {
                return Err(format!(
                    "{text:?} is neither CPUs nor NODESxCACHESxCORESxTHREADS"
                ));
            }
        };
        if topology.cpus > MAX_CPUS {
            return Err(format!("{text:?} has more than {MAX_CPUS} CPUs"));
        }
        Ok(topology)
    }

    /// Are there CPUs of different speed?
    #[must_use]
    pub const fn is_hybrid(&self) -> bool {
        self.kinds.len() > 1
    }

    /// Is `cpu` of the fastest kind?
    #[must_use]
    pub fn is_fastest(&self, cpu: usize) -> bool {
        self.kinds
            .first()
            .is_none_or(|kind| kind.cpus.contains(&cpu))
    }

    fn capacity(&self, cpu: usize) -> u64 {
        self.capacities.get(cpu).copied().unwrap_or(FULL).into()
    }

    /// How long `cpu` takes for what the fastest does in `work` ns.
    #[must_use]
    pub fn time_for(&self, cpu: usize, work: u64) -> u64 {
        let capacity = self.capacity(cpu);
        (work / capacity * u64::from(FULL)) + (work % capacity * u64::from(FULL)).div_ceil(capacity)
    }

    /// What `cpu` does in `time` ns, in ns of the fastest.
    #[must_use]
    pub fn work_in(&self, cpu: usize, time: u64) -> u64 {
        let full = u64::from(FULL);
        let capacity = self.capacity(cpu);
        time / full * capacity + time % full * capacity / full
    }

    /// The core of `cpu`.
    #[must_use]
    pub const fn core(&self, cpu: usize) -> usize {
        cpu / self.threads
    }

    /// The last-level cache of `cpu`.
    #[must_use]
    pub const fn llc(&self, cpu: usize) -> usize {
        cpu / self.llc_cpus
    }

    /// The node of `cpu`.
    #[must_use]
    pub const fn node(&self, cpu: usize) -> usize {
        cpu / (self.llc_cpus * self.node_llcs)
    }

    /// CPUs that share `cpu`'s core, from the first to the one after the last.
    #[must_use]
    pub fn core_range(&self, cpu: usize) -> (usize, usize) {
        self.range(self.core(cpu), self.threads)
    }

    /// CPUs that share `cpu`'s last-level cache.
    #[must_use]
    pub fn llc_range(&self, cpu: usize) -> (usize, usize) {
        self.range(self.llc(cpu), self.llc_cpus)
    }

    /// CPUs of `cpu`'s node.
    #[must_use]
    pub fn node_range(&self, cpu: usize) -> (usize, usize) {
        self.range(self.node(cpu), self.llc_cpus * self.node_llcs)
    }

    fn range(&self, index: usize, size: usize) -> (usize, usize) {
        (index * size, ((index + 1) * size).min(self.cpus))
    }

    /// Number of last-level caches.
    #[must_use]
    pub const fn llcs(&self) -> usize {
        self.cpus.div_ceil(self.llc_cpus)
    }

    /// Number of nodes.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.cpus.div_ceil(self.llc_cpus * self.node_llcs)
    }

    /// The same machine cut into domains as the agent does it.
    #[must_use]
    pub fn domains(&self) -> Domains {
        let mut domains = Vec::new();
        for llc in 0..self.llcs() {
            let (first, end) = self.range(llc, self.llc_cpus);
            let parts = (end - first).div_ceil(DOMAIN_CPUS);
            let size = (end - first).div_ceil(parts).next_multiple_of(self.threads);
            let mut start = first;
            while start < end {
                let stop = (start + size.min(DOMAIN_CPUS)).min(end);
                let mut cpus: Vec<usize> = (start..stop).collect();
                cpus.sort_by_key(|cpu| (cpu % self.threads, *cpu));
                domains.push(Domain {
                    node: self.node(first),
                    cpus,
                });
                start = stop;
            }
        }
        Domains {
            domains,
            llcs: self.llcs(),
            nodes: self.nodes(),
            online: self.cpus,
            kinds: self.kinds.clone(),
            cores: self.threaded_cores(),
            notes: Vec::new(),
        }
    }

    fn threaded_cores(&self) -> Vec<Vec<usize>> {
        if self.threads == 1 || !self.is_hybrid() {
            return Vec::new();
        }
        let cores = self.cpus.div_ceil(self.threads);
        let core = |core| {
            let (first, end) = self.range(core, self.threads);
            (first..end).collect()
        };
        (0..cores).map(core).collect()
    }
}

/// `4x1024,446`
fn parse_capacities(text: &str) -> Option<Vec<u32>> {
    let mut capacities = Vec::new();
    for part in text.split(',') {
        let (count, capacity) = part.split_once('x').unwrap_or(("1", part));
        let (count, capacity): (usize, u32) = (count.parse().ok()?, capacity.parse().ok()?);
        if count > MAX_CPUS || !(1..=FULL).contains(&capacity) {
            return None;
        }
        capacities.extend(std::iter::repeat_n(capacity, count));
    }
    Some(capacities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_parsed_and_bounded() {
        let big = Topology::parse("2x8x8x2").unwrap();
        assert_eq!((big.cpus, big.llcs(), big.nodes()), (256, 16, 2));
        assert_eq!(big.llc_range(17), (16, 32));
        assert_eq!(big.core_range(17), (16, 18));
        assert_eq!(Topology::parse("4096").unwrap().nodes(), 32);
        let hybrid = Topology::parse("8:4x1024,4x446").unwrap();
        assert_eq!((hybrid.kinds.len(), hybrid.is_fastest(3)), (2, true));
        assert!(!hybrid.is_fastest(4) && !big.is_hybrid() && big.is_fastest(255));
        for bad in [
            "",
            "0",
            "2:",
            "2:1024",
            "2:3x512",
            "2:2x0",
            "2:1025,1",
            "4097",
            "2x2",
            "1x1x0x1",
            "64x64x64x2",
            "x",
        ] {
            assert!(Topology::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn work_takes_as_long_as_the_cpu_is_slow() {
        let hybrid = Topology::parse("3:1024,512,333").unwrap();
        for work in [0, 1, 999, 1_000_000_007, 1 << 50] {
            assert_eq!(
                (hybrid.time_for(0, work), hybrid.work_in(0, work)),
                (work, work)
            );
            assert_eq!(hybrid.time_for(1, work), 2 * work);
            let time = hybrid.time_for(2, work);
            assert_eq!(hybrid.work_in(2, time), work, "done when its time is over");
        }
    }

    #[test]
    fn every_cpu_is_in_one_domain() {
        for text in ["1", "7", "130", "4096", "1x1x96x2", "2x3x5x2"] {
            let topology = Topology::parse(text).unwrap();
            let domains = topology.domains();
            let mut seen: Vec<usize> = domains
                .domains
                .iter()
                .flat_map(|d| d.cpus.clone())
                .collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..topology.cpus).collect::<Vec<_>>(), "{text}");
            assert!(domains.domains.iter().all(|d| d.cpus.len() <= DOMAIN_CPUS));
        }
    }
}
