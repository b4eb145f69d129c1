//! Any machine, any workload, any faults: no task is lost or runs twice, no
//! CPU idles beside work, the life cycle holds, clocks never go back.

mod sim_common;

use std::cell::Cell;

use proptest::test_runner::{Config as ProptestConfig, RngSeed, TestCaseError, TestRunner};
use scx_fulcrum::sim::variants::Variant;
use sim_common::{IDLE_TOLERANCE, MISSES_ALLOWED, check_tolerant, scenarios};

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
    let missed = Cell::new(0);
    let result = TestRunner::new(config).run(&scenarios(), |file| {
        let (result, _) = check_tolerant(&file, Variant::lease(), IDLE_TOLERANCE, |machine| {
            machine.stats.idle_beside_work > 0
        });
        match result {
            Ok(miss) => missed.set(missed.get() + usize::from(miss)),
            Err(text) => return Err(TestCaseError::fail(text)),
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!(
        "{} of {CASES} runs had a CPU idle beside work",
        missed.get()
    );
    assert!(missed.get() * 1000 <= MISSES_ALLOWED * CASES as usize);
}
