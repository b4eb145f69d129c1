// SPDX-License-Identifier: GPL-2.0-only
//! Workloads of programs, for what the files' words can't say, run with all
//! properties checked.
#![allow(dead_code)]

use scx_fulcrum::sim::config::Config;
use scx_fulcrum::sim::eevdf;
use scx_fulcrum::sim::machine::{Machine, simulate};
use scx_fulcrum::sim::mask::CpuMask;
use scx_fulcrum::sim::report;
use scx_fulcrum::sim::topology::Topology;
use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::program::Step;
use scx_fulcrum::sim::workload::{Group, Workload};

use super::AUDIT;

/// ns
pub const US: u64 = 1000;
/// ns
pub const MS: u64 = 1_000_000;

/// These steps again and again.
pub fn forever(mut steps: Vec<Step>) -> Vec<Step> {
    steps.push(Step::Loop {
        start: 0,
        times: u64::MAX,
    });
    steps
}

/// A group that does these steps again and again.
pub fn repeat(name: &str, count: usize, steps: Vec<Step>) -> Group {
    Group::new(name, count, forever(steps))
}

/// Hogs on these CPUs.
pub fn pinned(name: &str, count: usize, cpu: usize) -> Group {
    Group::hogs(name, count).on(CpuMask::one(cpu))
}

/// Has so much work to do in each period, ns.
pub fn frames(name: &str, count: usize, period: u64, work: u64) -> Group {
    repeat(name, count, vec![Step::Timer(period), Step::Run(work)])
}

/// A workload on a machine.
pub struct Setup {
    pub config: Config,
    pub workload: Workload,
    pub seconds: f64,
}

/// These groups on `topology`.
pub fn setup(topology: &str, seconds: f64, groups: Vec<Group>) -> Setup {
    let mut config = Config::new(Topology::parse(topology).unwrap(), 1);
    config.audit_period = AUDIT;
    let workload = Workload {
        name: "test".to_string(),
        groups,
        ..Workload::default()
    };
    Setup {
        config,
        workload,
        seconds,
    }
}

impl Setup {
    /// With another seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    fn run_with(&self, variant: Variant) -> Machine {
        let duration = (self.seconds * 1e9) as u64;
        simulate(self.config.clone(), variant, &self.workload, duration).unwrap()
    }

    /// Runs it; a property that doesn't hold ends the test.
    pub fn run(&self) -> Machine {
        let machine = self.run_with(Variant::lease());
        if machine.failure.is_some() {
            panic!("{}", report::failure(&machine, "this test"));
        }
        machine
    }

    /// Runs it and lets `look` judge.
    pub fn judge(
        &self,
        variant: Variant,
        look: impl FnOnce(&Machine) -> Result<(), String>,
    ) -> (Result<(), String>, Variant) {
        let machine = self.run_with(variant);
        let verdict = match &machine.failure {
            Some(_) => Err(report::failure(&machine, "this test")),
            None => look(&machine),
        };
        (verdict, machine.into_variant())
    }

    /// The same under plain EEVDF.
    pub fn under_eevdf(mut self) -> Machine {
        self.config.audit_period = 0;
        let machine = self.run_with(eevdf::variant());
        assert_eq!(machine.failure, None);
        machine
    }
}

/// CPUs that each group used, in the order of the workload.
pub fn cpus_used(machine: &Machine) -> Vec<f64> {
    let groups = machine.stats.groups.iter();
    groups
        .map(|group| group.ran as f64 / machine.now as f64)
        .collect()
}

/// The longest wait of a group, ns.
pub fn longest(machine: &Machine, group: usize) -> u64 {
    machine.stats.groups[group].wait.max()
}
