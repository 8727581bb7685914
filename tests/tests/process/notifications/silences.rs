//! Silences by Alertmanager's API.

use super::super::scrape::api;
use super::*;
use serde_json::json;
use tidepool_tests::guarded::{Node, curl};
use tidepool_tests::http::{Client, Response};

const ALWAYS: &str = "  - {alert: Always, expr: vector(1)}\n  - {alert: Other, expr: vector(1)}\n";

/// Posts a silence of an alert, from far in the past of any server to the far future.
fn post(store: &Store, alert: &str) -> Response {
    let body = json!({
        "matchers": [{"name": "alertname", "value": alert, "isRegex": false, "isEqual": true}],
        "startsAt": "2000-01-01T00:00:00Z", "endsAt": "2100-01-01T00:00:00Z",
        "createdBy": "a person", "comment": "why",
    });
    let url = store.server.url() + "/api/v2/silences";
    let headers = [("content-type", "application/json")];
    Client::default().post(&url, &headers, body.to_string().as_bytes()).expect("an answer")
}

#[test]
fn a_silenced_alert_is_told_when_its_silence_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start();
    let never = "  - {alert: Never, expr: vector(1) > 2}\n";
    let receivers = service.config("hook");
    let flags = ["--silences-max=1"];
    let mut store = start_with(directory.path(), never, &receivers, &flags);
    let set = post(&store, "Always");
    assert_eq!(set.status, 200, "{}", set.text());
    let set: Value = serde_json::from_slice(&set.body).expect("JSON");
    let silence = set["silenceID"].as_str().expect("an identifier").to_owned();
    let refused = post(&store, "Other");
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("limit: 1"), "{}", refused.text());

    store = {
        let Store { server, config, directory: kept } = store;
        server.kill().expect("tidepool ends");
        fs::write(directory.path().join("rules.yml"), group(ALWAYS)).expect("a file");
        Store { server: config.start().expect("tidepool starts"), config, directory: kept }
    };
    wait_for(&store, "the other alert", || (!service.told().is_empty()).then_some(()));
    wait_for(&store, "both alerts in the journal", || (log(&store).len() == 2).then_some(()));
    let muted = || api(&store.server, "alerts/receivers")["receivers"][0]["muted"].as_u64();
    wait_for(&store, "a muted alert", || (muted() == Some(1)).then_some(()));
    let names = || -> BTreeSet<String> {
        let name = |told: Told| told.alert["labels"]["alertname"].as_str().map(str::to_owned);
        service.told().into_iter().filter_map(name).collect()
    };
    assert_eq!(names(), BTreeSet::from(["Other".to_owned()]));

    let url = format!("--server={}", store.server.url());
    let expired = run_command("alerts", arguments!["silence", "expire", &silence, &url], "");
    assert_eq!(expired.code, Some(0), "{expired:?}");
    wait_for(&store, "the alert", || names().contains("Always").then_some(()));
    let told = service.told();
    let told = told.iter().find(|told| told.alert["labels"]["alertname"] == "Always");
    let events = log(&store);
    let event = events.iter().find(|event| event["labels"]["alertname"] == "Always");
    assert_eq!(told.map(|told| told.id.clone()), event.map(id));
}

#[test]
fn only_administrators_change_silences_and_test_receivers() {
    let server = Node::open_to_all().with_credentials().start();
    let reader = ["--user", "reader:re4d:secret"];
    let admin = ["--header", "Authorization: Bearer adm1n-token"];
    let json = ["--header", "content-type: application/json", "--data-binary", "{}"];
    let form = ["--data-binary", "receiver=none"];
    let foreign = ["--header", "origin: http://elsewhere"];
    let (silences, test) = ("/api/v2/silences", "/api/v1/admin/alerts/test");
    let silence = "/api/v2/silence/01020304-0506-4708-890a-0b0c0d0e0f10";
    let delete = ["--request", "DELETE"];
    for (path, arguments, expected) in [
        (silences, [&reader[..], &[]].concat(), 200),
        (silences, [&reader[..], &json].concat(), 401),
        (silences, [&admin[..], &json].concat(), 422),
        (silences, [&admin[..], &form].concat(), 415),
        (silences, [&admin[..], &json, &foreign].concat(), 403),
        (silence, [&reader[..], &[]].concat(), 404),
        (silence, [&reader[..], &delete].concat(), 401),
        (silence, [&admin[..], &delete].concat(), 404),
        (test, [&reader[..], &form].concat(), 401),
        (test, [&admin[..], &form].concat(), 400),
        (test, [&admin[..], &form, &foreign].concat(), 403),
    ] {
        assert_eq!(curl(&server, "http", path, &arguments).0, expected, "{path} {arguments:?}");
    }
}
