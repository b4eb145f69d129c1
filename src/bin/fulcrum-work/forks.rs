// SPDX-License-Identifier: GPL-2.0-only
//! `forks`: processes that fork, let the child end (or run /bin/true first)
//! and wait for it, over and over.

use crate::crew::{Crew, Desk, Member};
use crate::report::{self, Report};
use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;
use std::{fmt, ptr};

#[derive(Args)]
pub struct ForksArgs {
    /// Processes that fork at the same time
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Let each child execute /bin/true
    #[arg(long)]
    exec: bool,
    /// Seconds to measure
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

#[derive(Serialize)]
pub struct ForksReport {
    workers: usize,
    exec: bool,
    seconds: f64,
    forks: u64,
    /// What one worker waits for one child, on average.
    us_per_fork: f64,
}

/// One child, from fork to wait. False when that failed.
fn one_child(exec: bool) -> bool {
    // SAFETY: single-threaded; the child only executes or leaves.
    unsafe {
        match libc::fork() {
            -1 => false,
            0 => {
                if exec {
                    let path = c"/bin/true";
                    let argv = [path.as_ptr(), ptr::null()];
                    libc::execv(path.as_ptr(), argv.as_ptr());
                }
                libc::_exit(i32::from(exec))
            }
            pid => {
                let mut status = 0;
                libc::waitpid(pid, &mut status, 0) == pid && status == 0
            }
        }
    }
}

fn storm(desk: &Desk, exec: bool) {
    while !desk.stopped() && one_child(exec) {
        desk.count();
    }
}

pub fn forks(args: &ForksArgs) -> Result<ForksReport> {
    let exec = args.exec;
    let member = || Member {
        nice: 0,
        cpus: None,
        samples: 0,
        work: Box::new(move |desk: &Desk| storm(desk, exec)),
    };
    let members: Vec<Member> = (0..args.workers).map(|_| member()).collect();
    let mut crew = Crew::muster(&members)?;
    let window = crew.observe(300, args.seconds)?;
    crew.stop()?;
    let forks: u64 = window.counts.iter().sum();
    ensure!(forks > 0, "not one child was run in the time given");
    Ok(ForksReport {
        workers: args.workers,
        exec,
        seconds: window.ns as f64 / 1e9,
        forks,
        us_per_fork: window.ns as f64 / 1e3 * args.workers as f64 / forks as f64,
    })
}

impl fmt::Display for ForksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "forks: {} workers{}, {:.2} s, {} children, {:.1} us each",
            self.workers,
            if self.exec { " with exec" } else { "" },
            self.seconds,
            self.forks,
            self.us_per_fork
        )
    }
}

impl Report for ForksReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("forks", self)
    }
}
