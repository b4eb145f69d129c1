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

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::ffi::{
    self, DSQ_LOCAL, DSQ_LOCAL_ON, KCgroup, KICK_IDLE, KICK_PREEMPT, KTask, Ops, RawVariant,
    TaskView, World,
};
use super::kfuncs::TABLE;
use super::run::WEIGHTS;
use super::variants::Variant;

/// `sysctl_sched_base_slice` of a machine with several CPUs.
const SLICE: i64 = 2_800_000;
const CPUS: usize = 4096;
/// Effective weights have 10 more binary digits than nice weights.
const FINER: i64 = 1024;

#[derive(Clone, Copy, Default)]
struct Entity {
    v: i64,
    lag: i64,
    deadline: i64,
    /// In the whole machine, [`FINER`].
    weight: i64,
    charged: u64,
    fresh: bool,
    cgroup: usize,
    runnable: bool,
    /// The CPU in whose queue it waits.
    waits_on: Option<usize>,
}

/// A cgroup; the root is the first.
#[derive(Clone, Copy, Default)]
struct Group {
    parent: usize,
    /// 1024 = `cpu.weight` 100
    weight: f64,
    /// `cpu.weight`, also while idle.
    told: u32,
    /// Weight of what is runnable directly in it.
    load: f64,
    /// How many of them.
    active: usize,
}

#[derive(Default)]
struct Queue {
    /// Pointers of waiting tasks.
    waiting: Vec<usize>,
    curr: Option<usize>,
    /// V of an empty queue.
    last: i64,
}

#[derive(Default)]
struct State {
    queues: Vec<Queue>,
    entities: HashMap<usize, Entity>,
    groups: Vec<Group>,
    /// Queues with waiting tasks, by how many.
    longest: BTreeSet<(usize, usize)>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<R>(work: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(work)
}

fn task<'a>(p: *mut KTask) -> &'a KTask {
    // SAFETY: called with the pointer of a callback, valid for its duration.
    unsafe { &*p }
}

fn kernel() -> &'static ffi::KernelTable {
    // SAFETY: a constant.
    unsafe { &*TABLE }
}

impl State {
    fn average(&self, cpu: usize) -> i64 {
        let queue = &self.queues[cpu];
        let (mut sum, mut load) = (0i128, 0i128);
        for p in queue.waiting.iter().chain(&queue.curr) {
            let e = &self.entities[p];
            sum += i128::from(e.v - queue.last) * i128::from(e.weight);
            load += i128::from(e.weight);
        }
        queue.last + sum.checked_div(load).unwrap_or(0) as i64
    }

    fn charge(&mut self, p: *mut KTask) {
        let now = task(p).sum_exec_runtime;
        let weight = self.effective_weight(p);
        let Some(e) = self.entities.get_mut(&(p as usize)) else {
            return;
        };
        let ran = now.wrapping_sub(e.charged) as i64;
        e.charged = now;
        e.v += ran * 1024 * FINER / e.weight;
        e.weight = weight;
        if e.v >= e.deadline {
            e.deadline = e.v + SLICE * 1024 * FINER / e.weight;
        }
    }

    /// `place_entity()`
    fn place(&mut self, p: *mut KTask, cpu: usize) {
        let average = self.average(cpu);
        let weight = self.effective_weight(p);
        let Some(e) = self.entities.get_mut(&(p as usize)) else {
            return;
        };
        e.weight = weight;
        let bound = SLICE * 1024 * FINER / weight;
        e.v = average - e.lag.clamp(-bound, bound);
        e.deadline = e.v + bound / if e.fresh { 2 } else { 1 };
        e.fresh = false;
    }

    fn forget_place(&mut self, p: *mut KTask, cpu: usize) {
        let average = self.average(cpu);
        self.queues[cpu].last = average;
        if let Some(e) = self.entities.get_mut(&(p as usize)) {
            e.lag = average - e.v;
        }
        self.stop_waiting(p, cpu);
        let queue = &mut self.queues[cpu];
        if queue.curr == Some(p as usize) {
            queue.curr = None;
        }
    }

    fn start_waiting(&mut self, p: *mut KTask, cpu: usize) {
        let length = self.queues[cpu].waiting.len();
        self.longest.remove(&(length, cpu));
        self.longest.insert((length + 1, cpu));
        self.queues[cpu].waiting.push(p as usize);
        if let Some(e) = self.entities.get_mut(&(p as usize)) {
            e.waits_on = Some(cpu);
        }
    }

    fn stop_waiting(&mut self, p: *mut KTask, cpu: usize) {
        let e = self.entities.get_mut(&(p as usize));
        if e.is_none_or(|e| e.waits_on.take_if(|on| *on == cpu).is_none()) {
            return;
        }
        let length = self.queues[cpu].waiting.len();
        self.longest.remove(&(length, cpu));
        if length > 1 {
            self.longest.insert((length - 1, cpu));
        }
        let queue = &mut self.queues[cpu];
        queue.waiting.retain(|other| *other != p as usize);
    }

    fn waits_on(&self, p: *mut KTask) -> Option<usize> {
        self.entities.get(&(p as usize)).and_then(|e| e.waits_on)
    }

    /// Its nice weight, times each cgroup's part of what is around it.
    fn effective_weight(&self, p: *mut KTask) -> i64 {
        let mut weight = f64::from(weight_of(task(p))) * FINER as f64;
        let e = self.entities.get(&(p as usize));
        let mut at = e.map_or(0, |e| e.cgroup);
        while at != 0 {
            let group = self.groups[at];
            if group.load > 0.0 {
                weight *= group.weight / group.load;
            }
            at = group.parent;
        }
        (weight as i64).max(1)
    }

    /// Something of this weight becomes runnable in `cgroup`, or is no more.
    fn count(&mut self, cgroup: usize, weight: f64, runnable: bool) {
        let (mut at, mut weight) = (cgroup, weight);
        loop {
            let group = &mut self.groups[at];
            let before = group.active;
            if runnable {
                group.load += weight;
                group.active += 1;
            } else {
                group.active = before.saturating_sub(1);
                group.load = if group.active == 0 {
                    0.0
                } else {
                    group.load - weight
                };
            }
            if at == 0 || (before == 0) == (group.active == 0) {
                return;
            }
            (weight, at) = (group.weight, group.parent);
        }
    }

    /// Changes what a runnable task counts for.
    fn recount(&mut self, p: *mut KTask, change: impl FnOnce(&mut Entity)) {
        let own = f64::from(weight_of(task(p)));
        let Some(e) = self.entities.get_mut(&(p as usize)) else {
            return;
        };
        let before = *e;
        change(e);
        let after = *e;
        if before.runnable {
            self.count(before.cgroup, own, false);
        }
        if after.runnable {
            self.count(after.cgroup, own, true);
        }
    }

    fn set_group_weight(&mut self, at: usize, weight: f64) {
        let group = self.groups[at];
        if at != 0 && group.active > 0 {
            self.groups[group.parent].load += weight - group.weight;
        }
        self.groups[at].weight = weight;
    }

    /// `pick_eevdf()` among the waiting tasks and `curr`.
    fn pick(&self, cpu: usize, curr: Option<usize>) -> Option<usize> {
        let average = self.average(cpu);
        let all = || self.queues[cpu].waiting.iter().chain(&curr).copied();
        let due = |p: &usize| self.entities[p].deadline;
        all()
            .filter(|p| self.entities[p].v <= average)
            .min_by_key(due)
            .or_else(|| all().min_by_key(due))
    }
}

fn weight_of(k: &KTask) -> u32 {
    match k.policy {
        5 => 3,
        _ => WEIGHTS[(k.static_prio - 100).clamp(0, 39) as usize],
    }
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

fn group_weight(weight: u32, idle: bool) -> f64 {
    if idle { 3.0 } else { f64::from(weight) * 10.24 }
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
