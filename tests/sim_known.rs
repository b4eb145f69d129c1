// SPDX-License-Identifier: GPL-2.0-only
//! Scenarios that once showed a fault of the core, kept; each file's first line
//! says which.

mod sim_common;

use std::path::Path;

use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::File;
use sim_common::check;

#[test]
fn mended_faults_stay_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workloads/known");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = File::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let (result, _) = check(&file, Variant::lease(), |_| ());
        result.unwrap_or_else(|text| panic!("{}: {text}", path.display()));
        count += 1;
    }
    assert!(count > 0);
}
