// SPDX-License-Identifier: GPL-2.0-only
//! `fence`: two processes that both take themselves for the agent of the
//! scx_fulcrum that runs, at the same time. Each takes the seat, gives commands
//! until it is refused and a few more, over and over. Whoever knew before a
//! command that the other sits must be refused.

use crate::report::{self, Report};
use anyhow::{Context, Result, ensure};
use clap::Args;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Program, libbpf_sys};
use scx_fulcrum::agent::planner::Move;
use scx_fulcrum::kernel::command::{self, Command};
use scx_fulcrum::kernel::seat::Seat;
use scx_fulcrum::sim::ffi::agent_command;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

/// Commands that an agent gives at most between two times that it sits down.
const COMMANDS: u32 = 64;

/// ... and those that it goes on to give once it was refused.
const STUBBORN: u32 = 3;

#[derive(Args)]
pub struct FenceArgs {
    /// How often each of the two takes the seat
    #[arg(long, default_value_t = 1000)]
    rounds: u32,
    /// Be one of the two
    #[arg(long, hide = true)]
    rival: bool,
}

/// What one of them saw, or both.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FenceReport {
    /// Times that the seat was taken.
    taken: u32,
    obeyed: u32,
    refused: u32,
    /// Refused, and it was known before that the other sits.
    refused_rightly: u32,
    /// Obeyed although the other sat already.
    violations: u32,
}

/// The door to the scheduler that runs.
struct Door(OwnedFd);

impl Door {
    fn find() -> Result<Self> {
        let program = ProgInfoIter::default().find(|program| program.name == "fulcrum_steer");
        let id = program.context("no scx_fulcrum runs: start it first")?.id;
        Ok(Self(Program::fd_from_id(id)?))
    }

    /// What `fulcrum_steer()` answers.
    fn steer(&self, command: &mut agent_command) -> Result<i32> {
        // SAFETY: plain integers, for which zero is valid.
        let mut options = unsafe { std::mem::zeroed::<libbpf_sys::bpf_test_run_opts>() };
        options.sz = size_of_val(&options) as _;
        options.ctx_in = std::ptr::from_mut(command).cast();
        options.ctx_size_in = size_of_val(command) as _;
        loop {
            // SAFETY: the options point to a command of ours of that size.
            let error =
                unsafe { libbpf_sys::bpf_prog_test_run_opts(self.0.as_raw_fd(), &raw mut options) };
            ensure!(error == 0, "fulcrum_steer can't be run: {error}");
            // The other one is just in there.
            if options.retval as i32 != -libc::EBUSY {
                return Ok(options.retval as i32);
            }
        }
    }
}

fn sits() -> Result<u32> {
    Ok(Seat::find().context("the scheduler is gone")?.epoch)
}

/// Take the seat, and give commands until somebody else has it.
fn round(door: &Door, seen: &mut FenceReport) -> Result<()> {
    let epoch = door.steer(&mut command::take_seat())?;
    ensure!(epoch > 0, "no epoch but {epoch}");
    let epoch = epoch as u32;
    seen.taken += 1;
    let hint = Move {
        to: 0,
        from: 0,
        tasks: 1,
    };
    let mut refusals = 0;
    for number in 1..=COMMANDS {
        let overtaken = sits()? != epoch;
        let command = Command::hint(hint, Duration::from_millis(1));
        let answer = door.steer(&mut command.numbered(epoch, number))?;
        let refused = answer == -libc::ESTALE;
        ensure!(refused || answer >= 0, "answer {answer}");
        ensure!(refused || refusals == 0, "refused, and obeyed afterwards");
        seen.obeyed += u32::from(!refused);
        seen.refused += u32::from(refused);
        seen.refused_rightly += u32::from(refused && overtaken);
        seen.violations += u32::from(!refused && overtaken);
        refusals += u32::from(refused);
        if refusals > STUBBORN {
            break;
        }
    }
    Ok(())
}

fn rival(args: &FenceArgs) -> Result<FenceReport> {
    let door = Door::find()?;
    let mut seen = FenceReport::default();
    for _ in 0..args.rounds {
        round(&door, &mut seen)?;
    }
    Ok(seen)
}

pub fn fence(args: &FenceArgs) -> Result<FenceReport> {
    if args.rival {
        return rival(args);
    }
    let before = Seat::find().context("no scx_fulcrum runs: start it first")?;
    let rounds = args.rounds.to_string();
    let mut child = std::process::Command::new(std::env::current_exe()?);
    let child = child.args(["--json", "fence", "--rival", "--rounds", &rounds]);
    let child = child.stdout(Stdio::piped()).spawn()?;
    let ours = rival(args)?;
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "the other ended with {}",
        output.status
    );
    let theirs: FenceReport =
        serde_json::from_slice(&output.stdout).context("the other's report")?;
    let after = Seat::find().context("the scheduler is gone")?;
    let both = FenceReport {
        taken: ours.taken + theirs.taken,
        obeyed: ours.obeyed + theirs.obeyed,
        refused: ours.refused + theirs.refused,
        refused_rightly: ours.refused_rightly + theirs.refused_rightly,
        violations: ours.violations + theirs.violations,
    };
    // Nobody got an epoch that another had, and no refusal was forgotten. The real
    // agent, which no longer sits, may have been refused now and then.
    ensure!(
        after.epoch - before.epoch == both.taken,
        "{} epochs for {} that took the seat",
        after.epoch - before.epoch,
        both.taken
    );
    ensure!(
        after.refused - before.refused >= both.refused,
        "{} refusals counted, {} seen",
        after.refused - before.refused,
        both.refused
    );
    Ok(both)
}

impl fmt::Display for FenceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fence: the seat taken {} times by two, {} commands obeyed, {} refused ({} of them known \
             to be late), {} obeyed that were known to be late",
            self.taken, self.obeyed, self.refused, self.refused_rightly, self.violations
        )
    }
}

impl Report for FenceReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("fence", self)
    }

    fn verdict(&self) -> Result<()> {
        ensure!(
            self.violations == 0,
            "{} commands of an old epoch obeyed",
            self.violations
        );
        ensure!(self.refused_rightly > 0, "the two never met: {self}");
        Ok(())
    }
}
