// SPDX-License-Identifier: GPL-2.0-only
//! The properties that every run must keep, whatever the workload.
//!
//! Some are checked at each decision (`check_placement`), the rest by looking
//! at the whole machine every so often (`run_audit`) and at its end (`finish`).

use super::config::WATCHDOG_TIMEOUT;
use super::dsq::TaskId;
use super::ffi::CpuMask;
use super::machine::{Curr, Happening, Machine};
use super::tasks::{Place, State};

/// A CPU may idle that long beside a task of its cache that it could run, ns.
pub const WORK_BOUND_NEAR: u64 = 100_000;
/// ... beside one of another cache.
pub const WORK_BOUND_FAR: u64 = 1_000_000;

/// What the audits keep from one look to the next.
#[derive(Default)]
pub struct Audit {
    clocks: Vec<u64>,
    last: u64,
}

impl Machine {
    pub(super) fn violate(&mut self, text: String) {
        self.stats.violations += 1;
        if self.cfg.strict {
            self.fail(text);
        }
    }

    /// At every start of a task: it may be here, and is nowhere else.
    pub(super) fn check_placement(&mut self, task: TaskId, cpu: usize) {
        let t = &self.tasks[task];
        let moving = self.cpus[cpu].stopper.contains(&task);
        if !t.may_use(cpu) && !moving && !t.stuck() && self.cpus[cpu].active {
            let name = self.name(task);
            self.violate(format!("{name} runs on CPU {cpu}, which it may not use"));
        }
        if self.tasks[task].cpu() != cpu {
            let name = self.name(task);
            self.violate(format!("{name} runs on CPU {cpu} but belongs elsewhere"));
        }
    }

    /// The kernel corrects a choice of a forbidden CPU, but the scheduler's
    /// books are wrong then. To leave a task where it was is no choice.
    pub(super) fn check_choice(&mut self, task: TaskId, prev: usize, answer: Option<usize>) {
        if let Some(cpu) = answer
            && cpu != prev
            && !self.tasks[task].may_use(cpu)
        {
            let name = self.name(task);
            self.violate(format!(
                "ops.select_cpu() chose CPU {cpu}, which {name} may not use"
            ));
        }
    }

    /// Slices are given out by the pick and at insertion, nowhere else.
    pub(super) fn check_slice(&mut self, task: TaskId, granted: u64) {
        let slice = self.tasks[task].cell.read(|k| k.slice);
        if slice != granted {
            let name = self.name(task);
            self.violate(format!("ops.running() changed the slice of {name}"));
        }
    }

    /// Nobody has interrupted a task that only begins to run: who interrupted
    /// another one before would be blamed when this one's slice ends.
    pub(super) fn check_preemptor(&mut self, cpu: usize) {
        // SAFETY: within the array; no callback runs.
        let pid = unsafe { (*self.variant.raw().cpus.add(cpu)).preemptor };
        if pid != 0 {
            self.violate(format!("{pid} interrupted an earlier task of CPU {cpu}"));
        }
    }

    pub(super) fn run_audit(&mut self) {
        let next = self.now + self.cfg.audit_period;
        self.push(next, Happening::Audit);
        self.check_clocks();
        self.check_tasks();
        self.check_work_conservation();
        self.audit.last = self.now;
    }

    /// Virtual clocks never go back.
    fn check_clocks(&mut self) {
        let n = self.cfg.topology.cpus;
        let clocks: Vec<u64> = (0..n).map(|cpu| self.vclock(cpu)).collect();
        let back = std::mem::take(&mut self.audit.clocks)
            .into_iter()
            .zip(&clocks)
            .position(|(before, now)| (now.wrapping_sub(before) as i64) < 0);
        if let Some(cpu) = back {
            self.violate(format!("the virtual clock of CPU {cpu} went back"));
        }
        self.audit.clocks = clocks;
    }

    /// Every queued task is in one place, and runs once at a time.
    fn check_tasks(&mut self) {
        let mut seen = vec![0u8; self.tasks.len()];
        let places = (self.cpus.iter())
            .flat_map(|cpu| cpu.local.iter().copied())
            .chain(self.dsqs.iter().flat_map(super::dsq::Dsq::iter))
            .chain(self.global.iter())
            .chain(
                self.cpus
                    .iter()
                    .flat_map(|cpu| cpu.rt.queue.iter().copied()),
            )
            .chain(self.cpus.iter().filter_map(|cpu| match cpu.curr {
                Curr::Task(task) | Curr::Rt(task) => Some(task),
                _ => None,
            }));
        for task in places {
            seen[task] += 1;
        }
        let wrong = self.tasks.iter().find_map(|(id, task)| {
            let expected = u8::from(matches!(task.state, State::Runnable | State::Running));
            (seen[id] != expected).then_some((id, seen[id], task.state))
        });
        if let Some((task, count, state)) = wrong {
            let name = self.name(task);
            self.violate(format!("{name} is {state:?} but in {count} places"));
        }
    }

    /// No CPU idles long beside a waiting task that it could run.
    fn check_work_conservation(&mut self) {
        let idle: Vec<usize> = (0..self.cfg.topology.cpus)
            .filter(|cpu| self.cpus[*cpu].curr == Curr::Idle && self.cpus[*cpu].active)
            .collect();
        if idle.is_empty() || self.bypass {
            return;
        }
        let mut wasting = 0;
        let mut found = None;
        for (id, task) in self.tasks.iter() {
            if task.rt || task.state != State::Runnable || !self.takeable(task.place, task.stuck())
            {
                continue;
            }
            // Where a real-time task runs nobody is left to call again, should
            // another one take the CPU that was called.
            if matches!(self.cpus[task.cpu()].curr, Curr::Rt(_)) {
                continue;
            }
            let since = task.waits_since.max(task.allowed_since);
            let mut wastes = false;
            for &cpu in idle.iter().filter(|cpu| task.may_use(**cpu)) {
                let both = self.now - since.max(self.cpus[cpu].idle_since).min(self.now);
                let near = self.cfg.topology.llc(cpu) == self.cfg.topology.llc(task.cpu());
                let bound = if near {
                    WORK_BOUND_NEAR
                } else {
                    WORK_BOUND_FAR
                };
                wastes = true;
                if both > bound && found.is_none() {
                    found = Some((id, cpu, both));
                }
            }
            wasting += usize::from(wastes);
        }
        let elapsed = self.now - self.audit.last;
        self.stats.wasted += elapsed * wasting.min(idle.len()) as u64;
        if let Some((task, cpu, both)) = found {
            let name = self.name(task);
            let place = self.tasks[task].place;
            let (idle, queue) = (self.cpu_state(cpu), self.cpu_state(self.tasks[task].cpu()));
            self.violate(format!(
                "CPU {cpu} has been idle for {} us beside {name}, which waits in {place:?} \
                 (idle mark: kernel's {}, scheduler's {}; queue's work flag {})",
                both / 1000,
                u8::from(self.idle.intersects(&CpuMask::one(cpu))),
                idle.idle,
                queue.has_work
            ));
        }
    }

    /// Could another CPU take the task? What is on a local queue it could not:
    /// the kernel offers no way. That is the price of the scheduler's "next"
    /// slot, which may hold one task until the next tick.
    fn takeable(&self, place: Place, stuck: bool) -> bool {
        match place {
            Place::Local(_) => false,
            Place::User(_) | Place::None => !stuck,
            Place::Global => true,
        }
    }

    /// The kernel's watchdog: a task that waits for 30 s ejects the scheduler.
    pub(super) fn watchdog(&mut self) {
        let next = self.now + super::config::WATCHDOG_PERIOD;
        self.push(next, Happening::Watchdog);
        let stalled = self.tasks.iter().find_map(|(id, task)| {
            let waits = self.now - task.stalled_since.min(self.now);
            (task.state == State::Runnable && !task.rt && waits > WATCHDOG_TIMEOUT)
                .then_some((id, waits))
        });
        if let Some((task, waits)) = stalled {
            let name = self.name(task);
            self.fail(format!(
                "watchdog: runnable task stall ({name} failed to run for {:.3}s)",
                waits as f64 / 1e9
            ));
        }
    }

    /// What the scheduler counts of its tasks is what there is.
    fn check_leaks(&mut self) {
        // Another scheduler than ours counts nothing.
        if self.variant.raw().balance.is_null() {
            return;
        }
        let (mut contexts, mut strays) = (0, 0);
        for cpu in 0..self.cfg.topology.cpus {
            let stats = self.cpu_state(cpu).stats;
            contexts += stats.contexts_made as i64 - stats.contexts_ended as i64;
            strays += stats.queue_strays;
        }
        let live = |state| !matches!(state, State::New | State::Dead);
        let tasks = self.tasks.iter().filter(|(_, task)| live(task.state));
        let tasks = tasks.count() as i64;
        let no_memory = self.cfg.storage_fails_one_in > 0;
        if contexts > tasks || (contexts < tasks && !no_memory) || strays > 0 {
            self.violate(format!(
                "{contexts} contexts for {tasks} tasks; {strays} strays in queues"
            ));
        }
    }

    /// The checks at the end of a run: the scheduler's own error counters, and
    /// the longest wait that is still going on.
    pub fn finish(&mut self) {
        let n = self.cfg.topology.cpus;
        for cpu in 0..n {
            self.update_curr(cpu);
        }
        let wrong = (0..n).find(|cpu| self.cpu_state(*cpu).stats.lifecycle_errors > 0);
        if let Some(cpu) = wrong {
            let state = self.cpu_state(cpu);
            self.violate(format!(
                "{} lifecycle errors on CPU {cpu}, the last: pid {} state {} event {}",
                state.stats.lifecycle_errors,
                state.lifecycle_pid,
                state.lifecycle_state,
                state.lifecycle_event
            ));
        }
        self.check_leaks();
        for task in 0..self.tasks.len() {
            self.check_passed_over(task);
            let now = self.now;
            let t = &mut self.tasks[task];
            if t.state == State::Runnable {
                t.longest_wait = t.longest_wait.max(now - t.waits_since);
            }
        }
    }
}
