// SPDX-License-Identifier: GPL-2.0-only
//! Any machine, any workload, any faults: no task is lost or runs twice, no
//! CPU idles beside work, the life cycle holds, clocks never go back.

mod sim_common;

use proptest::test_runner::{Config as ProptestConfig, RngSeed, TestCaseError, TestRunner};
use scx_fulcrum::sim::variants::Variant;
use sim_common::{check, scenarios};

const CASES: u32 = 600;

#[test]
fn every_property_holds() {
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 300,
        // The same cases each time, so that a failure belongs to a change.
        rng_seed: RngSeed::Fixed(3),
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(&scenarios(), |file| {
        let (result, _) = check(&file, Variant::lease(), |_| ());
        result.map_err(TestCaseError::fail)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
