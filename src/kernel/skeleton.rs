// SPDX-License-Identifier: GPL-2.0-only
//! The skeleton that libbpf-cargo generated from `bpf/fulcrum.bpf.c`.

include!(concat!(env!("OUT_DIR"), "/fulcrum.skel.rs"));
