// SPDX-License-Identifier: GPL-2.0-only
//! Topologies of made-up machines, odd ones above all.

use super::*;
use crate::kernel::testing::Tree;

/// A machine of `sockets` x `cores` x `threads` CPUs, numbered as QEMU does,
/// one cache and one node a socket.
fn machine(sockets: usize, cores: usize, threads: usize) -> Tree {
    let (per_socket, total) = (cores * threads, sockets * cores * threads);
    let mut tree = Tree::new()
        .file(
            "sys/devices/system/cpu/possible",
            format!("0-{}\n", total - 1),
        )
        .file(
            "sys/devices/system/cpu/online",
            format!("0-{}\n", total - 1),
        );
    for socket in 0..sockets {
        let (first, last) = (socket * per_socket, (socket + 1) * per_socket - 1);
        let list = format!("{first}-{last}\n");
        tree = tree.file(
            &format!("sys/devices/system/node/node{socket}/cpulist"),
            &list,
        );
        for cpu in first..=last {
            let core = first + (cpu - first) / threads * threads;
            let siblings = format!("{core}-{}\n", core + threads - 1);
            let at = format!("sys/devices/system/cpu/cpu{cpu}");
            tree = tree
                .file(&format!("{at}/topology/thread_siblings_list"), &siblings)
                .file(&format!("{at}/cache/index1/level"), "1\n")
                .file(&format!("{at}/cache/index1/type"), "Instruction\n")
                .file(&format!("{at}/cache/index1/shared_cpu_list"), &siblings)
                .file(&format!("{at}/cache/index3/level"), "3\n")
                .file(&format!("{at}/cache/index3/type"), "Unified\n")
                .file(&format!("{at}/cache/index3/shared_cpu_list"), &list);
        }
    }
    tree
}

fn read(tree: &Tree) -> Topology {
    let topology = Topology::read(&tree.view());
    check_invariant(&topology, tree);
    topology
}

fn check_invariant(topology: &Topology, tree: &Tree) {
    let possible = tree
        .view()
        .read("/sys/devices/system/cpu/possible")
        .unwrap_or_default();
    let mut expected = cpulist::parse(&possible, MAX_CPUS).unwrap_or_default();
    if expected.is_empty() {
        expected = (0..MAX_CPUS).collect();
    }
    let mut cpus: Vec<_> = topology
        .domains
        .iter()
        .flat_map(|d| d.cpus.clone())
        .collect();
    cpus.sort_unstable();
    assert_eq!(cpus, expected);
    assert!(topology.domains.len() <= MAX_DOMAINS);
    assert!(
        topology
            .domains
            .iter()
            .all(|d| (1..=DOMAIN_CPUS).contains(&d.cpus.len()))
    );
    assert!(
        topology
            .domains
            .windows(2)
            .all(|pair| pair[0].node <= pair[1].node)
    );
}

#[test]
fn a_single_cpu_is_one_domain() {
    let topology = read(&machine(1, 1, 1).file("sys/devices/system/cpu/possible", "0\n"));
    assert_eq!(
        topology.domains,
        [Domain {
            node: 0,
            cpus: vec![0]
        }]
    );
    assert_eq!((topology.llcs, topology.nodes, topology.online), (1, 1, 1));
    assert!(topology.notes.is_empty(), "{:?}", topology.notes);
}

#[test]
fn sockets_are_domains_and_first_threads_come_first() {
    let topology = read(&machine(2, 2, 2));
    let domain = |node, cpus: &[usize]| Domain {
        node,
        cpus: cpus.to_vec(),
    };
    assert_eq!(
        topology.domains,
        [domain(0, &[0, 2, 1, 3]), domain(1, &[4, 6, 5, 7])]
    );
    assert_eq!((topology.llcs, topology.nodes, topology.online), (2, 2, 8));
}

#[test]
fn a_large_cache_is_cut_evenly_with_cores_whole() {
    let topology = read(&machine(1, 48, 2));
    let sizes: Vec<_> = topology.domains.iter().map(|d| d.cpus.len()).collect();
    assert_eq!(sizes, [48, 48]);
    assert_eq!(topology.llcs, 1);
    for domain in &topology.domains {
        assert!(
            domain
                .cpus
                .iter()
                .all(|cpu| domain.cpus.contains(&(cpu ^ 1)))
        );
    }
}

#[test]
fn offline_cpus_join_their_neighbours() {
    let tree = machine(2, 2, 1)
        .without("sys/devices/system/cpu/cpu1")
        .without("sys/devices/system/cpu/cpu3")
        .file("sys/devices/system/node/node0/cpulist", "0\n")
        .file("sys/devices/system/node/node1/cpulist", "2\n")
        .file(
            "sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
            "0\n",
        )
        .file(
            "sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list",
            "2\n",
        )
        .file("sys/devices/system/cpu/online", "0,2\n");
    let topology = read(&tree);
    let cpus: Vec<_> = topology.domains.iter().map(|d| d.cpus.clone()).collect();
    assert_eq!(cpus, [vec![0, 1], vec![2, 3]]);
    assert_eq!(topology.online, 2);
}

#[test]
fn possible_cpus_that_are_absent_have_their_bit() {
    let tree = machine(1, 4, 1).file("sys/devices/system/cpu/possible", "0-239\n");
    let topology = read(&tree);
    assert_eq!(topology.domains.len(), 4);
    assert!(
        topology
            .domains
            .iter()
            .any(|d| (0..4).all(|cpu| d.cpus.contains(&cpu)))
    );
}

#[test]
fn sparse_numbers_are_kept() {
    let tree = Tree::new().file("sys/devices/system/cpu/possible", "0,7,4095\n");
    assert_eq!(
        read(&tree).domains,
        [Domain {
            node: 0,
            cpus: vec![0, 7, 4095]
        }]
    );
}

#[test]
fn no_node_folder_is_one_node() {
    let topology = read(&machine(2, 2, 1).without("sys/devices/system/node"));
    assert_eq!((topology.domains.len(), topology.nodes), (2, 1));
}

#[test]
fn no_cache_information_is_one_domain_a_node_and_said() {
    let mut tree = machine(2, 2, 1);
    for cpu in 0..4 {
        tree = tree.without(&format!("sys/devices/system/cpu/cpu{cpu}/cache"));
    }
    let topology = read(&tree);
    assert_eq!(topology.domains.len(), 2);
    assert_eq!(topology.notes.len(), 1);
}

#[test]
fn cores_without_shared_cache_are_grouped_by_node() {
    let mut tree = machine(1, 4, 2);
    for cpu in 0..8 {
        let own = format!("{}-{}\n", cpu & !1, cpu | 1);
        let file = format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list");
        tree = tree.file(&file, own);
    }
    let topology = read(&tree);
    assert_eq!(topology.domains.len(), 1);
    assert_eq!(topology.domains[0].cpus, [0, 2, 4, 6, 1, 3, 5, 7]);
}

#[test]
fn more_caches_than_domains_fall_back_to_numbers() {
    let mut tree = Tree::new().file("sys/devices/system/cpu/possible", "0-1199\n");
    for pair in 0..600 {
        for cpu in [2 * pair, 2 * pair + 1] {
            let at = format!("sys/devices/system/cpu/cpu{cpu}/cache/index3");
            tree = tree.file(&format!("{at}/level"), "3").file(
                &format!("{at}/shared_cpu_list"),
                format!("{}-{}", 2 * pair, 2 * pair + 1),
            );
        }
    }
    let topology = read(&tree);
    assert_eq!(topology.domains.len(), 19);
    assert!(!topology.notes.is_empty());
}

#[test]
fn an_empty_machine_has_room_for_every_cpu() {
    let topology = read(&Tree::new());
    assert_eq!(topology.domains.len(), MAX_CPUS / DOMAIN_CPUS);
    assert_eq!(topology.notes.len(), 2);
}

#[test]
fn random_nonsense_keeps_the_invariant() {
    let words = [
        "", "-1", "0", "0-3", "7-2", "x", "0-99999", "3,1,2", "5", "\0", "2-6", "65535",
    ];
    let mut seed = 1_u64;
    let mut pick = |bound: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize % bound
    };
    for _ in 0..50 {
        let mut tree = Tree::new().file("sys/devices/system/cpu/possible", "0-7");
        tree = tree.file("sys/devices/system/cpu/online", words[pick(words.len())]);
        for _ in 0..12 {
            let (cpu, word) = (pick(9), words[pick(words.len())]);
            let at = format!("sys/devices/system/cpu/cpu{cpu}");
            let file = match pick(6) {
                0 => format!("sys/devices/system/node/node{}/cpulist", pick(3)),
                1 => format!("{at}/topology/thread_siblings_list"),
                2 => format!("{at}/cache/index{}/level", pick(4)),
                3 => format!("{at}/cache/index{}/shared_cpu_list", pick(4)),
                4 => format!("{at}/cache/indexes"),
                _ => format!("{at}/node{}", pick(3)),
            };
            tree = tree.file(&file, word);
        }
        read(&tree);
    }
}
