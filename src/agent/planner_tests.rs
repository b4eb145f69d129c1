// SPDX-License-Identifier: GPL-2.0-only
//! Plans on made-up machines of up to 1,024 CPUs, without a kernel.

use proptest::prelude::*;

use super::super::ledger::Place;
use super::*;

/// Caches of `llc` CPUs, nodes of `node` caches.
fn shape(cpus: usize, llc: usize, node: usize) -> Shape {
    let place = |cpu: usize| Place {
        domain: (cpu / llc) as u16,
        node: (cpu / llc / node) as u16,
        exists: true,
    };
    Shape {
        places: (0..cpus).map(place).collect(),
        domains: cpus.div_ceil(llc),
    }
}

fn load(waiting: u32) -> Load {
    Load {
        busy: true,
        waiting,
        weight: 1024.0,
    }
}

fn apply(loads: &mut [Load], plan: &[Move]) {
    for step in plan {
        loads[step.from].waiting -= step.tasks;
        loads[step.to].waiting += step.tasks;
    }
}

/// Rounds until there is nothing left to do.
fn rounds(shape: &Shape, loads: &mut [Load], limit: usize) -> usize {
    for round in 0..limit {
        let plan = plan(shape, loads, &());
        if plan.is_empty() {
            return round;
        }
        apply(loads, &plan);
    }
    limit
}

#[test]
fn a_balanced_machine_gets_no_plan() {
    for cpus in [1, 8, 1024] {
        let shape = shape(cpus, 8, 4);
        for waiting in [0, 1, 5] {
            let mut loads = vec![load(waiting); cpus];
            assert_eq!(plan(&shape, &loads, &()), []);
            // One more here and there is what rotation is for.
            loads[0].waiting += 1;
            assert_eq!(plan(&shape, &loads, &()), []);
        }
        assert_eq!(plan(&shape, &vec![Load::default(); cpus], &()), []);
    }
}

#[test]
fn a_crowd_in_one_cache_spreads_in_a_few_rounds() {
    let shape = shape(1024, 16, 8);
    let mut loads = vec![load(0); 1024];
    loads[..16].fill(load(63));
    let took = rounds(&shape, &mut loads, 20);
    assert!(took <= 6, "{took} rounds");
    let most = loads.iter().map(|load| load.waiting).max().unwrap();
    assert!(most <= 4, "{most}");
}

#[test]
fn near_ones_come_first() {
    let shape = shape(32, 8, 2);
    let mut loads = vec![load(1); 32];
    loads[..8].fill(load(7));
    loads[8..16].fill(load(0));
    loads[16..24].fill(load(0));
    let plan = plan(&shape, &loads, &());
    let near = |step: &Move| (8..16).contains(&step.to);
    assert!(plan.len() > 8, "{plan:?}");
    assert!(plan.iter().take(8).all(near), "{plan:?}");
}

#[test]
fn another_node_has_to_be_worth_it() {
    let shape = shape(16, 8, 1);
    let mut loads = vec![load(3); 16];
    loads[8..].fill(load(0));
    // Four and one: worth a move within a node only.
    assert_eq!(plan(&shape, &loads, &()), []);
    let near = Shape {
        places: shape
            .places
            .iter()
            .map(|place| Place { node: 0, ..*place })
            .collect(),
        ..shape
    };
    assert_eq!(plan(&near, &loads, &()).len(), 8);
}

#[test]
fn one_heavy_task_keeps_its_cpu() {
    let shape = shape(16, 8, 2);
    let mut loads = vec![load(3); 16];
    // nice -20 alone, heavier than all others together: nothing goes there.
    let heavy = Load {
        busy: true,
        waiting: 0,
        weight: 88761.0,
    };
    loads[8..].fill(load(0));
    loads[8] = heavy;
    assert_eq!(
        fair_level(&loads, &()),
        (8.0 * 4096.0 + 7.0 * 1024.0) / 15.0
    );
    let plan = plan(&shape, &loads, &());
    assert!(!plan.is_empty());
    assert!(plan.iter().all(|step| step.to != 8), "{plan:?}");
}

#[test]
fn a_long_queue_among_short_ones_is_its_own_domains_matter() {
    let shape = shape(16, 8, 2);
    let mut loads = vec![load(0); 16];
    loads[8..].fill(load(1));
    loads[0] = load(8);
    // 16 tasks in each.
    assert_eq!(plan(&shape, &loads, &()), []);
}

#[test]
fn weights_count_not_tasks() {
    let shape = shape(16, 8, 2);
    let light = |waiting| Load {
        busy: true,
        waiting,
        weight: 15.0,
    };
    let mut loads = vec![load(1); 16];
    // A hundred tasks of nice 19 are less than one and a half of nice 0.
    loads[..8].fill(light(99));
    for step in plan(&shape, &loads, &()) {
        assert!(step.from >= 8, "{step:?}");
    }
}

struct Pinned(usize);

impl Closed for Pinned {
    fn is_closed(&self, from: usize, _: u16) -> bool {
        from == self.0
    }
    fn is_stuck(&self, from: usize) -> bool {
        from == self.0
    }
}

#[test]
fn a_pinned_crowd_is_left_out_of_account() {
    let shape = shape(16, 8, 2);
    let mut loads = vec![load(1); 16];
    loads[0] = load(100);
    let plan = plan(&shape, &loads, &Pinned(0));
    assert_eq!(plan, []);
    assert_eq!(fair_level(&loads, &Pinned(0)), 2048.0);
}

fn any_load() -> impl Strategy<Value = Load> {
    let weight = prop_oneof![4 => Just(1024.0), 1 => 3.0..90_000.0];
    (prop::bool::weighted(0.9), 0_u32..60, weight).prop_map(|(busy, waiting, weight)| Load {
        busy,
        waiting,
        weight,
    })
}

fn any_machine() -> impl Strategy<Value = (Shape, Vec<Load>)> {
    let sizes = (
        1_usize..=1024,
        prop::sample::select(vec![1, 4, 8, 16, 64]),
        1_usize..5,
    );
    sizes.prop_flat_map(|(cpus, llc, node)| {
        let loads = prop::collection::vec(any_load(), cpus);
        (Just(shape(cpus, llc, node)), loads)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_plan_keeps_to_its_bounds((shape, loads) in any_machine()) {
        let plan = plan(&shape, &loads, &());
        prop_assert!(plan.len() <= HINTS);
        let mut given = vec![(0, 0); loads.len()];
        let mut got = vec![false; loads.len()];
        for step in &plan {
            let (from, to) = (loads[step.from], loads[step.to]);
            prop_assert!(from.busy && to.busy);
            prop_assert!(step.tasks >= 1 && step.tasks <= TASKS_A_HINT);
            prop_assert!(!std::mem::replace(&mut got[step.to], true));
            let places = (shape.places[step.from], shape.places[step.to]);
            prop_assert_ne!(places.0.domain, places.1.domain);
            given[step.from].0 += 1;
            given[step.from].1 += step.tasks;
            // What gives still has no less to do than what takes then has.
            let left = from.total() - f64::from(given[step.from].1) * from.weight;
            let then = to.total() + f64::from(step.tasks) * from.weight;
            prop_assert!(left >= then - 1e-6 * from.total(), "{:?} {left} {then}", step);
        }
        for (cpu, (hints, tasks)) in given.iter().enumerate() {
            prop_assert!(*hints <= HINTS_A_QUEUE && *tasks <= loads[cpu].waiting);
        }
    }

    #[test]
    fn rounds_come_to_an_end((shape, mut loads) in any_machine()) {
        // Each move takes from the fullest: no task goes round in circles.
        let limit = 1 + loads.iter().map(|load| load.waiting as usize).sum::<usize>();
        prop_assert!(rounds(&shape, &mut loads, limit) < limit);
    }

    #[test]
    fn the_same_look_gives_the_same_plan((shape, loads) in any_machine()) {
        prop_assert_eq!(plan(&shape, &loads, &()), plan(&shape, &loads, &()));
    }
}
