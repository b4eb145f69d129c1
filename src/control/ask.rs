// SPDX-License-Identifier: GPL-2.0-only
//! What is said on the stream socket: requests, a line of JSON each.
//!
//! docs/stream.md teaches it.

use serde::Deserialize;

use crate::stats::observer::Sections;

/// Frames a second that can be asked for; others get the nearest.
pub const RATES: &[f64] = &[0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// How to ask, in an answer to what was not understood.
const HELP: &str = "send {\"subscribe\":\"figures\",\"hz\":1}, {\"subscribe\":\"events\"} or \
                    {\"ask\":\"frame\"}, a line each";

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Frames, so many a second (one of [`RATES`]).
    Figures(f64, Sections),
    /// Events as they happen.
    Events,
    /// One frame, over the time since the scheduler was attached.
    Frame(Sections),
    /// One task, and why it last waited.
    Explain(u32),
    /// The last decisions, of one CPU or of all.
    Recorder(Option<u32>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Raw {
    subscribe: Option<String>,
    ask: Option<String>,
    hz: Option<f64>,
    sections: Option<Vec<String>>,
    pid: Option<u32>,
    cpu: Option<u32>,
}

impl Ask {
    /// What the line `text` asks for.
    ///
    /// # Errors
    ///
    /// A sentence for whoever sent it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let raw: Raw = serde_json::from_slice(text)
            .map_err(|error| format!("not understood ({error}): {HELP}"))?;
        let sections = raw
            .sections
            .as_deref()
            .map_or(Ok(Sections::ALL), Sections::named);
        match (raw.subscribe.as_deref(), raw.ask.as_deref()) {
            (Some("figures"), None) => Ok(Self::Figures(rate(raw.hz.unwrap_or(1.0))?, sections?)),
            (Some("events"), None) => Ok(Self::Events),
            (None, Some("frame")) => Ok(Self::Frame(sections?)),
            (None, Some("explain")) => match raw.pid {
                Some(pid) if pid > 0 => Ok(Self::Explain(pid)),
                _ => Err("explain whom? send {\"ask\":\"explain\",\"pid\":1}".to_string()),
            },
            (None, Some("recorder")) => Ok(Self::Recorder(raw.cpu)),
            _ => Err(format!("not understood: {HELP}")),
        }
    }
}

/// The rate nearest to `hz`, by ratio.
fn rate(hz: f64) -> Result<f64, String> {
    if !(0.05..=50.0).contains(&hz) {
        return Err(format!("hz {hz} is not in 0.1..=20"));
    }
    let apart = |rate: &f64| (rate / hz).ln().abs();
    let nearest = RATES
        .iter()
        .copied()
        .min_by(|a, b| apart(a).total_cmp(&apart(b)));
    Ok(nearest.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Ask, String> {
        Ask::parse(text.as_bytes())
    }

    #[test]
    fn requests_are_told_from_nonsense() {
        assert_eq!(
            parsed("{\"subscribe\":\"figures\"}"),
            Ok(Ask::Figures(1.0, Sections::ALL))
        );
        let some = parsed("{\"subscribe\":\"figures\",\"hz\":4,\"sections\":[\"cpus\"]}");
        let cpus = Sections {
            cpus: true,
            ..Sections::default()
        };
        assert_eq!(some, Ok(Ask::Figures(5.0, cpus)));
        assert_eq!(parsed("{\"subscribe\":\"events\"}"), Ok(Ask::Events));
        assert_eq!(
            parsed("{\"ask\":\"explain\",\"pid\":5}"),
            Ok(Ask::Explain(5))
        );
        assert_eq!(parsed("{\"ask\":\"recorder\"}"), Ok(Ask::Recorder(None)));
        for bad in [
            "",
            "{}",
            "[]",
            "7",
            "null",
            "{\"subscribe\":\"all\"}",
            "{\"subscribe\":\"events\",\"ask\":\"frame\"}",
            "{\"subscribe\":7}",
            "{\"ask\":\"explain\"}",
            "{\"ask\":\"explain\",\"pid\":-1}",
            "{\"ask\":\"frame\",\"sections\":[\"x\"]}",
            "{\"ask\":\"frame\",\"more\":1}",
            "{\"subscribe\":\"figures\",\"hz\":0}",
            "{\"subscribe\":\"figures\",\"hz\":1e9}",
            "{\"subscribe\":\"figures\",\"hz\":\"fast\"}",
            "\u{0}\u{fffd}",
        ] {
            let message = parsed(bad).unwrap_err();
            assert_eq!(message.lines().count(), 1, "{bad}: {message}");
        }
        assert!(Ask::parse(&[0xff, 0xfe]).is_err());
    }

    #[test]
    fn rates_are_rounded_by_ratio() {
        for (hz, expected) in [
            (0.05, 0.1),
            (0.3, 0.2),
            (1.4, 1.0),
            (3.0, 2.0),
            (50.0, 20.0),
        ] {
            assert_eq!(rate(hz), Ok(expected), "{hz}");
        }
        assert!(rate(f64::NAN).is_err());
    }
}
