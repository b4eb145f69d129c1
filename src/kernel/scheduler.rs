// SPDX-License-Identifier: GPL-2.0-only
//! The loaded scheduler: open, load, attach, look at, detach.
//!
//! All that is written into the BPF program's memory is written before it is
//! loaded, but for the knobs; the rest is only read afterwards.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject};
use scx_utils::{ScxConsts, build_id, compat};

use crate::control::settings::Settings;
use crate::exit::{ExitCode, Failure, Outcome};
use crate::stats::counters::{Counters, Snapshot};

use super::command::{Command, Seated};
use super::events::Events;
use super::exit_info::ExitInfo;
use super::libbpf_log;
use super::skeleton::{FulcrumSkel, FulcrumSkelBuilder, OpenFulcrumSkel, types};
use super::topology::{DOMAIN_CPUS, MAX_CPUS, MAX_DOMAINS, Topology};

/// Bytes of debug dump if the user asks for the default: what the kernel
/// itself writes then.
const DEFAULT_DUMP_LEN: u32 = ScxConsts::ExitDumpDflLen as u32;

// The limits of topology.rs are those of bpf/abi.h.
const _: () = assert!(
    size_of::<types::topology>()
        == 8 + MAX_CPUS * size_of::<types::cpu_topology>()
            + MAX_DOMAINS * size_of::<types::domain_topology>()
);
const _: () = assert!(size_of::<types::domain_topology>() == 2 * DOMAIN_CPUS + 8);

/// Memory that libbpf needs for as long as the scheduler lives.
pub type Storage = MaybeUninit<OpenObject>;

/// How to schedule.
#[derive(Clone, Debug)]
pub struct Config {
    /// The knobs at the start.
    pub settings: Settings,
    /// Their generation.
    pub generation: u32,
    /// Schedule tasks of policy SCHED_EXT only.
    pub partial: bool,
    /// The kernel's watchdog timeout in milliseconds, at most 30,000; `None`:
    /// the kernel's own.
    pub timeout_ms: Option<u32>,
    /// Bytes of debug dump; 0: the kernel's default.
    pub exit_dump_len: u32,
}

/// A loaded scheduler; dropping it detaches it.
pub struct Scheduler<'obj> {
    link: Option<Link>,
    pub(super) skel: FulcrumSkel<'obj>,
    pub(super) seated: Seated,
    pub(super) attached_at: Instant,
}

impl<'obj> Scheduler<'obj> {
    /// Load the scheduler into the kernel, without attaching it.
    ///
    /// `hotplug_seq` is the kernel's count of CPU hotplug events from before
    /// `topology` was read: the kernel asks for a restart if it has moved.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Load`] with what libbpf and the verifier said.
    pub fn load(
        storage: &'obj mut Storage,
        config: &Config,
        topology: &Topology,
        hotplug_seq: u64,
    ) -> Outcome<Self> {
        let failed = |step: &str, error: libbpf_rs::Error| load_failure(step, &error);
        let mut open = FulcrumSkelBuilder::default()
            .open(storage)
            .map_err(|error| failed("opening", error))?;
        set_ops(&mut open, config, ops_flags(config, topology), hotplug_seq);
        set_data(&mut open, config, topology)?;
        drop_programs(&mut open);
        set_dump_len(&mut open, config)
            .and_then(|()| make_room(&mut open, topology))
            .map_err(|error| failed("preparing", error))?;
        let skel = open.load().map_err(|error| failed("loading", error))?;
        Ok(Self {
            link: None,
            skel,
            seated: Seated::default(),
            attached_at: Instant::now(),
        })
    }

    /// Make it the machine's scheduler.
    ///
    /// # Errors
    ///
    /// [`ExitCode::OtherScheduler`] if another one came first, else
    /// [`ExitCode::Enable`]. The kernel may also refuse by ejecting it at
    /// once: look at [`Self::exit_info`] after this returned `Ok`.
    pub fn attach(&mut self) -> Outcome<()> {
        let link = self.skel.maps.fulcrum_ops.attach_struct_ops();
        self.link = Some(link.map_err(|error| attach_failure(&error))?);
        self.attached_at = Instant::now();
        self.take_seat();
        Ok(())
    }

    /// What wakes those who wait for [`Self::exit_info`].
    ///
    /// # Errors
    ///
    /// Those of mapping the ring buffer's memory.
    pub fn events(&self) -> libbpf_rs::Result<Events> {
        Events::of(&self.skel.maps.events)
    }

    /// Why the kernel ended the scheduler; `None` while it schedules.
    pub fn exit_info(&self) -> Option<ExitInfo> {
        let uei = &self.skel.maps.data_data.as_deref()?.uei;
        // SAFETY: the word lies in memory shared with the BPF program, which
        // writes it atomically, last of all fields; it is aligned and stays
        // mapped as long as `self`.
        let kind = unsafe { AtomicI32::from_ptr(ptr::from_ref(&uei.kind).cast_mut()) };
        let kind = kind.load(Ordering::Acquire);
        (kind != 0).then(|| ExitInfo {
            kind,
            code: uei.exit_code,
            cpu: (uei.exit_cpu >= 0).then_some(uei.exit_cpu),
            reason: text(uei.reason.iter().map(|&c| c as u8)),
            message: text(uei.msg.iter().map(|&c| c as u8)),
            dump: self.dump(),
        })
    }

    fn dump(&self) -> String {
        let value = self
            .skel
            .maps
            .data_uei_dump
            .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        text(value.ok().flatten().unwrap_or_default().into_iter())
    }

    /// All counters, summed over the CPUs, since it was attached.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            at: self.attached_at.elapsed(),
            ..Snapshot::default()
        };
        let Some(bss) = self.skel.maps.bss_data.as_deref() else {
            return snapshot;
        };
        for cpu in bss.cpus.iter().take(self.cpu_limit()) {
            // SAFETY: shared with the BPF program, which may write while we
            // read: a plain read would allow the compiler to assume that it
            // doesn't. Any mix of older and newer counts is valid.
            let (online, stats) = unsafe {
                (
                    ptr::read_volatile(&cpu.online),
                    ptr::read_volatile(&cpu.stats),
                )
            };
            snapshot.online += u64::from(online != 0);
            snapshot.counters.add(&Counters::from(&stats));
        }
        snapshot
    }

    /// Change the knobs while it schedules; false: another agent has taken over.
    pub fn set_knobs(&mut self, settings: &Settings, generation: u32) -> bool {
        self.steer(Command::knobs(settings, generation)).is_some()
    }

    /// CPUs that run a task of ours, and those of them that have seen
    /// `generation` of the knobs.
    pub fn seen_by(&self, generation: u32) -> (u64, u64) {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else {
            return (0, 0);
        };
        let (mut busy, mut seen) = (0, 0);
        for cpu in bss.cpus.iter().take(self.cpu_limit()) {
            // SAFETY: as in `snapshot`.
            let (pid, last) = unsafe {
                (
                    ptr::read_volatile(&cpu.curr_pid),
                    ptr::read_volatile(&cpu.generation),
                )
            };
            busy += u64::from(pid != 0);
            seen += u64::from(pid != 0 && last == generation);
        }
        (busy, seen)
    }

    /// One past the highest possible CPU, so that the state of CPUs that
    /// can't exist is never touched, which would cost memory.
    pub(super) fn cpu_limit(&self) -> usize {
        let topology = self.skel.maps.data_data.as_deref().map(|data| &data.topo);
        let domains = topology
            .into_iter()
            .flat_map(|topo| topo.domain.iter().take(topo.nr_domains as usize));
        let cpus = domains.flat_map(|domain| domain.cpus.iter().take(domain.nr_cpus.into()));
        cpus.max().map_or(0, |&cpu| usize::from(cpu) + 1)
    }

    /// Hand scheduling back to the kernel. Returns when it is done, with the
    /// time that it took.
    pub fn detach(mut self) -> Duration {
        let start = Instant::now();
        drop(self.link.take());
        start.elapsed()
    }
}

/// The text before the first NUL, whatever its encoding.
fn text(bytes: impl Iterator<Item = u8>) -> String {
    let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The running kernel's bits for `ops.flags`. Unknown ones make it refuse, so
/// each is 0 where it has none.
fn ops_flags(config: &Config, topology: &Topology) -> u64 {
    // Exiting tasks and tasks pinned for now pass through our queues too:
    // the kernel would put them on local queues, where nobody steals.
    let mut flags = *compat::SCX_OPS_ENQ_EXITING | *compat::SCX_OPS_ENQ_MIGRATION_DISABLED;
    if nr_kinds(topology) > 1 {
        // The last task of a CPU too, so that it can go over to a faster one.
        flags |= *compat::SCX_OPS_ENQ_LAST;
    }
    if config.partial {
        flags | *compat::SCX_OPS_SWITCH_PARTIAL
    } else {
        flags
    }
}

/// Leaves out what this kernel can't load.
fn drop_programs(open: &mut OpenFulcrumSkel<'_>) {
    let exists = |name| compat::ksym_exists(name).unwrap_or(false);
    if !exists("bpf_iter_task") {
        open.progs.fulcrum_tasks.set_autoload(false);
    }
}

/// Leave out the callbacks that this kernel doesn't know: cgroup_set_idle came
/// with 6.19, and all of cgroups and core scheduling can be configured away. From 7.1 on, known by a
/// flag that came then, another way than cpu_release is wanted.
fn drop_callbacks(ops: &mut types::sched_ext_ops) {
    for (callback, name) in [
        (&mut ops.core_sched_before, "core_sched_before"),
        (&mut ops.cgroup_init, "cgroup_init"),
        (&mut ops.cgroup_exit, "cgroup_exit"),
        (&mut ops.cgroup_move, "cgroup_move"),
        (&mut ops.cgroup_set_weight, "cgroup_set_weight"),
        (&mut ops.cgroup_set_idle, "cgroup_set_idle"),
    ] {
        if !compat::struct_has_field("sched_ext_ops", name).unwrap_or(false) {
            *callback = ptr::null_mut();
        }
    }
    if compat::read_enum("scx_enq_flags", "SCX_ENQ_IMMED").is_ok() {
        ops.cpu_release = ptr::null_mut();
    }
}

fn set_ops(open: &mut OpenFulcrumSkel<'_>, config: &Config, flags: u64, seq: u64) {
    let ops = open.struct_ops.fulcrum_ops_mut();
    ops.flags = flags;
    ops.hotplug_seq = seq;
    ops.exit_dump_len = config.exit_dump_len;
    if let Some(timeout_ms) = config.timeout_ms {
        ops.timeout_ms = timeout_ms;
    }
    drop_callbacks(ops);
    let start = ops.name.iter().position(|&c| c == 0).unwrap_or(0);
    let room = ops.name.len().saturating_sub(start + 1);
    let suffix = build_id::ops_version_suffix(crate::VERSION);
    for (to, from) in ops
        .name
        .iter_mut()
        .skip(start)
        .zip(suffix.bytes().take(room))
    {
        *to = from as _;
    }
}

fn set_data(open: &mut OpenFulcrumSkel<'_>, config: &Config, topology: &Topology) -> Outcome<()> {
    let data = open.maps.data_data.as_deref_mut().ok_or_else(|| {
        Failure::new(
            ExitCode::Load,
            "the BPF program has no data section: rebuild scx_fulcrum",
        )
    })?;
    write_knobs(&mut data.knobs, &config.settings, config.generation);
    fill_topology(&mut data.topo, topology);
    if let Some(bss) = open.maps.bss_data.as_deref_mut() {
        fill_speeds(&mut bss.speeds, topology);
    }
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.nr_kinds = nr_kinds(topology);
    }
    Ok(())
}

/// Write the knobs where the BPF program reads them before it schedules; later
/// changes go through [`Command::knobs`]. Each word is written at once, the
/// generation last.
pub(crate) fn write_knobs(knobs: &mut types::knobs, settings: &Settings, generation: u32) {
    let policy = settings.policy().number();
    // SAFETY: exclusive references to aligned words; the BPF program, which
    // reads them at the same time, is not of this language.
    unsafe {
        let word = |word: &mut u64, value| {
            AtomicU64::from_ptr(ptr::from_mut(word)).store(value, Ordering::Relaxed);
        };
        word(&mut knobs.slice_ns, settings.slice_us() * 1000);
        word(&mut knobs.credit_ns, settings.credit_us() * 1000);
        AtomicU32::from_ptr(&raw mut knobs.policy).store(policy, Ordering::Relaxed);
        AtomicU32::from_ptr(&raw mut knobs.generation).store(generation, Ordering::Release);
    }
}

/// Write the domains where the BPF program reads them. The limits of `topo`
/// hold by the invariant of [`Topology`]; what exceeded them would be left out.
pub(crate) fn fill_topology(topo: &mut types::topology, topology: &Topology) {
    let domains = &topology.domains;
    for (number, (to, domain)) in topo.domain.iter_mut().zip(domains).enumerate() {
        to.node_first = domains.partition_point(|other| other.node < domain.node) as u16;
        to.node_end = domains.partition_point(|other| other.node <= domain.node) as u16;
        to.nr_cpus = domain.cpus.len() as u16;
        for (bit, (to, &cpu)) in to.cpus.iter_mut().zip(&domain.cpus).enumerate() {
            *to = cpu as u16;
            if let Some(place) = topo.cpu.get_mut(cpu) {
                place.domain = number as u16;
                place.bit = bit as u16;
            }
        }
    }
    topo.nr_domains = domains.len() as u32;
}

/// How many kinds of CPUs the BPF program is to tell apart.
pub(crate) fn nr_kinds(topology: &Topology) -> u32 {
    topology.kinds.len().max(1) as u32
}

/// Write the kinds of CPUs, as [`fill_topology`] does the domains.
pub(crate) fn fill_speeds(speeds: &mut types::speeds, topology: &Topology) {
    let mut place = BTreeMap::new();
    for (number, domain) in topology.domains.iter().enumerate() {
        for (bit, &cpu) in domain.cpus.iter().enumerate() {
            place.insert(cpu, (number, 1_u64 << bit));
        }
    }
    let bits = |domain, cpus: &[usize]| {
        let places = cpus.iter().filter_map(|cpu| place.get(cpu));
        places
            .filter(|place| place.0 == domain)
            .fold(0, |bits, place| bits | place.1)
    };
    for (kind, members) in topology.kinds.iter().enumerate() {
        for &cpu in &members.cpus {
            let Some(&(domain, bit)) = place.get(&cpu) else {
                continue;
            };
            if let Some(word) = speeds.cpus.get_mut(domain).and_then(|of| of.get_mut(kind)) {
                *word |= bit;
            }
            if let (Some(to), Some(core)) = (speeds.kind.get_mut(cpu), speeds.core.get_mut(cpu)) {
                *to = kind as u8;
                *core = bit;
            }
        }
    }
    for core in &topology.cores {
        for &cpu in core {
            if let (Some(&(domain, _)), Some(to)) = (place.get(&cpu), speeds.core.get_mut(cpu)) {
                *to = bits(domain, core);
            }
        }
    }
}

fn set_dump_len(open: &mut OpenFulcrumSkel<'_>, config: &Config) -> libbpf_rs::Result<()> {
    let len = match config.exit_dump_len {
        0 => DEFAULT_DUMP_LEN,
        len => len,
    };
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.uei_dump_len = len;
    }
    open.maps.data_uei_dump.set_value_size(len)
}

/// Gives each possible CPU a memory.
fn make_room(open: &mut OpenFulcrumSkel<'_>, topology: &Topology) -> libbpf_rs::Result<()> {
    let cpus = topology.domains.iter().flat_map(|domain| &domain.cpus);
    let memories = cpus.max().map_or(1, |&cpu| cpu + 1);
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.nr_memories = memories as u32;
    }
    let bytes = memories * size_of::<types::memory>();
    open.maps.bss_memories.set_value_size(bytes as u32)
}

fn load_failure(step: &str, error: &libbpf_rs::Error) -> Failure {
    let log = libbpf_log::take();
    if !log.is_empty() && !crate::log::verbose() {
        crate::log::block(&log.join("\n"));
    }
    let hint = match errno(error) {
        Some(libc::EPERM | libc::EACCES) if log.is_empty() => "run it as root",
        Some(libc::ENOMEM) => "free some memory, or raise its limit (LimitMEMLOCK=)",
        Some(libc::EOPNOTSUPP) => {
            "this kernel lacks something that scx_fulcrum needs: boot a newer one"
        }
        _ => "run it again with -v and report what it prints, with the kernel's version",
    };
    Failure::new(
        ExitCode::Load,
        format!("{step} the BPF program failed ({error:#}): {hint}"),
    )
}

fn attach_failure(error: &libbpf_rs::Error) -> Failure {
    let (code, hint) = match errno(error) {
        Some(libc::EBUSY) => (
            ExitCode::OtherScheduler,
            "another sched_ext scheduler came first: stop that one",
        ),
        Some(libc::EOPNOTSUPP) => (
            ExitCode::Enable,
            "sched_ext can't run on this kernel (PREEMPT_RT?)",
        ),
        Some(libc::E2BIG) => (
            ExitCode::Enable,
            "the watchdog timeout is too long: at most 30000 ms",
        ),
        Some(libc::ENOMEM) => (ExitCode::Enable, "free some memory and try again"),
        _ => (
            ExitCode::Enable,
            "see scx_fulcrum doctor and the kernel's log (dmesg)",
        ),
    };
    Failure::new(
        code,
        format!("attaching the scheduler failed ({error:#}): {hint}"),
    )
}

/// The error number that libbpf-rs tells only as part of its text.
fn errno(error: &libbpf_rs::Error) -> Option<i32> {
    let text = format!("{error:#}");
    let (_, number) = text.rsplit_once("(os error ")?;
    number.trim_end_matches(')').parse().ok()
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
