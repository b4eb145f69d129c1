//! Pure parts of loading: names, error numbers, the topology's layout.

use super::*;
use crate::kernel::topology::Domain;

#[test]
fn the_suffix_holds_only_what_the_kernel_takes_in_names() {
    let suffix = name_suffix("0.1.0-gabc x86_64-unknown-linux-gnu/debug");
    assert_eq!(suffix, "_0.1.0_gabc_x86_64_unknown_linux_gnu_debug");
}

#[test]
fn error_numbers_are_found_and_explained() {
    use libbpf_rs::ErrorExt as _;
    let busy = Err::<(), _>(libbpf_rs::Error::from_raw_os_error(libc::EBUSY)).context("attaching");
    let busy = busy.expect_err("an error");
    assert_eq!(errno(&busy), Some(libc::EBUSY));
    assert_eq!(attach_failure(&busy).code, ExitCode::OtherScheduler);
    for number in [
        libc::EINVAL,
        libc::EOPNOTSUPP,
        libc::E2BIG,
        libc::ENOMEM,
        libc::EPERM,
    ] {
        let error = libbpf_rs::Error::from_raw_os_error(number);
        assert_eq!(attach_failure(&error).code, ExitCode::Enable);
        assert_eq!(load_failure("loading", &error).code, ExitCode::Load);
    }
}

#[test]
fn text_ends_at_nul_and_survives_any_bytes() {
    assert_eq!(text(b"abc\0def".iter().copied()), "abc");
    assert_eq!(text([0xff, b'a'].into_iter()), "\u{fffd}a");
    assert_eq!(text(std::iter::empty()), "");
}

#[test]
fn the_topology_is_laid_out_for_the_bpf_program() {
    let domain = |node, cpus: &[usize]| Domain {
        node,
        cpus: cpus.to_vec(),
    };
    let topology = Topology {
        domains: vec![
            domain(0, &[0, 2]),
            domain(0, &[1, 3]),
            domain(5, &[4, 4095]),
        ],
        llcs: 3,
        nodes: 2,
        online: 6,
        notes: Vec::new(),
    };
    let mut topo = Box::<types::topology>::default();
    fill_topology(&mut topo, &topology);
    assert_eq!(topo.nr_domains, 3);
    let ranges: Vec<_> = topo.domain[..3]
        .iter()
        .map(|d| (d.node_first, d.node_end))
        .collect();
    assert_eq!(ranges, [(0, 2), (0, 2), (2, 3)]);
    for (number, domain) in topology.domains.iter().enumerate() {
        assert_eq!(usize::from(topo.domain[number].nr_cpus), domain.cpus.len());
        for (bit, &cpu) in domain.cpus.iter().enumerate() {
            assert_eq!(usize::from(topo.cpu[cpu].domain), number);
            assert_eq!(usize::from(topo.cpu[cpu].bit), bit);
            assert_eq!(usize::from(topo.domain[number].cpus[bit]), cpu);
        }
    }
}
