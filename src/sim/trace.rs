// SPDX-License-Identifier: GPL-2.0-only
//! A run as a trace file: the JSON that Chrome's and Perfetto's viewers read.

use std::io::{self, Write};

use super::log::What;
use super::machine::Machine;

/// Writes all decisions of `machine`, which kept them: a row a CPU, a bar for
/// each stretch that a task ran, a mark for everything else.
///
/// # Errors
///
/// Those of `out`.
pub fn write(machine: &Machine, out: &mut impl Write) -> io::Result<()> {
    let mut running = vec![None; machine.cfg.topology.cpus];
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    write!(
        out,
        "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{{\"name\":\"CPUs\"}}}}"
    )?;
    for decision in machine.log.all() {
        let cpu = decision.cpu as usize;
        let at = decision.time as f64 / 1000.0;
        let ends = matches!(
            decision.what,
            What::Run | What::Idle | What::Sleep | What::Preempt
        );
        if ends && let Some((task, since)) = running[cpu].take() {
            bar(machine, out, cpu, task, (since, at))?;
        }
        if decision.what == What::Run {
            running[cpu] = Some((decision.task, at));
        } else if !ends {
            write!(
                out,
                ",\n{{\"name\":\"{:?}\",\"ph\":\"i\",\"s\":\"t\",\"pid\":0,\"tid\":{cpu},\"ts\":{at},\
                 \"args\":{{\"task\":{},\"argument\":\"{:#x}\"}}}}",
                decision.what,
                i64::from(decision.task as i32),
                decision.argument
            )?;
        }
    }
    let end = machine.now as f64 / 1000.0;
    for (cpu, open) in running.into_iter().enumerate() {
        if let Some((task, since)) = open {
            bar(machine, out, cpu, task, (since, end))?;
        }
    }
    writeln!(out, "\n]}}")
}

fn bar(
    machine: &Machine,
    out: &mut impl Write,
    cpu: usize,
    task: u32,
    (since, until): (f64, f64),
) -> io::Result<()> {
    // Names come from files: only what JSON takes as it is.
    let name: String = machine
        .name(task as usize)
        .chars()
        .map(|c| {
            if c == '"' || c == '\\' || c.is_control() {
                '_'
            } else {
                c
            }
        })
        .collect();
    write!(
        out,
        ",\n{{\"name\":\"{name}\",\"ph\":\"X\",\"pid\":0,\"tid\":{cpu},\"ts\":{since},\"dur\":{:.3}}}",
        until - since
    )
}
