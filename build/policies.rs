// SPDX-License-Identifier: GPL-2.0-only
//! Reads the table of policies, so that a policy is named in one place only.

use std::env;
use std::fs;
use std::path::PathBuf;

const TABLE: &str = "bpf/policy/table.h";

/// Writes `policies.rs`: an entry for each line `X(ID, name, slice, credit, "text")`.
pub fn generate() -> Result<(), String> {
    let text = fs::read_to_string(TABLE).map_err(|error| format!("{TABLE}: {error}"))?;
    let rows = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("X("));
    let entries: Vec<String> = rows
        .map(|row| entry(row).ok_or_else(|| format!("{TABLE}: not a policy: {row}")))
        .collect::<Result<_, _>>()?;
    if entries.is_empty() {
        return Err(format!("{TABLE}: no policy found"));
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: build with cargo")?);
    let code = format!("&[{}]\n", entries.concat());
    let path = out.join("policies.rs");
    fs::write(&path, code).map_err(|error| format!("{}: {error}", path.display()))
}

fn entry(row: &str) -> Option<String> {
    let (arguments, _) = row.strip_prefix("X(")?.rsplit_once(')')?;
    let mut fields = arguments.splitn(5, ',').map(str::trim);
    let (_id, name) = (fields.next()?, fields.next()?);
    let slice: u64 = fields.next()?.parse().ok()?;
    let credit: u64 = fields.next()?.parse().ok()?;
    let text = fields.next()?;
    Some(format!(
        "PolicyInfo {{ name: {name:?}, slice_us: {slice}, credit_us: {credit}, text: {text} }},\n"
    ))
}
