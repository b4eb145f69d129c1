// SPDX-License-Identifier: GPL-2.0-only
//! `build`: a real `make -j` of a C program while frame tasks draw beside it.

use crate::burn::Rate;
use crate::cpus::CpuList;
use crate::periodic::{self, PeriodicReport};
use crate::report::{self, Report};
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(Args)]
pub struct BuildArgs {
    /// The program that writes the sources into a folder given to it
    #[arg(long, default_value = "tests/guest/cprog.sh")]
    writer: PathBuf,
    /// Jobs for each CPU
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    #[command(flatten)]
    frames: periodic::FramesArgs,
}

#[derive(Serialize)]
pub struct BuildReport {
    jobs: usize,
    build_s: f64,
    frames: PeriodicReport,
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("{name} is not there: run scripts/setup"))?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

pub fn build(args: &BuildArgs, rate: Rate) -> Result<BuildReport> {
    let jobs = args.jobs * CpuList::allowed()?.len();
    let folder = std::env::temp_dir().join(format!("fulcrum-build.{}", std::process::id()));
    run(Command::new(&args.writer).arg(&folder))?;
    let mut build_s = 0.0;
    let frames = periodic::frames_during(&args.frames, rate, || {
        let began = Instant::now();
        run(Command::new("make")
            .args(["-s", "-j", &jobs.to_string(), "-C"])
            .arg(&folder))?;
        build_s = began.elapsed().as_secs_f64();
        Ok(())
    });
    std::fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    Ok(BuildReport {
        jobs,
        build_s,
        frames: frames?,
    })
}

impl fmt::Display for BuildReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "build: make -j {} took {:.2} s", self.jobs, self.build_s)?;
        write!(f, "{}", self.frames)
    }
}

impl Report for BuildReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("build", self)
    }
}
