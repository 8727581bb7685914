//! Clocks: what is late, what is too old, and heartbeats of a node that does not know the time.

use super::super::rules::import;
use super::super::scrape::api;
use super::*;
use tidepool_tests::clock::now_ms;
use tidepool_tests::fake_clock::FakeClock;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Fires half of each second.
const BLINK: &str = "  - {alert: Blink, expr: vector(time() % 1) > 0.5}\n";

/// Starts with a clock that the test sets.
fn start_at(clock: &FakeClock, directory: &Path, rules: &str, receivers: &str) -> Store {
    fs::write(directory.join("rules.yml"), group(rules)).expect("a file");
    let path = directory.join("tidepool.yml");
    fs::write(&path, config(receivers)).expect("a file");
    let starter = clock.starter().expect("libfaketime");
    let flag = format!("--config={}", path.display());
    let store = Store::start_with(|config| {
        config.flag(&flag).flag("--no-config-auto-reload").started_by(starter)
    });
    store.expect("tidepool starts")
}

/// Kills the server, and starts it with another clock.
fn restart_at(store: Store, clock: &FakeClock, now_ms: i64) -> Store {
    store
        .restart(|server| {
            let ending = server.kill();
            clock.set(now_ms).expect("a clock");
            ending
        })
        .expect("tidepool starts again")
}

fn state(store: &Store, name: &str) -> Value {
    let receivers = api(&store.server, "alerts/receivers")["receivers"].clone();
    let found = receivers.as_array().expect("a list").iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {receivers}")).clone()
}

#[test]
fn news_of_an_outage_is_late_and_has_the_time_of_its_event() {
    let directory = tempfile::tempdir().expect("a directory");
    let now_ms = now_ms();
    let clock = FakeClock::new(directory.path(), now_ms).expect("a clock");
    let service = Service::start();
    service.answers(503);
    let mut store = start_at(&clock, directory.path(), BLINK, &service.config("hook"));
    wait_for(&store, "four events", || (log(&store).len() >= 4).then_some(()));
    // Twenty minutes pass, in which the node has no power.
    store = restart_at(store, &clock, now_ms + 20 * MINUTE_MS);
    let old = log(&store);
    service.accepts();
    let told = wait_for(&store, "news that is not late", || {
        let told = service.told();
        let is_new = |told: &Told| !old.iter().any(|event| id(event) == told.id);
        told.iter().filter(|told| is_new(told)).nth(2)?;
        Some(told)
    });
    for event in &old {
        let told = told.iter().find(|told| told.id == id(event));
        let told = told.unwrap_or_else(|| panic!("{event} is not told"));
        let key = if told.change == "firing" { "startsAt" } else { "endsAt" };
        let time = |value: &Value| -> jiff::Timestamp {
            value.as_str().expect("a time").parse().expect("a time")
        };
        assert_eq!(time(&told.alert[key]), time(&event["time"]));
        // An end that only the start has seen is of its time.
        let is_old = time(&event["time"]).as_millisecond() < now_ms + 10 * MINUTE_MS;
        assert_eq!(told.alert["late"], is_old, "{event}");
    }
    let last = told.last().expect("an event");
    assert_eq!(last.alert["late"], false, "{:?}", last.alert);
}

#[test]
fn events_that_are_too_old_are_dropped_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let now_ms = now_ms();
    let clock = FakeClock::new(directory.path(), now_ms).expect("a clock");
    let service = Service::start();
    service.answers(503);
    let mut store = start_at(&clock, directory.path(), BLINK, &service.config("hook"));
    wait_for(&store, "four events", || (log(&store).len() >= 4).then_some(()));
    // Longer than --alert-journal-time.
    store = restart_at(store, &clock, now_ms + 15 * DAY_MS);
    let is_old = |event: &Value| {
        let time: jiff::Timestamp =
            event["time"].as_str().expect("a time").parse().expect("a time");
        time.as_millisecond() < now_ms + DAY_MS
    };
    wait_for(&store, "old events to go", || {
        let log = log(&store);
        (!log.is_empty() && !log.iter().any(is_old)).then_some(())
    });
    wait_for(&store, "a count", || (state(&store, "hook")["dropped"].as_u64()? >= 3).then_some(()));
    service.accepts();
    wait_for(&store, "newer events", || (service.told().len() >= 2).then_some(()));
    let told = ids(&service.told());
    let events = log(&store);
    assert!(told.iter().all(|told| events.iter().any(|event| id(event) == *told)));
}

#[test]
fn heartbeats_stop_while_the_clock_is_doubted() {
    let directory = tempfile::tempdir().expect("a directory");
    let now_ms = now_ms();
    let clock = FakeClock::new(directory.path(), now_ms).expect("a clock");
    let service = Service::start();
    let url = format!("http://{}/beat", service.receiver.address());
    let receivers = format!("  - {{name: beat, heartbeat: {{url: '{url}', interval: 200ms}}}}\n");
    let always = "  - {alert: Always, expr: vector(1)}\n";
    let mut store = start_at(&clock, directory.path(), always, &receivers);
    import(&store, "written 1\n");
    let beats = || service.receiver.received().len();
    wait_for(&store, "heartbeats beside an alert", || {
        let firing = api(&store.server, "alerts")["alerts"].as_array().map_or(0, Vec::len);
        (firing == 1 && beats() >= 3).then_some(())
    });
    // A board without a battery.
    store = restart_at(store, &clock, 3 * DAY_MS);
    assert_eq!(store.metric("tidepool_clock_doubted"), Some(1.0));
    let known = beats();
    wait_for(&store, "heartbeats that are not sent", || {
        (state(&store, "beat")["skipped"].as_u64()? >= 3).then_some(())
    });
    assert_eq!(beats(), known);
    wait_for(&store, "a line", || store.server.log().contains("the heartbeat stops").then_some(()));
    clock.set(now_ms + MINUTE_MS).expect("a clock");
    wait_for(&store, "heartbeats again", || (beats() > known + 2).then_some(()));
}
