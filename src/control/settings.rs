// SPDX-License-Identifier: GPL-2.0-only
//! What can be set while the scheduler runs: its knobs, their ranges, and the
//! modes, which are settings with a name.
//!
//! One language for the command line, `scx_fulcrum set` and the modes: values
//! by key. A set is taken whole or not at all.

use std::fmt;
use std::ops::RangeInclusive;

use crate::exit::shown;

/// CPU time that a busy task of normal weight gets at a time, in microseconds.
pub const SLICE_US: RangeInclusive<u64> = 100..=100_000;

/// How far a task may fall behind while it sleeps, in microseconds of CPU
/// time: what it may then catch up on at once, before others.
pub const CREDIT_US: RangeInclusive<u64> = 0..=30_000;

/// The keys that can be set.
pub const KEYS: &str = "mode, policy, slice-us, credit-us";

/// A policy of `bpf/policy/table.h`.
#[derive(Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// What users call it.
    pub name: &'static str,
    /// The slice that it brings, in microseconds.
    pub slice_us: u64,
    /// The credit that it brings, in microseconds.
    pub credit_us: u64,
    /// What it is good for.
    pub text: &'static str,
}

/// All policies; a policy's place is its number in the BPF program.
pub const POLICIES: &[PolicyInfo] = include!(concat!(env!("OUT_DIR"), "/policies.rs"));

/// A name for settings, of those that scheduler loaders use.
#[derive(Debug, PartialEq, Eq)]
pub struct Mode {
    /// What users and loaders call it.
    pub name: &'static str,
    /// What it sets, by key.
    pub values: &'static [(&'static str, &'static str)],
    /// What it is good for.
    pub text: &'static str,
}

/// All modes.
pub const MODES: &[Mode] = &[
    Mode {
        name: "auto",
        values: &[("policy", "fair")],
        text: "what suits most machines",
    },
    Mode {
        name: "gaming",
        values: &[("policy", "latency")],
        text: "frames in time beside whatever else runs",
    },
    Mode {
        name: "lowlatency",
        values: &[
            ("policy", "latency"),
            ("slice-us", "500"),
            ("credit-us", "30000"),
        ],
        text: "audio: wakeups before everything else",
    },
    Mode {
        name: "powersave",
        values: &[("policy", "batch"), ("slice-us", "20000")],
        text: "few switches and interruptions",
    },
    Mode {
        name: "server",
        values: &[("policy", "fair"), ("slice-us", "6000")],
        text: "throughput, with requests still served at once",
    },
];

/// One of [`POLICIES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy(usize);

impl Policy {
    /// Its number in the BPF program.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    /// The policy called `name`.
    ///
    /// # Errors
    ///
    /// A sentence with all names, if there is none.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = POLICIES.iter().position(|policy| policy.name == name);
        found.map(Self).ok_or_else(|| {
            let names: Vec<_> = POLICIES.iter().map(|policy| policy.name).collect();
            format!("not one of {}", names.join(", "))
        })
    }

    /// What the table says of it.
    pub fn info(self) -> &'static PolicyInfo {
        POLICIES.get(self.0).unwrap_or(&POLICIES[0])
    }
}

/// The mode called `name`.
///
/// # Errors
///
/// A sentence with all names, if there is none.
pub fn mode(name: &str) -> Result<&'static Mode, String> {
    let found = MODES.iter().find(|mode| mode.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = MODES.iter().map(|mode| mode.name).collect();
        format!("not one of {}", names.join(", "))
    })
}

/// A number for a key whose values are in `range`.
///
/// # Errors
///
/// A sentence with the range.
pub fn number(text: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    match text.parse() {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => Err(format!(
            "not a whole number in {}..={}",
            range.start(),
            range.end()
        )),
    }
}

/// The knobs as they are set. Always valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    policy: Policy,
    slice_us: u64,
    credit_us: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self::of(Policy::default())
    }
}

impl Settings {
    /// A policy with the slice and the credit that it brings.
    pub fn of(policy: Policy) -> Self {
        let info = policy.info();
        Self {
            policy,
            slice_us: info.slice_us,
            credit_us: info.credit_us,
        }
    }

    /// The policy.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// The slice in microseconds, within [`SLICE_US`].
    pub const fn slice_us(&self) -> u64 {
        self.slice_us
    }

    /// The credit in microseconds, within [`CREDIT_US`].
    pub const fn credit_us(&self) -> u64 {
        self.credit_us
    }

    /// These settings with `values` by key. A policy or mode resets slice and
    /// credit to those that it brings; a slice or credit named beside it
    /// stands, whatever the order.
    ///
    /// # Errors
    ///
    /// What is wrong with the first bad value; then nothing is to be changed.
    pub fn with(&self, values: &[(String, String)]) -> Result<Self, String> {
        if values.is_empty() {
            return Err(format!("nothing to set: name one of {KEYS}"));
        }
        let keys = values.iter().map(|(key, _)| key);
        for (at, key) in keys.enumerate() {
            if values.iter().take(at).any(|(other, _)| other == key) {
                return Err(format!("{} is given twice: name it once", shown(key)));
            }
        }
        let given = |key: &str| values.iter().any(|(other, _)| other == key);
        if given("mode") && given("policy") {
            return Err("mode and policy exclude each other: a mode chooses a policy".to_string());
        }
        let mut settings = self.clone();
        // What chooses a policy goes first.
        let (first, rest): (Vec<_>, Vec<_>) = values
            .iter()
            .partition(|(key, _)| key == "mode" || key == "policy");
        for (key, value) in first.into_iter().chain(rest) {
            settings.set(key, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = |why: String| format!("{} is {why}", shown(&format!("{key}={value}")));
        match key {
            "policy" => *self = Self::of(Policy::named(value).map_err(wrong)?),
            "mode" => {
                for (key, value) in mode(value).map_err(wrong)?.values {
                    self.set(key, value)?;
                }
            }
            "slice-us" => self.slice_us = number(value, &SLICE_US).map_err(wrong)?,
            "credit-us" => self.credit_us = number(value, &CREDIT_US).map_err(wrong)?,
            _ => {
                let pair = shown(&format!("{key}={value}"));
                return Err(format!("{pair}: no such key: there are {KEYS}"));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, slice, credit) = (self.policy.info().name, self.slice_us, self.credit_us);
        write!(f, "policy={name} slice-us={slice} credit-us={credit}")
    }
}

/// Split `KEY=VALUE` arguments.
///
/// # Errors
///
/// Which of them is none.
pub fn split(arguments: &[String]) -> Result<Vec<(String, String)>, String> {
    let pair = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{} is not KEY=VALUE: the keys are {KEYS}", shown(text)))?;
        Ok((key.to_string(), value.to_string()))
    };
    arguments.iter().map(pair).collect()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
