// SPDX-License-Identifier: GPL-2.0-only
//! The recorded stream and the tables of docs/stream.md are what this version
//! writes and reads. After a change of the frame: `FULCRUM_WRITE=1 cargo test --release
//! --test stream_frames`.

use std::fs;

use scx_fulcrum::stats::frame::Frame;
use scx_fulcrum::stats::{describe, sample};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/streams/sample.jsonl");

#[test]
fn the_recorded_stream_is_current() {
    let frames = sample::frames(6);
    let lines = frames
        .iter()
        .map(|frame| serde_json::to_string(frame).unwrap() + "\n");
    let lines: String = lines.collect();
    if std::env::var_os("FULCRUM_WRITE").is_some() {
        fs::write(RECORDED, &lines).unwrap();
    }
    let recorded = fs::read_to_string(RECORDED).unwrap();
    assert!(recorded == lines, "{RECORDED} is not what is written now");
    let read = recorded
        .lines()
        .map(|line| serde_json::from_str::<Frame>(line).unwrap());
    assert_eq!(read.collect::<Vec<_>>(), frames);
}

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stream.md");

#[test]
fn the_document_has_every_figure_as_it_is_defined() {
    let text = fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = text.split_once("<!-- made by: ").unwrap();
    let (command, rest) = rest.split_once("-->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let tables = describe::tables();
    let current = format!("{before}<!-- made by: {command}-->\n{tables}<!-- end -->{after}");
    if std::env::var_os("FULCRUM_WRITE").is_some() {
        fs::write(DOCUMENT, &current).unwrap();
    }
    let stored = fs::read_to_string(DOCUMENT).unwrap();
    assert!(stored == current, "{DOCUMENT} is not current");
}
