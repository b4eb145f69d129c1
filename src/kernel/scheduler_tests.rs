// SPDX-License-Identifier: GPL-2.0-only
//! Pure parts of loading: names, error numbers, the topology's layout.

use super::*;
use crate::kernel::topology::Domain;

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
        kinds: Vec::new(),
        cores: Vec::new(),
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

fn words(knobs: &types::knobs) -> (u32, u32, u64, u64) {
    (
        knobs.policy,
        knobs.generation,
        knobs.slice_ns,
        knobs.credit_ns,
    )
}

#[test]
fn what_is_set_before_loading_is_what_was_asked_for() {
    let mut storage = Storage::uninit();
    let mut open = FulcrumSkelBuilder::default()
        .open(&mut storage)
        .expect("a readable object");
    let own = open.maps.data_data.as_deref().map(|data| data.knobs);
    let mut default = types::knobs::default();
    write_knobs(&mut default, &Settings::default(), 0);
    assert_eq!(own.map(|own| words(&own)), Some(words(&default)));

    let topology = Topology {
        domains: vec![Domain {
            node: 0,
            cpus: vec![0, 1],
        }],
        llcs: 1,
        nodes: 1,
        online: 2,
        kinds: Vec::new(),
        cores: Vec::new(),
        notes: Vec::new(),
    };
    let values = ["policy=mlfq", "slice-us=700"].map(str::to_string);
    let values = crate::control::settings::split(&values).expect("values");
    let settings = Settings::default().with(&values).expect("settings");
    let config = Config {
        settings: settings.clone(),
        generation: 5,
        partial: true,
        timeout_ms: Some(5000),
        exit_dump_len: 65_536,
    };
    set_ops(&mut open, &config, 5, 7);
    set_data(&mut open, &config, &topology).expect("a data section");
    make_room(&mut open, &topology).expect("a section that grows");
    let room = open.maps.bss_memories.value_size() as usize;
    assert_eq!(room, 2 * size_of::<types::memory>());
    set_dump_len(&mut open, &config).expect("a resizable dump");

    let ops = open.struct_ops.fulcrum_ops();
    assert_eq!(
        (
            ops.timeout_ms,
            ops.exit_dump_len,
            ops.hotplug_seq,
            ops.flags
        ),
        (5000, 65_536, 7, 5)
    );
    let name = text(ops.name.iter().map(|&c| c as u8));
    let suffix = build_id::ops_version_suffix(crate::VERSION);
    assert_eq!(name, format!("fulcrum{suffix}"));
    assert!(name.len() < ops.name.len(), "{name} is cut");
    let data = open.maps.data_data.as_deref().expect("a data section");
    let policy = settings.policy().number();
    assert_eq!(words(&data.knobs), (policy, 5, 700_000, 12_000_000));
    assert_eq!(data.topo.nr_domains, 1);
    let dump_len = open
        .maps
        .rodata_data
        .as_deref()
        .map(|rodata| rodata.uei_dump_len);
    assert_eq!(dump_len, Some(65_536));
}
