// SPDX-License-Identifier: GPL-2.0-only
//! `tour`: a short round of workloads for `scripts/run`, whose figures are
//! kept in a file and printed beside those of another scheduler.

use crate::cpus::CpuList;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(Args)]
pub struct TourArgs {
    /// The scheduler's name, as the head of its column
    #[arg(long)]
    name: String,
    /// A C program to build, as tests/guest/cprog.sh writes it
    #[arg(long)]
    program: PathBuf,
    /// Keep the figures in this file
    #[arg(long)]
    save: PathBuf,
}

#[derive(Args)]
pub struct TableArgs {
    /// What a tour has saved: the left column
    left: PathBuf,
    /// The right column
    right: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Figure {
    what: String,
    value: f64,
    unit: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Column {
    name: String,
    figures: Vec<Figure>,
}

fn figure(what: impl Into<String>, value: f64, unit: &str) -> Figure {
    Figure {
        what: what.into(),
        value,
        unit: unit.to_string(),
    }
}

/// Run one of our own workloads in a process of its own.
fn work(arguments: &str) -> Result<Value> {
    let output = Command::new(std::env::current_exe().context("where am I")?)
        .arg("--json")
        .args(arguments.split(' '))
        .stderr(Stdio::inherit())
        .output()
        .context("starting a workload")?;
    ensure!(output.status.success(), "`{arguments}`: {}", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("`{arguments}`"))
}

fn number(report: &Value, path: &str) -> Result<f64> {
    report
        .pointer(path)
        .and_then(Value::as_f64)
        .with_context(|| format!("no {path} in {report}"))
}

fn seconds_of(command: &mut Command) -> Result<f64> {
    let name = command.get_program().to_string_lossy().into_owned();
    let began = Instant::now();
    let status = command
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("{name} is not there: run scripts/setup"))?;
    ensure!(status.success(), "{name}: {status}");
    Ok(began.elapsed().as_secs_f64())
}

fn shares() -> Result<Vec<Figure>> {
    let error = number(
        &work("hogs --nice=-5,0,5,10 --cpus 0 --seconds 8")?,
        "/worst_error",
    )?;
    let what = "4 busy tasks, nice -5/0/5/10, one CPU: worst share error";
    Ok(vec![figure(what, error * 100.0, "%")])
}

fn spread(cpus: usize) -> Result<Vec<Figure>> {
    let tasks = cpus + 1;
    let report = work(&format!("hogs --each {tasks} --seconds 3"))?;
    let what = format!("{tasks} equal busy tasks, {cpus} CPUs: worst share error");
    let error = number(&report, "/worst_error")?;
    Ok(vec![figure(what, error * 100.0, "%")])
}

fn sleepers(cpus: usize) -> Result<Vec<Figure>> {
    let hogs = 2 * cpus;
    let report = work(&format!("sleepers --hogs {hogs} --seconds 4"))?;
    let what = |p| format!("4 sleepers beside {hogs} busy tasks: wakeup delay {p}");
    Ok(vec![
        figure(what("p50"), number(&report, "/wakeup/p50_us")?, "us"),
        figure(what("p99"), number(&report, "/wakeup/p99_us")?, "us"),
    ])
}

fn frames(cpus: usize) -> Result<Vec<Figure>> {
    let hogs = 2 * cpus;
    let report = work(&format!("frames --hogs {hogs} --seconds 4"))?;
    let missed = number(&report, "/misses")? / number(&report, "/periods")?;
    let p99 = number(&report, "/response/p99_us")? / 1000.0;
    let what = |w| format!("2 frame tasks beside {hogs} busy tasks: {w}");
    Ok(vec![
        figure(what("frame time p99"), p99, "ms"),
        figure(what("frames missed"), missed * 100.0, "%"),
    ])
}

fn pipe() -> Result<Vec<Figure>> {
    let trip = number(&work("pipe --seconds 2")?, "/us_per_round_trip")?;
    Ok(vec![figure(
        "pipe between two tasks: round trip",
        trip,
        "us",
    )])
}

fn hackbench() -> Result<Vec<Figure>> {
    let time = seconds_of(Command::new("hackbench").args(["-g", "2", "-l", "50"]))?;
    Ok(vec![figure("hackbench -g 2 -l 50", time, "s")])
}

fn build(program: &Path, cpus: usize) -> Result<Vec<Figure>> {
    let jobs = format!("-j{}", cpus * 2);
    let make = |goal: &str| {
        let mut make = Command::new("make");
        make.arg("-s")
            .arg("-C")
            .arg(program)
            .args([jobs.as_str(), goal]);
        make
    };
    seconds_of(&mut make("clean"))?;
    let time = seconds_of(&mut make("check"))?;
    Ok(vec![figure(
        format!("make {jobs} of a C program"),
        time,
        "s",
    )])
}

fn measure(program: &Path) -> Result<Vec<Figure>> {
    let cpus = CpuList::allowed()?.len();
    let steps: [&dyn Fn() -> Result<Vec<Figure>>; 7] = [
        &shares,
        &|| spread(cpus),
        &|| sleepers(cpus),
        &|| frames(cpus),
        &pipe,
        &hackbench,
        &|| build(program, cpus),
    ];
    let mut figures = Vec::new();
    for step in steps {
        for figure in step()? {
            println!("  {}: {}", figure.what, shown(&figure));
            figures.push(figure);
        }
    }
    Ok(figures)
}

/// Three digits that mean something.
fn shown(figure: &Figure) -> String {
    let digits = match figure.value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{:.digits$} {}", figure.value, figure.unit)
}

/// Figures of both columns side by side, matched by what they measure.
fn table(left: &Column, right: &Column) -> String {
    let width = right
        .figures
        .iter()
        .map(|f| f.what.len())
        .max()
        .unwrap_or(0);
    let mut text = format!("{:width$}  {:>12}  {:>12}\n", "", left.name, right.name);
    for ours in &right.figures {
        let theirs = left.figures.iter().find(|f| f.what == ours.what);
        let theirs = theirs.map_or_else(|| "-".to_string(), shown);
        text.push_str(&format!(
            "{:width$}  {theirs:>12}  {:>12}\n",
            ours.what,
            shown(ours)
        ));
    }
    text
}

pub fn tour(args: &TourArgs) -> Result<()> {
    let column = Column {
        name: args.name.clone(),
        figures: measure(&args.program)?,
    };
    fs::write(&args.save, serde_json::to_vec(&column)?)
        .with_context(|| format!("writing {}", args.save.display()))
}

fn saved(path: &Path) -> Result<Column> {
    let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} holds no figures of a tour", path.display()))
}

pub fn beside(args: &TableArgs) -> Result<()> {
    print!("{}", table(&saved(&args.left)?, &saved(&args.right)?));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_matched_by_what_they_measure() {
        let column = |name: &str, figures| Column {
            name: name.to_string(),
            figures,
        };
        let left = column(
            "EEVDF",
            vec![figure("b", 2.0, "s"), figure("a", 101.4, "us")],
        );
        let right = column(
            "fulcrum",
            vec![figure("a", 12.34, "us"), figure("c", 0.5, "%")],
        );
        let text = table(&left, &right);
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(words[0], ["EEVDF", "fulcrum"]);
        assert_eq!(words[1], ["a", "101", "us", "12.3", "us"]);
        assert_eq!(words[2], ["c", "-", "0.50", "%"]);
    }

    #[test]
    fn a_missing_field_is_an_error_that_names_it() {
        let report = serde_json::json!({"wakeup": {"p50_us": 3.5}});
        assert_eq!(number(&report, "/wakeup/p50_us").unwrap(), 3.5);
        let error = number(&report, "/wakeup/p99_us").unwrap_err().to_string();
        assert!(error.contains("/wakeup/p99_us"), "{error}");
    }
}
