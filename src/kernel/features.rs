// SPDX-License-Identifier: GPL-2.0-only
//! What the running kernel offers, read from its BTF: the values of
//! sched_ext's constants, and which functions the BTF fault of some builds
//! hides from BPF programs.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::Path;

use libbpf_rs::ReferencesType;
use libbpf_rs::btf::types::{Enum, Enum64, Func, FuncProto, Ptr};
use libbpf_rs::btf::{Btf, BtfType};

/// What the scheduler can't do without, as groups of functions one of which
/// must be callable: those of `bpf/kfuncs.h` that end in doing nothing.
pub const INDISPENSABLE: &[&[&str]] = &[
    &["scx_bpf_create_dsq"],
    &[
        "scx_bpf_dsq_insert___v2",
        "scx_bpf_dsq_insert",
        "scx_bpf_dispatch",
    ],
    &[
        "__scx_bpf_dsq_insert_vtime",
        "scx_bpf_dsq_insert_vtime",
        "scx_bpf_dispatch_vtime",
    ],
    &[
        "scx_bpf_dsq_move_to_local___v2",
        "scx_bpf_dsq_move_to_local",
        "scx_bpf_consume",
    ],
];

/// The parts of the kernel's type information that loading depends on.
#[derive(Clone, Debug, Default)]
pub struct Features {
    values: HashMap<String, u64>,
    callable: BTreeSet<String>,
    hidden: BTreeSet<String>,
}

impl Features {
    /// Read the BTF in the file `path`, usually `/sys/kernel/btf/vmlinux`.
    ///
    /// # Errors
    ///
    /// A sentence on why the file can't be read or is no BTF.
    pub fn read(path: &Path) -> Result<Self, String> {
        let btf = Btf::from_path(path).map_err(|error| format!("{}: {error:#}", path.display()))?;
        let mut features = Self::default();
        for kind in btf.type_by_kind::<BtfType<'_>>() {
            features.take(&btf, kind);
        }
        Ok(features)
    }

    fn take(&mut self, btf: &Btf<'_>, kind: BtfType<'_>) {
        let Some(name) = kind.name().and_then(OsStr::to_str) else {
            return;
        };
        if let Ok(function) = Func::try_from(kind) {
            if !is_sched_ext_function(name) {
                // Only sched_ext's functions matter.
            } else if hides_argument(btf, &function) {
                self.hidden.insert(name.to_string());
            } else {
                self.callable.insert(name.to_string());
            }
        } else if !name.starts_with("scx_") {
            // Only sched_ext's enumerations matter.
        } else if let Ok(values) = Enum64::try_from(kind) {
            self.values.extend(values.iter().filter_map(|member| {
                Some((member.name?.to_str()?.to_string(), member.value as u64))
            }));
        } else if let Ok(values) = Enum::try_from(kind) {
            self.values.extend(values.iter().filter_map(|member| {
                Some((member.name?.to_str()?.to_string(), member.value as u64))
            }));
        }
    }

    /// The value of a sched_ext constant, if the kernel has it.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }

    /// An `ops.flags` bit, or 0 where the kernel doesn't know it.
    pub fn flag(&self, name: &str) -> u64 {
        self.value(name).unwrap_or(0)
    }

    /// sched_ext functions that this kernel has but whose faulty BTF keeps
    /// BPF programs from calling them, in alphabetical order.
    pub fn hidden_functions(&self) -> impl Iterator<Item = &str> {
        self.hidden.iter().map(String::as_str)
    }

    /// The groups of [`INDISPENSABLE`] of which no function is callable.
    pub fn missing_functions(&self) -> impl Iterator<Item = &'static [&'static str]> {
        let missing = |group: &&&[&str]| !group.iter().any(|name| self.callable.contains(*name));
        INDISPENSABLE.iter().filter(missing).copied()
    }
}

/// Whether a function is sched_ext's and for BPF programs to call: not the
/// twin with the verifier's argument, whose name ends with `_impl`.
fn is_sched_ext_function(name: &str) -> bool {
    const PREFIXES: &[&str] = &["scx_bpf_", "__scx_bpf_", "bpf_iter_scx_"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !name.ends_with("_impl")
}

/// Whether a function that BPF programs should see still carries the argument
/// that the verifier adds, which correct BTF shows on the twin only.
fn hides_argument(btf: &Btf<'_>, function: &Func<'_>) -> bool {
    let Ok(prototype) = FuncProto::try_from(function.referenced_type()) else {
        return false;
    };
    let Some(last) = prototype
        .len()
        .checked_sub(1)
        .and_then(|last| prototype.get(last))
    else {
        return false;
    };
    let named_so = last.name == Some(OsStr::new("aux"));
    let typed_so = btf
        .type_by_id::<Ptr<'_>>(last.ty)
        .map(|pointer| pointer.referenced_type().skip_mods_and_typedefs())
        .is_some_and(|target| target.name() == Some(OsStr::new("bpf_prog_aux")));
    named_so || typed_so
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::{BtfWriter, Tree};

    fn features(writer: BtfWriter) -> Features {
        let tree = Tree::new().file("btf", writer.finish());
        Features::read(&tree.root().join("btf")).expect("valid BTF")
    }

    #[test]
    fn values_are_found_in_the_enumerations_of_sched_ext() {
        let mut btf = BtfWriter::new();
        btf.enumeration(
            "scx_ops_flags",
            &[("SCX_OPS_ENQ_LAST", 2), ("SCX_OPS_FAR", 1 << 48)],
        );
        btf.enumeration("other", &[("SCX_OPS_ENQ_LAST", 99)]);
        let features = features(btf);
        assert_eq!(features.flag("SCX_OPS_ENQ_LAST"), 2);
        assert_eq!(features.flag("SCX_OPS_FAR"), 1 << 48);
        assert_eq!(features.flag("SCX_OPS_TID_TO_TASK"), 0);
    }

    #[test]
    fn functions_with_a_leaked_argument_are_hidden() {
        let mut btf = BtfWriter::new();
        let aux = btf.structure("bpf_prog_aux", &["x"]);
        let pointer = btf.pointer(aux);
        btf.function("scx_bpf_create_dsq", &[("id", pointer), ("aux", pointer)]);
        btf.function("scx_bpf_kick_cpu", &[("cpu", 0), ("other_name", pointer)]);
        btf.function("scx_bpf_kick_cpu_impl", &[("cpu", 0), ("aux", pointer)]);
        btf.function("scx_bpf_now", &[]);
        btf.function("scx_bpf_task_cpu", &[("p", 0)]);
        btf.function("bpf_wq_set_callback", &[("aux", pointer)]);
        let features = features(btf);
        let hidden: Vec<_> = features.hidden_functions().collect();
        assert_eq!(hidden, ["scx_bpf_create_dsq", "scx_bpf_kick_cpu"]);
    }

    #[test]
    fn one_callable_function_a_group_is_enough() {
        let mut btf = BtfWriter::new();
        let aux = btf.structure("bpf_prog_aux", &["x"]);
        let pointer = btf.pointer(aux);
        btf.function("scx_bpf_create_dsq", &[("id", 0)]);
        btf.function("scx_bpf_dsq_insert___v2", &[("p", 0), ("aux", pointer)]);
        btf.function("scx_bpf_dsq_insert", &[("p", 0)]);
        btf.function("scx_bpf_dispatch_vtime", &[("p", 0)]);
        btf.function(
            "scx_bpf_dsq_move_to_local___v2",
            &[("id", 0), ("aux", pointer)],
        );
        let features = features(btf);
        let missing: Vec<_> = features.missing_functions().collect();
        assert_eq!(missing, [INDISPENSABLE[3]]);
    }

    #[test]
    fn a_file_that_is_no_btf_is_an_error() {
        let tree = Tree::new().file("btf", "nonsense that is long enough to hold a header");
        assert!(Features::read(&tree.root().join("btf")).is_err());
        assert!(Features::read(&tree.root().join("absent")).is_err());
    }
}
