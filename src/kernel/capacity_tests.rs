// SPDX-License-Identifier: GPL-2.0-only
//! Kinds of CPUs of made-up machines.

use super::*;
use crate::kernel::testing::Tree;

const CPUS: [usize; 4] = [0, 1, 2, 3];

fn arm(figures: [&str; 4]) -> Tree {
    let mut tree = Tree::new();
    for (cpu, figure) in figures.iter().enumerate() {
        tree = tree.file(
            &format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"),
            figure,
        );
    }
    tree
}

fn intel(core: &str, atom: &str) -> Tree {
    Tree::new()
        .file("sys/devices/cpu_core/cpus", core)
        .file("sys/devices/cpu_atom/cpus", atom)
}

/// The CPUs of each kind, and what is noted.
fn read(tree: &Tree) -> (Vec<Vec<usize>>, Vec<String>) {
    let mut notes = Vec::new();
    let kinds = kinds(&tree.view(), (&CPUS, 4096), &CPUS, &mut notes);
    (kinds.into_iter().map(|kind| kind.cpus).collect(), notes)
}

#[test]
fn capacities_make_kinds_and_are_said() {
    let (kinds, notes) = read(&arm(["446\n", "446\n", "1024\n", "871\n"]));
    assert_eq!(kinds, [vec![2], vec![3], vec![0, 1]]);
    assert_eq!(
        notes,
        [
            "CPUs 2 (capacity 1024) are faster than 3 (capacity 871), 0-1 (capacity 446): \
             busy tasks go there first"
        ]
    );
}

#[test]
fn what_differs_little_is_alike() {
    for figures in [["1024"; 4], ["1024", "980", "1000", "973"]] {
        assert_eq!(read(&arm(figures)), (vec![], vec![]));
    }
}

#[test]
fn more_kinds_than_there_is_room_for_share_the_last() {
    let figures: Vec<_> = (0..6).map(|cpu| (cpu, 1024 - 150 * cpu as u32)).collect();
    let kinds = by_capacity(&figures);
    let cpus: Vec<_> = kinds.into_iter().map(|kind| kind.cpus).collect();
    assert_eq!(cpus, [vec![0], vec![1], vec![2], vec![3, 4, 5]]);
}

#[test]
fn odd_capacities_count_as_full_and_are_said_once() {
    for odd in ["0\n", "garbage", "", "99999", "-5"] {
        let (kinds, notes) = read(&arm([odd, "1024", "446", odd]));
        assert_eq!(kinds, [vec![0, 1, 3], vec![2]], "{odd}");
        assert_eq!(
            notes[0],
            "cpu_capacity of CPUs 0,3 is missing or not in 1..=1024: they count as full speed"
        );
        assert_eq!(notes.len(), 2);
    }
    let missing =
        arm(["1024", "446", "446", "446"]).without("sys/devices/system/cpu/cpu2/cpu_capacity");
    let (kinds, notes) = read(&missing);
    assert_eq!(kinds, [vec![0, 2], vec![1, 3]]);
    assert!(notes[0].starts_with("cpu_capacity of CPUs 2 is missing"));
}

#[test]
fn an_offline_cpu_without_file_is_nothing_odd() {
    let tree =
        arm(["1024", "1024", "446", "446"]).without("sys/devices/system/cpu/cpu1/cpu_capacity");
    let mut notes = Vec::new();
    let kinds = kinds(&tree.view(), (&CPUS, 4096), &[0, 2, 3], &mut notes);
    assert_eq!(kinds[0].cpus, [0, 1]);
    assert_eq!(notes.len(), 1);
}

#[test]
fn intels_kinds_are_taken_by_name() {
    let (kinds, notes) = read(&intel("0-1\n", "2\n"));
    assert_eq!(kinds, [vec![0, 1, 3], vec![2]], "3 is off line");
    assert_eq!(
        notes,
        ["CPUs 0-1,3 (cpu_core) are faster than 2 (cpu_atom): busy tasks go there first"]
    );
    let tree = intel("0-1\n", "2\n").file("sys/devices/cpu_lowpower/cpus", "3\n");
    assert_eq!(read(&tree).0, [vec![0, 1], vec![2], vec![3]]);
}

#[test]
fn odd_lists_of_intels_make_no_kinds() {
    let garbled = read(&intel("0-1\n", "what"));
    assert_eq!(garbled.0.len(), 0);
    assert!(garbled.1[0].starts_with("/sys/devices/cpu_atom/cpus is no list"));
    for tree in [
        intel("0-3\n", "\n"),
        intel("\n", "0-3\n"),
        intel("0-3", "64-70"),
        Tree::new().file("sys/devices/cpu_atom/cpus", "0-3\n"),
    ] {
        assert_eq!(read(&tree), (vec![], vec![]));
    }
}
