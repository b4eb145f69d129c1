// SPDX-License-Identifier: GPL-2.0-only
//! Rounds with made-up answers of the BPF program.

use super::super::ledger::{Ack, Place};
use super::*;

const MS: Duration = Duration::from_millis(1);

fn shape(cpus: usize, llc: usize) -> Shape {
    let place = |cpu: usize| Place {
        domain: (cpu / llc) as u16,
        node: 0,
        exists: true,
    };
    Shape {
        places: (0..cpus).map(place).collect(),
        domains: cpus / llc,
    }
}

fn samples(waiting: &[u32]) -> Vec<Sample> {
    let sample = |&waiting: &u32| Sample {
        load: Load {
            busy: true,
            waiting,
            weight: 1024.0,
        },
        ack: Ack::default(),
        affinity_changes: 0,
    };
    waiting.iter().map(sample).collect()
}

/// Sends what the round decided; the numbers go on from `first`.
fn send(balancer: &mut Balancer, now: Duration, round: &Round, first: u32) {
    for (hint, generation) in round.moves.iter().zip(first..) {
        balancer.sent(now, *hint, generation);
    }
}

#[test]
fn nothing_to_do_is_no_further_round() {
    let mut balancer = Balancer::new(shape(4, 2));
    let round = balancer.round(MS, &samples(&[1, 1, 1, 1]));
    assert_eq!(
        round,
        Round {
            moves: vec![],
            dealt: vec![],
            quiet: FUTILE.0,
            again: None
        }
    );
}

#[test]
fn hints_are_followed_up_until_they_are_dealt_with() {
    let mut balancer = Balancer::new(shape(4, 2));
    let mut look = samples(&[5, 5, 1, 1]);
    let round = balancer.round(MS, &look);
    assert_eq!(round.moves.len(), 2);
    assert_eq!(round.again, Some(MS + ROUND));
    send(&mut balancer, MS, &round, 1);
    look = samples(&[3, 3, 3, 3]);
    for (number, hint) in round.moves.iter().enumerate() {
        look[hint.to].ack = Ack {
            generation: number as u32 + 1,
            moved: 2,
            refused: false,
        };
    }
    let round = balancer.round(MS + ROUND, &look);
    assert_eq!(round.again, None);
    assert!(round.dealt.iter().all(|dealt| dealt.outcome == "applied"));
    let figures = balancer.figures();
    assert_eq!((figures.rounds, figures.hints, figures.moved), (2, 2, 4));
}

#[test]
fn a_refused_move_is_tried_less_and_less_often() {
    let mut balancer = Balancer::new(shape(4, 2));
    let (mut now, mut number, mut hints) = (MS, 0, Vec::new());
    let mut look = samples(&[9, 1, 1, 1]);
    while now < Duration::from_secs(60) {
        let round = balancer.round(now, &look);
        for hint in &round.moves {
            number += 1;
            balancer.sent(now, *hint, number);
            hints.push(now);
            look[hint.to].ack = Ack {
                generation: number,
                moved: 0,
                refused: true,
            };
        }
        now = round.again.unwrap_or(now + round.quiet.max(ROUND));
    }
    let late = hints
        .iter()
        .filter(|at| **at > Duration::from_secs(30))
        .count();
    assert!(
        hints.len() < 60 && late < 12,
        "{} hints, {late} of them late",
        hints.len()
    );
    assert!(late > 0, "affinity changes: it is tried again now and then");
    assert!(balancer.figures().rounds < 200, "{:?}", balancer.figures());
    // A change of affinity, and it is tried at once.
    look[3].affinity_changes = 1;
    assert!(!balancer.round(now, &look).moves.is_empty());
}

#[test]
fn a_hint_that_nobody_deals_with_expires() {
    let mut balancer = Balancer::new(shape(4, 2));
    let look = samples(&[5, 5, 1, 1]);
    let round = balancer.round(MS, &look);
    send(&mut balancer, MS, &round, 7);
    let balanced = samples(&[1, 1, 1, 1]);
    let mut now = MS + ROUND;
    while let Some(again) = balancer.round(now, &balanced).again {
        now = again;
        assert!(now < Duration::from_secs(1), "it never forgets");
    }
    assert_eq!(balancer.figures().expired, balancer.figures().hints);
}

#[test]
fn short_tasks_do_not_look_like_load() {
    let mut balancer = Balancer::new(shape(4, 2));
    assert!(balancer.round(MS, &samples(&[0, 0, 0, 0])).moves.is_empty());
    // Five waited at this one moment only.
    assert!(
        balancer
            .round(MS * 10, &samples(&[5, 5, 0, 0]))
            .moves
            .is_empty()
    );
    assert!(
        !balancer
            .round(MS * 20, &samples(&[5, 5, 0, 0]))
            .moves
            .is_empty()
    );
}
