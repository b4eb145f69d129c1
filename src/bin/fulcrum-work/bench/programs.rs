// SPDX-License-Identifier: GPL-2.0-only
//! The loaded scheduler's BPF programs: what the verifier went through, and
//! what they have used.

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use libbpf_rs::Btf;
use libbpf_rs::ProgramType;
use libbpf_rs::btf::{BtfType, TypeId};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How far a count may be from the committed one.
const CHANGE: f64 = 0.05;

/// One program. Calls and time are counted while kernel.bpf_stats_enabled is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Program {
    pub calls: u64,
    pub ns: u64,
    /// Instructions that the verifier went through.
    pub verified: u64,
}

/// A program's name. The kernel keeps 15 characters of it, which several may
/// share; its BTF has all.
fn full_name(program: &ProgramInfo) -> String {
    let named = || {
        let function = program.func_info.first()?;
        let btf = Btf::from_prog_id(program.id).ok()?;
        let ty: BtfType<'_> = btf.type_by_id(TypeId::from(function.type_id))?;
        Some(ty.name()?.to_string_lossy().into_owned())
    };
    named().unwrap_or_else(|| program.name.to_string_lossy().into_owned())
}

/// All struct_ops programs, by name. Needs root.
pub fn loaded() -> BTreeMap<String, Program> {
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_func_info(true))
        .filter(|p| p.ty == ProgramType::StructOps)
        .map(|p| {
            let program = Program {
                calls: p.run_cnt,
                ns: p.run_time_ns,
                verified: u64::from(p.verified_insns),
            };
            (full_name(&p), program)
        })
        .collect()
}

/// Verifier counts of each program, on each kernel: `docs/verifier.json`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts(BTreeMap<String, BTreeMap<String, u64>>);

#[derive(Args)]
pub struct VerifierArgs {
    /// Compare with the counts in this file, and fail if one is more than 5 %
    /// away
    #[arg(long)]
    against: Option<PathBuf>,
}

/// `7.3.4` of `7.3.4+deb13-cloud-amd64`.
fn kernel() -> Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("osrelease")?;
    let version = text.trim().split(['+', '-']).next().unwrap_or_default();
    Ok(version.to_string())
}

/// What is different, a line each. None if the kernel is not in the file.
fn changes(counts: &Counts, kernel: &str, now: &BTreeMap<String, u64>) -> Option<Vec<String>> {
    let before = counts.0.get(kernel)?;
    let mut lines = Vec::new();
    for (name, count) in now {
        match before.get(name) {
            None => lines.push(format!("{name}: {count} instructions, not in the file")),
            Some(old) => {
                if count.abs_diff(*old) as f64 > CHANGE * *old as f64 {
                    let percent = (*count as f64 / (*old).max(1) as f64 - 1.0) * 100.0;
                    lines.push(format!("{name}: {old} -> {count} ({percent:+.0} %)"));
                }
            }
        }
    }
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    lines.extend(gone.map(|name| format!("{name}: no longer loaded")));
    Some(lines)
}

/// Print the counts of the scheduler that is loaded now.
pub fn verifier(args: &VerifierArgs) -> Result<()> {
    let now: BTreeMap<String, u64> = loaded()
        .into_iter()
        .map(|(name, program)| (name, program.verified))
        .collect();
    ensure!(
        !now.is_empty(),
        "no scheduler is loaded, or this is not root"
    );
    let kernel = kernel()?;
    let Some(file) = &args.against else {
        let counts = Counts(BTreeMap::from([(kernel, now)]));
        println!("{}", serde_json::to_string(&counts)?);
        return Ok(());
    };
    let total: u64 = now.values().sum();
    let programs = now.len();
    match changes(&super::result::read(file)?, &kernel, &now) {
        None => println!(
            "{programs} programs, {total} instructions; kernel {kernel} is not in {}",
            file.display()
        ),
        Some(lines) if lines.is_empty() => {
            println!("{programs} programs, {total} instructions, as committed");
        }
        Some(lines) => bail!(
            "verifier counts changed: {}; if that is meant to be, run scripts/bench --verifier",
            lines.join("; ")
        ),
    }
    Ok(())
}

/// Put what guests printed into the file; kernels that were not run keep theirs.
pub fn merge(raw: &[PathBuf], file: &Path) -> Result<()> {
    let mut counts: Counts = match file.exists() {
        true => super::result::read(file)?,
        false => Counts::default(),
    };
    for path in raw {
        let new: Counts = super::result::read(path)?;
        counts.0.extend(new.0);
    }
    super::result::write(file, &counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|(n, c)| (n.to_string(), *c)).collect()
    }

    #[test]
    fn changes_above_a_twentieth_are_found() {
        let old = counts(&[("fulcrum_enqueue", 1000), ("fulcrum_tick", 100)]);
        let file = Counts(BTreeMap::from([("7.3.4".to_string(), old)]));
        let of = |pairs: &[(&str, u64)]| changes(&file, "7.3.4", &counts(pairs)).unwrap();
        assert_eq!(
            of(&[("fulcrum_enqueue", 1050), ("fulcrum_tick", 96)]).len(),
            0
        );
        assert_eq!(
            of(&[("fulcrum_enqueue", 1051), ("fulcrum_tick", 94)]).len(),
            2
        );
        assert_eq!(
            of(&[("fulcrum_enqueue", 1000)]),
            ["fulcrum_tick: no longer loaded"]
        );
        assert_eq!(
            of(&[
                ("fulcrum_enqueue", 1000),
                ("fulcrum_tick", 100),
                ("fulcrum_new", 5)
            ])
            .len(),
            1
        );
        assert_eq!(changes(&file, "9.9", &counts(&[])), None);
    }
}
