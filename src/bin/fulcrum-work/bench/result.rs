// SPDX-License-Identifier: GPL-2.0-only
//! The result of a run, as kept in JSON: every value, the ratio of each to
//! EEVDF's of the same boot, their medians and spreads.

use super::record::{Cost, EEVDF, Failed, Measured, Record};
use super::rows::{self, CASES, Part};
use super::stats::{median, spread};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What `docs/benchmarks.json` holds: one run for each number of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub runs: Vec<Outcome>,
}

/// Where a run was made, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Header {
    /// The host's CPU and QEMU
    #[arg(long)]
    pub machine: String,
    /// The revision measured
    #[arg(long)]
    pub revision: String,
    /// The command that makes this run
    #[arg(long)]
    pub command: String,
    /// The guest's CPUs as QEMU was told
    #[arg(long)]
    pub topology: String,
    /// Which set of rows
    #[arg(long, value_enum)]
    pub part: Part,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub header: Header,
    pub kernel: String,
    pub cpus: usize,
    /// What each scheduler's program says of its version.
    pub versions: BTreeMap<String, String>,
    pub series: Vec<Series>,
    pub failed: Vec<Failed>,
    pub costs: Vec<Cost>,
    /// A second run of the same command, to see whether it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Box<Outcome>>,
    /// The last run with other schedulers, if this one has none: they don't
    /// change with ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<Box<Outcome>>,
}

/// All values of one figure under one scheduler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    pub key: String,
    pub scheduler: String,
    pub median: f64,
    pub spread: f64,
    /// Of the ratios; none for EEVDF itself and where EEVDF has 0.
    pub ratio: Option<f64>,
    pub ratio_spread: Option<f64>,
    pub values: Vec<f64>,
    pub ratios: Vec<f64>,
}

/// One boot's records.
type BootRecords = Vec<Record>;

/// Split what guests printed into boots.
pub fn boots(text: &str) -> Result<Vec<BootRecords>> {
    let mut boots: Vec<BootRecords> = Vec::new();
    for record in text.lines().filter_map(Record::parse) {
        let record = record.context("a record of the guest's")?;
        match (&record, boots.last_mut()) {
            (Record::Boot(_), _) => boots.push(vec![record]),
            (_, Some(boot)) => boot.push(record),
            (_, None) => anyhow::bail!("a record before the boot's first"),
        }
    }
    ensure!(!boots.is_empty(), "the guest handed over no result");
    Ok(boots)
}

/// The mean of EEVDF's values before and after this visit.
fn eevdf_around(boot: &[&Measured], of: &Measured) -> Option<f64> {
    let eevdf = |m: &&&Measured| m.scheduler == EEVDF && m.key == of.key;
    let before = boot.iter().filter(eevdf).rfind(|m| m.visit < of.visit);
    let after = boot.iter().filter(eevdf).find(|m| m.visit > of.visit);
    Some((before?.value + after?.value) / 2.0)
}

#[derive(Default)]
struct Gathered {
    values: Vec<f64>,
    ratios: Vec<f64>,
}

impl Outcome {
    pub fn of(header: Header, boots: Vec<BootRecords>) -> Result<Self> {
        let mut outcome = Self {
            header,
            kernel: String::new(),
            cpus: 0,
            versions: BTreeMap::new(),
            series: Vec::new(),
            failed: Vec::new(),
            costs: Vec::new(),
            again: None,
            peers: None,
        };
        let mut gathered: BTreeMap<(String, String), Gathered> = BTreeMap::new();
        let mut order: Vec<String> = vec![EEVDF.to_string()];
        for boot in &boots {
            let measured: Vec<&Measured> = boot
                .iter()
                .filter_map(|r| match r {
                    Record::Figure(m) => Some(m),
                    _ => None,
                })
                .collect();
            for m in &measured {
                if !order.contains(&m.scheduler) {
                    order.push(m.scheduler.clone());
                }
                let of = gathered
                    .entry((m.scheduler.clone(), m.key.clone()))
                    .or_default();
                of.values.push(m.value);
                let eevdf = eevdf_around(&measured, m).filter(|e| *e > 0.0);
                if let Some(eevdf) = eevdf.filter(|_| m.scheduler != EEVDF) {
                    of.ratios.push(m.value / eevdf);
                }
            }
            outcome.take_rest(boot)?;
        }
        outcome.series = ordered(&order, gathered);
        Ok(outcome)
    }

    /// What isn't a figure.
    fn take_rest(&mut self, boot: &BootRecords) -> Result<()> {
        for record in boot {
            match record {
                Record::Boot(boot) => {
                    ensure!(
                        self.cpus == 0 || (self.cpus, &self.kernel) == (boot.cpus, &boot.kernel),
                        "boots of different machines in one run"
                    );
                    self.cpus = boot.cpus;
                    self.kernel = boot.kernel.clone();
                }
                Record::Scheduler { name, version } => {
                    self.versions.insert(name.clone(), version.clone());
                }
                Record::Failed(failed) => self.failed.push(failed.clone()),
                Record::Cost(cost) => self.costs.push(cost.clone()),
                Record::Figure(_) => {}
            }
        }
        Ok(())
    }

    /// Whether it has others than EEVDF and one of ours.
    pub fn has_peers(&self) -> bool {
        self.schedulers().len() > 2
    }

    fn is_like(&self, other: &Self) -> bool {
        let key = |o: &Self| (o.header.part, o.header.topology.clone());
        key(self) == key(other)
    }

    /// EEVDF first, then the others as they came; also who never had a value.
    pub fn schedulers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let failed = self.failed.iter().map(|f| &f.scheduler);
        for name in self.series.iter().map(|s| &s.scheduler).chain(failed) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    pub fn series(&self, key: &str, scheduler: &str) -> Option<&Series> {
        let fits = |s: &&Series| s.key == key && s.scheduler == scheduler;
        self.series.iter().find(fits)
    }

    /// Keys that have a value, in the rows' order.
    pub fn keys(&self) -> Vec<String> {
        let have: BTreeSet<&str> = self.series.iter().map(|s| s.key.as_str()).collect();
        CASES
            .iter()
            .flat_map(|c| c.figures)
            .map(rows::Figure::key)
            .filter(|k| have.contains(k.as_str()))
            .collect()
    }

    pub fn read(path: &Path) -> Result<Self> {
        read(path)
    }
}

/// This run or the one that it was put in the place of, whichever has other
/// schedulers.
fn with_peers(mut run: Outcome) -> Option<Outcome> {
    match run.has_peers() {
        true => {
            run.again = None;
            Some(run)
        }
        false => run.peers.map(|peers| *peers),
    }
}

fn ordered(order: &[String], mut gathered: BTreeMap<(String, String), Gathered>) -> Vec<Series> {
    let mut all = Vec::new();
    for scheduler in order {
        for figure in CASES.iter().flat_map(|c| c.figures) {
            let Some(of) = gathered.remove(&(scheduler.clone(), figure.key())) else {
                continue;
            };
            all.push(Series {
                key: figure.key(),
                scheduler: scheduler.clone(),
                median: median(&of.values).unwrap_or(f64::NAN),
                spread: spread(&of.values),
                ratio: median(&of.ratios),
                ratio_spread: median(&of.ratios).map(|_| spread(&of.ratios)),
                values: of.values,
                ratios: of.ratios,
            });
        }
    }
    all
}

impl Document {
    /// An empty one if there is no such file yet.
    pub fn read_or_new(path: &Path) -> Result<Self> {
        match path.exists() {
            true => read(path),
            false => Ok(Self::default()),
        }
    }

    /// Put a run in the place of the one with the same CPUs and rows.
    pub fn save(&mut self, mut run: Outcome) {
        match self.runs.iter_mut().find(|r| r.is_like(&run)) {
            Some(place) => {
                if !run.has_peers() {
                    run.peers = with_peers(place.clone()).map(Box::new);
                }
                *place = run;
            }
            None => self.runs.push(run),
        }
        self.runs.sort_by_key(|r| (r.header.part, r.cpus));
    }

    /// The runs of a set of rows, by CPUs.
    pub fn of(&self, part: Part) -> Vec<&Outcome> {
        let fits = |r: &&Outcome| r.header.part == part;
        self.runs.iter().filter(fits).collect()
    }

    /// The run with the same CPUs and rows.
    pub fn like(&self, run: &Outcome) -> Option<&Outcome> {
        self.runs.iter().find(|r| r.is_like(run))
    }
}

pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no results", path.display()))
}

/// Writes all of it or, where the disk is full, leaves what was there.
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    let beside = path.with_extension("json.new");
    fs::write(&beside, text)
        .and_then(|()| fs::rename(&beside, path))
        .with_context(|| format!("writing {}; it is as it was before", path.display()))
        .inspect_err(|_| _ = fs::remove_file(&beside))
}

#[cfg(test)]
pub mod tests {
    use super::super::record::Boot;
    use super::super::rows::Mode;
    use super::*;

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, &1).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::remove_dir(&path).unwrap();
        write(&path, &1).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    }

    /// A run of two rounds in which `ours` has these values of `key` beside
    /// EEVDF's 10, 12 and 14.
    pub fn run_of(key: &str, ours: [f64; 2]) -> Outcome {
        let measured = |visit, scheduler: &str, value| {
            Record::Figure(Measured {
                visit,
                scheduler: scheduler.to_string(),
                key: key.to_string(),
                value,
            })
        };
        let boot = [
            Record::Boot(Boot {
                mode: Mode::Plain,
                kernel: "7".to_string(),
                cpus: 2,
            }),
            measured(0, EEVDF, 10.0),
            measured(1, "fulcrum", ours[0]),
            measured(2, EEVDF, 12.0),
            measured(3, "fulcrum", ours[1]),
            measured(4, EEVDF, 14.0),
        ];
        let lines: Vec<String> = boot.iter().map(|r| r.line().unwrap()).collect();
        let header = Header {
            machine: "m".to_string(),
            revision: "r".to_string(),
            command: "c".to_string(),
            topology: "2".to_string(),
            part: Part::Targets,
        };
        Outcome::of(header, boots(&lines.join("\nnoise\n")).unwrap()).unwrap()
    }

    #[test]
    fn ratios_are_to_the_mean_of_eevdf_before_and_after() {
        let run = run_of("T1 trip", [11.0, 26.0]);
        let ours = run.series("T1 trip", "fulcrum").unwrap();
        assert_eq!(ours.ratios, [1.0, 2.0]);
        assert_eq!((ours.ratio, ours.ratio_spread), (Some(1.5), Some(1.0)));
        assert_eq!((ours.median, ours.spread), (18.5, 15.0));
        let eevdf = run.series("T1 trip", EEVDF).unwrap();
        assert_eq!((eevdf.median, eevdf.ratio), (12.0, None));
        assert_eq!(run.schedulers(), [EEVDF, "fulcrum"]);
    }

    #[test]
    fn a_run_takes_the_place_of_the_former_one() {
        let mut document = Document::default();
        document.save(run_of("T1 trip", [11.0, 26.0]));
        document.save(run_of("T1 trip", [1.0, 2.0]));
        assert_eq!(document.runs.len(), 1);
        let series = document.runs[0].series("T1 trip", "fulcrum");
        assert_eq!(series.unwrap().values, [1.0, 2.0]);
    }

    #[test]
    fn a_run_without_other_schedulers_keeps_theirs() {
        let mut with = run_of("T1 trip", [11.0, 26.0]);
        let mut other = with.series[0].clone();
        other.scheduler = "scx_x".to_string();
        with.series.push(other);
        let mut document = Document::default();
        document.save(with.clone());
        for _ in 0..2 {
            document.save(run_of("T1 trip", [1.0, 2.0]));
            let run = &document.runs[0];
            assert_eq!(run.schedulers(), [EEVDF, "fulcrum"]);
            assert_eq!(run.peers.as_deref(), Some(&with));
        }
        document.save(with.clone());
        assert_eq!(document.runs, [with]);
    }

    #[test]
    fn nothing_measured_is_an_error() {
        assert!(boots("hello\n").is_err());
        assert!(boots("@bench {\"record\":\"nonsense\"}\n").is_err());
    }
}
