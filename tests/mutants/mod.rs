// SPDX-License-Identifier: GPL-2.0-only
//! Deliberately broken schedulers: one edit each to a copy of `bpf/`, compiled
//! and loaded. An edit that no longer fits its file is an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use scx_fulcrum::sim::variants::Variant;

/// One edit.
pub struct Mutant {
    pub name: &'static str,
    /// Below `bpf/`.
    pub file: &'static str,
    pub find: &'static str,
    pub replace: &'static str,
}

/// The scheduler with `mutant`'s edit; each call compiles it anew.
pub fn broken(mutant: &Mutant) -> Variant {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "mutant-{}-{}",
        mutant.name,
        std::process::id()
    ));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy(&source.join("bpf"), &folder.join("bpf"));
    let path = folder.join("bpf").join(mutant.file);
    let text = fs::read_to_string(&path).unwrap();
    let fits = text.matches(mutant.find).count();
    assert_eq!(
        fits, 1,
        "{} fits {fits} times: bpf/{} changed, so must the mutant",
        mutant.name, mutant.file
    );
    fs::write(&path, text.replace(mutant.find, mutant.replace)).unwrap();
    let object = compile(source, &folder);
    // SAFETY: our own code but for one edit, in a file opened once.
    let variant = unsafe { Variant::open(&object) }.unwrap();
    fs::remove_dir_all(&folder).unwrap();
    variant
}

fn compile(source: &Path, folder: &Path) -> PathBuf {
    let object = folder.join("variant.so");
    let platform = source.join("src/sim/platform");
    let status = Command::new(env!("FULCRUM_CLANG"))
        .args([
            "-O2",
            "-fPIC",
            "-shared",
            "-DFULCRUM_SIM",
            "-DSIM_EXPORT=fulcrum_sim",
            "-w",
            "-I",
        ])
        .arg(folder.join("bpf"))
        .arg("-I")
        .arg(&platform)
        .arg(platform.join("variant.c"))
        .arg("-o")
        .arg(&object)
        .status()
        .unwrap();
    assert!(status.success(), "the mutant does not compile");
    object
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The edits.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "dropped_idle_kick",
        file: "place.h",
        find: "\tkf_kick(idle, KENUM(scx_kick_flags, SCX_KICK_IDLE));\n",
        replace: "",
    },
    Mutant {
        name: "lost_work_bit",
        file: "domain.h",
        find: "\t__sync_fetch_and_or(&cpu_domain(cpu)->work, cpu_bit(cpu));\n",
        replace: "",
    },
    Mutant {
        name: "no_second_look_before_idle",
        file: "pick.h",
        find: "\tif (pick_own(cpu) || steal_when_idle(cpu))\n\t\treturn;\n",
        replace: "",
    },
    Mutant {
        name: "unbounded_lag",
        file: "task.h",
        find: "\treturn vtime_bound(v, clock, vtime_credit(knobs.credit_ns, t->weight.inv),\n\
               \t\t\t   vtime_scale(VTIME_DEBT, t->weight.inv));\n",
        replace: "\treturn v;\n",
    },
    Mutant {
        name: "missing_affinity_check",
        file: "place.h",
        find: "READ_HINT(cpu_state(cpu)->online) && kf_allowed(p, cpu);",
        replace: "READ_HINT(cpu_state(cpu)->online);",
    },
    Mutant {
        name: "unsigned_compare",
        file: "vtime.h",
        find: "return (s64)(a - b) < 0;",
        replace: "return a < b;",
    },
    Mutant {
        name: "slice_refilled_in_running",
        file: "life.h",
        find: "\tt->charged_to = p->se.sum_exec_runtime;\n\tc->next_taken = 0;\n",
        replace: "\tt->charged_to = p->se.sum_exec_runtime;\n\tc->next_taken = 0;\n\
                  \tkf_set_slice(p, 20000000);\n",
    },
    Mutant {
        name: "clock_goes_back",
        file: "cpu.h",
        find: "\tif (!vtime_before(c->vclock, v))\n\t\treturn;\n\tWRITE_HINT(c->vclock, v);\n",
        replace: "\tWRITE_HINT(c->vclock, v);\n",
    },
    Mutant {
        name: "no_exchange_at_slice_end",
        file: "pick.h",
        find: "\tif ((!c->yielded || c->look_elsewhere) && exchange(cpu, best, queued ? NULL : t))\n",
        replace: "\tif (false)\n",
    },
    Mutant {
        name: "weight_ignored",
        file: "vtime.h",
        find: "\treturn (ns * inv) >> 22;\n",
        replace: "\treturn ns;\n",
    },
    Mutant {
        name: "sleep_not_noted",
        file: "life.h",
        find: "\tt->origin = FROM_SLEEP;\n\tt->burst_estimate = ask",
        replace: "\tt->burst_estimate = ask",
    },
    Mutant {
        name: "runtime_not_charged_at_stop",
        file: "life.h",
        find: "\ttask_event(p, t, runnable ? EV_PREEMPTED : EV_LEAVING);\n\ttask_charge(p, t);\n",
        replace: "\ttask_event(p, t, runnable ? EV_PREEMPTED : EV_LEAVING);\n",
    },
    Mutant {
        name: "no_preemption_at_wakeup",
        file: "policy/fair.h",
        find: "return vtime_before(c->deadline, c->curr_deadline) && !vtime_before(c->clock, c->v);",
        replace: "return false;",
    },
    Mutant {
        name: "left_behind_a_real_time_task",
        file: "higher.h",
        find: "\t\tscx_bpf_reenqueue_local();\n",
        replace: "\t\t;\n",
    },
    Mutant {
        name: "nobody_rescued",
        file: "rescue.h",
        find: "\tif (!rescue_is_due(cpu_state(cpu), now))\n",
        replace: "\tif (true)\n",
    },
    Mutant {
        name: "queued_counts_as_blocked",
        file: "task.h",
        find: "\tcase EV_QUEUED:\t\treturn TASK_QUEUED;\n",
        replace: "\tcase EV_QUEUED:\t\treturn TASK_BLOCKED;\n",
    },
    Mutant {
        name: "ends_not_counted",
        file: "fulcrum.bpf.c",
        find: "\tstat_inc(contexts_ended);\n",
        replace: "\t;\n",
    },
    Mutant {
        name: "parents_weight_ignored",
        file: "cgroup_solve.h",
        find: "\t\tfactor = factor * (content * (GROUP_ONE / GROUP_LOAD_ONE) / up->weight) / GROUP_ONE;\n",
        replace: "\t\tfactor = GROUP_ONE;\n",
    },
    Mutant {
        name: "inverted_cgroup_weight",
        file: "cgroup_solve.h",
        find: "\tu64 cost = g->content * (GROUP_ONE / GROUP_LOAD_ONE) / g->weight;\n",
        replace: "\tu64 cost = g->weight * GROUP_ONE / (g->content / GROUP_LOAD_ONE + 1);\n",
    },
    Mutant {
        name: "cgroup_move_not_followed",
        file: "fulcrum.bpf.c",
        find: "\tif (t)\n\t\ttask_regroup(p, t, to);\n",
        replace: "",
    },
    Mutant {
        name: "waiting_not_counted_in_cgroups",
        file: "life.h",
        find: "\tgroup_account(t->group, t->own.weight, waited, 0);\n",
        replace: "",
    },
    Mutant {
        name: "clock_not_carried",
        file: "vtime.h",
        find: "\ts64 apart = (s64)(to - from);\n",
        replace: "\ts64 apart = 0;\n",
    },
    Mutant {
        name: "busy_clocks_never_join",
        file: "steal.h",
        find: "\t\t\tdeadline += exchange_catches_up(cpu, partner, lone);\n",
        replace: "\t\t\t;\n",
    },
    Mutant {
        name: "far_clocks_take_from_anybody",
        file: "steal.h",
        find: "\t\tif (exchange_load(partner, NULL) <= exchange_load(cpu, lone))\n",
        replace: "\t\tif (false)\n",
    },
    Mutant {
        name: "reused_slot_stays_idle",
        file: "cgroup.h",
        find: "\tg->background = idle || group_state(parent)->background;\n",
        replace: "",
    },
    Mutant {
        name: "clock_stands_still",
        file: "pick.h",
        find: "\tqueue_clock_follows(cpu, t->vruntime);\n\tif (!READ_HINT(c->has_work))\n",
        replace: "\tif (!READ_HINT(c->has_work))\n\t\tqueue_clock_follows(cpu, t->vruntime);\n\tif (!READ_HINT(c->has_work))\n",
    },
    Mutant {
        name: "clock_moved_by_exits_is_owed",
        file: "life.h",
        find: "\tt->deadline += moved;\n\tt->vruntime += moved;\n",
        replace: "",
    },
    Mutant {
        name: "nappers_stay_where_they_are",
        file: "pick.h",
        find: "\tif (!c->look_elsewhere)\n\t\treturn false;\n",
        replace: "\treturn false;\n",
    },
    Mutant {
        name: "lone_task_leaves_its_deadline",
        file: "pick.h",
        find: "\t\tpick_lone(cpu, t);\n",
        replace: "",
    },
    Mutant {
        name: "preemptor_blamed_again",
        file: "life.h",
        find: "\tc->preemptor = 0;\n",
        replace: "\tif (runnable)\n\t\tc->preemptor = 0;\n",
    },
    Mutant {
        name: "fair_slices_without_weight",
        file: "policy/fair.h",
        find: "\tu64 request = slice * a->weight.weight / NICE_0_WEIGHT;\n",
        replace: "\tu64 request = slice;\n",
    },
    Mutant {
        name: "fair_owed_nothing_interrupts",
        file: "policy/fair.h",
        find: "return vtime_before(c->deadline, c->curr_deadline) && !vtime_before(c->clock, c->v);",
        replace: "return vtime_before(c->deadline, c->curr_deadline);",
    },
    Mutant {
        name: "fair_never_gives_way",
        file: "policy/fair.h",
        find: "\treturn vtime_before(head, due);\n",
        replace: "\treturn false;\n",
    },
    Mutant {
        name: "latency_is_only_fair",
        file: "policy/latency.h",
        find: "\treturn a->v + (a->level ? due_in / 4 : due_in);\n",
        replace: "\treturn a->v + due_in;\n",
    },
    Mutant {
        name: "latency_stays_urgent",
        file: "policy/latency.h",
        find: "\ta->level = 0;\n\treturn fair_used_up(a);\n",
        replace: "\treturn latency_wakes(a);\n",
    },
    Mutant {
        name: "batch_asks_for_little",
        file: "policy/batch.h",
        find: "static __always_inline u64 batch_wakes(struct ask *a)\n{\n\treturn fair_used_up(a);\n",
        replace: "static __always_inline u64 batch_wakes(struct ask *a)\n{\n\treturn fair_wakes(a);\n",
    },
    Mutant {
        name: "batch_interrupts_like_fair",
        file: "policy/batch.h",
        find: "c->deadline + 2 * c->slice, c->curr_deadline",
        replace: "c->deadline, c->curr_deadline",
    },
    Mutant {
        name: "mlfq_never_falls",
        file: "policy/mlfq.h",
        find: "\ta->level = a->level < MLFQ_LAST_LEVEL ? a->level + 1 : MLFQ_LAST_LEVEL;\n",
        replace: "",
    },
    Mutant {
        name: "mlfq_never_rises",
        file: "policy/mlfq.h",
        find: "\t\ta->level--;\n",
        replace: "\t\t;\n",
    },
    Mutant {
        name: "mlfq_does_not_age",
        file: "policy/mlfq.h",
        find: "\treturn a->clock + (a->level & MLFQ_LAST_LEVEL) * MLFQ_AGE;\n",
        replace: "\treturn a->clock + (a->level & MLFQ_LAST_LEVEL) * 100 * MLFQ_AGE;\n",
    },
    Mutant {
        name: "fifo_by_fairness",
        file: "policy/fifo.h",
        find: "\treturn a->clock + a->slice;\n",
        replace: "\treturn a->v + a->slice;\n",
    },
    Mutant {
        name: "fifo_interrupts",
        file: "policy/fifo.h",
        find: "static __always_inline bool fifo_preempts(const struct contest *c)\n{\n\treturn false;\n",
        replace: "static __always_inline bool fifo_preempts(const struct contest *c)\n{\n\treturn true;\n",
    },
    Mutant {
        name: "nobody_goes_over",
        file: "capacity.h",
        find: "\treturn cpu_moving(cpu)->shared >= SHARED_TICKS ? nr_kinds : cpu_kind(cpu);\n",
        replace: "\treturn 0;\n",
    },
    Mutant {
        name: "fast_cpus_not_preferred",
        file: "capacity.h",
        find: "\treturn capacity_find(p, prev, nr_kinds - 1, true);\n",
        replace: "\treturn -1;\n",
    },
    Mutant {
        name: "threads_taken_for_cores",
        file: "capacity.h",
        find: " & cpu_bit(cpu)) || core_shared(cpu) ||\n",
        replace: " & cpu_bit(cpu)) ||\n",
    },
];
