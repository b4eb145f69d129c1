// SPDX-License-Identifier: GPL-2.0-only
//! Plain EEVDF, for comparison: the kernel's default policy written as another
//! sched_ext scheduler, run by the same machine with the same workload.
//!
//! A queue a CPU; v and lag by weight; the eligible task with the earliest
//! deadline runs; lag is kept over sleep, bounded by a slice; idle CPUs pull
//! from the longest queue. No periodic balancing.
//!
//! Cgroups are flattened: a task weighs its part of its cgroup's weight among
//! what is runnable in it on the whole machine, and so on up to the root. The
//! kernel works the part out per CPU, from averages; here it is exact, and in
//! force from a task's next charge on.

mod accounts;

use std::cell::RefCell;

use accounts::{CPUS, Entity, FINER, Group, Queue, SLICE, State, group_weight, task};

use super::ffi::{
    self, DSQ_LOCAL, DSQ_LOCAL_ON, KCgroup, KICK_IDLE, KICK_PREEMPT, KTask, Ops, RawVariant,
    TaskView, World,
};
use super::kfuncs::TABLE;
use super::variants::Variant;

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<R>(work: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(work)
}

fn kernel() -> &'static ffi::KernelTable {
    // SAFETY: a constant.
    unsafe { &*TABLE }
}

extern "C" fn init() -> i32 {
    with(|s| {
        *s = State::default();
        s.queues.resize_with(CPUS, Queue::default);
        s.groups = vec![Group::default()];
    });
    0
}

extern "C" fn init_task(p: *mut KTask, args: *mut ffi::InitArgs) -> i32 {
    // SAFETY: valid for the call.
    let cgroup = number(unsafe { (*args).cgroup });
    let e = Entity {
        cgroup,
        weight: 1024 * FINER,
        fresh: true,
        ..Entity::default()
    };
    with(|s| s.entities.insert(p as usize, e));
    0
}

fn number(cgroup: *const KCgroup) -> usize {
    // SAFETY: called with the pointer of a callback; null where there is none.
    unsafe { cgroup.as_ref() }.map_or(0, |cgroup| cgroup.index as usize)
}

extern "C" fn cgroup_init(cgroup: *mut KCgroup, args: *mut ffi::CgroupInitArgs) -> i32 {
    // SAFETY: valid for the call, as is the parent.
    let (parent, args) = unsafe {
        let parent = (*cgroup).css.parent.as_ref();
        (parent.map_or(0, |css| number(css.cgroup)), &*args)
    };
    let at = number(cgroup);
    with(|s| {
        if s.groups.len() <= at {
            s.groups.resize(at + 1, Group::default());
        }
        s.groups[at] = Group {
            parent,
            weight: group_weight(args.weight, args.sched_idle),
            told: args.weight,
            ..Group::default()
        };
    });
    0
}

extern "C" fn cgroup_move(p: *mut KTask, _: *mut KCgroup, to: *mut KCgroup) {
    with(|s| s.recount(p, |e| e.cgroup = number(to)));
}

extern "C" fn cgroup_set_weight(cgroup: *mut KCgroup, weight: u32) {
    with(|s| {
        s.groups[number(cgroup)].told = weight;
        s.set_group_weight(number(cgroup), group_weight(weight, false));
    });
}

extern "C" fn cgroup_set_idle(cgroup: *mut KCgroup, idle: bool) {
    with(|s| {
        let told = s.groups[number(cgroup)].told;
        s.set_group_weight(number(cgroup), group_weight(told, idle));
    });
}

extern "C" fn exit_task(p: *mut KTask, _: *mut ffi::ExitArgs) {
    with(|s| s.entities.remove(&(p as usize)));
}

extern "C" fn select_cpu(p: *mut KTask, prev: i32, flags: u64) -> i32 {
    let cpu = (kernel().select_cpu_and)(p, prev, flags, task(p).cpus_ptr, 0);
    if cpu >= 0 { cpu } else { prev }
}

extern "C" fn enqueue(p: *mut KTask, flags: u64) {
    let cpu = task(p).cpu as usize;
    let preempts = with(|s| {
        // The kernel moved it, or queues it anew, without a word in between.
        let before = s.waits_on(p);
        if let Some(before) = before {
            s.forget_place(p, before);
        }
        if flags & ffi::ENQ_WAKEUP != 0 || before != Some(cpu) {
            s.place(p, cpu);
        }
        let curr = s.queues[cpu].curr;
        s.start_waiting(p, cpu);
        flags & ffi::ENQ_WAKEUP != 0 && curr.is_some() && s.pick(cpu, curr) == Some(p as usize)
    });
    if preempts {
        (kernel().kick)(cpu as i32, KICK_PREEMPT);
    } else {
        let idle = (kernel().pick_idle)(task(p).cpus_ptr, 0);
        if idle >= 0 {
            (kernel().kick)(idle, KICK_IDLE);
        }
    }
}

extern "C" fn dispatch(cpu: i32, prev: *mut KTask) {
    let here = cpu as usize;
    let curr =
        (!prev.is_null() && task(prev).scx_flags & ffi::TASK_QUEUED != 0).then_some(prev as usize);
    let next = with(|s| {
        if curr.is_some() {
            s.charge(prev);
        }
        s.pick(here, curr).or_else(|| pull(s, here))
    });
    match next {
        Some(p) if Some(p) == curr => (kernel().set_slice)(prev, SLICE as u64),
        Some(p) => {
            let p = p as *mut KTask;
            let dsq = if task(p).cpu == cpu as u32 {
                DSQ_LOCAL
            } else {
                DSQ_LOCAL_ON | cpu as u64
            };
            (kernel().insert)(p, dsq, SLICE as u64, 0);
        }
        None => {}
    }
}

/// The task that waits longest on the longest queue and may run here.
fn pull(s: &State, here: usize) -> Option<usize> {
    let fits = |p: &&usize| {
        let k = task(**p as *mut KTask);
        // SAFETY: cpus_ptr of a live task.
        unsafe { (*k.cpus_ptr).has(here) && k.migration_disabled == 0 }
    };
    let queues = s.longest.iter().rev().map(|(_, cpu)| &s.queues[*cpu]);
    queues
        .into_iter()
        .find_map(|queue| queue.waiting.iter().find(fits).copied())
}

extern "C" fn running(p: *mut KTask) {
    let cpu = task(p).cpu as usize;
    with(|s| {
        match s.waits_on(p) {
            Some(from) if from != cpu => {
                s.forget_place(p, from);
                s.place(p, cpu);
            }
            Some(_) => s.stop_waiting(p, cpu),
            None => s.place(p, cpu),
        }
        s.queues[cpu].curr = Some(p as usize);
        if let Some(e) = s.entities.get_mut(&(p as usize)) {
            e.charged = task(p).sum_exec_runtime;
        }
    });
}

extern "C" fn stopping(p: *mut KTask, _runnable: bool) {
    with(|s| {
        s.charge(p);
        s.forget_place(p, task(p).cpu as usize);
    });
}

extern "C" fn runnable(p: *mut KTask, _flags: u64) {
    with(|s| s.recount(p, |e| e.runnable = true));
}

extern "C" fn quiescent(p: *mut KTask, _flags: u64) {
    with(|s| {
        if let Some(from) = s.waits_on(p) {
            s.forget_place(p, from);
        }
        s.recount(p, |e| e.runnable = false);
    });
}

extern "C" fn tick(p: *mut KTask) {
    let cpu = task(p).cpu as usize;
    let over = with(|s| {
        s.charge(p);
        let curr = Some(p as usize);
        !s.queues[cpu].waiting.is_empty() && s.pick(cpu, curr) != curr
    });
    if over {
        (kernel().set_slice)(p, 0);
    }
}

const OPS: Ops = Ops {
    select_cpu: Some(select_cpu),
    enqueue: Some(enqueue),
    dispatch: Some(dispatch),
    tick: Some(tick),
    running: Some(running),
    stopping: Some(stopping),
    quiescent: Some(quiescent),
    init_task: Some(init_task),
    exit_task: Some(exit_task),
    init: Some(init),
    runnable: Some(runnable),
    cgroup_init: Some(cgroup_init),
    cgroup_move: Some(cgroup_move),
    cgroup_set_weight: Some(cgroup_set_weight),
    cgroup_set_idle: Some(cgroup_set_idle),
    ..Ops::EMPTY
};

extern "C" fn reset() {}

extern "C" fn set_kernel(_release: u32) {}

extern "C" fn fire_timer(_: *mut std::ffi::c_void) {}

/// It has no agent.
extern "C" fn unsteered(_: *mut ffi::agent_command) -> i32 {
    -1
}

extern "C" fn view_task(_: *mut KTask, _: *mut TaskView) {}

/// The scheduler, as the machine takes it. Its structs stay allocated.
#[must_use]
pub fn variant() -> Variant {
    let world = World::default();
    let zeroed =
        |bytes: usize| Box::leak(vec![0u64; bytes / 8 + 1].into_boxed_slice()).as_mut_ptr();
    let raw = RawVariant {
        ops: &raw const *Box::leak(Box::new(OPS)),
        world: Box::leak(Box::new(world)),
        cpus: zeroed(CPUS * size_of::<ffi::cpu_state>()).cast(),
        domains: zeroed(512 * size_of::<ffi::domain_state>()).cast(),
        topo: zeroed(size_of::<ffi::topology>()).cast(),
        knobs: zeroed(size_of::<ffi::knobs>()).cast(),
        speeds: std::ptr::null_mut(),
        nr_kinds: std::ptr::null_mut(),
        balance: std::ptr::null_mut(),
        seat: std::ptr::null_mut(),
        waits: std::ptr::null_mut(),
        steer: unsteered,
        reset,
        set_kernel,
        view_task,
        fire_timer,
        arithmetic: std::ptr::null(),
        kfunc_names: std::ptr::null(),
        nr_kfuncs: 0,
        sizes: ffi::sizes(),
    };
    Variant::of(Box::leak(Box::new(raw)))
}
