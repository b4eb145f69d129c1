// SPDX-License-Identifier: GPL-2.0-only
//! `bench`: schedulers compared in one boot of the deterministic VM, for
//! `scripts/bench`. The guest's side measures, the host's makes tables.

mod cases;
mod check;
mod cost;
mod guest;
mod policies;
mod programs;
mod record;
mod repeats;
mod result;
mod rows;
mod sched;
mod stats;
mod table;
mod witness;
mod words;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use result::{Document, Header, Outcome};
use rows::{CASES, Choice, Mode, Part};
use std::fs;
use std::path::PathBuf;

#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// In the VM, as root: measure, and print records
    Guest(guest::GuestArgs),
    /// Print the modes whose boots the named rows need, or all rows
    Rows(RowsArgs),
    /// Make a result of what guests printed, and show it
    Report(ReportArgs),
    /// Put a result into a document and print that as Markdown
    Save(SaveArgs),
    /// Print a document as Markdown
    Render {
        /// Only the tables of the policies
        #[arg(long)]
        policies: bool,
        /// The document
        document: PathBuf,
    },
    /// Fail if a result is worse than the one in a document
    Check(CheckArgs),
    /// Print what the verifier counted for the scheduler that is loaded now
    Verifier(programs::VerifierArgs),
    /// Put such prints into a file
    VerifierSave {
        /// The file, changed
        file: PathBuf,
        /// What was printed, one kernel each
        #[arg(required = true)]
        raw: Vec<PathBuf>,
    },
    /// Fail if two results of the same command don't agree
    Repeats {
        /// The first result
        one: PathBuf,
        /// The second one
        two: PathBuf,
    },
}

#[derive(Args)]
struct RowsArgs {
    #[command(flatten)]
    choice: Choice,
    /// The modes needed, one a line
    #[arg(long)]
    modes: bool,
}

#[derive(Args)]
struct ReportArgs {
    #[command(flatten)]
    header: Header,
    /// Where the result goes, as JSON
    #[arg(long)]
    result: PathBuf,
    /// Where its tables go
    #[arg(long)]
    markdown: PathBuf,
    /// What guests printed
    #[arg(required = true)]
    raw: Vec<PathBuf>,
}

#[derive(Args)]
struct SaveArgs {
    /// Keep it beside the run of the same CPUs, to show that that repeats
    #[arg(long)]
    again: bool,
    /// The result
    run: PathBuf,
    /// The document, changed
    document: PathBuf,
    /// Where its Markdown goes
    markdown: PathBuf,
    /// The page that has a part of it between two marks: that of the policies
    policies: PathBuf,
}

#[derive(Args)]
struct CheckArgs {
    /// The scheduler to compare
    #[arg(long, default_value = "fulcrum")]
    scheduler: String,
    /// The result
    run: PathBuf,
    /// The document
    document: PathBuf,
}

fn print_rows(args: &RowsArgs) -> Result<()> {
    for only in &args.choice.only {
        let alone = Choice {
            only: vec![only.clone()],
            ..args.choice.clone()
        };
        if !CASES.iter().any(|c| c.wanted(&alone)) {
            bail!("no row `{only}` in this set: scripts/bench --rows lists them");
        }
    }
    let wanted = || CASES.iter().filter(|c| c.wanted(&args.choice));
    if args.modes {
        for (mode, name) in [(Mode::Plain, "plain"), (Mode::Metronome, "metronome")] {
            if wanted().any(|c| c.mode == mode) {
                println!("{name}");
            }
        }
        return Ok(());
    }
    for case in wanted() {
        for figure in case.figures {
            let targets: Vec<String> = figure
                .targets
                .iter()
                .map(|(cpus, target)| match cpus {
                    1 => target.to_string(),
                    cpus => format!("{target} from {cpus} CPUs on"),
                })
                .collect();
            let targets = match targets.is_empty() {
                true => String::new(),
                false => format!(" ({})", targets.join(", ")),
            };
            println!("{}: {}{targets}", figure.key(), case.what);
        }
    }
    Ok(())
}

fn report(args: &ReportArgs) -> Result<()> {
    let mut text = String::new();
    for path in &args.raw {
        text += &fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        text.push('\n');
    }
    let run = Outcome::of(args.header.clone(), result::boots(&text)?)?;
    result::write(&args.result, &run)?;
    let tables = table::run(&run);
    fs::write(&args.markdown, &tables)
        .with_context(|| format!("writing {}", args.markdown.display()))?;
    print!("{tables}");
    ensure!(!run.series.is_empty(), "nothing was measured");
    Ok(())
}

fn save(args: &SaveArgs) -> Result<()> {
    let mut run = Outcome::read(&args.run)?;
    let mut document = Document::read_or_new(&args.document)?;
    if args.again {
        let first = document
            .like(&run)
            .with_context(|| format!("no first run with {} CPUs yet", run.header.topology))?;
        run = Outcome {
            again: Some(Box::new(run)),
            ..first.clone()
        };
    }
    document.save(run.clone());
    result::write(&args.document, &document)?;
    fs::write(&args.markdown, table::document(&document))
        .with_context(|| format!("writing {}", args.markdown.display()))?;
    if run.header.part == Part::Policies {
        let page = fs::read_to_string(&args.policies)
            .with_context(|| format!("reading {}", args.policies.display()))?;
        let page =
            policies::put_into(&page, &run).with_context(|| args.policies.display().to_string())?;
        fs::write(&args.policies, page)
            .with_context(|| format!("writing {}", args.policies.display()))?;
    }
    if let Some(again) = &run.again {
        let (agree, page) = (repeats::repeats(&run, again).1, args.markdown.display());
        ensure!(agree, "the two runs don't agree: see {page}");
    }
    Ok(())
}

fn compare(args: &CheckArgs) -> Result<()> {
    let run = Outcome::read(&args.run)?;
    let document: Document = result::read(&args.document)?;
    let committed = document.like(&run).with_context(|| {
        format!(
            "{} has no run with {} CPUs",
            args.document.display(),
            run.header.topology
        )
    })?;
    let (lines, count) = check::worse(&run, committed, &args.scheduler);
    for line in &lines {
        println!("worse: {line}");
    }
    ensure!(count > 0, "no figure in common with the committed run");
    ensure!(
        lines.is_empty(),
        "{} of {count} figures got worse; if that is meant to be, run scripts/bench --save",
        lines.len()
    );
    println!(
        "{count} figures, none worse by more than its committed spread and 3 % (shares: 0.002)"
    );
    Ok(())
}

pub fn bench(args: &BenchArgs) -> Result<()> {
    match &args.action {
        Action::Guest(args) => guest::guest(args),
        Action::Rows(args) => print_rows(args),
        Action::Report(args) => report(args),
        Action::Save(args) => save(args),
        Action::Render { policies, document } => {
            let document: Document = result::read(document)?;
            match policies {
                true => document
                    .of(Part::Policies)
                    .iter()
                    .for_each(|run| print!("{}", policies::tables(run))),
                false => print!("{}", table::document(&document)),
            }
            Ok(())
        }
        Action::Verifier(args) => programs::verifier(args),
        Action::VerifierSave { file, raw } => programs::merge(raw, file),
        Action::Check(args) => compare(args),
        Action::Repeats { one, two } => {
            let (table, fine) = repeats::repeats(&Outcome::read(one)?, &Outcome::read(two)?);
            print!("{table}");
            ensure!(fine, "the two runs don't agree");
            Ok(())
        }
    }
}
