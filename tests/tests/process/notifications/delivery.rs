//! What a webhook gets, its position over restarts and reloads, and secrets.

use super::super::configuration::reload;
use super::super::scrape::api;
use super::*;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;

/// Fires half of each second.
const BLINK: &str = "  - alert: Blink\n    expr: vector(time() % 1) > 0.5\n    \
                     labels: {severity: page}\n    annotations: {summary: it blinks}\n";

#[test]
fn a_webhook_is_told_of_the_beginning_and_the_end_of_an_alert() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start();
    let store = start_with(directory.path(), BLINK, &service.config("hook"), &[]);
    let told = wait_for(&store, "an alert that ends", || {
        let told = service.told();
        told.iter().any(|told| told.change == "resolved").then_some(told)
    });
    let events = log(&store);
    for (event, told) in events.iter().zip(&told) {
        assert_eq!(event["id"], told.id);
        assert_eq!(event["change"], told.change);
        assert_eq!(event["labels"], serde_json::json!({"alertname": "Blink", "severity": "page"}));
        let labels = serde_json::json!({"alertname": "Blink", "node": "n1", "severity": "page"});
        assert_eq!(told.alert["labels"], labels);
        assert_eq!(told.alert["annotations"], serde_json::json!({"summary": "it blinks"}));
        assert_eq!(told.alert["late"], false);
        assert!(told.alert["generatorURL"].as_str().expect("a URL").contains("/graph?g0.expr="));
    }
    let time = |event: &Value, key: &str| -> jiff::Timestamp {
        event[key].as_str().expect(key).parse().expect("a time")
    };
    let (begun, ended) = (&told[0], &told[1]);
    assert_eq!((begun.change.as_str(), ended.change.as_str()), ("firing", "resolved"));
    assert_eq!(begun.alert["endsAt"], "0001-01-01T00:00:00Z");
    assert_eq!(time(&begun.alert, "startsAt"), time(&events[0], "time"));
    assert_eq!(ended.alert["startsAt"], begun.alert["startsAt"]);
    assert_eq!(time(&ended.alert, "endsAt"), time(&events[1], "time"));
    let first = &service.accepted()[0];
    for (key, expected) in [
        ("version", "4"),
        ("receiver", "hook"),
        ("status", "firing"),
        ("notification_reason", "first notification"),
        ("groupKey", "{}:{}"),
    ] {
        assert_eq!(first[key], expected, "{key}");
    }
    assert_eq!(first["commonLabels"]["severity"], "page");

    // The history has the newest first, in pages.
    let page = api(&store.server, "alerts/history?limit=1&match[]=%7Balertname%3D%22Blink%22%7D");
    let token = page["nextToken"].as_str().expect("more events");
    let path = format!("alerts/history?limit=1000&next_token={token}");
    let before = api(&store.server, &path);
    let before = before["events"].as_array().expect("events");
    assert_eq!(before.last().map(id), Some(begun.id.clone()));
    assert!(!before.iter().any(|event| id(event) == id(&page["events"][0])));
    let none = api(&store.server, "alerts/history?match[]=%7Balertname%3D%22Other%22%7D");
    assert_eq!(none["events"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_a_receiver_missed_is_delivered_after_a_kill_and_reloads() {
    let directory = tempfile::tempdir().expect("a directory");
    let (service, other) = (Service::start(), Service::start());
    service.answers(503);
    let receivers = service.config("hook") + &other.config("other");
    let mut store = start_with(directory.path(), BLINK, &receivers, &[]);
    wait_for(&store, "three events", || (log(&store).len() >= 3).then_some(()));
    store = store.restart(Server::kill).expect("tidepool starts again");
    wait_for(&store, "the other receiver", || (other.told().len() >= 4).then_some(()));

    // It leaves the configuration, and comes back with another address.
    let path = directory.path().join("tidepool.yml");
    fs::write(&path, config(&other.config("other"))).expect("a file");
    assert_eq!(reload(&store), (200, String::new()));
    let known = log(&store).len();
    wait_for(&store, "more events", || (log(&store).len() > known).then_some(()));
    let wrong = config(&(service.config("hook") + "  - {name: bad, webhook: {url: 'ftp://a'}}\n"));
    fs::write(&path, wrong).expect("a file");
    let (code, why) = reload(&store);
    assert_eq!(code, 500);
    assert!(why.contains("notify.receivers[1].webhook.url"), "{why}");
    let back = Service::start();
    fs::write(&path, config(&(back.config("hook") + &other.config("other")))).expect("a file");
    assert_eq!(reload(&store), (200, String::new()));
    let events = log(&store);
    wait_for(&store, "all events", || {
        let told = ids(&back.told());
        events.iter().all(|event| told.contains(&id(event))).then_some(())
    });
    // In their order, each once.
    let mut told: Vec<String> = back.told().into_iter().map(|told| told.id).collect();
    told.truncate(events.len());
    assert_eq!(told, events.iter().map(id).collect::<Vec<_>>());
    assert_eq!(service.accepted().len(), 0);
}

#[test]
fn secrets_of_receivers_are_shown_nowhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start();
    service.answers(400);
    let address = service.receiver.address();
    fs::write(directory.path().join("url"), format!("http://{address}/canary1canary1"))
        .expect("a file");
    let receivers = format!(
        "  - name: a\n    group_wait: 0s\n    webhook:\n      url_file: url\n      \
         headers: {{X-Key: canary2}}\n      body: canary3\n      \
         authorization: {{credentials: canary4}}\n  \
         - {{name: b, heartbeat: {{url: 'http://{address}/canary5canary5', interval: 1s}}}}\n"
    );
    let always = "  - {alert: Always, expr: vector(1)}\n";
    let store = start_with(directory.path(), always, &receivers, &["--log-level=debug"]);
    let state = wait_for(&store, "two failures", || {
        let state = api(&store.server, "alerts/receivers");
        let failed = |at: usize| state["receivers"][at]["failed"].as_u64();
        (failed(0) >= Some(1) && failed(1) >= Some(1)).then_some(state)
    });
    let sent = service.receiver.received();
    let hooked = sent.iter().find(|request| request.path == "/canary1canary1").expect("a request");
    assert_eq!(hooked.body, b"canary3");
    assert_eq!(hooked.header("x-key"), Some("canary2"));
    assert_eq!(hooked.header("authorization"), Some("Bearer canary4"));
    assert!(state["receivers"][0]["lastError"].as_str().expect("an error").contains("400"));
    let get = |path: &str| Client::default().get(&(store.server.url() + path)).expect("an answer");
    let test = run_command(
        "alerts",
        arguments!["test", "a", &format!("--server={}", store.server.url())],
        "",
    );
    assert_eq!(test.code, Some(1), "{test:?}");
    for shown in [
        state.to_string(),
        get("/api/v1/status/config").text(),
        get("/metrics").text(),
        test.stdout + &test.stderr,
        store.server.log(),
    ] {
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn a_heartbeat_stops_without_rules_and_not_for_alerts() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start();
    let url = format!("http://{}/beat", service.receiver.address());
    let receivers = format!("  - {{name: beat, heartbeat: {{url: '{url}', interval: 1s}}}}\n");
    let always = "  - {alert: Always, expr: vector(1)}\n";
    let store = start_with(directory.path(), always, &receivers, &[]);
    wait_for(&store, "heartbeats beside an alert", || {
        let firing = api(&store.server, "alerts")["alerts"].as_array().map_or(0, Vec::len);
        (firing == 1 && service.accepted().len() >= 2).then_some(())
    });
    let beats = service.receiver.received();
    assert!(
        beats.iter().all(|beat| (beat.method.as_str(), beat.path.as_str()) == ("GET", "/beat"))
    );
}

/// Rules that have not changed since the start write nothing but their events.
#[test]
fn a_quiet_node_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start();
    let never = "  - {alert: Never, expr: vector(1) > 2}\n";
    let store = start_with(directory.path(), never, &service.config("hook"), &[]);
    wait_for(&store, "evaluations", || {
        let groups = api(&store.server, "rules")["groups"].clone();
        groups[0]["rules"][0]["health"].as_str().filter(|health| *health == "ok").map(|_| ())
    });
    let alerts = store.config.data_dir().join("alerts");
    let files = || -> Vec<_> {
        let listed = fs::read_dir(alerts.join("journal")).into_iter().flatten();
        listed.map(|entry| entry.expect("an entry").path()).collect()
    };
    assert_eq!(files(), Vec::<std::path::PathBuf>::new());
    store.server.terminate().expect("tidepool ends");
    assert!(!alerts.join("journal").exists(), "{:?}", files());
}
