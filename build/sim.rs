// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the scheduler for the host: once for each simulation that may run
//! at the same time, for its globals are one machine's.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/sim/platform/variant.c";
const INSTANCES: usize = 2;

/// Builds and links the simulator's C side with `clang`.
pub fn build(clang: &OsStr) -> Result<(), String> {
    println!("cargo:rerun-if-changed=src/sim/platform");
    println!("cargo:rustc-env=FULCRUM_CLANG={}", clang.to_string_lossy());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: build with cargo")?);
    let mut library = cc::Build::new();
    for instance in 0..INSTANCES {
        let export = format!("fulcrum_sim_{instance}");
        let object = out.join(format!("{export}.o"));
        let mut compile = Command::new(clang);
        compile
            .args(["-O2", "-g", "-fPIC", "-Wall", "-Werror", "-DFULCRUM_SIM"])
            .args(["-I", "bpf", "-I", "src/sim/platform", "-c", SOURCE, "-o"])
            .arg(&object)
            .arg(format!("-DSIM_EXPORT={export}"));
        run(&mut compile)?;
        // All other names exist once an instance.
        let mut hide = Command::new("objcopy");
        hide.arg(format!("--keep-global-symbol={export}"))
            .arg(&object);
        run(&mut hide)?;
        library.object(object);
    }
    library
        .try_compile("fulcrum_sim")
        .map_err(|error| format!("archiving the simulator's objects failed: {error}"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(|error| format!("{name} can't be started ({error}): run scripts/setup"))?;
    if !status.success() {
        return Err(format!("{name} failed to build {SOURCE} for the simulator"));
    }
    Ok(())
}
