// SPDX-License-Identifier: GPL-2.0-only
//! Commands to the BPF program (`bpf/seat.h`): all that the agent changes while
//! it schedules goes through one program that refuses whoever no longer sits.

use std::path::PathBuf;
use std::time::Duration;
use std::{io, ptr};

use libbpf_rs::ProgramInput;

use super::command::{Command, Seated, take_seat};
use super::scheduler::Scheduler;
use super::seat::{self, Seat};
use super::skeleton::types::{agent_command, agent_seat, wait_report};
use super::view::read_trimmed;
use crate::agent::diagnosis::{Reason, Wait};
use crate::agent::ledger::Sample;

/// Another agent's command is under way: it takes microseconds.
const TRIES: u32 = 100;

impl Scheduler<'_> {
    /// Become the agent that steers. Without a seat it schedules all the same,
    /// and nothing can be changed.
    pub(super) fn take_seat(&mut self) {
        self.seated = Seated::default();
        match u32::try_from(self.run(&mut take_seat())) {
            Ok(epoch) => self.seated.epoch = epoch,
            Err(_) => log::warn!("no seat: knobs can't be set, and nothing is balanced"),
        }
    }

    /// Give a command: its number, or `None` if it was refused.
    pub fn steer(&mut self, command: Command) -> Option<u32> {
        let generation = self.seated.generation.wrapping_add(1);
        self.seated.generation = generation;
        let result = self.run(&mut command.numbered(self.seated.epoch, generation));
        if result < 0 {
            log::debug!("command refused: {}", io::Error::from_raw_os_error(-result));
        }
        (result >= 0).then_some(generation)
    }

    /// Runs `fulcrum_steer()`.
    fn run(&self, command: &mut agent_command) -> i32 {
        for _ in 0..TRIES {
            // SAFETY: `Plain`, see `command`: no padding, and any bytes are valid.
            let bytes = unsafe { plain::as_mut_bytes(command) };
            let input = ProgramInput {
                context_in: Some(bytes),
                ..ProgramInput::default()
            };
            match self.skel.progs.fulcrum_steer.test_run(input) {
                Ok(output) if output.return_value as i32 == -libc::EBUSY => {}
                Ok(output) => return output.return_value as i32,
                Err(error) => {
                    log::debug!("fulcrum_steer: {error:#}");
                    return -libc::EIO;
                }
            }
        }
        -libc::EBUSY
    }

    /// Who steers, and whether it answers.
    pub fn seat(&self) -> Seat {
        let raw = self.raw_seat();
        Seat::of(&raw, seat::monotonic())
    }

    fn raw_seat(&self) -> agent_seat {
        let data = self.skel.maps.data_fulcrum_data.as_deref();
        // SAFETY: mapped memory that the BPF program writes meanwhile; any mix of
        // older and newer words is valid.
        data.map_or_else(agent_seat::default, |data| unsafe {
            ptr::read_volatile(&data.seat)
        })
    }

    /// A look at each CPU below `cpus`.
    pub fn samples(&self, cpus: usize) -> Vec<Sample> {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else {
            return Vec::new();
        };
        let both = bss.cpus.iter().zip(&bss.balance);
        both.take(cpus.min(self.cpu_limit()))
            .map(|(cpu, told)| Sample::read(cpu, told))
            .collect()
    }

    /// Reports of long waits after number `seen`, as far as they are kept.
    pub fn waits_after(&self, seen: u32) -> Vec<Wait> {
        let Some(bss) = self.skel.maps.bss_data.as_deref() else {
            return Vec::new();
        };
        let kept = bss.wait_reports.last.iter().map(|report| {
            // SAFETY: as above; one that is being written has number 0.
            unsafe { ptr::read_volatile(report) }
        });
        let mut waits: Vec<Wait> = kept
            .filter(|report| report.number.wrapping_sub(seen) as i32 > 0 && report.number != 0)
            .filter_map(|report| wait(&report))
            .collect();
        waits.sort_by_key(|wait| wait.number.wrapping_sub(seen));
        waits
    }

    /// The number of the last call made to the agent.
    pub fn calls(&self) -> u32 {
        self.raw_seat().calls
    }
}

/// The name of a task; `?` if it is gone.
fn comm(pid: u32) -> String {
    let path = PathBuf::from(format!("/proc/{pid}/comm"));
    read_trimmed(&path).unwrap_or_else(|_| "?".to_string())
}

fn wait(report: &wait_report) -> Option<Wait> {
    Some(Wait {
        number: report.number,
        pid: report.pid,
        comm: comm(report.pid),
        cpu: report.cpu,
        weight: report.weight,
        waited: Duration::from_millis(report.waited_ms.into()),
        reason: Reason::numbered(report.reason)?,
    })
}
