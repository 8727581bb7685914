//! Kills at any moment, and services that fail, hang and lie.

use super::super::rules::import;
use super::super::scrape::api;
use super::*;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::Instant;
use tidepool_tests::clock::now_ms;
use tidepool_tests::process::Server;
use tidepool_tests::series::Random;

const KILLS: usize = 6;

/// Longest time that a server runs before it is killed.
const LIFE_MS_MAX: u64 = 1500;

/// Fires and ends in different rhythms, in times of the server.
const RULES: &str = "  - {alert: Fast, expr: vector(time() % 0.4) > 0.2}\n  \
                     - {alert: Slow, expr: vector(time() % 3) > 1.5}\n  \
                     - {alert: Held, expr: vector(time() % 2) > 1, for: 300ms}\n";

/// Makes an answer of a service that is not well, and says whether it accepts.
fn unwell(random: &mut Random) -> (bool, Vec<u8>) {
    match random.next_u64() % 8 {
        0 => (false, status(500).to_bytes()),
        1 => (false, status(429).to_bytes()),
        // No answer.
        2 => (false, Vec::new()),
        3 => (false, b"\x00\xff not HTTP at all \r\n\r\n".to_vec()),
        4 => (false, b"HTTP/1.1 200 O".to_vec()),
        // The status counts, whatever follows.
        5 => (true, b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nshort".to_vec()),
        6 => {
            let mut endless = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec();
            endless.resize(1 << 20, b'x');
            (true, endless)
        }
        _ => (true, status(200).to_bytes()),
    }
}

/// A program that keeps its inputs, each in a file.
fn keeping(directory: &Path) -> String {
    let (kept, script) = (directory.join("kept"), directory.join("keep"));
    fs::create_dir(&kept).expect("a directory");
    let kept = kept.display();
    let text = format!("#!/bin/sh\ncat > {kept}/$$.part && mv {kept}/$$.part {kept}/$$.json\n");
    fs::write(&script, text).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
    let command = format!("command: {{path: '{}'}}", script.display());
    format!("  - {{name: command, group_wait: 0s, group_interval: 100ms, {command}}}\n")
}

/// What the program was given. A process that a kill left alone may have got a part.
fn kept(directory: &Path) -> Vec<Told> {
    let files = fs::read_dir(directory.join("kept")).expect("a directory");
    let files = files.map(|entry| entry.expect("an entry").path());
    let files = files.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    let bodies = files.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok());
    bodies.flat_map(|body: Value| told(&body)).collect()
}

#[test]
fn every_event_is_told_and_none_is_invented() {
    let seed = now_ms().unsigned_abs();
    println!("seed {seed}");
    let mut random = Random::new(seed, 0);
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start();
    let of_answers = Mutex::new(Random::new(seed, 1));
    service.answers_in_bytes(move || unwell(&mut of_answers.lock().expect("no panic")));
    let receivers = service.config("hook") + &keeping(directory.path());
    let mut store = start_with(directory.path(), RULES, &receivers, &[]);
    for _ in 0..KILLS {
        thread::sleep(Duration::from_millis(random.next_u64() % LIFE_MS_MAX));
        store = store.restart(Server::kill).expect("tidepool starts again");
    }
    wait_for(&store, "events of each alert", || {
        let of = |alert: &str, event: &Value| event["labels"]["alertname"] == alert;
        let events = log(&store);
        let count = |alert| events.iter().filter(|event| of(alert, event)).count();
        (count("Fast") >= 6 && count("Slow") >= 2 && count("Held") >= 2).then_some(())
    });
    service.accepts();
    let events = log(&store);
    let kept = || kept(directory.path());
    wait_for(&store, "all events", || {
        let (told, kept) = (ids(&service.told()), ids(&kept()));
        let is_told = |event: &Value| told.contains(&id(event)) && kept.contains(&id(event));
        events.iter().all(is_told).then_some(())
    });
    let data_dir = store.config.data_dir().to_owned();
    store.server.terminate().expect("tidepool ends");
    let output = run_command("alerts", arguments!["log", "--format=json", &data_dir], "");
    let lines = output.stdout.lines();
    let all: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let position = |of: &str| all.iter().position(|event| id(event) == of);

    // No identifier stands for two events, and each alert begins and ends in turn.
    assert_eq!(all.iter().map(id).collect::<BTreeSet<_>>().len(), all.len());
    for alert in ["Fast", "Slow", "Held"] {
        let events = all.iter().filter(|event| event["labels"]["alertname"] == alert);
        let changes: Vec<_> = events.map(|event| event["change"].clone()).collect();
        assert!(changes.windows(2).all(|pair| pair[0] != pair[1]), "{alert}: {changes:?}");
    }
    for (name, told) in [("the service", service.told()), ("the program", kept())] {
        for told in &told {
            let at = position(&told.id);
            let event = &all[at.unwrap_or_else(|| panic!("{name}: {told:?} is invented"))];
            assert_eq!(event["change"], told.change, "{name}");
            assert_eq!(event["labels"]["alertname"], told.alert["labels"]["alertname"], "{name}");
        }
    }
    // What the service heard first of each alert is in order.
    for alert in ["Fast", "Slow", "Held"] {
        let mut heard = Vec::new();
        for told in service.told() {
            let at = position(&told.id);
            if told.alert["labels"]["alertname"] == alert && !heard.contains(&at) {
                heard.push(at);
            }
        }
        assert!(heard.is_sorted(), "{alert}: {heard:?}");
    }
}

#[test]
fn a_service_that_hangs_is_not_felt() {
    let directory = tempfile::tempdir().expect("a directory");
    let (hanging, well) = (Service::start(), Service::start());
    hanging.answers_in_bytes(|| (false, Vec::new()));
    let hangs = hanging.config("hangs").replace("timeout: 500ms", "timeout: 60s");
    let receivers = hangs + &well.config("well");
    let store = start_with(directory.path(), RULES, &receivers, &[]);
    wait_for(&store, "a delivery that hangs", || {
        (!hanging.receiver.received().is_empty()).then_some(())
    });
    let (begun, known) = (Instant::now(), ids(&well.told()).len());
    import(&store, "written 1\n");
    wait_for(&store, "ten more events", || (ids(&well.told()).len() >= known + 10).then_some(()));
    // Far below the timeout of the delivery that hangs.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(hanging.receiver.received().len(), 1);
    let receivers = api(&store.server, "alerts/receivers")["receivers"].clone();
    let undelivered = |at: usize| receivers[at]["undelivered"].as_u64().expect("a number");
    assert_eq!(receivers[0]["name"], "hangs");
    assert!(undelivered(0) >= 1, "{receivers}");
    // A stop does not wait for it.
    store.server.terminate().expect("tidepool ends");
}
