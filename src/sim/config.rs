// SPDX-License-Identifier: GPL-2.0-only
//! How a run is set up.

use super::topology::Topology;
use crate::control::settings::Settings;

/// The tick's period, ns: 250 Hz.
pub const TICK: u64 = 4_000_000;
/// How often the watchdog looks, ns: half of its 30 s timeout.
pub const WATCHDOG_PERIOD: u64 = 15_000_000_000;
/// After how long without running it ejects the scheduler, ns.
pub const WATCHDOG_TIMEOUT: u64 = 30_000_000_000;
/// Kernel releases whose functions and enum values are known.
pub const RELEASES: [(&str, u32); 4] = [("6.16", 616), ("6.18", 618), ("7.1", 701), ("7.3", 703)];

/// What things cost, in ns; ranges are drawn from evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A switch to another task, spent on that task's account.
    pub switch: u64,
    /// Waking a task, on the waker's account.
    pub wake: (u64, u64),
    /// An inter-processor interrupt.
    pub ipi: (u64, u64),
    /// Leaving the idle state.
    pub idle_exit: (u64, u64),
    /// From select_cpu to enqueue, when something comes between.
    pub wake_gap: (u64, u64),
    /// What counts as "at the same time" when callbacks are interleaved.
    pub interleave_window: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            switch: 1_000,
            wake: (500, 1_500),
            ipi: (300, 3_000),
            idle_exit: (500, 8_000),
            wake_gap: (50, 2_000),
            interleave_window: 20_000,
        }
    }
}

/// Things that happen to the machine, on average once in so many ns each; 0 = never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A task gets another CPU mask.
    pub affinity: u64,
    /// A task gets another nice level.
    pub renice: u64,
    /// A running task enters a migration-disabled section.
    pub migrate_disable: u64,
    /// A CPU goes away for a while.
    pub hotplug: u64,
    /// A higher class takes a CPU for up to 3 ms.
    pub higher: u64,
    /// Bypass mode for up to 20 ms (as around suspend).
    pub bypass: u64,
    /// A task moves to another cgroup, or a cgroup changes, comes or goes.
    pub cgroup: u64,
    /// The scheduler's knobs are set to something else.
    pub knobs: u64,
}

impl Faults {
    /// None at all.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// A run's set-up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The machine.
    pub topology: Topology,
    /// The kernel: 616 is 6.16.
    pub release: u32,
    /// Decides whatever the kernel leaves open.
    pub seed: u64,
    /// What the clock reads at the start.
    pub clock_base: u64,
    /// Where the queues' virtual clocks start; none: where the scheduler starts them.
    pub vtime_base: Option<u64>,
    /// `sum_exec_runtime` of new tasks.
    pub exec_base: u64,
    /// The scheduler's knobs.
    pub settings: Settings,
    /// Process id of the first task.
    pub pid_base: i32,
    /// What things cost.
    pub costs: Costs,
    /// What goes wrong.
    pub faults: Faults,
    /// A wakeup is split in two steps once in so many times; 0 = never.
    pub gap_one_in: u64,
    /// A kernel function lets a due wakeup in once in so many calls; 0 = never.
    pub interleave_one_in: u64,
    /// Task storage fails once in so many tasks; 0 = never.
    pub storage_fails_one_in: u64,
    /// Keep every decision for a trace file.
    pub trace: bool,
    /// Check the properties every so many ns; 0 = never.
    pub audit_period: u64,
    /// An agent balances across caches.
    pub agent: bool,
    /// Let violations of the properties fail the run (else they are counted).
    pub strict: bool,
}

impl Config {
    /// A well-behaved machine with `topology`.
    #[must_use]
    pub fn new(topology: Topology, seed: u64) -> Self {
        Self {
            topology,
            release: 703,
            seed,
            clock_base: 1 << 40,
            vtime_base: None,
            exec_base: 0,
            settings: Settings::default(),
            pid_base: 1000,
            costs: Costs::default(),
            faults: Faults::default(),
            gap_one_in: 4,
            interleave_one_in: 4,
            storage_fails_one_in: 0,
            trace: false,
            audit_period: 0,
            agent: false,
            strict: true,
        }
    }
}
