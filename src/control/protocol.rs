// SPDX-License-Identifier: GPL-2.0-only
//! What is said on the control socket: a line of JSON each way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::Settings;

/// What a client wants.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// The settings, and where they are in force.
    Get {},
    /// New values by key; all of them, or none.
    Set {
        /// Texts or numbers, as `scx_fulcrum set` takes them.
        values: BTreeMap<String, Value>,
    },
}

impl Request {
    /// What the line `text` asks for.
    ///
    /// # Errors
    ///
    /// A sentence for whoever sent it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| {
            format!(
                "not understood ({error}): send {{\"op\":\"get\"}} or \
                 {{\"op\":\"set\",\"values\":{{\"policy\":\"fair\"}}}}"
            )
        })
    }

    /// A request to set `values`.
    pub fn set(values: &[(String, String)]) -> Self {
        let value = |(key, value): &(String, String)| (key.clone(), Value::from(value.clone()));
        Self::Set {
            values: values.iter().map(value).collect(),
        }
    }
}

/// The values of a set request as texts.
///
/// # Errors
///
/// Which value is neither a text nor a number.
pub fn texts(values: &BTreeMap<String, Value>) -> Result<Vec<(String, String)>, String> {
    let text = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        Value::Number(number) => Ok((key.clone(), number.to_string())),
        _ => Err(format!("{key}={value} is neither a text nor a number")),
    };
    values.iter().map(text).collect()
}

/// What the scheduler answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// It is refused; nothing was changed.
    Refused {
        /// Why, in one line.
        error: String,
    },
    /// The settings as they now are.
    State(State),
}

/// The settings, and where they are in force.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct State {
    /// The policy's name.
    pub policy: String,
    /// The slice in microseconds.
    pub slice_us: u64,
    /// The credit in microseconds.
    pub credit_us: u64,
    /// Counts the changes since the scheduler was started, from 1.
    pub generation: u32,
    /// CPUs that run a task of ours.
    pub busy_cpus: u64,
    /// Those of them that have seen this generation. Others read it when
    /// they next decide something.
    pub seen_by: u64,
}

impl State {
    /// `settings`, of which `seen_by` of `busy_cpus` have heard.
    pub fn of(settings: &Settings, generation: u32, (busy_cpus, seen_by): (u64, u64)) -> Self {
        Self {
            policy: settings.policy().info().name.to_string(),
            slice_us: settings.slice_us(),
            credit_us: settings.credit_us(),
            generation,
            busy_cpus,
            seen_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_nonsense() {
        assert_eq!(Request::parse(b"{\"op\":\"get\"}"), Ok(Request::Get {}));
        let set =
            Request::parse(b"{\"op\":\"set\",\"values\":{\"slice-us\":500,\"policy\":\"fair\"}}");
        let Ok(Request::Set { values }) = set else {
            panic!("{set:?}")
        };
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        assert_eq!(
            texts(&values),
            Ok(vec![pair("policy", "fair"), pair("slice-us", "500")])
        );
        for bad in [
            "",
            "get",
            "[]",
            "null",
            "{}",
            "{\"op\":\"put\"}",
            "{\"op\":\"get\",\"more\":1}",
            "{\"op\":\"set\"}",
            "{\"op\":\"set\",\"values\":[1]}",
            "{\"op\":\"get\"} {\"op\":\"get\"}",
            "\u{fffd}",
            "{\"op\":",
        ] {
            let message = Request::parse(bad.as_bytes()).unwrap_err();
            assert!(message.starts_with("not understood ("), "{bad}: {message}");
            assert_eq!(message.lines().count(), 1, "{bad}: {message}");
        }
        assert!(Request::parse(&[0xff, 0, b'{']).is_err());
    }

    #[test]
    fn a_value_is_a_text_or_a_number() {
        let values = |text| serde_json::from_str(text).unwrap();
        for bad in [
            "{\"policy\":null}",
            "{\"policy\":[\"fair\"]}",
            "{\"policy\":{}}",
            "{\"policy\":true}",
        ] {
            let message = texts(&values(bad)).unwrap_err();
            assert!(
                message.ends_with("neither a text nor a number"),
                "{message}"
            );
        }
    }
}
