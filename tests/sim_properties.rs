//! Any machine, any workload, any faults: no task is lost or runs twice, no
//! CPU idles beside work, the life cycle holds, clocks never go back.

mod sim_common;

use proptest::prelude::*;
use scx_fulcrum::sim::variants::Variant;
use sim_common::{check, scenarios};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_property_holds(file in scenarios()) {
        let (result, _) = check(&file, Variant::lease(), |_| ());
        prop_assert!(result.is_ok(), "{}", result.unwrap_err());
    }
}
