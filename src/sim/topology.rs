// SPDX-License-Identifier: GPL-2.0-only
//! The simulated machine's CPUs: which share a core, a last-level cache, a node.
//!
//! CPUs are numbered core by core, threads of a core next to each other, caches
//! and nodes in order; the last cache may hold fewer than the others.

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
            };
        }
        Self {
            cpus,
            threads: 2,
            llc_cpus: 16,
            node_llcs: 8,
        }
    }

    /// Parses `NODESxCACHESxCORESxTHREADS` (caches of a node, cores of a
    /// cache, threads of a core) or a number of CPUs.
    ///
    /// # Errors
    ///
    /// What is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
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
            notes: Vec::new(),
        }
    }
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
        for bad in ["", "0", "4097", "2x2", "1x1x0x1", "64x64x64x2", "x"] {
            assert!(Topology::parse(bad).is_err(), "{bad}");
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
