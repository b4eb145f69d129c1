// SPDX-License-Identifier: GPL-2.0-only
//! Tests on real kernels: which kernels there are, how a command is run in a
//! VM, and how the steps that it reports are judged.

// Each test program uses a part of this.
#![allow(dead_code)]

use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

/// A kernel of `scripts/kernels`, or one in the cache.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub version: String,
    /// Why it can't run, if it can't.
    pub missing: Option<String>,
}

/// Held while a VM runs: it uses the whole machine.
static MACHINE: Mutex<()> = Mutex::new(());

/// What a command in a VM printed, and how it ended.
pub struct Run {
    pub lines: Vec<String>,
    pub status: ExitStatus,
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn version_key(version: &str) -> Vec<u32> {
    version.split('.').map(|n| n.parse().unwrap_or(0)).collect()
}

/// All kernels, oldest first.
pub fn kernels() -> Result<Vec<Kernel>, String> {
    let output = Command::new(root().join("scripts/vm"))
        .arg("--list-kernels")
        .output()
        .map_err(|e| format!("scripts/vm --list-kernels: {e}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("scripts/vm --list-kernels: {}", text.trim()));
    }
    let mut kernels = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        kernels.push(kernel(line).ok_or_else(|| format!("scripts/vm --list-kernels: {line:?}?"))?);
    }
    kernels.sort_by_key(|k| version_key(&k.version));
    Ok(kernels)
}

fn kernel(line: &str) -> Option<Kernel> {
    let mut words = line.splitn(3, ' ');
    let (version, state, rest) = (words.next()?, words.next()?, words.next()?);
    let missing = match state {
        "ready" => None,
        "missing" => Some(rest.to_string()),
        _ => return None,
    };
    Some(Kernel {
        version: version.to_string(),
        missing,
    })
}

/// The newest kernel, which every machine must have: as new as the newest of
/// the list, and there.
pub fn newest() -> Result<String, String> {
    let kernels = kernels()?;
    let last = kernels.last().ok_or("scripts/kernels names no kernel")?;
    match &last.missing {
        None => Ok(last.version.clone()),
        Some(reason) => Err(format!(
            "the newest kernel, {}, must run: {reason}",
            last.version
        )),
    }
}

/// Where the programs under test are, for the guest's PATH.
fn bin_dir() -> PathBuf {
    let bin = Path::new(env!("CARGO_BIN_EXE_scx_fulcrum"));
    bin.parent().unwrap_or(root()).to_path_buf()
}

/// Run a command in a VM. Each line is printed as it comes, so that a person
/// sees how far it is.
pub fn vm(title: &str, options: &[&str], command: &[&str]) -> Result<Run, Failed> {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = format!(
        "PATH={}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        bin_dir().display()
    );
    let mut child = Command::new(root().join("scripts/vm"))
        .current_dir(root())
        // A busy machine may boot slowly, which is no fault of what is tested.
        .args(["--env", &path, "--boot-timeout", "240"])
        .args(options)
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = Vec::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line?.trim_end_matches('\r').to_string();
            println!("  {title}: {line}");
            lines.push(line);
        }
    }
    Ok(Run {
        lines,
        status: child.wait()?,
    })
}

/// What the steps of `tests/guest/check.sh` say: nothing, or what failed.
pub fn verdict(run: &Run) -> Result<(), Failed> {
    let step = |l: &&String| ["ok ", "not ok ", "skip "].iter().any(|p| l.starts_with(p));
    let steps = run.lines.iter().filter(step).count();
    let failed: Vec<&str> = run
        .lines
        .iter()
        .filter(|l| l.starts_with("not ok "))
        .map(String::as_str)
        .collect();
    if !failed.is_empty() {
        return Err(failed.join("\n").into());
    }
    if !run.status.success() {
        return Err(format!("ended with {} after {steps} steps", run.status).into());
    }
    let plan = run.lines.iter().rev().find_map(|l| l.strip_prefix("1.."));
    match plan.and_then(|n| n.parse::<usize>().ok()) {
        Some(planned) if planned == steps && steps > 0 => Ok(()),
        planned => Err(format!("{steps} steps seen, {planned:?} planned").into()),
    }
}

/// Why real kernels are not run by whoever runs `cargo test` for a second.
fn not_asked_for() -> Option<&'static str> {
    match std::env::var_os("FULCRUM_VM_TESTS") {
        Some(_) => None,
        None => Some("boots VMs for minutes: scripts/test vm runs it (or set FULCRUM_VM_TESTS=1)"),
    }
}

/// A test that boots a VM, twice if need be.
pub fn trial<F>(name: impl Into<String>, test: F) -> Trial
where
    F: Fn() -> Result<(), Failed> + Send + 'static,
{
    let name = name.into();
    match not_asked_for() {
        Some(reason) => skipped(name, reason),
        None => Trial::test(name.clone(), move || twice(&name, test)),
    }
}

/// Runs a test that failed once more, in a boot of its own: what fails twice is
/// broken. What then passes is named with what failed, for a fault that comes
/// now and then is one all the same; `scripts/test` repeats it in its summary.
pub fn twice(name: &str, test: impl Fn() -> Result<(), Failed>) -> Result<(), Failed> {
    let Err(first) = test() else { return Ok(()) };
    let reason = first.message().unwrap_or("no reason given");
    println!("  {name}: once more, as it failed: {reason}");
    test()?;
    println!("unsteady {name}: {}", reason.replace('\n', "; "));
    Ok(())
}

/// A test that can't run, and why.
pub fn skipped(name: impl Into<String>, reason: &str) -> Trial {
    let reason = reason.to_string();
    Trial::ignorable_test(name, move || Ok(Completion::ignored_with(reason)))
}

/// Run the tests one after the other. Not by asking for one thread: then the
/// test's name would be printed first and its result after all that it printed.
pub fn run(trials: Vec<Trial>) -> Conclusion {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials)
}
