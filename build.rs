//! Compiles bpf/fulcrum.bpf.c into a skeleton and stamps the build id.
//!
//! Needs a clang that targets BPF and nothing else: no kernel headers, no
//! bpftool, no vmlinux.h.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "bpf/fulcrum.bpf.c";
const MIN_CLANG: u32 = 17;

fn main() {
    if let Err(message) = build() {
        eprintln!("scx_fulcrum: {message}");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    println!("cargo:rustc-env=FULCRUM_BUILD_ID={}", build_id());
    // A directory stands for every file below it.
    println!("cargo:rerun-if-changed=bpf");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: build with cargo")?);
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang(find_clang()?)
        .clang_args(["-O2", "-g", "-mcpu=v3", "-Wall", "-Werror", "-I", "bpf"])
        .build_and_generate(out.join("fulcrum.skel.rs"))
        .map_err(|error| format!("building {SOURCE} failed: {error:#}"))
}

/// `BPF_CLANG` if set (whoever sets it knows), else `clang` if it is new
/// enough, else the newest `clang-NN` on PATH.
fn find_clang() -> Result<OsString, String> {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    println!("cargo:rerun-if-env-changed=PATH");
    if let Some(clang) = env::var_os("BPF_CLANG").filter(|value| !value.is_empty()) {
        return Ok(clang);
    }
    if clang_major("clang").is_some_and(|major| major >= MIN_CLANG) {
        return Ok("clang".into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .filter_map(|dir| fs::read_dir(dir).ok())
        .flat_map(|dir| dir.flatten())
        .filter_map(|entry| {
            let major = entry
                .file_name()
                .to_str()?
                .strip_prefix("clang-")?
                .parse::<u32>()
                .ok()?;
            (major >= MIN_CLANG).then(|| (major, entry.path().into_os_string()))
        })
        .max()
        .map(|(_, clang)| clang)
        .ok_or_else(|| {
            format!(
                "no clang >= {MIN_CLANG} on PATH to compile {SOURCE}: run scripts/setup, \
                 or install one (Debian: apt install clang-19) or name it in BPF_CLANG"
            )
        })
}

fn clang_major(clang: &str) -> Option<u32> {
    let output = Command::new(clang).arg("-dumpversion").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.split('.').next()?.trim().parse().ok()
}

/// `VERSION-gHASH TARGET`, as the other scx schedulers spell it; without the
/// hash when this is not a git checkout of its own (a release archive).
fn build_id() -> String {
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let target = env::var("TARGET").unwrap_or_default();
    let profile = match env::var("PROFILE").as_deref() {
        Ok("debug") => "/debug",
        _ => "",
    };
    let hash = git_hash()
        .map(|hash| format!("-g{hash}"))
        .unwrap_or_default();
    format!("{version}{hash} {target}{profile}")
}

fn git_hash() -> Option<String> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    // An unpacked archive inside somebody else's checkout is not that commit.
    if top.canonicalize().ok()? != here.canonicalize().ok()? {
        return None;
    }
    // The log of HEAD moves with every commit and checkout.
    let head_log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&head_log).exists() {
        println!("cargo:rerun-if-changed={head_log}");
    }
    git(&["rev-parse", "--short=8", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
        .filter(|text| !text.is_empty())
}
