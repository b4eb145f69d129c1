// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks above the scheduler, and the kernel's server against them.

mod sim_common;

use scx_fulcrum::sim::variants::Variant;
use scx_fulcrum::sim::workload::file::{Does, File, PolicySpec};
use sim_common::judge::{ran, share_error, taken_cpu};
use sim_common::{check, file, group};

/// A real-time hog and two of ours on one CPU.
fn rt_hog(kernel: &str, seconds: f64) -> File {
    let mut rt = group("rt", 1, 0, Does::Hog {});
    rt.policy = PolicySpec::Fifo;
    rt.start_us = 100_000;
    let mut file = file("1", seconds, vec![rt, group("hog", 2, 0, Does::Hog {})]);
    file.kernel = Some(kernel.to_string());
    file
}

#[test]
fn the_ext_server_gives_fifty_ms_a_second() {
    let (result, _) = check(&rt_hog("7.3", 20.1), Variant::lease(), |machine| {
        let ours = machine.stats.groups[1].ran;
        (ours as f64 - 1e8) / 20e9
    });
    let share = result.unwrap_or_else(|text| panic!("{text}"));
    println!("ours beside a real-time hog: {share:.4}");
    assert!((0.047..=0.0505).contains(&share), "{share}");
}

#[test]
fn before_it_the_watchdog_ejects() {
    let (result, _) = check(&rt_hog("6.18", 46.0), Variant::lease(), |_| ());
    let text = result.unwrap_err();
    assert!(text.contains("watchdog: runnable task stall"), "{text}");
}

#[test]
fn what_a_real_time_task_pushes_aside_goes_on_elsewhere() {
    for kernel in ["6.16", "6.18", "7.1", "7.3"] {
        let (result, _) = check(&taken_cpu(kernel, 40.0), Variant::lease(), |machine| {
            ran(machine)[..3].to_vec()
        });
        let ran = result.unwrap_or_else(|text| panic!("{kernel}: {text}"));
        let error = share_error(&ran, &[1.0; 3]);
        assert!(error < 0.05, "{kernel}: shares are off by {error:.4}");
        assert!(ran.iter().sum::<f64>() > 0.99 * 40e9, "{kernel}: {ran:?}");
    }
}

#[test]
fn real_time_tasks_come_first_and_take_turns() {
    let frames = Does::Frame {
        period_us: 4000,
        work_us: 1500,
    };
    let mut rt = group("rt", 5, 0, frames);
    rt.policy = PolicySpec::Fifo;
    let hogs = group("hog", 4, 0, Does::Hog {});
    let (result, _) = check(
        &file("2", 2.0, vec![rt, hogs]),
        Variant::lease(),
        |machine| {
            let groups = &machine.stats.groups;
            (groups[0].ran, groups[0].wait.max(), groups[1].ran)
        },
    );
    let (rt, longest, hogs) = result.unwrap_or_else(|text| panic!("{text}"));
    // 5 x 1.5 ms in 4 ms on two CPUs: 1.875 of them.
    assert!((1.86..1.89).contains(&(rt as f64 / 2e9)), "{rt}");
    assert!(longest < 6_000_000, "{longest}");
    assert!((0.10..0.13).contains(&(hogs as f64 / 2e9)), "{hogs}");
}
