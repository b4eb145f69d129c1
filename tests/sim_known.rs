//! Scenarios that once showed a fault of the core, kept. What a file's first
//! line describes and is not mended yet is tolerated and printed; anything
//! else that goes wrong in it fails.

mod sim_common;

use std::path::Path;

use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::File;
use sim_common::{IDLE_TOLERANCE, check_tolerant};

#[test]
fn known_scenarios_have_no_other_fault() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workloads/known");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = File::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let (result, _) = check_tolerant(&file, Variant::lease(), IDLE_TOLERANCE, |machine| {
            machine.stats.idle_beside_work
        });
        let misses = result.unwrap_or_else(|text| panic!("{text}"));
        println!(
            "{}: {misses} looks found a CPU idle beside work",
            path.display()
        );
        count += 1;
    }
    assert!(count > 0);
}
