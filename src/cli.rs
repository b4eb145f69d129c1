// SPDX-License-Identifier: GPL-2.0-only
//! The command line: flags, their ranges, and what they ask for.

use std::time::Duration;

use clap::error::ContextValue;
use clap::{ArgAction, Args, Parser, Subcommand};

use crate::control::scrape::Address;
use crate::control::settings::{self, CREDIT_US, POLICIES, Policy, SLICE_US, Settings};
use crate::control::watch::Options;
use crate::exit::{self, ExitCode, Failure, Outcome};

/// Longest watchdog timeout that the kernel accepts, in milliseconds.
pub const MAX_TIMEOUT_MS: u32 = 30_000;

const MIN_TIMEOUT_MS: u32 = 100;
const MAX_DUMP_LEN: i64 = 1 << 20;
const ABOUT: &str = "A fair, low-latency sched_ext CPU scheduler. Runs in the foreground until \
                     SIGINT, SIGTERM or SIGHUP, then hands scheduling back to the kernel.";

/// The command line of `scx_fulcrum`.
#[derive(Debug, Parser)]
#[command(name = "scx_fulcrum", version = crate::build_id(), about = ABOUT, long_about = None)]
#[command(args_conflicts_with_subcommands = true, after_help = exit::help_text())]
pub struct Cli {
    /// What to do instead of scheduling.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// How to schedule, and what to show.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What the command can do besides scheduling.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check whether this machine can run the scheduler, and say what to do where it can't.
    ///
    /// Loads nothing and changes nothing; needs no privileges.
    #[command(after_help = exit::help_text())]
    Doctor,

    /// Run a workload file on a simulated machine with this very scheduler, and
    /// compare with the ideal and with EEVDF. Touches nothing outside itself.
    Sim(crate::sim::command::SimArgs),

    /// Watch the scx_fulcrum that runs, or a recording: CPUs, cgroups, tasks,
    /// decisions, health; also the place to change it. See docs/top.md.
    Top(crate::tui::command::TopArgs),

    /// Change the scx_fulcrum that runs: policy=NAME or mode=NAME, slice-us=US,
    /// credit-us=US. All of them are taken, or none; in force within a slice.
    Set {
        /// What to set, as KEY=VALUE
        #[arg(value_name = "KEY=VALUE")]
        values: Vec<String>,
    },

    /// Tell whether scx_fulcrum runs and how it is; if not, why not.
    ///
    /// Works without a running scheduler; root, and members of its
    /// --socket-group, see all of it.
    Status {
        /// As one line of JSON
        #[arg(long)]
        json: bool,
    },

    /// Explain one task: its weight, cgroup, CPU, lag, and why it last waited.
    Explain {
        /// Its process or thread number
        #[arg(value_name = "PID")]
        pid: u32,

        /// As one line of JSON
        #[arg(long)]
        json: bool,
    },

    /// Print the last 256 decisions of each CPU: what ran when, and how it came to.
    Recorder {
        /// Of this CPU only
        #[arg(long, value_name = "CPU")]
        cpu: Option<u32>,

        /// As one line of JSON
        #[arg(long)]
        json: bool,
    },

    /// Print what is set in the scx_fulcrum that runs.
    Get {
        /// As one line of JSON
        #[arg(long)]
        json: bool,
    },
}

/// Flags of a scheduling run.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// How to schedule: fair, or another policy of docs/policies.md [default: fair]
    #[arg(long, value_name = "NAME", value_parser = policy, long_help = policy_help())]
    pub policy: Option<String>,

    /// A policy with its knobs, by purpose: auto, gaming, lowlatency, powersave or
    /// server [default: auto]
    #[arg(long, value_name = "NAME", value_parser = mode, conflicts_with = "policy")]
    pub mode: Option<String>,

    /// CPU time that a busy task of normal weight gets at a time, in microseconds
    /// (100 to 100000) [default: the policy's, 3000 for fair]
    #[arg(short = 's', long, value_name = "US", value_parser = slice)]
    pub slice_us: Option<u64>,

    /// CPU time that a task which slept may catch up on before others, in
    /// microseconds (0 to 30000) [default: the policy's, 12000 for fair]
    #[arg(long, value_name = "US", value_parser = credit)]
    pub credit_us: Option<u64>,

    /// Schedule only tasks that ask for it with the policy SCHED_EXT
    #[arg(long)]
    pub partial: bool,

    /// Print statistics every SEC seconds while scheduling (0.1 to 86400)
    #[arg(long, value_name = "SEC", value_parser = interval, conflicts_with = "monitor")]
    pub stats: Option<Duration>,

    /// Print the statistics of the scx_fulcrum that runs already, every SEC
    /// seconds (0.1 to 86400); schedules nothing
    #[arg(long, value_name = "SEC", value_parser = interval)]
    pub monitor: Option<Duration>,

    /// Describe the statistics
    #[arg(long)]
    pub help_stats: bool,

    /// Serve OpenMetrics for Prometheus and its kin at ADDR: unix:/PATH, or an
    /// address of this machine itself, as 127.0.0.1:9777
    #[arg(long, value_name = "ADDR", value_parser = metrics)]
    pub metrics: Option<Address>,

    /// Besides root, let members of this group watch: streams, status, explain
    #[arg(long, value_name = "GROUP")]
    pub socket_group: Option<String>,

    /// Milliseconds that a runnable task may wait before the kernel ejects the
    /// scheduler (100 to 30000) [env: SCX_TIMEOUT_MS] [default: the kernel's, 30000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(i64::from(MIN_TIMEOUT_MS)..=i64::from(MAX_TIMEOUT_MS)))]
    pub timeout_ms: Option<u32>,

    /// Bytes of debug dump that the kernel writes when it ejects the scheduler
    /// (0 to 1048576; 0: the kernel's default, 32768)
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=MAX_DUMP_LEN))]
    pub exit_dump_len: u32,

    /// Show details: what libbpf says and, when loading fails, the verifier's log
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub verbose: u8,
}

impl RunArgs {
    /// The knobs that the flags ask for.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Usage`] if they contradict one another.
    pub fn settings(&self) -> Outcome<Settings> {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let flags = [
            ("policy", self.policy.clone()),
            ("mode", self.mode.clone()),
            ("slice-us", number(self.slice_us)),
            ("credit-us", number(self.credit_us)),
        ];
        let values: Vec<_> = flags
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_string(), value?)))
            .collect();
        if values.is_empty() {
            return Ok(Settings::default());
        }
        let settings = Settings::default().with(&values);
        settings.map_err(|why| Failure::new(ExitCode::Usage, why))
    }

    /// How the scheduler is to be watched.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Usage`] if there is no such group.
    pub fn watch(&self) -> Outcome<Options> {
        let group = self.socket_group.as_deref().map(group_id).transpose();
        let group = group.map_err(|why| Failure::new(ExitCode::Usage, why))?;
        Ok(Options {
            group,
            metrics: self.metrics.clone(),
        })
    }

    /// The watchdog timeout in milliseconds: the flag, else `environment`
    /// (the value of `SCX_TIMEOUT_MS`), else `None` for the kernel's own.
    ///
    /// # Errors
    ///
    /// [`ExitCode::Usage`] if the environment's value is no number in range.
    pub fn timeout_ms(&self, environment: Option<&str>) -> Outcome<Option<u32>> {
        let (None, Some(text)) = (self.timeout_ms, environment) else {
            return Ok(self.timeout_ms);
        };
        match text.trim().parse() {
            Ok(ms) if (MIN_TIMEOUT_MS..=MAX_TIMEOUT_MS).contains(&ms) => Ok(Some(ms)),
            _ => Err(Failure::new(
                ExitCode::Usage,
                format!(
                    "SCX_TIMEOUT_MS={text:?} is not in {MIN_TIMEOUT_MS}..={MAX_TIMEOUT_MS} \
                     milliseconds: set a number in that range or unset it"
                ),
            )),
        }
    }
}

fn policy(text: &str) -> Result<String, String> {
    Policy::named(text).map(|_| text.to_string())
}

fn policy_help() -> String {
    let mut text = String::from("How to schedule [default: fair]:");
    for policy in POLICIES {
        text += &format!("\n{:<8} {}", policy.name, policy.text);
    }
    text
}

fn mode(text: &str) -> Result<String, String> {
    settings::mode(text).map(|_| text.to_string())
}

fn metrics(text: &str) -> Result<Address, String> {
    Address::parse(text)
}

/// The number of a group that is given by name or number.
fn group_id(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let mut lines = groups.lines().map(|line| line.split(':'));
    let found = lines.find_map(|mut line| {
        let name = line.next()?;
        (name == text).then(|| line.nth(1)?.parse().ok())?
    });
    found.ok_or_else(|| format!("no group {text} in /etc/group: name one, or give its number"))
}

fn slice(text: &str) -> Result<u64, String> {
    settings::number(text, &SLICE_US)
}

fn credit(text: &str) -> Result<u64, String> {
    settings::number(text, &CREDIT_US)
}

fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not a number of seconds in 0.1..=86400".to_string()),
    }
}

/// Parse the command line of this process.
///
/// # Errors
///
/// The text that clap would print and the code to exit with: 0 for `--help`
/// and `--version`, [`ExitCode::Usage`] for mistakes, those in one line.
pub fn parse() -> Result<Cli, (String, u8)> {
    parse_from(std::env::args_os())
}

fn parse_from<I, T>(arguments: I) -> Result<Cli, (String, u8)>
where
    I: IntoIterator<Item = T>,
    T: Into<std::ffi::OsString> + Clone,
{
    Cli::try_parse_from(arguments).map_err(|error| {
        if !error.use_stderr() {
            return (error.to_string(), ExitCode::Ok as u8);
        }
        let line = one_line(&error);
        (
            format!("{line}: see scx_fulcrum --help"),
            ExitCode::Usage as u8,
        )
    })
}

/// What clap says of a mistake: its first paragraph, in one line.
fn one_line(error: &clap::Error) -> String {
    let mut text = error.to_string();
    for (_, value) in error.context() {
        if let ContextValue::String(typed) = value {
            text = text.replace(typed, &exit::shown(typed));
        }
    }
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    let lines: Vec<_> = lines.map(str::trim).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Cli, (String, u8)> {
        parse_from(std::iter::once("scx_fulcrum").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_of_the_family_are_understood() {
        let cli = parsed("-s 700 --stats 0.5 --exit-dump-len 65536 --partial -v -v").unwrap();
        assert_eq!(cli.run.settings().unwrap().slice_us(), 700);
        assert_eq!(cli.run.stats, Some(Duration::from_millis(500)));
        assert_eq!(cli.run.exit_dump_len, 65_536);
        assert!(cli.run.partial);
        assert_eq!(cli.run.verbose, 2);
        assert!(matches!(
            parsed("doctor").unwrap().command,
            Some(Command::Doctor)
        ));
    }

    #[test]
    fn values_out_of_range_are_one_line_with_the_range() {
        for (line, range) in [
            ("--slice-us 99", "100..=100000"),
            ("--slice-us 100001", "100..=100000"),
            ("--credit-us 30001", "0..=30000"),
            ("--policy x", "not one of fair, latency, batch, mlfq, fifo"),
            ("--mode x", "auto, gaming, lowlatency, powersave, server"),
            ("--mode auto --policy fair", "cannot be used with"),
            ("--timeout-ms 30001", "100..=30000"),
            ("--exit-dump-len 1048577", "0..=1048576"),
            ("--stats 0", "0.1..=86400"),
            ("--stats nan", "0.1..=86400"),
            ("explain", "not provided: <PID>: see"),
            ("sim", "not provided: <FILE>: see"),
            ("sim --cpus 0 x", "--cpus <N>"),
            ("sim --cpus 2x1x1x1 x", "--cpus <N>"),
            ("--metrics unix:here", "not a path from / on"),
            ("--monitor -1", ""),
        ] {
            let (message, code) = parsed(line).unwrap_err();
            assert_eq!(code, 2, "{line}");
            assert!(message.contains(range), "{line}: {message}");
            assert_eq!(message.lines().count(), 1, "{line}: {message}");
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        for argument in ["--policy=fair\nx", "--a\nb", "doctor\n\ny"] {
            let (message, code) = parse_from(["scx_fulcrum", argument]).unwrap_err();
            assert_eq!(code, 2, "{argument:?}");
            assert!(!message.contains(char::is_control), "{message:?}");
            assert!(message.contains("\\n"), "{message:?}");
        }
    }

    #[test]
    fn policies_and_modes_become_settings() {
        let settings = |line| parsed(line).unwrap().run.settings().unwrap().to_string();
        assert_eq!(settings(""), Settings::default().to_string());
        assert_eq!(
            settings("--slice-us 250 --policy latency"),
            "policy=latency slice-us=250 credit-us=24000"
        );
        assert_eq!(
            settings("--mode lowlatency --credit-us 5"),
            "policy=latency slice-us=500 credit-us=5"
        );
    }

    #[test]
    fn version_carries_the_build_id() {
        let (text, code) = parsed("-V").unwrap_err();
        assert_eq!(code, 0);
        assert_eq!(text.trim(), format!("scx_fulcrum {}", crate::build_id()));
    }

    #[test]
    fn the_environment_gives_the_timeout_and_the_flag_wins() {
        let plain = parsed("").unwrap().run;
        assert_eq!(plain.timeout_ms(None).unwrap(), None);
        assert_eq!(plain.timeout_ms(Some("5000")).unwrap(), Some(5000));
        for bad in ["", "x", "0", "99", "30001", "-1"] {
            assert_eq!(
                plain.timeout_ms(Some(bad)).unwrap_err().code,
                ExitCode::Usage,
                "{bad}"
            );
        }
        let flag = parsed("--timeout-ms 200").unwrap().run;
        assert_eq!(flag.timeout_ms(Some("5000")).unwrap(), Some(200));
    }
}
