// SPDX-License-Identifier: GPL-2.0-only
//! From a set-up to a machine with the scheduler loaded.

use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::config::Config;
use super::dsq::Dsq;
use super::ffi::{self, CpuMask, TaskCell};
use super::idle::IdleMasks;
use super::log::Log;
use super::machine::{Context, Cpu, Curr, Happening, Machine, Op};
use super::rng::Rng;
use super::stats::Stats;
use super::tasks::Tasks;
use super::variants::Variant;
use crate::kernel::scheduler::{fill_speeds, fill_topology, nr_kinds, write_knobs};

impl Machine {
    /// A machine with the scheduler of `variant` loaded, in bypass mode, with
    /// no tasks.
    ///
    /// # Errors
    ///
    /// That the scheduler refused to start.
    pub fn new(cfg: Config, variant: Variant) -> Result<Self, String> {
        let n = cfg.topology.cpus;
        let mut rng = Rng::new(cfg.seed);
        let cpus = (0..n).map(|_| new_cpu(&mut rng)).collect();
        let online = CpuMask::first(n);
        let mut machine = Self {
            variant,
            rng,
            now: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            cpus,
            tasks: Tasks::default(),
            cgroups: super::cgroups::Cgroups::default(),
            timers: HashMap::new(),
            idle_task: TaskCell::new(u32::MAX, &online),
            online: Box::new(online),
            idle: IdleMasks::new(&cfg.topology),
            dsqs: Vec::new(),
            dsq_index: HashMap::new(),
            global: Dsq::default(),
            ctx: Context {
                op: Op::None,
                cpu: 0,
                subject: None,
                locked: None,
                in_task: true,
            },
            locks: Vec::new(),
            executing: Vec::new(),
            load: super::run::Load::default(),
            buffered: Vec::new(),
            dispatched: 0,
            rt_waiting: 0,
            bypass: true,
            interleave_depth: 0,
            knobs_generation: 1,
            failure: None,
            log: Log::new(cfg.trace),
            stats: Stats::default(),
            audit: super::audit::Audit::default(),
            meter: super::costs::Meter::default(),
            agent: None,
            cfg,
        };
        machine.load()?;
        Ok(machine)
    }

    fn load(&mut self) -> Result<(), String> {
        let raw = self.variant.raw();
        if raw.sizes != ffi::sizes() {
            return Err(format!(
                "C and Rust disagree: {:?} {:?}",
                raw.sizes,
                ffi::sizes()
            ));
        }
        // SAFETY: the variant is leased to us and no callback runs.
        unsafe {
            (raw.reset)();
            (raw.set_kernel)(self.cfg.release);
            (*raw.world).kernel = super::kfuncs::TABLE;
            (*raw.world).nr_cpu_ids = self.cfg.topology.cpus as u32;
            let domains = self.cfg.topology.domains();
            fill_topology(&mut *raw.topo, &domains);
            if self.knows_speeds() {
                fill_speeds(&mut *raw.speeds, &domains);
                *raw.nr_kinds = nr_kinds(&domains);
            }
            write_knobs(&mut *raw.knobs, &self.cfg.settings, 1);
        }
        let error = self.call_init();
        if error != 0 {
            return Err(format!("ops.init() returned {error}"));
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(base) = self.cfg.vtime_base {
            self.set_clocks(base);
        }
        if self.cfg.release < 703 {
            let topology = self.cfg.topology.clone();
            (0..topology.cpus).for_each(|cpu| self.idle.update(&topology, cpu, true));
        }
        for cpu in 0..self.cfg.topology.cpus {
            self.cpus[cpu].idle_since = 0;
            self.resched(cpu, cpu);
        }
        self.push(super::config::WATCHDOG_PERIOD, Happening::Watchdog);
        if self.cfg.agent {
            self.seat_agent();
        }
        Ok(())
    }

    /// Does the scheduler know that these CPUs differ in speed? The agent then sets
    /// SCX_OPS_ENQ_LAST.
    pub(super) fn knows_speeds(&self) -> bool {
        self.cfg.topology.is_hybrid() && !self.variant.raw().speeds.is_null()
    }

    /// Starts all queue clocks at `base`, as if the machine had run for long.
    fn set_clocks(&mut self, base: u64) {
        let raw = self.variant.raw();
        let domains = self.cfg.topology.domains().domains.len();
        for cpu in 0..self.cfg.topology.cpus {
            // SAFETY: within the arrays of the leased variant; no callback runs.
            unsafe { (*raw.cpus.add(cpu)).vclock = base };
        }
        for domain in 0..domains {
            // SAFETY: as above.
            unsafe { (*raw.domains.add(domain)).vclock_max = base };
        }
    }
}

fn new_cpu(rng: &mut Rng) -> Cpu {
    Cpu {
        curr: Curr::Idle,
        local: VecDeque::new(),
        active: true,
        need_resched: false,
        generation: 0,
        exec_start: 0,
        work_start: 0,
        ticking: false,
        tick_phase: rng.below(super::config::TICK),
        frozen_until: 0,
        higher_pending: 0,
        stopper: VecDeque::new(),
        idle_since: u64::MAX,
        nr_running: 0,
        busy: 0,
        starts: super::bounds::Starts::default(),
        rt: super::rt::RealTime::default(),
    }
}

/// Runs `workload` for `duration` ns.
///
/// # Errors
///
/// That the scheduler refused to start. A failure later is the machine's
/// [`Machine::failure`].
pub fn simulate(
    cfg: Config,
    variant: Variant,
    workload: &super::workload::Workload,
    duration: u64,
) -> Result<Machine, String> {
    let mut machine = Machine::new(cfg, variant)?;
    machine.start(workload);
    machine.run_until(duration);
    if machine.failure.is_none() {
        machine.finish();
    }
    Ok(machine)
}
