// SPDX-License-Identifier: GPL-2.0-only
//! Loads a scheduler's program, makes sure that it schedules, and ends it.

use super::record::EEVDF;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const SCX: &str = "/sys/kernel/sched_ext";
/// Loading takes seconds of verification in an emulated guest.
const LOAD: Duration = Duration::from_secs(120);
const UNLOAD: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// A scheduler to be measured: EEVDF, or a program that loads one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    /// Program and arguments; empty for EEVDF.
    pub command: Vec<String>,
}

impl Candidate {
    pub fn eevdf() -> Self {
        Self {
            name: EEVDF.to_string(),
            command: Vec::new(),
        }
    }

    /// What `PROGRAM --version` prints, in one line.
    pub fn version(&self) -> Option<String> {
        let output = Command::new(self.command.first()?)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().next().map(str::to_string)
    }
}

impl std::str::FromStr for Candidate {
    type Err = anyhow::Error;

    /// `NAME=PROGRAM [ARGUMENT...]`
    fn from_str(text: &str) -> Result<Self> {
        let (name, command) = text
            .split_once('=')
            .with_context(|| format!("`{text}`: write NAME=PROGRAM"))?;
        let command: Vec<String> = command.split_whitespace().map(str::to_string).collect();
        ensure!(
            !name.is_empty() && name != EEVDF && !command.is_empty(),
            "`{text}`: write NAME=PROGRAM, with another name than {EEVDF}"
        );
        Ok(Self {
            name: name.to_string(),
            command,
        })
    }
}

fn state() -> String {
    fs::read_to_string(format!("{SCX}/state")).map_or_else(
        |_| "without sched_ext".to_string(),
        |text| text.trim().to_string(),
    )
}

/// A scheduler at work. Ends it when dropped.
pub struct Loaded {
    child: Option<Child>,
    log: String,
}

impl Loaded {
    /// Start the program and wait until the kernel runs its scheduler.
    pub fn load(candidate: &Candidate) -> Result<Self> {
        let found = state();
        ensure!(found == "disabled", "sched_ext is {found} already");
        let log = format!(
            "{}/bench.{}.log",
            std::env::temp_dir().display(),
            candidate.name
        );
        let Some((program, arguments)) = candidate.command.split_first() else {
            return Ok(Self { child: None, log });
        };
        let out = File::create(&log).with_context(|| log.clone())?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let mut loaded = Self {
            child: Some(child),
            log,
        };
        let until = Instant::now() + LOAD;
        while state() != "enabled" {
            if let Some(status) = loaded.ended()? {
                bail!("{status}: {}", loaded.last_words());
            }
            ensure!(Instant::now() < until, "not loaded after {LOAD:?}");
            std::thread::sleep(LOOK);
        }
        Ok(loaded)
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => child.try_wait().context("waiting for the scheduler"),
            None => Ok(None),
        }
    }

    /// The last line that its program printed.
    fn last_words(&self) -> String {
        let mut text = String::new();
        if let Ok(mut file) = File::open(&self.log) {
            // What isn't text is shown as far as it is.
            let mut bytes = Vec::new();
            if file.read_to_end(&mut bytes).is_ok() {
                text = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
        let line = text.lines().rev().find(|l| !l.trim().is_empty());
        line.unwrap_or("without a word").trim().to_string()
    }

    /// Of the scheduler's program; none for EEVDF.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// An error if the kernel has thrown it out, or its program has ended.
    pub fn check(&mut self) -> Result<()> {
        if self.child.is_none() {
            return Ok(());
        }
        let found = state();
        if found != "enabled" || self.ended()?.is_some() {
            bail!("thrown out (sched_ext is {found}): {}", self.last_words());
        }
        Ok(())
    }

    /// End it as a user would; the kernel's own scheduler is back then.
    pub fn unload(mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        terminate(&child);
        let until = Instant::now() + UNLOAD;
        while child.try_wait().context("waiting for its end")?.is_none() {
            if Instant::now() > until {
                child.kill().context("killing it")?;
                child.wait().context("waiting for its end")?;
                bail!("did not end within {UNLOAD:?} of SIGTERM");
            }
            std::thread::sleep(LOOK);
        }
        while state() != "disabled" {
            ensure!(Instant::now() < until, "sched_ext stays {}", state());
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

fn terminate(child: &Child) {
    // SAFETY: plain system call; the child has not been reaped.
    unsafe {
        libc::kill(child.id() as libc::pid_t, libc::SIGTERM);
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Reached only on the way out of an error; the guest ends soon.
            if child.kill().is_ok() {
                child.wait().ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_have_a_name_and_a_command() {
        let candidate: Candidate = "slow=bin/x --slice 4".parse().unwrap();
        assert_eq!(candidate.name, "slow");
        assert_eq!(candidate.command, ["bin/x", "--slice", "4"]);
        for text in ["x", "=x", "x=", "x= ", "EEVDF=x"] {
            assert!(text.parse::<Candidate>().is_err(), "{text}");
        }
    }
}
