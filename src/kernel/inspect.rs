// SPDX-License-Identifier: GPL-2.0-only
//! Looking into the running scheduler, for whoever wants to see it: what
//! `bpf/hist.h`, `bpf/recorder.h` and `bpf/inspect.h` keep or find out.
//!
//! Nothing here is called unless somebody asked. Whatever the kernel withholds
//! reads as nothing.

use std::io::Read;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libbpf_rs::{Iter, MapCore, ProgramInput};

use crate::stats::counters::Counters;
use crate::stats::histogram::BUCKETS;

use super::scheduler::Scheduler;
use super::skeleton::types;

/// Decisions that are kept of each CPU.
pub const DECISIONS: usize = 256;

/// The kernel's id of the root cgroup.
pub const ROOT: u64 = 1;

const TASK_BYTES: usize = 112;

/// One CPU at one moment; counts are since the scheduler was attached.
#[derive(Clone, Debug)]
pub struct CpuView {
    /// Its number.
    pub cpu: usize,
    /// Its domain, a last-level cache or a part of one.
    pub domain: usize,
    /// Whether it is online.
    pub online: bool,
    /// The task that runs, 0: none of ours.
    pub pid: u32,
    /// Tasks in its queue.
    pub waiting: u32,
    /// Its counters.
    pub counters: Counters,
    /// Waits that began with a wakeup, by bucket.
    pub wakeup: Vec<u64>,
    /// The other waits.
    pub other: Vec<u64>,
}

/// One cgroup at one moment.
#[derive(Clone, Debug, Default)]
pub struct GroupView {
    /// Its slot; 0 is the root's.
    pub slot: usize,
    /// The kernel's id.
    pub id: u64,
    /// The slot above.
    pub parent: usize,
    /// Levels below the root.
    pub depth: u32,
    /// `cpu.weight`.
    pub cpu_weight: u32,
    /// The weight in force, in the unit of task weights (1024: nice 0).
    pub weight: u32,
    /// `cpu.idle`.
    pub idle: bool,
    /// Runnable tasks of its own, on average.
    pub busy: f64,
    /// Their weight, on average.
    pub load: f64,
    /// CPU time that its own tasks used, ns.
    pub ran_ns: u64,
    /// Their waits by bucket, counted while somebody looks; may wrap.
    pub waits: Vec<u32>,
}

/// One task at one moment, see `struct task_view`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Those of bpf/inspect.h.
pub struct TaskView {
    pub group: u64,
    pub inv: u64,
    pub lag: i64,
    pub burst: u64,
    pub request: u64,
    pub waits: u64,
    pub last_wait: u32,
    pub max_wait: u32,
    pub pid: u32,
    pub tgid: u32,
    pub woken_by: u32,
    pub preempted_by: u32,
    pub cpu: u32,
    pub cpus_allowed: u32,
    pub policy: u32,
    pub nice: i32,
    pub state: u8,
    pub way: u8,
    pub busy: bool,
    pub level: u8,
    pub comm: String,
}

/// One decision of a CPU, see `struct decision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Those of bpf/recorder.h.
pub struct Decided {
    pub cpu: usize,
    pub time_ns: u64,
    pub pid: u32,
    pub lag_us: i64,
    pub wait_us: u64,
    pub from: u16,
    pub way: u8,
}

/// Reads values of a C struct one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((value, rest)) => {
                self.0 = rest;
                *value
            }
            None => [0; N],
        }
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }
}

fn task_view(bytes: &[u8]) -> TaskView {
    let mut from = Fields(bytes);
    let mut view = TaskView {
        group: from.u64().max(ROOT),
        inv: from.u64(),
        lag: from.u64().cast_signed(),
        burst: from.u64(),
        request: from.u64(),
        waits: from.u64(),
        last_wait: from.u32(),
        max_wait: from.u32(),
        pid: from.u32(),
        tgid: from.u32(),
        woken_by: from.u32(),
        preempted_by: from.u32(),
        cpu: from.u32(),
        cpus_allowed: from.u32(),
        policy: from.u32(),
        nice: from.u32().cast_signed(),
        state: from.u8(),
        way: from.u8(),
        busy: from.u8() != 0,
        level: from.u8(),
        comm: String::new(),
    };
    from.u32();
    let comm: [u8; 16] = from.take();
    let end = comm.iter().position(|&byte| byte == 0).unwrap_or(16);
    view.comm = String::from_utf8_lossy(comm.get(..end).unwrap_or_default()).into_owned();
    view
}

/// What is left of the first `made` decisions of one CPU, oldest first.
fn decisions(cpu: usize, ring: &[types::decision], made: u64) -> Vec<Decided> {
    let kept = made.min(DECISIONS as u64);
    let at = |number: u64| {
        let decision = ring.get((number % DECISIONS as u64) as usize)?;
        Some(Decided {
            cpu,
            time_ns: decision.time,
            pid: decision.pid,
            lag_us: us(decision.lag.into()),
            wait_us: us(decision.wait.into()).unsigned_abs(),
            from: decision.from,
            way: decision.way as u8,
        })
    };
    (made - kept..made).filter_map(at).collect()
}

/// From the unit of the BPF program, 1,024 ns.
const fn us(units: i64) -> i64 {
    units * 1024 / 1000
}

impl Scheduler<'_> {
    /// What `cpu` remembers. Shared with the BPF program, which may write while
    /// we read: any mix of older and newer values is valid.
    fn memory(&self, cpu: usize) -> Option<*const types::memory> {
        let first = self.skel.maps.bss_memories_data.as_deref()?;
        let bytes = self.skel.maps.bss_memories.value_size() as usize;
        // SAFETY: the map was made that large before it was loaded, and all of
        // it is mapped.
        (cpu < bytes / size_of::<types::memory>())
            .then(|| unsafe { first.memories.as_ptr().add(cpu) })
    }

    /// Every possible CPU.
    pub fn cpu_views(&self) -> Vec<CpuView> {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else {
            return Vec::new();
        };
        // Else lengths are those of the last time: 0.
        let _ = self
            .skel
            .progs
            .fulcrum_queues
            .test_run(ProgramInput::default());
        let domains = self.skel.maps.data_data.as_deref().map(|data| &data.topo);
        let states = bss.cpus.iter().zip(&bss.queue_lengths);
        let view = |(cpu, (state, waiting)): (usize, (&_, &u32))| {
            let state: *const super::skeleton::types::cpu_state = state;
            // SAFETY: shared with the BPF program, which may write while we
            // read; any mix of older and newer values is valid.
            let (online, pid, stats, waiting) = unsafe {
                (
                    ptr::read_volatile(&raw const (*state).online),
                    ptr::read_volatile(&raw const (*state).curr_pid),
                    ptr::read_volatile(&raw const (*state).stats),
                    ptr::read_volatile(waiting),
                )
            };
            // SAFETY: as above, of a CPU that has a memory.
            let waits = self
                .memory(cpu)
                .map(|memory| unsafe { ptr::read_volatile(&raw const (*memory).waits) });
            let (other, wakeup) = waits
                .as_ref()
                .map_or((&[] as &[u64], &[] as &[u64]), |waits| {
                    waits.split_at(BUCKETS)
                });
            CpuView {
                cpu,
                domain: domains
                    .and_then(|topo| topo.cpu.get(cpu))
                    .map_or(0, |place| place.domain.into()),
                online: online != 0,
                pid,
                waiting,
                counters: Counters::from(&stats),
                wakeup: wakeup.to_vec(),
                other: other.to_vec(),
            }
        };
        let possible = states.take(self.cpu_limit());
        possible.enumerate().map(view).collect()
    }

    /// The cgroups that have a weight of their own, the root first.
    pub fn group_views(&self) -> Vec<GroupView> {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else {
            return Vec::new();
        };
        let slots = bss.groups.iter().zip(&bss.group_waits).enumerate();
        let used = slots.filter(|&(slot, (group, _))| {
            // SAFETY: as in `cpu_views`.
            slot == 0 || unsafe { ptr::read_volatile(&group.id) } != 0
        });
        used.map(|(slot, (group, waits))| {
            // SAFETY: as in `cpu_views`.
            let (group, waits) = unsafe { (ptr::read_volatile(group), ptr::read_volatile(waits)) };
            GroupView {
                slot,
                id: if slot == 0 { ROOT } else { group.id },
                parent: group.parent as usize,
                depth: group.depth,
                cpu_weight: group.cpu_weight,
                weight: group.weight,
                idle: group.idle != 0,
                busy: group.busy as f64 / 1024.0,
                load: group.load as f64 / 256.0,
                ran_ns: group.ran,
                waits: waits.count.to_vec(),
            }
        })
        .collect()
    }

    /// All tasks under the scheduler's care, by number.
    ///
    /// # Errors
    ///
    /// A sentence, if this kernel does not let them be listed.
    pub fn task_views(&self) -> Result<Vec<TaskView>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("tasks can't be listed ({error})");
        let link = self.skel.progs.fulcrum_tasks.attach();
        let link = link.map_err(|error| failed(&error))?;
        // Room for a small machine's tasks: an empty one makes the first read ask for 32 bytes.
        let mut bytes = Vec::with_capacity(TASK_BYTES << 8);
        Iter::new(&link)
            .map_err(|error| failed(&error))?
            .read_to_end(&mut bytes)
            .map_err(|error| failed(&error))?;
        let mut tasks: Vec<_> = bytes.chunks_exact(TASK_BYTES).map(task_view).collect();
        tasks.sort_by_key(|task| task.pid);
        Ok(tasks)
    }

    /// Time since it was attached.
    pub fn age(&self) -> Duration {
        self.attached_at.elapsed()
    }

    /// The last decisions of each CPU, oldest first.
    pub fn recorded(&self) -> Vec<Decided> {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else {
            return Vec::new();
        };
        let of = |cpu| {
            let (memory, state) = (self.memory(cpu)?, bss.cpus.get(cpu)?);
            // SAFETY: as in `memory` and `cpu_views`.
            let (made, ring) = unsafe {
                (
                    ptr::read_volatile(&raw const state.stats.waits)
                        .wrapping_add(ptr::read_volatile(&raw const state.stats.keeps)),
                    ptr::read_volatile(&raw const (*memory).ring),
                )
            };
            Some(decisions(cpu, &ring, made))
        };
        (0..self.cpu_limit()).filter_map(of).flatten().collect()
    }

    /// Count the waits of each cgroup, or no longer.
    pub fn watch(&mut self, on: bool) {
        if let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            // SAFETY: an aligned word that the BPF program reads at any time.
            let word = unsafe { AtomicU32::from_ptr(&raw mut data.knobs.watch) };
            word.store(on.into(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_read_from_its_oldest_record_on() {
        let mut ring = [types::decision::default(); DECISIONS];
        ring[0] = types::decision {
            time: 100,
            pid: 7,
            lag: -1000,
            wait: 2000,
            from: 3,
            way: 5,
        };
        ring[1].pid = 8;
        let with = |made| decisions(4, &ring, made);
        let one = with(1);
        let expected = Decided {
            cpu: 4,
            time_ns: 100,
            pid: 7,
            lag_us: -1024,
            wait_us: 2048,
            from: 3,
            way: 5,
        };
        assert_eq!(one, [expected]);
        let full = with(DECISIONS as u64 + 1);
        assert_eq!(full.len(), DECISIONS);
        assert_eq!(full.first().map(|decided| decided.pid), Some(8));
        assert_eq!(full.last().map(|decided| decided.pid), Some(7));
        assert!(decisions(0, &[], 0).is_empty());
    }

    #[test]
    fn a_task_is_read_field_by_field() {
        let mut bytes = Vec::new();
        for word in [5_u64, 6, (-7_i64).cast_unsigned(), 8, 9, 10] {
            bytes.extend(word.to_ne_bytes());
        }
        for word in [11_u32, 12, 13, 14, 15, 16, 17, 18, 19] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend((-5_i32).to_ne_bytes());
        bytes.extend([3, 4, 1, 2, 0, 0, 0, 0]);
        bytes.extend(b"bash\0\0\0\0garbage!");
        assert_eq!(bytes.len(), TASK_BYTES);
        let view = task_view(&bytes);
        assert_eq!((view.group, view.lag, view.waits), (5, -7, 10));
        assert_eq!((view.pid, view.policy, view.nice), (13, 19, -5));
        assert_eq!((view.state, view.way, view.busy), (3, 4, true));
        assert_eq!(view.comm, "bash");
    }
}
