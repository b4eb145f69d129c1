// SPDX-License-Identifier: GPL-2.0-only
//! `other`: holds the place of the scheduler with somebody else's, a BPF
//! object with one struct_ops map, until SIGTERM. For tests of what we say
//! when we find another scheduler active.

use anyhow::{Context, Result};
use clap::Args;
use libbpf_rs::{MapCore, ObjectBuilder};
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc;

#[derive(Args)]
pub struct OtherArgs {
    /// The BPF object
    object: PathBuf,
}

pub fn other(args: &OtherArgs) -> Result<()> {
    let (tell, told) = mpsc::channel();
    ctrlc::set_handler(move || {
        // A second signal finds nobody listening, which is as well.
        let _ = tell.send(());
    })
    .context("no signal handler")?;
    let mut object = ObjectBuilder::default()
        .open_file(&args.object)
        .with_context(|| format!("opening {}", args.object.display()))?
        .load()
        .context("the kernel refused the object")?;
    let mut map = object
        .maps_mut()
        .find(|m| m.map_type() == libbpf_rs::MapType::StructOps)
        .context("the object has no struct_ops map")?;
    let link = map.attach_struct_ops().context("attaching")?;
    println!("other: attached until SIGTERM");
    std::io::stdout().flush().context("standard output")?;
    told.recv().context("the signal handler is gone")?;
    drop(link);
    println!("other: detached");
    Ok(())
}
