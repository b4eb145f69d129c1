// SPDX-License-Identifier: GPL-2.0-only
//! What the guest hands over: one JSON object a line, marked so that the line
//! is found among what programs print.

use super::rows::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Begins each line that is a record.
const MARK: &str = "@bench ";

/// The kernel's own scheduler, run without anything loaded.
pub const EEVDF: &str = "EEVDF";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "record")]
pub enum Record {
    /// The first of a boot.
    Boot(Boot),
    /// What a scheduler's program says of its version.
    Scheduler { name: String, version: String },
    /// One measured number.
    Figure(Measured),
    /// A scheduler that did not load, or a case that it did not survive.
    Failed(Failed),
    /// What scheduling itself cost in one case.
    Cost(Cost),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    pub mode: Mode,
    pub kernel: String,
    pub cpus: usize,
}

/// Visits are counted through a boot; EEVDF has the first and the last, and one
/// between any two rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub visit: usize,
    pub scheduler: String,
    pub key: String,
    pub value: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    pub visit: usize,
    pub scheduler: String,
    /// The rows of the case; empty if the scheduler did not load.
    pub rows: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub scheduler: String,
    /// What it is about: `per wakeup` or `scheduler process`
    pub about: String,
    pub values: BTreeMap<String, f64>,
}

impl Record {
    pub fn line(&self) -> serde_json::Result<String> {
        Ok(format!("{MARK}{}", serde_json::to_string(self)?))
    }

    /// None of a line that is something else.
    pub fn parse(line: &str) -> Option<serde_json::Result<Self>> {
        line.trim_end_matches('\r')
            .strip_prefix(MARK)
            .map(serde_json::from_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_as_they_are_written() {
        let records = [
            Record::Boot(Boot {
                mode: Mode::Metronome,
                kernel: "7.3.4".to_string(),
                cpus: 2,
            }),
            Record::Figure(Measured {
                visit: 3,
                scheduler: EEVDF.to_string(),
                key: "L1 p99".to_string(),
                value: 0.1,
            }),
        ];
        for record in records {
            let line = record.line().unwrap();
            assert_eq!(Record::parse(&line).unwrap().unwrap(), record);
            assert_eq!(Record::parse(&(line + "\r")).unwrap().unwrap(), record);
        }
        assert!(Record::parse("hackbench: 1").is_none());
        assert!(Record::parse("@bench {").unwrap().is_err());
    }
}
