// SPDX-License-Identifier: GPL-2.0-only
//! The kernel functions that the scheduler calls, with the kernel's own
//! conditions: a call from a context where the kernel forbids it, a second
//! direct dispatch, an unknown queue fail the run as they would eject the
//! scheduler.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;

use super::dsq::TaskId;
use super::ffi::{self, CpuMask, KTask, KernelTable};
use super::log::What;
use super::machine::{Curr, Machine, Op};
use super::tasks::Insert;

/// `SCX_DSQ_FLAG_BUILTIN`
const BUILTIN: u64 = 1 << 63;
/// `SCX_SLICE_INF` and the bits of enqueue flags that are the kernel's own.
const INTERNAL_FLAGS: u64 = 0xff << 56;
const EBUSY: i32 = 16;
const EEXIST: i32 = 17;
const EINVAL: i32 = 22;
const ENOENT: i32 = 2;

thread_local! {
    /// The machine whose callback runs on this thread.
    static CURRENT: Cell<*mut Machine> = const { Cell::new(null_mut()) };
}

/// Runs `call` with `machine` as the one that kernel functions act on.
pub(super) fn with_machine<R>(machine: &mut Machine, call: impl FnOnce() -> R) -> R {
    let before = CURRENT.replace(machine);
    let result = call();
    CURRENT.set(before);
    result
}

fn machine<'a>() -> &'a mut Machine {
    // SAFETY: set by with_machine() from an exclusive reference that its
    // caller does not use until the callback returns, and kernel functions are
    // called only from callbacks.
    unsafe { &mut *CURRENT.get() }
}

/// The functions, as C gets them.
pub(super) const TABLE: *const KernelTable = &KernelTable {
    create_dsq,
    nr_queued,
    insert,
    insert_vtime,
    move_to_local,
    queued,
    move_between,
    select_cpu_and,
    pick_idle,
    claim_idle,
    kick,
    set_slice,
    online,
    any_and,
    pause,
    start_timer,
    reenqueue_local,
    reenqueue,
    event,
};

extern "C" fn create_dsq(id: u64, _node: i32) -> i32 {
    machine().create_dsq(id)
}

extern "C" fn nr_queued(id: u64) -> i32 {
    machine().dsq_len(id)
}

extern "C" fn insert(p: *mut KTask, dsq: u64, slice: u64, flags: u64) -> bool {
    machine().insert(
        p,
        Insert {
            dsq,
            slice,
            vtime: None,
            flags,
        },
    )
}

extern "C" fn insert_vtime(p: *mut KTask, dsq: u64, slice: u64, vtime: u64, flags: u64) -> bool {
    machine().insert(
        p,
        Insert {
            dsq,
            slice,
            vtime: Some(vtime),
            flags,
        },
    )
}

extern "C" fn move_to_local(id: u64, _flags: u64) -> bool {
    machine().move_to_local(id)
}

extern "C" fn queued(id: u64, position: u64) -> *mut KTask {
    let m = machine();
    m.interleave();
    m.stats.dsq_locks += u64::from(m.cfg.release < 701);
    let task = m
        .dsq_index
        .get(&id)
        .and_then(|&index| m.dsqs[index].get(position as usize));
    task.map_or(null_mut(), |task| m.tasks[task].cell.pointer())
}

/// `vtime` 0: the task keeps the one that it has.
extern "C" fn move_between(p: *mut KTask, from: u64, to: u64, vtime: u64, flags: u64) -> bool {
    machine().move_between(p, from, to, vtime, flags)
}

extern "C" fn select_cpu_and(
    p: *mut KTask,
    prev: i32,
    wake_flags: u64,
    allowed: *const CpuMask,
    _flags: u64,
) -> i32 {
    let m = machine();
    m.interleave();
    let Some(prev) = m.valid_cpu(prev, "scx_bpf_select_cpu_and") else {
        return -EINVAL;
    };
    let task = m.task_of(p);
    let allowed = mask_of(allowed);
    m.select_cpu_and(task, prev, wake_flags, &allowed)
        .map_or(-EBUSY, |cpu| cpu as i32)
}

extern "C" fn pick_idle(allowed: *const CpuMask, _flags: u64) -> i32 {
    let m = machine();
    m.interleave();
    let allowed = mask_of(allowed);
    m.idle
        .pick(&m.cfg.topology, &allowed, &mut m.rng)
        .map_or(-EBUSY, |cpu| cpu as i32)
}

extern "C" fn claim_idle(cpu: i32) -> bool {
    let m = machine();
    m.interleave();
    let Some(cpu) = m.valid_cpu(cpu, "scx_bpf_test_and_clear_cpu_idle") else {
        return false;
    };
    m.idle.claim(&m.cfg.topology, cpu)
}

extern "C" fn kick(cpu: i32, flags: u64) {
    machine().kick(cpu, flags);
}

extern "C" fn set_slice(p: *mut KTask, slice: u64) {
    let m = machine();
    let task = m.task_of(p);
    m.tasks[task].cell.write(|k| k.slice = slice);
}

extern "C" fn online() -> *const CpuMask {
    &raw const *machine().online
}

extern "C" fn pause() {
    machine().interleave();
}

extern "C" fn start_timer(timer: *mut c_void, ns: u64) {
    machine().start_timer(timer, ns);
}

extern "C" fn reenqueue_local() -> u32 {
    machine().reenqueue_released()
}

extern "C" fn reenqueue(dsq: u64, flags: u64) {
    machine().reenqueue_later(dsq, flags);
}

extern "C" fn event(record: *const c_void, _size: u64) {
    // SAFETY: C passes a `struct fulcrum_event`, and its first word is the kind.
    machine().agent_hears(unsafe { record.cast::<u32>().read() });
}

extern "C" fn any_and(a: *const CpuMask, b: *const CpuMask) -> u32 {
    let m = machine();
    let all = (0, m.cfg.topology.cpus);
    let (a, b) = (mask_of(a), mask_of(b));
    // None: the kernel answers nr_cpu_ids or more.
    super::idle::any_in(&a.bits, &b.bits, all, &mut m.rng)
        .map_or(m.cfg.topology.cpus as u32, |cpu| cpu as u32)
}

fn mask_of(mask: *const CpuMask) -> CpuMask {
    // SAFETY: C has only masks of tasks and the online mask, all alive.
    unsafe { (*mask).clone() }
}

impl Machine {
    fn create_dsq(&mut self, id: u64) -> i32 {
        if self.ctx.op != Op::Unlocked {
            self.fail(format!("scx_bpf_create_dsq() from {:?}", self.ctx.op));
            return -EINVAL;
        }
        if id & BUILTIN != 0 {
            return -EINVAL;
        }
        if self.dsq_index.contains_key(&id) {
            return -EEXIST;
        }
        self.dsq_index.insert(id, self.dsqs.len());
        self.dsqs.push(super::dsq::Dsq::default());
        0
    }

    fn dsq_len(&mut self, id: u64) -> i32 {
        self.interleave();
        if id == ffi::DSQ_LOCAL {
            return self.cpus[self.ctx.cpu].local.len() as i32;
        }
        match self.dsq_index.get(&id) {
            Some(&index) => self.dsqs[index].len() as i32,
            None => -ENOENT,
        }
    }

    /// A CPU number from C, or the run fails.
    pub(super) fn valid_cpu(&mut self, cpu: i32, whence: &str) -> Option<usize> {
        if cpu >= 0 && (cpu as usize) < self.cfg.topology.cpus {
            return Some(cpu as usize);
        }
        self.fail(format!("invalid CPU {cpu} from {whence}"));
        None
    }

    fn insert(&mut self, p: *mut KTask, insert: Insert) -> bool {
        self.interleave();
        let task = self.task_of(p);
        if insert.flags & INTERNAL_FLAGS != 0 {
            self.fail(format!("invalid enq_flags {:#x}", insert.flags));
            return false;
        }
        match self.ctx.op {
            Op::SelectCpu | Op::Enqueue => self.insert_directly(task, insert),
            Op::Dispatch => {
                if self.buffered.len() >= 32 {
                    self.fail("dispatch buffer overflow".to_string());
                    return false;
                }
                let sequence = self.tasks[task].enqueue_seq;
                self.buffered.push((task, insert, sequence));
                self.note_values(task, insert);
                true
            }
            op => {
                self.fail(format!("scx_bpf_dsq_insert() from {op:?}"));
                false
            }
        }
    }

    fn insert_directly(&mut self, task: TaskId, insert: Insert) -> bool {
        if self.ctx.subject != Some(task) {
            let name = self.name(task);
            self.fail(format!(
                "direct dispatch of {name} in another task's callback"
            ));
            return false;
        }
        if self.tasks[task].direct.is_some() {
            let name = self.name(task);
            self.fail(format!("{name} already direct-dispatched"));
            return false;
        }
        self.note_values(task, insert);
        self.tasks[task].direct = Some(insert);
        true
    }

    /// Before 7.3 slice and vtime are written when the insert is asked for.
    fn note_values(&mut self, task: TaskId, insert: Insert) {
        if self.cfg.release < 703 {
            self.write_values(task, insert);
        }
    }

    /// Commits an insert's slice and vtime.
    pub(super) fn write_values(&mut self, task: TaskId, insert: Insert) {
        self.tasks[task].cell.write(|k| {
            if insert.slice != 0 {
                k.slice = insert.slice;
            } else {
                k.slice = k.slice.max(1);
            }
            if let Some(vtime) = insert.vtime {
                k.dsq_vtime = vtime;
            }
        });
    }

    fn move_to_local(&mut self, id: u64) -> bool {
        if self.ctx.op != Op::Dispatch {
            self.fail(format!(
                "scx_bpf_dsq_move_to_local() from {:?}",
                self.ctx.op
            ));
            return false;
        }
        self.flush_dispatch_buffer();
        self.interleave();
        let Some(&index) = self.dsq_index.get(&id) else {
            self.fail(format!("invalid DSQ ID {id:#x}"));
            return false;
        };
        if self.dsqs[index].is_empty() {
            return false;
        }
        self.stats.dsq_locks += 1;
        let cpu = self.ctx.cpu;
        let found = (0..self.dsqs[index].len()).find(|&position| {
            self.dsqs[index]
                .get(position)
                .is_some_and(|task| self.may_take(task, cpu))
        });
        let Some(position) = found else {
            return false;
        };
        if let Some(task) = self.dsqs[index].remove_at(position) {
            self.take_to_local(task, cpu);
            self.dispatched += 1;
        }
        true
    }

    /// May `cpu` take the queued `task`? Its own tasks always, others if they
    /// may run here.
    pub(super) fn may_take(&self, task: TaskId, cpu: usize) -> bool {
        let t = &self.tasks[task];
        t.cpu() == cpu || (t.may_use(cpu) && !t.stuck() && self.cpus[cpu].active)
    }

    fn move_between(
        &mut self,
        p: *mut KTask,
        from: u64,
        to: u64,
        moved_to: u64,
        flags: u64,
    ) -> bool {
        if !matches!(self.ctx.op, Op::Dispatch | Op::Unlocked) {
            self.fail(format!("scx_bpf_dsq_move() from {:?}", self.ctx.op));
            return false;
        }
        if to & ffi::DSQ_LOCAL_ON == ffi::DSQ_LOCAL_ON || to == ffi::DSQ_LOCAL {
            return self.move_out(p, from, to);
        }
        let (Some(&from), Some(&to_index)) = (self.dsq_index.get(&from), self.dsq_index.get(&to))
        else {
            self.fail(format!("scx_bpf_dsq_move(): no DSQ {from:#x} or {to:#x}"));
            return false;
        };
        let task = self.task_of(p);
        let vtime = self.tasks[task].cell.read(|k| k.dsq_vtime);
        if !self.dsqs[from].remove(vtime, task) {
            return false;
        }
        let vtime = if moved_to == 0 { vtime } else { moved_to };
        self.stats.dsq_locks += 2;
        self.queue_in(
            task,
            to_index,
            Insert {
                dsq: to,
                slice: 0,
                vtime: Some(vtime),
                flags,
            },
        );
        true
    }

    /// Moves a queued task to a local queue.
    fn move_out(&mut self, p: *mut KTask, from: u64, to: u64) -> bool {
        let cpu = if to == ffi::DSQ_LOCAL {
            Some(self.ctx.cpu)
        } else {
            self.valid_cpu((to & 0xffff_ffff) as i32, "SCX_DSQ_LOCAL_ON")
        };
        let (Some(cpu), Some(&from)) = (cpu, self.dsq_index.get(&from)) else {
            return false;
        };
        let task = self.task_of(p);
        let vtime = self.tasks[task].cell.read(|k| k.dsq_vtime);
        if !self.may_take(task, cpu) || !self.dsqs[from].remove(vtime, task) {
            return false;
        }
        self.stats.dsq_locks += 1;
        self.take_to_local(task, cpu);
        if self.ctx.op == Op::Dispatch {
            self.dispatched += 1;
        }
        true
    }

    fn kick(&mut self, cpu: i32, flags: u64) {
        self.interleave();
        let Some(cpu) = self.valid_cpu(cpu, "scx_bpf_kick_cpu") else {
            return;
        };
        if flags & ffi::KICK_IDLE != 0 && flags & ffi::KICK_PREEMPT != 0 {
            return self.fail("PREEMPT/WAIT cannot be used with SCX_KICK_IDLE".to_string());
        }
        if self.bypass {
            return;
        }
        // A CPU that is plainly busy is not bothered; under its lock nobody can tell.
        let busy = self.cpus[cpu].curr != Curr::Idle && !self.locks.contains(&cpu);
        if flags & ffi::KICK_IDLE != 0 && busy {
            return;
        }
        self.log.record(self.now, cpu, None, What::Kick, flags);
        let (first, last) = self.cfg.costs.ipi;
        let delay = self.rng.range(first, last);
        self.push(
            self.now + delay,
            super::machine::Happening::Kick(cpu, flags),
        );
    }

    /// The kernel's search for an idle CPU, SYNC rule included.
    pub(super) fn select_cpu_and(
        &mut self,
        task: TaskId,
        prev: usize,
        wake_flags: u64,
        allowed: &CpuMask,
    ) -> Option<usize> {
        let topology = self.cfg.topology.clone();
        let (one_cpu, disabled) = self.tasks[task]
            .cell
            .read(|k| (k.nr_cpus_allowed == 1, k.migration_disabled));
        let is_current = self.cpus[self.ctx.cpu].curr == Curr::Task(task);
        let stuck = disabled > 1 || (disabled == 1 && !is_current);
        if one_cpu || stuck {
            return (allowed.has(prev) && self.idle.claim(&topology, prev)).then_some(prev);
        }
        let here = self.ctx.cpu;
        if wake_flags & ffi::WAKE_SYNC != 0 {
            let near = topology.llc(here) == topology.llc(prev);
            if allowed.has(prev) && near && self.idle.claim(&topology, prev) {
                return Some(prev);
            }
            let waker_stays = match self.cpus[here].curr {
                Curr::Task(waker) => !self.tasks[waker].exiting,
                _ => true,
            };
            if waker_stays
                && self.cpus[here].local.is_empty()
                && self.idle.any()
                && allowed.has(here)
            {
                return Some(here);
            }
        }
        self.idle.pick_near(&topology, prev, allowed, &mut self.rng)
    }
}
