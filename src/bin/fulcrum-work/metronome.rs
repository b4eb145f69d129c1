// SPDX-License-Identifier: GPL-2.0-only
//! `metronome`: keeps QEMU's instruction-count clock from handing out long
//! vCPU turns.
//!
//! With `-icount`, QEMU gives each busy vCPU a turn of (time to the next
//! virtual timer) / vCPUs, so a timer interrupt for one vCPU can wait for
//! another's turn (some 600 us). A periodic PIT keeps the next virtual timer
//! near. Its interrupt stays masked in the guest, so the guest executes
//! nothing extra. Needs `-machine hpet=off`, and root in the guest.

use crate::report::{self, Report};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::fmt;

#[derive(Args)]
pub struct MetronomeArgs {
    /// Ticks of the 1.19 MHz timer between two interrupts
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u16).range(12..))]
    ticks: u16,
}

#[derive(Serialize)]
pub struct MetronomeReport {
    ticks: u16,
    period_us: f64,
}

pub fn metronome(args: &MetronomeArgs) -> Result<MetronomeReport> {
    program(args.ticks)?;
    Ok(MetronomeReport {
        ticks: args.ticks,
        period_us: f64::from(args.ticks) * 1e6 / 1_193_182.0,
    })
}

#[cfg(target_arch = "x86_64")]
fn program(ticks: u16) -> Result<()> {
    use anyhow::Context;

    // SAFETY: asks only for the four ports of the interval timer.
    if unsafe { libc::ioperm(0x40, 4, 1) } != 0 {
        return Err(std::io::Error::last_os_error())
            .context("no access to the interval timer: run as root inside the VM");
    }
    let [low, high] = ticks.to_le_bytes();
    // SAFETY: the ports were granted above. Channel 0, low byte then high,
    // rate generator; then the divisor.
    unsafe {
        out(0x43, 0x34);
        out(0x40, low);
        out(0x40, high);
    }
    Ok(())
}

#[cfg(target_arch = "x86_64")]
unsafe fn out(port: u16, byte: u8) {
    // SAFETY: the caller holds permission for the port.
    unsafe {
        std::arch::asm!("out dx, al", in("dx") port, in("al") byte, options(nomem, nostack));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn program(_ticks: u16) -> Result<()> {
    anyhow::bail!("the metronome is the PC's interval timer: x86-64 guests only")
}

impl fmt::Display for MetronomeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metronome: every {:.1} us", self.period_us)
    }
}

impl Report for MetronomeReport {
    fn json(&self) -> serde_json::Result<String> {
        report::object("metronome", self)
    }
}
