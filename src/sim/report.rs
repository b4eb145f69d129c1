// SPDX-License-Identifier: GPL-2.0-only
//! What people read when a run failed.

use std::fmt::Write;

use super::machine::Machine;

/// The failure with its seed, the last decisions, and the command that
/// repeats it.
#[must_use]
pub fn failure(machine: &Machine, command: &str) -> String {
    let reason = machine.failure.as_deref().unwrap_or("no failure");
    let mut text = format!(
        "{reason}\nat {:.3} us, seed {}, {} CPUs; the last decisions:\n",
        machine.now as f64 / 1000.0,
        machine.cfg.seed,
        machine.cfg.topology.cpus,
    );
    for decision in machine.log.last() {
        // A String takes whatever is written.
        let _ = writeln!(text, "  {decision}");
    }
    let _ = write!(text, "repeat it with: {command}");
    text
}
