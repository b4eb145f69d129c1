// SPDX-License-Identifier: GPL-2.0-only
//! The border to the C side: the structs that both sides share, byte for byte.
//!
//! They mirror `platform/sim_platform.h` and `platform/variant.c`; their sizes
//! are compared before the first run, so a mismatch can't go unnoticed. The
//! scheduler's own structs (`cpu_state` and the like) come from the skeleton.

use std::cell::UnsafeCell;
use std::ffi::c_void;

pub use super::arithmetic::{Arithmetic, Ask, Contest, Weight, moment};
pub use super::mask::{CpuMask, MASK_WORDS};
pub use crate::kernel::skeleton::types::{
    agent_command, agent_seat, balance_cpu, cpu_state, domain_state, knobs, speeds, topology,
    wait_reports,
};

/// `SCX_DSQ_LOCAL`.
pub const DSQ_LOCAL: u64 = 1 << 63 | 2;
/// `SCX_DSQ_GLOBAL`.
pub const DSQ_GLOBAL: u64 = 1 << 63 | 1;
/// `SCX_DSQ_LOCAL_ON`, to be combined with a CPU number.
pub const DSQ_LOCAL_ON: u64 = 1 << 63 | 1 << 62;
/// `SCX_ENQ_WAKEUP`.
pub const ENQ_WAKEUP: u64 = 1;
/// `SCX_ENQ_REENQ`.
pub const ENQ_REENQ: u64 = 1 << 40;
/// `SCX_ENQ_LAST`.
pub const ENQ_LAST: u64 = 1 << 41;
/// `SCX_ENQ_PREEMPT`.
pub const ENQ_PREEMPT: u64 = 1 << 32;
/// `SCX_DEQ_SLEEP`.
pub const DEQ_SLEEP: u64 = 1;
/// `SCX_DEQ_SCHED_CHANGE` (7.1 and later).
pub const DEQ_SCHED_CHANGE: u64 = 1 << 33;
/// `SCX_KICK_IDLE`.
pub const KICK_IDLE: u64 = 1;
/// `SCX_KICK_PREEMPT`.
pub const KICK_PREEMPT: u64 = 2;
/// `SCX_WAKE_FORK`.
pub const WAKE_FORK: u64 = 4;
/// `SCX_WAKE_TTWU`.
pub const WAKE_TTWU: u64 = 8;
/// `SCX_WAKE_SYNC`.
pub const WAKE_SYNC: u64 = 16;
/// `SCX_TASK_QUEUED` in `p->scx.flags`.
pub const TASK_QUEUED: u32 = 1;
/// `PF_EXITING`.
pub const PF_EXITING: u32 = 4;
/// `PF_KTHREAD`.
pub const PF_KTHREAD: u32 = 0x0020_0000;
/// `SCX_SLICE_DFL`.
pub const SLICE_DFL: u64 = 20_000_000;

const STORAGE_SLOTS: usize = 2;
const STORAGE_WORDS: usize = 384 / 8;

/// `struct task_struct`.
#[repr(C)]
pub struct KTask {
    /// `thread_info.cpu`.
    pub cpu: u32,
    /// `PF_*`.
    pub flags: u32,
    /// 100 + nice + 20.
    pub static_prio: i32,
    /// `SCHED_*`.
    pub policy: u32,
    /// CPUs of the task's own mask.
    pub nr_cpus_allowed: i32,
    /// The mask in force.
    pub cpus_ptr: *const CpuMask,
    /// Depth of migration-disabled sections.
    pub migration_disabled: u16,
    /// `se.sum_exec_runtime`.
    pub sum_exec_runtime: u64,
    /// `scx.flags`.
    pub scx_flags: u32,
    /// `scx.weight`.
    pub scx_weight: u32,
    /// `scx.slice`.
    pub slice: u64,
    /// `scx.dsq_vtime`.
    pub dsq_vtime: u64,
    /// Process id.
    pub pid: i32,
    /// Name.
    pub comm: [u8; 16],
    /// Index into the machine's tasks.
    pub index: u32,
    /// Task storage can't be allocated.
    pub storage_denied: u32,
    storage_map: [*const u8; STORAGE_SLOTS],
    storage: [[u64; STORAGE_WORDS]; STORAGE_SLOTS],
}

/// One task's kernel structs, at an address that stays.
pub struct TaskCell {
    task: Box<UnsafeCell<KTask>>,
    mask: Box<UnsafeCell<CpuMask>>,
    pinned: Box<UnsafeCell<CpuMask>>,
}

impl TaskCell {
    /// A task that may use `mask`.
    #[must_use]
    pub fn new(index: u32, mask: &CpuMask) -> Self {
        let mask = Box::new(UnsafeCell::new(mask.clone()));
        let task = KTask {
            cpu: 0,
            flags: 0,
            static_prio: 120,
            policy: 0,
            nr_cpus_allowed: 0,
            cpus_ptr: mask.get(),
            migration_disabled: 0,
            sum_exec_runtime: 0,
            scx_flags: 0,
            scx_weight: 100,
            slice: SLICE_DFL,
            dsq_vtime: 0,
            pid: 0,
            comm: [0; 16],
            index,
            storage_denied: 0,
            storage_map: [std::ptr::null(); STORAGE_SLOTS],
            storage: [[0; STORAGE_WORDS]; STORAGE_SLOTS],
        };
        let cell = Self {
            task: Box::new(UnsafeCell::new(task)),
            mask,
            pinned: Box::new(UnsafeCell::new(CpuMask::empty())),
        };
        cell.write(|k| k.nr_cpus_allowed = cell.mask(|mask| mask.count() as i32));
        cell
    }

    /// What callbacks get.
    #[must_use]
    pub fn pointer(&self) -> *mut KTask {
        self.task.get()
    }

    /// Looks at the task; `look` must not call into the scheduler.
    pub fn read<R>(&self, look: impl FnOnce(&KTask) -> R) -> R {
        // SAFETY: C writes only within callbacks, and none runs during `look`.
        look(unsafe { &*self.task.get() })
    }

    /// Changes the task; `change` must not call into the scheduler.
    pub fn write<R>(&self, change: impl FnOnce(&mut KTask) -> R) -> R {
        // SAFETY: as in `read`; nobody else holds a reference meanwhile.
        change(unsafe { &mut *self.task.get() })
    }

    /// Looks at the task's own mask (not narrowed by migration-disable).
    pub fn mask<R>(&self, look: impl FnOnce(&CpuMask) -> R) -> R {
        // SAFETY: C never writes masks; `set_mask` takes no reference out.
        look(unsafe { &*self.mask.get() })
    }

    /// Looks at the mask in force.
    pub fn allowed<R>(&self, look: impl FnOnce(&CpuMask) -> R) -> R {
        let mask = self.read(|k| k.cpus_ptr);
        // SAFETY: cpus_ptr always points to one of this cell's two masks.
        look(unsafe { &*mask })
    }

    /// Replaces the task's own mask.
    pub fn set_mask(&self, mask: &CpuMask) {
        // SAFETY: references to it live only within `mask` and `allowed`.
        unsafe { *self.mask.get() = mask.clone() };
        let count = mask.count() as i32;
        self.write(|k| k.nr_cpus_allowed = count);
    }

    /// `cpus_ptr` = exactly `cpu`, or the task's own mask again.
    pub fn pin(&self, cpu: Option<usize>) {
        let Some(cpu) = cpu else {
            return self.write(|k| k.cpus_ptr = self.mask.get());
        };
        // SAFETY: as in `set_mask`.
        unsafe { *self.pinned.get() = CpuMask::one(cpu) };
        self.write(|k| k.cpus_ptr = self.pinned.get());
    }

    /// Is `cpus_ptr` narrowed to one CPU by migration-disable?
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        std::ptr::eq(self.read(|k| k.cpus_ptr), self.pinned.get())
    }
}

/// `struct scx_init_task_args`.
#[repr(C)]
pub struct InitArgs {
    /// Created by fork, not found at load.
    pub fork: bool,
    /// The cgroup that it is in.
    pub cgroup: *mut KCgroup,
}

/// `struct scx_cgroup_init_args`.
#[repr(C)]
pub struct CgroupInitArgs {
    /// `cpu.weight`
    pub weight: u32,
    /// `cpu.idle`, told since 7.3.
    pub sched_idle: bool,
}

/// `struct kernfs_node`.
#[repr(C)]
pub struct KernfsNode {
    /// The cgroup's id.
    pub id: u64,
}

/// `struct cgroup_subsys_state`.
#[repr(C)]
pub struct Css {
    /// Whose.
    pub cgroup: *mut KCgroup,
    /// The parent cgroup's; null for the root.
    pub parent: *mut Css,
}

/// `struct cgroup`.
#[repr(C)]
pub struct KCgroup {
    /// `self`
    pub css: Css,
    /// Where its id is.
    pub kn: *mut KernfsNode,
    /// Depth; 0 is the root.
    pub level: i32,
    /// Index into the machine's cgroups.
    pub index: u32,
}

/// `struct scx_exit_task_args`.
#[repr(C)]
pub struct ExitArgs {
    /// Its creation failed.
    pub cancelled: bool,
}

type TaskFn<A, R = ()> = Option<unsafe extern "C" fn(*mut KTask, A) -> R>;
type CgroupFn<A> = Option<unsafe extern "C" fn(*mut KCgroup, A)>;
type MoveFn<R> = Option<unsafe extern "C" fn(*mut KTask, *mut KCgroup, *mut KCgroup) -> R>;
type CpuFn = Option<unsafe extern "C" fn(i32)>;

/// `struct sched_ext_ops`.
#[repr(C)]
#[allow(missing_docs)]
#[derive(Clone, Copy)]
pub struct Ops {
    pub select_cpu: Option<unsafe extern "C" fn(*mut KTask, i32, u64) -> i32>,
    pub enqueue: TaskFn<u64>,
    pub dispatch: Option<unsafe extern "C" fn(i32, *mut KTask)>,
    pub tick: Option<unsafe extern "C" fn(*mut KTask)>,
    pub runnable: TaskFn<u64>,
    pub running: Option<unsafe extern "C" fn(*mut KTask)>,
    pub stopping: TaskFn<bool>,
    pub quiescent: TaskFn<u64>,
    pub dequeue: TaskFn<u64>,
    pub yield_task: TaskFn<*mut KTask, bool>,
    pub core_sched_before: Option<unsafe extern "C" fn(*mut KTask, *mut KTask) -> bool>,
    pub set_weight: TaskFn<u32>,
    pub set_cpumask: TaskFn<*const CpuMask>,
    pub init_task: TaskFn<*mut InitArgs, i32>,
    pub exit_task: TaskFn<*mut ExitArgs>,
    pub enable: Option<unsafe extern "C" fn(*mut KTask)>,
    pub disable: Option<unsafe extern "C" fn(*mut KTask)>,
    pub dump: [usize; 3],
    pub cgroup_init: Option<unsafe extern "C" fn(*mut KCgroup, *mut CgroupInitArgs) -> i32>,
    pub cgroup_exit: Option<unsafe extern "C" fn(*mut KCgroup)>,
    pub cgroup_prep_move: MoveFn<i32>,
    pub cgroup_move: MoveFn<()>,
    pub cgroup_cancel_move: MoveFn<()>,
    pub cgroup_set_weight: CgroupFn<u32>,
    pub cgroup_set_idle: CgroupFn<bool>,
    pub cpu_release: Option<unsafe extern "C" fn(i32, *mut c_void)>,
    pub cpu_online: CpuFn,
    pub cpu_offline: CpuFn,
    pub init: Option<unsafe extern "C" fn() -> i32>,
    pub exit: usize,
    pub name: [u8; 128],
}

impl Ops {
    /// No callback.
    pub const EMPTY: Self = Self {
        select_cpu: None,
        enqueue: None,
        dispatch: None,
        tick: None,
        runnable: None,
        running: None,
        stopping: None,
        quiescent: None,
        dequeue: None,
        yield_task: None,
        core_sched_before: None,
        set_weight: None,
        set_cpumask: None,
        init_task: None,
        exit_task: None,
        enable: None,
        disable: None,
        dump: [0; 3],
        cgroup_init: None,
        cgroup_exit: None,
        cgroup_prep_move: None,
        cgroup_move: None,
        cgroup_cancel_move: None,
        cgroup_set_weight: None,
        cgroup_set_idle: None,
        cpu_release: None,
        cpu_online: None,
        cpu_offline: None,
        init: None,
        exit: 0,
        name: [0; 128],
    };
}

/// `struct sim_kernel`: the kernel functions that need the machine.
#[repr(C)]
#[allow(missing_docs)]
pub struct KernelTable {
    pub create_dsq: extern "C" fn(u64, i32) -> i32,
    pub nr_queued: extern "C" fn(u64) -> i32,
    pub insert: extern "C" fn(*mut KTask, u64, u64, u64) -> bool,
    pub insert_vtime: extern "C" fn(*mut KTask, u64, u64, u64, u64) -> bool,
    pub move_to_local: extern "C" fn(u64, u64) -> bool,
    pub queued: extern "C" fn(u64, u64) -> *mut KTask,
    pub move_between: extern "C" fn(*mut KTask, u64, u64, u64, u64) -> bool,
    pub select_cpu_and: extern "C" fn(*mut KTask, i32, u64, *const CpuMask, u64) -> i32,
    pub pick_idle: extern "C" fn(*const CpuMask, u64) -> i32,
    pub claim_idle: extern "C" fn(i32) -> bool,
    pub kick: extern "C" fn(i32, u64),
    pub set_slice: extern "C" fn(*mut KTask, u64),
    pub online: extern "C" fn() -> *const CpuMask,
    pub any_and: extern "C" fn(*const CpuMask, *const CpuMask) -> u32,
    pub pause: extern "C" fn(),
    pub start_timer: extern "C" fn(*mut c_void, u64),
    pub reenqueue_local: extern "C" fn() -> u32,
    pub reenqueue: extern "C" fn(u64, u64),
    pub event: extern "C" fn(*const c_void, u64),
}

/// How many kernel functions `SIM_KFUNCS` lists.
pub const NR_KFUNCS: usize = 35;
/// Members of `struct sim_enums`.
const NR_ENUMS: usize = 15;
/// Position of `SCX_ENQ_CPU_SELECTED` among them.
pub const ENUM_CPU_SELECTED: usize = 1;

/// `struct sim_world`.
#[repr(C)]
pub struct World {
    /// The engine's functions.
    pub kernel: *const KernelTable,
    /// The clock, ns.
    pub now: u64,
    /// The CPU that the callback runs on.
    pub cpu: u32,
    /// Possible CPUs.
    pub nr_cpu_ids: u32,
    /// The callback runs on the current task's account, not an interrupt's.
    pub in_task: u32,
    pad: u32,
    /// The current task of `cpu`.
    pub current: *mut KTask,
    /// A bit for each kernel function that this kernel has.
    pub kfuncs: u64,
    /// Enum values of this kernel.
    pub enums: [u64; NR_ENUMS],
    /// What `cpu` writes without sharing: its `cpu_state`.
    pub own: *const cpu_state,
    /// Its size, bytes.
    pub own_size: u64,
    /// Calls of kernel functions.
    pub nr_calls: u64,
    /// ... of each.
    pub calls: [u64; NR_KFUNCS],
    /// Full barriers.
    pub barriers: u64,
    /// Atomic writes, and those to other CPUs' words.
    pub shared_writes: u64,
}

impl Default for World {
    fn default() -> Self {
        Self {
            kernel: std::ptr::null(),
            now: 0,
            cpu: 0,
            nr_cpu_ids: 0,
            in_task: 0,
            pad: 0,
            current: std::ptr::null_mut(),
            kfuncs: 0,
            enums: [0; NR_ENUMS],
            own: std::ptr::null(),
            own_size: 0,
            nr_calls: 0,
            calls: [0; NR_KFUNCS],
            barriers: 0,
            shared_writes: 0,
        }
    }
}

/// `struct sim_task_view`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskView {
    /// Virtual runtime.
    pub vruntime: u64,
    /// Virtual deadline.
    pub deadline: u64,
    /// CPU time left of the request, ns.
    pub request: u64,
    /// Clock of the queue that `vruntime` is measured on.
    pub clock: u64,
    /// 2^32 / weight, which may be a fraction.
    pub inv: u64,
    /// Weight, 1024 = nice 0.
    pub weight: u32,
    /// The scheduler has a context for the task.
    pub known: u32,
    /// What the policy keeps of it.
    pub level: u32,
    pad: u32,
}

/// `struct sim_variant`: one compiled scheduler.
#[repr(C)]
pub struct RawVariant {
    /// Its callbacks.
    pub ops: *const Ops,
    /// What it sees of the machine.
    pub world: *mut World,
    /// `cpus`.
    pub cpus: *mut cpu_state,
    /// `domains`.
    pub domains: *mut domain_state,
    /// `topo`.
    pub topo: *mut topology,
    /// `knobs`.
    pub knobs: *mut knobs,
    /// `speeds`; null: it does not know CPUs of different speed.
    pub speeds: *mut speeds,
    /// `nr_kinds`.
    pub nr_kinds: *mut u32,
    /// `balance`.
    pub balance: *mut balance_cpu,
    /// `seat`.
    pub seat: *mut agent_seat,
    /// `wait_reports`.
    pub waits: *mut wait_reports,
    /// What the agent calls.
    pub steer: unsafe extern "C" fn(*mut agent_command) -> i32,
    /// All globals as freshly loaded.
    pub reset: unsafe extern "C" fn(),
    /// Chooses the kernel release (616 is 6.16).
    pub set_kernel: unsafe extern "C" fn(u32),
    /// Shows what the scheduler keeps of a task.
    pub view_task: unsafe extern "C" fn(*mut KTask, *mut TaskView),
    /// Calls a timer's callback.
    pub fire_timer: unsafe extern "C" fn(*mut c_void),
    /// The pure arithmetic.
    pub arithmetic: *const Arithmetic,
    /// Names of the kernel functions.
    pub kfunc_names: *const *const std::ffi::c_char,
    /// How many.
    pub nr_kfuncs: u32,
    /// Sizes of the shared structs.
    pub sizes: [u32; 14],
}

/// The sizes that a variant must report.
#[must_use]
pub const fn sizes() -> [u32; 14] {
    [
        size_of::<KTask>() as u32,
        size_of::<World>() as u32,
        size_of::<RawVariant>() as u32,
        size_of::<cpu_state>() as u32,
        size_of::<domain_state>() as u32,
        size_of::<topology>() as u32,
        size_of::<knobs>() as u32,
        size_of::<TaskView>() as u32,
        size_of::<KCgroup>() as u32,
        size_of::<Ops>() as u32,
        size_of::<balance_cpu>() as u32,
        size_of::<agent_seat>() as u32,
        size_of::<agent_command>() as u32,
        size_of::<speeds>() as u32,
    ]
}
