// SPDX-License-Identifier: GPL-2.0-only
//! The recorded stream in the repository is what this version writes and
//! reads. After a change of the frame: `FULCRUM_WRITE=1 cargo test --release
//! --test stream_frames`.

use std::fs;

use scx_fulcrum::stats::frame::Frame;
use scx_fulcrum::stats::sample;

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
