// SPDX-License-Identifier: GPL-2.0-only
//! rt-app's JSON files, the common subset: tasks with phases and loops of run,
//! sleep, timer, lock, unlock, wait, signal, broad, sync, suspend, resume,
//! fork and yield; instance, delay, policy, priority, cpus.
//!
//! The order of members counts in these files, so they are read into a tree
//! that keeps it. What is not understood is an error, never left out: a
//! workload that isn't the file's would be worse than none. Two differences:
//! a signal that nobody waits for is kept (one of them) rather than lost, and
//! real-time policies are not simulated.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::comments::without_comments;
use super::file::mask;
use super::program::Step;
use super::{Group, Policy, Workload};
use crate::sim::config::Config;
use crate::sim::topology::Topology;
use crate::sim::workload::file::Scenario;

/// A JSON value whose objects keep their order.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Null,
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Number(f64::from(u8::from(value))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }
}

impl Node {
    fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        members
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, node)| node)
    }

    fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    fn number(&self) -> Result<f64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            _ => Err("expected a number".to_string()),
        }
    }

    fn text(&self) -> Result<&str, String> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err("expected a string".to_string()),
        }
    }

    /// A time in microseconds as ns.
    fn time(&self) -> Result<u64, String> {
        let us = self.number()?;
        if (0.0..=1e9).contains(&us) {
            return Ok((us * 1000.0) as u64);
        }
        Err(format!("{us} is no time in microseconds"))
    }
}

/// Is this text in rt-app's format rather than ours?
#[must_use]
pub fn is_one(text: &str) -> bool {
    serde_json::from_str::<Node>(&without_comments(text))
        .is_ok_and(|root| root.get("tasks").is_some())
}

/// Names in the order of their first use.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn number(&mut self, name: &str) -> usize {
        let known = self.0.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.0.push(name.to_string());
            self.0.len() - 1
        })
    }
}

struct Reader<'a> {
    topology: &'a Topology,
    tasks: Vec<String>,
    channels: Names,
    mutexes: Names,
}

/// Makes a scenario for `topology` of an rt-app file.
///
/// # Errors
///
/// The place and what is wrong there.
pub fn parse(text: &str, topology: &Topology) -> Result<Scenario, String> {
    let root: Node = serde_json::from_str(&without_comments(text))
        .map_err(|error| format!("{}:{}: {error}", error.line(), error.column()))?;
    let tasks = root.get("tasks").map(Node::members).unwrap_or_default();
    let mut reader = Reader {
        topology,
        tasks: tasks.iter().map(|(name, _)| name.clone()).collect(),
        channels: Names::default(),
        mutexes: Names::default(),
    };
    let mut workload = Workload {
        name: "rt-app".to_string(),
        ..Workload::default()
    };
    for (name, task) in tasks {
        let group = reader
            .task(name, task)
            .map_err(|why| format!(" tasks.{name}{why}"))?;
        workload.groups.push(group);
    }
    if workload.groups.is_empty() {
        return Err(" tasks: there are none".to_string());
    }
    workload.channels = vec![1; reader.channels.0.len()];
    workload.mutexes = reader.mutexes.0.len();
    let duration = root.get("global").and_then(|global| global.get("duration"));
    let seconds = duration.map_or(Ok(2.0), Node::number).unwrap_or(2.0);
    // rt-app's -1 means "until all tasks are done".
    let seconds = if seconds > 0.0 {
        seconds.min(3600.0)
    } else {
        10.0
    };
    Ok(Scenario {
        config: Config::new(topology.clone(), 1),
        workload,
        duration: (seconds * 1e9) as u64,
    })
}

impl Reader<'_> {
    fn task(&mut self, name: &str, task: &Node) -> Result<Group, String> {
        let mut group = Group::new(name, 1, Vec::new());
        let mut times = u64::MAX;
        let mut steps = Vec::new();
        for (key, node) in task.members() {
            let place = |why: String| format!(".{key}: {why}");
            match key.as_str() {
                "instance" => group.count = node.number().map_err(place)? as usize,
                "delay" => group.start = node.time().map_err(place)?,
                "loop" => times = loops(node).map_err(place)?,
                "priority" => group.nice = node.number().map_err(place)? as i32,
                "policy" => group.policy = policy(node).map_err(place)?,
                "cpus" => group.cpus = Some(self.cpus(node).map_err(place)?),
                "phases" => {
                    for (phase, node) in node.members() {
                        self.phase(node, &mut steps)
                            .map_err(|why| format!(".phases.{phase}{why}"))?;
                    }
                }
                _ => self
                    .event(key, node, &mut steps)
                    .map_err(|why| format!(".{key}: {why}"))?,
            }
        }
        if !(-20..=19).contains(&group.nice) {
            return Err(format!(".priority: {} is not in -20..=19", group.nice));
        }
        if times > 1 {
            let times = if times == u64::MAX { times } else { times - 1 };
            steps.push(Step::Loop { start: 0, times });
        }
        group.steps = steps.into();
        Ok(group)
    }

    fn phase(&mut self, phase: &Node, steps: &mut Vec<Step>) -> Result<(), String> {
        let start = steps.len();
        let mut times = 1;
        for (key, node) in phase.members() {
            let place = |why: String| format!(".{key}: {why}");
            match key.as_str() {
                "loop" => times = loops(node).map_err(place)?,
                _ => self
                    .event(key, node, steps)
                    .map_err(|why| format!(".{key}: {why}"))?,
            }
        }
        if times > 1 {
            let times = if times == u64::MAX { times } else { times - 1 };
            steps.push(Step::Loop { start, times });
        }
        Ok(())
    }

    /// One event; a name may carry a number to be unique (`run1`).
    fn event(&mut self, key: &str, node: &Node, steps: &mut Vec<Step>) -> Result<(), String> {
        let kind = key.trim_end_matches(|c: char| c.is_ascii_digit());
        match kind {
            "run" | "runtime" => steps.push(Step::Run(node.time()?)),
            "sleep" => steps.push(Step::Sleep(node.time()?)),
            "timer" => {
                let period = node.get("period").ok_or("it has no period")?;
                steps.push(Step::Timer(period.time()?.max(1)));
            }
            "lock" => steps.push(Step::Lock(self.mutexes.number(node.text()?))),
            "unlock" => steps.push(Step::Unlock(self.mutexes.number(node.text()?))),
            "wait" => self.wait(node, steps)?,
            "signal" | "broad" => steps.push(self.signal(node.text()?, kind == "broad")),
            "sync" => {
                let name = node.get("ref").ok_or("it has no ref")?.text()?.to_string();
                steps.push(self.signal(&name, false));
                self.wait(node, steps)?;
            }
            "suspend" => {
                let channel = self.channels.number(node.text()?);
                steps.push(Step::Wait(channel));
            }
            "resume" => steps.push(self.signal(node.text()?, false)),
            "yield" => steps.push(Step::Yield),
            "fork" => {
                let name = node.text()?;
                let target = self.tasks.iter().position(|task| task == name);
                let target = target.ok_or_else(|| format!("there is no task {name:?}"))?;
                steps.push(Step::Fork(target));
            }
            _ => return Err("the simulator does not know this event".to_string()),
        }
        Ok(())
    }

    fn signal(&mut self, name: &str, all: bool) -> Step {
        Step::Signal {
            channel: self.channels.number(name),
            all,
            sync: false,
        }
    }

    /// Waiting gives the mutex back and takes it again.
    fn wait(&mut self, node: &Node, steps: &mut Vec<Step>) -> Result<(), String> {
        let name = node.get("ref").ok_or("it has no ref")?.text()?;
        let channel = self.channels.number(name);
        let mutex = match node.get("mutex") {
            Some(name) => Some(self.mutexes.number(name.text()?)),
            None => None,
        };
        steps.extend(mutex.map(Step::Unlock));
        steps.push(Step::Wait(channel));
        steps.extend(mutex.map(Step::Lock));
        Ok(())
    }

    fn cpus(&self, node: &Node) -> Result<crate::sim::ffi::CpuMask, String> {
        let Node::List(list) = node else {
            return Err("expected a list of CPUs".to_string());
        };
        let mut text = Vec::new();
        for cpu in list {
            text.push((cpu.number()? as usize).to_string());
        }
        mask(&text.join(","), self.topology)
    }
}

fn loops(node: &Node) -> Result<u64, String> {
    match node.number()? {
        times if times < 0.0 => Ok(u64::MAX),
        times => Ok(times as u64),
    }
}

fn policy(node: &Node) -> Result<Policy, String> {
    match node.text()? {
        "SCHED_OTHER" => Ok(Policy::Normal),
        "SCHED_BATCH" => Ok(Policy::Batch),
        "SCHED_IDLE" => Ok(Policy::Idle),
        other => Err(format!("{other:?} is not simulated")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_loops_and_numbers_at_names() {
        let text = r#"{
            /* ours */
            "tasks": {"a": {"instance": 2, "priority": 5, "loop": -1, "cpus": [1],
                "phases": {"z": {"loop": 3, "run": 10, "sleep": 20}, "b": {"run1": 1, "run2": 2}}}},
            "global": {"duration": 3}
        }"#;
        assert!(is_one(text));
        let scenario = parse(text, &Topology::of(2)).unwrap();
        let group = &scenario.workload.groups[0];
        assert_eq!((group.count, group.nice), (2, 5));
        let expected = [
            Step::Run(10_000),
            Step::Sleep(20_000),
            Step::Loop { start: 0, times: 2 },
            Step::Run(1000),
            Step::Run(2000),
            Step::Loop {
                start: 0,
                times: u64::MAX,
            },
        ];
        assert_eq!(&*group.steps, expected);
        assert_eq!(scenario.duration, 3_000_000_000);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let problem = |text: &str| parse(text, &Topology::of(2)).unwrap_err();
        for (text, expected) in [
            (r#"{"tasks": {}}"#, "tasks: there are none"),
            (
                r#"{"tasks": {"a": {"iorun": 1}}}"#,
                "tasks.a.iorun: the simulator",
            ),
            (
                r#"{"tasks": {"a": {"phases": {"p": {"run": "x"}}}}}"#,
                "tasks.a.phases.p.run: expected",
            ),
            (
                r#"{"tasks": {"a": {"policy": "SCHED_FIFO"}}}"#,
                "tasks.a.policy: \"SCHED_FIFO\"",
            ),
            (
                r#"{"tasks": {"a": {"cpus": [2]}}}"#,
                "tasks.a.cpus: cpus: there is no CPU 2",
            ),
        ] {
            assert!(
                problem(text).trim().starts_with(expected),
                "{}",
                problem(text)
            );
        }
    }
}
