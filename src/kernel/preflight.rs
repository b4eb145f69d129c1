// SPDX-License-Identifier: GPL-2.0-only
//! Whether this machine can run the scheduler: one small check a condition,
//! each a pure function of what the machine's files say. Nothing is changed.

use crate::exit::{ExitCode, Failure};

use super::features::Features;
use super::lock;
use super::topology::MAX_CPUS;
use super::view::{SchedExt, SystemView};

/// What the name of our scheduler in `root/ops` starts with.
const OWN_NAME: &str = "fulcrum_";

/// First kernel with sched_ext.
const FIRST_KERNEL: (u32, u32) = (6, 12);

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// The scheduler runs, but the user should know.
    Warn,
    /// The scheduler can't run; the code to exit with.
    Fail(ExitCode),
}

/// One check's result.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was checked, in a word or two.
    pub topic: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// What was found, and where.
    pub detail: String,
    /// What to do about it; empty if nothing is to be done.
    pub remedy: String,
}

impl Finding {
    fn ok(topic: &'static str, detail: impl Into<String>) -> Self {
        Self {
            topic,
            verdict: Verdict::Ok,
            detail: detail.into(),
            remedy: String::new(),
        }
    }

    fn warn(topic: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (detail, remedy) = (detail.into(), remedy.into());
        Self {
            topic,
            verdict: Verdict::Warn,
            detail,
            remedy,
        }
    }

    fn fail(
        topic: &'static str,
        code: ExitCode,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (detail, remedy) = (detail.into(), remedy.into());
        Self {
            topic,
            verdict: Verdict::Fail(code),
            detail,
            remedy,
        }
    }

    /// The finding in one line: what, and what to do.
    pub fn line(&self) -> String {
        match self.remedy.as_str() {
            "" => self.detail.clone(),
            remedy => format!("{}: {remedy}", self.detail),
        }
    }
}

/// All findings.
#[derive(Debug)]
pub struct Report {
    /// One finding a check, in the order in which they are worth reading.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The first finding that keeps the scheduler from running.
    pub fn failure(&self) -> Option<Failure> {
        self.findings
            .iter()
            .find_map(|finding| match finding.verdict {
                Verdict::Fail(code) => Some(Failure::new(code, finding.line())),
                _ => None,
            })
    }
}

/// Run all checks on the machine that `view` shows and the kernel functions
/// that [`Features::read`] found there.
pub fn check(view: &SystemView, features: &Result<Features, String>) -> Report {
    let findings = vec![
        permission(view),
        preempt_rt(view),
        sched_ext(view),
        btf(features),
        hidden_functions(view, features),
        jit(view),
        instance(view),
        other_scheduler(view),
        isolated_cpus(view),
        nohz_full_cpus(view),
        cpu_count(view),
    ];
    Report { findings }
}

fn permission(view: &SystemView) -> Finding {
    const TOPIC: &str = "privileges";
    match view.may_load_bpf() {
        Some(true) => Finding::ok(TOPIC, "may load BPF programs"),
        Some(false) => Finding::fail(
            TOPIC,
            ExitCode::Permission,
            "not permitted to load a scheduler (CAP_BPF and CAP_PERFMON are missing)",
            "run it as root, for example with sudo",
        ),
        None => Finding::warn(
            TOPIC,
            "/proc/self/status does not tell this process's capabilities",
            "mount /proc",
        ),
    }
}

fn preempt_rt(view: &SystemView) -> Finding {
    const TOPIC: &str = "preemption";
    if view.is_preempt_rt() {
        let detail = format!(
            "kernel {} is PREEMPT_RT, where sched_ext can't run",
            view.kernel_release()
        );
        let remedy = "boot a kernel without PREEMPT_RT";
        return Finding::fail(TOPIC, ExitCode::PreemptRt, detail, remedy);
    }
    Finding::ok(TOPIC, "not PREEMPT_RT")
}

fn sched_ext(view: &SystemView) -> Finding {
    const TOPIC: &str = "sched_ext";
    let release = view.kernel_release();
    if view.sched_ext() != SchedExt::Absent {
        return Finding::ok(TOPIC, format!("kernel {release} has it"));
    }
    let (major, minor) = FIRST_KERNEL;
    let detail = match view.kernel_version() {
        Some(version) if version < FIRST_KERNEL => {
            format!("kernel {release} is older than {major}.{minor} and has no sched_ext")
        }
        _ => format!("kernel {release} has no sched_ext (/sys/kernel/sched_ext is absent)"),
    };
    let remedy = "boot a kernel of 6.12 or newer with CONFIG_SCHED_CLASS_EXT=y";
    Finding::fail(TOPIC, ExitCode::NoSchedExt, detail, remedy)
}

fn btf(features: &Result<Features, String>) -> Finding {
    const TOPIC: &str = "type information";
    match features {
        Ok(_) => Finding::ok(TOPIC, "the kernel has BTF"),
        Err(why) => Finding::fail(
            TOPIC,
            ExitCode::NoBtf,
            format!("the kernel's BTF type information can't be read ({why})"),
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
        ),
    }
}

fn hidden_functions(view: &SystemView, features: &Result<Features, String>) -> Finding {
    const TOPIC: &str = "kernel functions";
    if view.sched_ext() == SchedExt::Absent {
        return Finding::warn(TOPIC, "can't be checked without sched_ext", "");
    }
    let Ok(features) = features else {
        return Finding::warn(TOPIC, "can't be checked without BTF", "");
    };
    let hidden = &features.hidden;
    if !features.missing.is_empty() {
        let missing: Vec<_> = features
            .missing
            .iter()
            .map(|group| group.join(" or "))
            .collect();
        let cause = if hidden.is_empty() {
            ""
        } else {
            ": this build's BTF is faulty"
        };
        return Finding::fail(
            TOPIC,
            ExitCode::HiddenFunction,
            format!(
                "the kernel offers BPF programs no {}{cause}",
                missing.join(", no ")
            ),
            "boot another build: 7.0 or older, 7.3 or newer, or one built with pahole >= 1.31",
        );
    }
    if hidden.is_empty() {
        return Finding::ok(TOPIC, "all sched_ext functions are callable");
    }
    let (count, names) = (hidden.len(), hidden.join(" "));
    let detail = format!("faulty BTF hides {count} functions, fallbacks are used ({names})");
    Finding::warn(TOPIC, detail, "")
}

fn jit(view: &SystemView) -> Finding {
    const TOPIC: &str = "BPF JIT";
    match view.jit_enable() {
        Some(0) => Finding::fail(
            TOPIC,
            ExitCode::JitOff,
            "the BPF JIT is off (net.core.bpf_jit_enable=0)",
            "sysctl net.core.bpf_jit_enable=1",
        ),
        Some(_) => Finding::ok(TOPIC, "on"),
        None => Finding::warn(
            TOPIC,
            "/proc/sys/net/core/bpf_jit_enable can't be read here",
            "as root, outside of network namespaces, it must not be 0",
        ),
    }
}

fn instance(view: &SystemView) -> Finding {
    const TOPIC: &str = "other scx_fulcrum";
    match lock::held_by(view) {
        Ok(None) => Finding::ok(TOPIC, "none"),
        Ok(Some(holder)) => second_instance(&holder),
        Err(error) => Finding::warn(TOPIC, format!("its lock can't be tested ({error})"), ""),
    }
}

/// The finding that `holder`, named in words, runs scx_fulcrum already.
pub fn second_instance(holder: &str) -> Finding {
    Finding::fail(
        "other scx_fulcrum",
        ExitCode::SecondInstance,
        format!("scx_fulcrum runs already ({holder})"),
        "watch it with scx_fulcrum --monitor 1, or stop it first",
    )
}

fn other_scheduler(view: &SystemView) -> Finding {
    const TOPIC: &str = "active scheduler";
    // An ordinary user can't tell; then the name is the best guess.
    let own = |ops: &str| ops.starts_with(OWN_NAME) && !matches!(lock::held_by(view), Ok(None));
    match view.sched_ext() {
        SchedExt::Absent | SchedExt::Disabled => Finding::ok(TOPIC, "none loaded"),
        SchedExt::Active { ops, .. } if own(&ops) => Finding::ok(
            TOPIC,
            format!("{ops}, of the scx_fulcrum that runs already"),
        ),
        SchedExt::Active { state, ops } => {
            let name = if ops.is_empty() {
                "without a name"
            } else {
                ops.as_str()
            };
            Finding::fail(
                TOPIC,
                ExitCode::OtherScheduler,
                format!("another sched_ext scheduler is active: {name} (state {state})"),
                "stop it first, for example with systemctl stop scx",
            )
        }
    }
}

fn isolated_cpus(view: &SystemView) -> Finding {
    const TOPIC: &str = "isolated CPUs";
    match view.isolated_cpus().as_str() {
        "" => Finding::ok(TOPIC, "none"),
        cpus => Finding::fail(
            TOPIC,
            ExitCode::IsolatedCpus,
            format!("CPUs {cpus} are isolated, and sched_ext refuses to load then"),
            "take isolcpus= (or its flag domain) off the kernel's command line and reboot",
        ),
    }
}

/// With finite slices, as ours are, sched_ext keeps the tick going; only endless
/// ones would let the kernel stop it.
fn nohz_full_cpus(view: &SystemView) -> Finding {
    const TOPIC: &str = "CPUs without tick";
    match view.nohz_full_cpus().as_str() {
        "" => Finding::ok(TOPIC, "none"),
        cpus => Finding::warn(
            TOPIC,
            format!("CPUs {cpus} are nohz_full, but tick while they run a task of scx_fulcrum's"),
            "to let the kernel stop it for ordinary tasks, start with --partial",
        ),
    }
}

fn cpu_count(view: &SystemView) -> Finding {
    const TOPIC: &str = "CPUs";
    let possible = view
        .read("/sys/devices/system/cpu/possible")
        .unwrap_or_default();
    let highest = possible
        .rsplit([',', '-'])
        .next()
        .and_then(|last| last.parse::<usize>().ok());
    match highest {
        Some(highest) if highest >= MAX_CPUS => Finding::fail(
            TOPIC,
            ExitCode::TooManyCpus,
            format!("CPU numbers go up to {highest}, and there is room for {MAX_CPUS} CPUs"),
            format!("boot with nr_cpus={MAX_CPUS}"),
        ),
        Some(_) => Finding::ok(TOPIC, format!("possible: {possible}")),
        None => Finding::warn(
            TOPIC,
            "/sys/devices/system/cpu/possible does not list the CPUs",
            "mount /sys",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::features::INDISPENSABLE;
    use crate::kernel::testing::Tree;

    fn good() -> Tree {
        Tree::new()
            .file("proc/self/status", "CapEff:\t000001ffffffffff\n")
            .file("proc/sys/kernel/osrelease", "7.3.4+deb13-cloud-amd64\n")
            .file("proc/version", "Linux version 7.3.4 SMP PREEMPT_DYNAMIC\n")
            .file("proc/sys/net/core/bpf_jit_enable", "1\n")
            .file("sys/kernel/sched_ext/state", "disabled\n")
            .file("sys/devices/system/cpu/isolated", "\n")
            .file("sys/devices/system/cpu/possible", "0-3\n")
    }

    fn lacking(group: usize, hidden: &[&str]) -> Result<Features, String> {
        Ok(Features {
            hidden: hidden.iter().map(|name| name.to_string()).collect(),
            missing: vec![INDISPENSABLE[group]],
        })
    }

    fn report(tree: &Tree) -> Report {
        check(&tree.view(), &Ok(Features::default()))
    }

    fn failure(tree: &Tree) -> Failure {
        report(tree).failure().expect("a failure")
    }

    fn kernel_failure(features: Result<Features, String>) -> Failure {
        let report = check(&good().view(), &features);
        report.failure().expect("a failure")
    }

    #[test]
    fn a_good_machine_passes_without_a_warning() {
        let report = report(&good());
        for finding in &report.findings {
            assert_eq!(finding.verdict, Verdict::Ok, "{finding:?}");
        }
        assert!(report.failure().is_none());
    }

    #[test]
    fn every_condition_has_its_own_code_and_one_line() {
        let cases = [
            (
                good().file("proc/self/status", "CapEff:\t0\n"),
                ExitCode::Permission,
            ),
            (
                good().file("sys/kernel/realtime", "1\n"),
                ExitCode::PreemptRt,
            ),
            (
                good().file("proc/version", "Linux SMP PREEMPT_RT x\n"),
                ExitCode::PreemptRt,
            ),
            (good().without("sys/kernel/sched_ext"), ExitCode::NoSchedExt),
            (
                good().file("proc/sys/net/core/bpf_jit_enable", "0\n"),
                ExitCode::JitOff,
            ),
            (
                good().file("sys/kernel/sched_ext/state", "enabled\n"),
                ExitCode::OtherScheduler,
            ),
            (
                good().file("sys/devices/system/cpu/isolated", "2-3\n"),
                ExitCode::IsolatedCpus,
            ),
            (
                good().file("sys/devices/system/cpu/possible", "0-4096\n"),
                ExitCode::TooManyCpus,
            ),
        ];
        for (tree, code) in cases {
            let failure = failure(&tree);
            assert_eq!(failure.code, code, "{}", failure.message);
            assert_eq!(failure.message.lines().count(), 1, "{}", failure.message);
        }
    }

    #[test]
    fn messages_name_what_is_in_the_way() {
        let tree = good()
            .file("sys/kernel/sched_ext/state", "enabled\n")
            .file("sys/kernel/sched_ext/root/ops", "bpfland_1.0\n");
        assert!(failure(&tree).message.contains("bpfland_1.0"));
        let tree = good()
            .without("sys/kernel/sched_ext")
            .file("proc/sys/kernel/osrelease", "6.1.0-49-amd64\n");
        assert!(failure(&tree).message.contains("older than 6.12"));
    }

    #[test]
    fn what_the_kernel_lacks_is_named_in_one_line() {
        let faulty = kernel_failure(lacking(0, &["scx_bpf_create_dsq"]));
        assert_eq!(faulty.code, ExitCode::HiddenFunction);
        assert!(faulty.message.contains("scx_bpf_create_dsq"));
        assert!(faulty.message.contains("BTF is faulty"));
        let older = kernel_failure(lacking(1, &[]));
        assert_eq!(older.code, ExitCode::HiddenFunction);
        assert!(older.message.contains("scx_bpf_dsq_insert or scx_bpf"));
        assert!(!older.message.contains("faulty"), "{}", older.message);
        let none = kernel_failure(Err("no such file".to_string()));
        assert_eq!(none.code, ExitCode::NoBtf);
        assert!(none.message.contains("no such file"));
        for failure in [faulty, older, none] {
            assert_eq!(failure.message.lines().count(), 1, "{}", failure.message);
        }
    }

    #[test]
    fn where_sched_ext_is_missing_no_other_build_is_advised_for_its_functions() {
        let tree = good().without("sys/kernel/sched_ext");
        let report = check(&tree.view(), &lacking(0, &[]));
        let fails = |finding: &&Finding| matches!(finding.verdict, Verdict::Fail(_));
        let failures: Vec<_> = report.findings.iter().filter(fails).collect();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0].topic, "sched_ext");
    }

    #[test]
    fn functions_with_fallbacks_only_warn() {
        let features = Features {
            hidden: vec!["scx_bpf_kick_cpu".into(), "scx_bpf_dsq_peek".into()],
            missing: Vec::new(),
        };
        let report = check(&good().view(), &Ok(features));
        assert!(report.failure().is_none());
        let mut warnings = report
            .findings
            .iter()
            .filter(|f| f.verdict == Verdict::Warn);
        let finding = warnings.next().expect("a warning");
        assert!(finding.detail.contains("scx_bpf_kick_cpu scx_bpf_dsq_peek"));
        assert!(warnings.next().is_none());
    }

    #[test]
    fn cpus_without_tick_are_warned_of() {
        for (list, warned) in [("", false), ("(null)\n", false), ("2-3\n", true)] {
            let tree = good().file("sys/devices/system/cpu/nohz_full", list);
            let report = report(&tree);
            assert!(report.failure().is_none());
            let warnings = report.findings.iter();
            let warnings: Vec<_> = warnings.filter(|f| f.verdict == Verdict::Warn).collect();
            assert_eq!(warnings.len(), usize::from(warned), "{list:?}");
            assert!(
                warnings
                    .iter()
                    .all(|f| f.line().contains("CPUs 2-3 are nohz_full"))
            );
        }
    }

    #[test]
    fn a_second_instance_is_told_by_its_holder() {
        let tree = good()
            .file("sys/kernel/sched_ext/state", "enabled\n")
            .file("sys/kernel/sched_ext/root/ops", "fulcrum_0.1.0\n");
        assert_eq!(failure(&tree).code, ExitCode::OtherScheduler);
        let _lock = lock::acquire(&tree.view()).unwrap();
        let report = report(&tree);
        let failures = report
            .findings
            .iter()
            .filter(|f| matches!(f.verdict, Verdict::Fail(_)));
        assert_eq!(failures.count(), 1);
        let failure = report.failure().unwrap();
        assert_eq!(failure.code, ExitCode::SecondInstance);
        assert!(
            failure
                .message
                .contains(&format!("pid {}", std::process::id()))
        );
    }

    #[test]
    fn an_empty_machine_fails_without_panic() {
        assert_eq!(failure(&Tree::new()).code, ExitCode::NoSchedExt);
    }
}
