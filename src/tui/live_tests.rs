// SPDX-License-Identifier: GPL-2.0-only
//! The stream's reader and asker, with a scheduler that is made up.

use std::os::unix::net::UnixListener;
use std::sync::mpsc::{self, Receiver};

use super::*;
use crate::stats::sample;
use crate::wake::Sleeper;

const WAIT: Duration = Duration::from_secs(20);

fn some(names: &[&str]) -> Sections {
    let names: Vec<_> = names.iter().map(|name| (*name).to_string()).collect();
    Sections::named(&names).unwrap()
}

/// The next question, as the sections that it names.
fn question(client: &mut Stream) -> Sections {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    let question: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(question["subscribe"], "figures", "{line}");
    assert_eq!(question["hz"], 2.0, "{line}");
    serde_json::from_value::<Vec<String>>(question["sections"].clone())
        .map(|names| Sections::named(&names).unwrap())
        .unwrap()
}

fn say(client: &mut Stream, line: &Value) {
    let client = client.get_mut();
    client.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The server's end of the next connection, its question answered.
fn met(listener: &UnixListener, wanted: Sections) -> Stream {
    let (client, _) = listener.accept().unwrap();
    client.set_read_timeout(Some(WAIT)).unwrap();
    let mut client = BufReader::new(client);
    assert_eq!(question(&mut client), wanted);
    say(&mut client, &json!({"subscribed": "figures"}));
    client
}

/// The next message that is a frame: its number. `None`: it was lost.
fn heard(inbox: &Receiver<Message>) -> Option<u64> {
    match inbox.recv_timeout(WAIT).unwrap() {
        Message::Frame(frame, _) => Some(frame.seq),
        Message::Lost(_) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_sections_are_asked_for_on_the_way_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stream");
    let listener = UnixListener::bind(&path).unwrap();
    let sleeper = Sleeper::new().unwrap();
    let (sender, inbox) = mpsc::sync_channel(ON_THE_WAY);
    let (cpus, tasks) = (some(&["cpus"]), some(&["tasks"]));
    let asked = Asked::new(&path, Duration::from_millis(500), cpus);
    let frame = |number: u64| json!(sample::frames(number + 1)[number as usize]);

    let other = asked.clone();
    let reader = thread::spawn(move || {
        let stream = other.subscribe().unwrap();
        follow(other, stream, Outbox::new(sender, sleeper.waker()));
        sleeper
    });
    let mut client = met(&listener, cpus);
    let _sleeper = reader.join().unwrap();
    say(&mut client, &frame(0));
    assert_eq!(heard(&inbox), Some(0));

    // The same again is not said again.
    asked.change(cpus);
    asked.change(tasks);
    assert_eq!(question(&mut client), tasks);
    say(&mut client, &frame(1));
    say(&mut client, &json!({"subscribed": "figures"}));
    say(&mut client, &frame(2));
    assert_eq!((heard(&inbox), heard(&inbox)), (Some(1), Some(2)));

    drop(client);
    assert_eq!(heard(&inbox), None);
    let mut client = met(&listener, tasks);
    say(&mut client, &frame(3));
    assert_eq!(heard(&inbox), Some(3));
    say(&mut client, &json!({"error": "too many clients"}));
    match inbox.recv_timeout(WAIT).unwrap() {
        Message::Lost(why) => assert_eq!(why, "too many clients"),
        other => panic!("{other:?}"),
    }
}
