// SPDX-License-Identifier: GPL-2.0-only
//! Every value that is taken, and every one that is refused with its message.

use super::*;

fn with(text: &str) -> Result<Settings, String> {
    let arguments: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    split(&arguments).and_then(|values| Settings::default().with(&values))
}

fn shown(text: &str) -> String {
    with(text).unwrap().to_string()
}

#[test]
fn a_policy_brings_its_own_slice_and_credit() {
    for policy in POLICIES {
        assert_eq!(
            shown(&format!("policy={}", policy.name)),
            format!(
                "policy={} slice-us={} credit-us={}",
                policy.name, policy.slice_us, policy.credit_us
            )
        );
        assert!(SLICE_US.contains(&policy.slice_us), "{policy:?}");
        assert!(CREDIT_US.contains(&policy.credit_us), "{policy:?}");
        assert!(!policy.text.is_empty());
    }
}

#[test]
fn what_is_named_beside_a_policy_stands_in_any_order() {
    let expected = "policy=batch slice-us=700 credit-us=0";
    assert_eq!(shown("policy=batch slice-us=700 credit-us=0"), expected);
    assert_eq!(shown("credit-us=0 slice-us=700 policy=batch"), expected);
    let short = with("slice-us=700").unwrap();
    assert_eq!(short.slice_us(), 700);
    let values = split(&["policy=batch".to_string()]).unwrap();
    assert_ne!(short.with(&values).unwrap().slice_us(), 700);
}

#[test]
fn every_mode_is_a_valid_setting() {
    for Mode { name, values, text } in MODES {
        let settings = with(&format!("mode={name}")).unwrap();
        for (key, value) in *values {
            assert!(settings.to_string().contains(&format!("{key}={value}")));
        }
        assert!(!text.is_empty());
    }
    assert!(shown("slice-us=900 mode=gaming").contains("slice-us=900"));
}

#[test]
fn ends_of_the_ranges_are_taken() {
    for text in [
        "slice-us=100",
        "slice-us=100000",
        "credit-us=0",
        "credit-us=30000",
    ] {
        assert!(shown(text).contains(text), "{text}");
    }
}

/// The table of docs/policies.md.
pub const REFUSED: &[(&str, &str)] = &[
    (
        "",
        "nothing to set: name one of mode, policy, slice-us, credit-us",
    ),
    (
        "policy",
        "policy is not KEY=VALUE: the keys are mode, policy, slice-us, credit-us",
    ),
    (
        "slice=5",
        "slice=5: no such key: there are mode, policy, slice-us, credit-us",
    ),
    (
        "policy=fast",
        "policy=fast is not one of fair, latency, batch, mlfq, fifo",
    ),
    (
        "policy=",
        "policy= is not one of fair, latency, batch, mlfq, fifo",
    ),
    (
        "mode=turbo",
        "mode=turbo is not one of auto, gaming, lowlatency, powersave, server",
    ),
    (
        "slice-us=99",
        "slice-us=99 is not a whole number in 100..=100000",
    ),
    (
        "slice-us=100001",
        "slice-us=100001 is not a whole number in 100..=100000",
    ),
    (
        "slice-us=-1",
        "slice-us=-1 is not a whole number in 100..=100000",
    ),
    (
        "slice-us=1e3",
        "slice-us=1e3 is not a whole number in 100..=100000",
    ),
    (
        "slice-us=18446744073709551616",
        "slice-us=18446744073709551616 is not a whole number in 100..=100000",
    ),
    (
        "credit-us=30001",
        "credit-us=30001 is not a whole number in 0..=30000",
    ),
    (
        "credit-us=",
        "credit-us= is not a whole number in 0..=30000",
    ),
    (
        "slice-us=500 slice-us=600",
        "slice-us is given twice: name it once",
    ),
    (
        "mode=auto policy=fair",
        "mode and policy exclude each other: a mode chooses a policy",
    ),
    (
        "policy=latency slice-us=1",
        "slice-us=1 is not a whole number in 100..=100000",
    ),
];

#[test]
fn what_is_refused_says_why_and_is_documented() {
    let document = include_str!("../../docs/policies.md");
    for (text, message) in REFUSED {
        assert_eq!(with(text).unwrap_err(), *message, "{text}");
        let row = format!("| `{text}` | {message} |");
        let row = row.replace("| `` |", "| (nothing) |");
        assert!(document.contains(&row), "docs/policies.md lacks {row}");
    }
}

#[test]
fn the_document_holds_every_policy_and_mode() {
    let document = include_str!("../../docs/policies.md");
    for policy in POLICIES {
        let row = format!(
            "| `{}` | {} | {} | {} |",
            policy.name, policy.slice_us, policy.credit_us, policy.text
        );
        assert!(document.contains(&row), "docs/policies.md lacks {row}");
    }
    for Mode { name, values, text } in MODES {
        let sets: Vec<_> = values.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let row = format!("| `{name}` | `{}` | {text} |", sets.join(" "));
        assert!(document.contains(&row), "docs/policies.md lacks {row}");
    }
}
