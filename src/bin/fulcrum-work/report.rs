// SPDX-License-Identifier: GPL-2.0-only
//! How a workload hands over what it measured: a few lines for people or one
//! JSON object for programs, and bounds that make the command fail.

use anyhow::{Result, bail};
use serde::Serialize;
use std::fmt::Display;

/// What every workload returns: readable by `Display`, by programs as JSON.
pub trait Report: Display {
    fn json(&self) -> serde_json::Result<String>;

    /// Whether the bounds given on the command line hold.
    fn verdict(&self) -> Result<()> {
        Ok(())
    }
}

/// One JSON object that names its workload.
pub fn object<T: Serialize>(workload: &str, fields: &T) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Named<'a, T> {
        workload: &'a str,
        #[serde(flatten)]
        fields: &'a T,
    }
    serde_json::to_string(&Named { workload, fields })
}

/// An error when `value` exceeds a bound that was given.
pub fn at_most(what: &str, value: f64, bound: Option<f64>) -> Result<()> {
    match bound {
        Some(bound) if value.is_nan() || value > bound => {
            bail!("{what} is {value:.4}, above the bound of {bound}")
        }
        _ => Ok(()),
    }
}

/// An error when `value` falls below a bound that was given.
pub fn at_least(what: &str, value: f64, bound: Option<f64>) -> Result<()> {
    match bound {
        Some(bound) if value.is_nan() || value < bound => {
            bail!("{what} is {value:.4}, below the bound of {bound}")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_can_fail() {
        assert!(at_most("error", 0.021, Some(0.02)).is_err());
        assert!(at_most("error", 0.02, Some(0.02)).is_ok());
        assert!(at_most("error", f64::NAN, Some(0.02)).is_err());
        assert!(at_most("error", 9.0, None).is_ok());
        assert!(at_least("share", 0.29, Some(0.3)).is_err());
        assert!(at_least("share", f64::NAN, Some(0.3)).is_err());
        assert!(at_least("share", 0.3, Some(0.3)).is_ok());
    }
}
