// SPDX-License-Identifier: GPL-2.0-only
//! Compiles bpf/fulcrum.bpf.c into a skeleton and stamps the version.
//!
//! Needs a clang that targets BPF and nothing else: no kernel headers, no
//! bpftool, no vmlinux.h.

#[path = "build/policies.rs"]
mod policies;
#[path = "build/sim.rs"]
mod sim;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "bpf/fulcrum.bpf.c";

fn main() {
    if let Err(message) = build() {
        eprintln!("scx_fulcrum: {message}");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    println!("cargo:rustc-env=FULCRUM_VERSION={}", version());
    // A directory stands for every file below it.
    println!("cargo:rerun-if-changed=bpf");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: build with cargo")?);
    let clang = clang();
    policies::generate()?;
    sim::build(&clang)?;
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang(clang)
        .clang_args(["-O2", "-g", "-mcpu=v3", "-Wall", "-Werror", "-I", "bpf"])
        .build_and_generate(out.join("fulcrum.skel.rs"))
        .map_err(|error| format!("building {SOURCE} failed: {error:#}"))
}

/// `.cargo/config.toml` sets `BPF_CLANG` to a script that finds one.
fn clang() -> OsString {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    env::var_os("BPF_CLANG")
        .filter(|value| !value.is_empty())
        .unwrap_or_else(|| "clang".into())
}

/// `VERSION-gHASH`; without the hash when this is not a git checkout of its
/// own (a release archive), or when scx_utils gets one to append.
fn version() -> String {
    println!("cargo:rerun-if-env-changed=SCX_GIT_SHA");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let hash = match env::var_os("SCX_GIT_SHA") {
        Some(_) => None,
        None => git_hash(),
    };
    hash.map_or(version.clone(), |hash| format!("{version}-g{hash}"))
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
