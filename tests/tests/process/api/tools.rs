//! Endpoints that Thanos' sidecar needs, and the page for people.

use serde_json::{Map, Value, json};
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, exchange, request_bytes};
use tidepool_tests::proto::prometheus::MetricMetadata;
use tidepool_tests::remote_write::{Version, message_v1};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

const TIMEOUT: Duration = Duration::from_secs(30);

fn data(store: &Store, path: &str) -> Value {
    let response = Client::default().get(&format!("{}/api/v1/{path}", store.server.url()));
    let answer: Value = serde_json::from_slice(&response.expect("an answer").body).expect("JSON");
    answer["data"].clone()
}

#[test]
fn a_sidecar_finds_what_it_looks_for() {
    let flags = ["--external-label=node=edge \"7\"", "--external-label=on=true"];
    let store = Store::start_with(|config| {
        let config = flags.iter().fold(config, |config, flag| config.flag(flag));
        config.flag("--max-block-duration=2h")
    })
    .expect("tidepool starts");
    let yaml = data(&store, "status/config")["yaml"].clone();
    let yaml = yaml.as_str().expect("a text");
    let expected =
        "global:\n  external_labels:\n    \"node\": \"edge \\\"7\\\"\"\n    \"on\": \"true\"\n";
    assert_eq!(yaml, expected);
    let shown = data(&store, "status/flags");
    let spans = ["min", "max"].map(|end| &shown[format!("storage.tsdb.{end}-block-duration")]);
    assert_eq!(spans, ["2h", "2h"]);
    assert_eq!(shown["external-label"], "node=edge \"7\",on=true");
    assert_eq!(shown["storage.tsdb.path"].as_str(), store.config.data_dir().to_str());
    let version = data(&store, "status/buildinfo")["version"].clone();
    assert!(version.as_str().is_some_and(|version| version.starts_with("3.0.0+tidepool.")));
    assert!(data(&store, "status/buildinfo").get("features").is_none());

    // An empty store must be taken for one that may have any time.
    let lowest = || store.metric("prometheus_tsdb_lowest_timestamp_seconds");
    assert_eq!(lowest().map(|seconds| seconds * 1000.0), Some(i64::MAX as f64));
    let time_ms = now_ms() / 1000 * 1000 - 5000;
    let series = Series::new(&[("__name__", "up")], &[(time_ms, 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204);
    assert_eq!(lowest(), Some((time_ms / 1000) as f64));
}

#[test]
fn only_pages_of_allowed_origins_may_read() {
    let flag = r"--web.cors.origin=https?://(a|b)\.example";
    let store = Store::start_with(|config| config.flag(flag)).expect("tidepool starts");
    let allowed = |method: &str, path: &str, origin: &str| {
        let headers = [("Origin", origin), ("Connection", "close")];
        let bytes = request_bytes(method, path, &headers, 0, b"");
        let response = exchange(store.server.address(), bytes, TIMEOUT).expect("an answer");
        response.header("access-control-allow-origin").map(str::to_owned)
    };
    let page = Some("http://a.example".to_owned());
    assert_eq!(allowed("GET", "/api/v1/labels", "http://a.example"), page);
    assert_eq!(allowed("OPTIONS", "/api/v1/labels", "http://a.example"), page);
    assert_eq!(allowed("GET", "/api/v1/labels", "http://c.example"), None);
    assert_eq!(allowed("POST", "/api/v1/admin/tsdb/snapshot", "http://a.example"), None);
    assert_eq!(data(&store, "status/flags")["web.cors.origin"], r"https?://(a|b)\.example");
}

#[test]
fn metadata_is_found_by_family_and_up_to_a_limit() {
    let store = Store::start().expect("tidepool starts");
    let series = ["a_total", "b_bytes", "c"]
        .map(|name| Series::new(&[("__name__", name)], &[(now_ms(), 1.0)]));
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    let mut message = message_v1(&rows);
    message.metadata = [("a_total", 1, "Requests: \"all\"."), ("b_bytes", 2, ""), ("c", 99, "?")]
        .map(|(family, kind, help)| MetricMetadata {
            r#type: kind,
            metric_family_name: family.into(),
            help: help.into(),
            unit: String::new(),
        })
        .into();
    let response = store.writer().send_message(Version::V1, &message).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
    let a = json!([{ "type": "counter", "help": "Requests: \"all\".", "unit": "" }]);
    let all = data(&store, "metadata");
    assert_eq!((&all["a_total"], all.as_object().map(Map::len)), (&a, Some(3)));
    assert_eq!(all["c"][0]["type"], "unknown");
    assert_eq!(data(&store, "metadata?metric=a_total"), json!({ "a_total": a }));
    assert_eq!(data(&store, "metadata?limit_per_metric=1&limit=-1"), all);
    assert_eq!(data(&store, "metadata?limit=0"), json!({}));
    assert_eq!(data(&store, "metadata?limit=2").as_object().map(Map::len), Some(2));
}

/// A response of several pages has each family once, and the whole text.
#[test]
fn metadata_of_many_families_comes_whole() {
    let store = Store::start().expect("tidepool starts");
    let mut expected = Map::new();
    for part in 0..4 {
        let names: Vec<String> = (0..2_500).map(|n| format!("family_{part}_{n}_total")).collect();
        let series: Vec<Series> = names
            .iter()
            .map(|name| Series::new(&[("__name__", name)], &[(now_ms(), 1.0)]))
            .collect();
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let mut message = message_v1(&rows);
        for name in &names {
            let help = format!("{name}: \"ü\" \\ {}", "help ".repeat(40));
            let entry = json!([{ "type": "counter", "help": help.as_str(), "unit": "" }]);
            expected.insert(name.clone(), entry);
            message.metadata.push(MetricMetadata {
                r#type: 1,
                metric_family_name: name.clone(),
                help,
                unit: String::new(),
            });
        }
        let response = store.writer().send_message(Version::V1, &message).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    let all = data(&store, "metadata");
    assert_eq!(all.as_object().map(Map::len), Some(10_000));
    assert!(all == Value::Object(expected), "a family or its text differs");
    assert_eq!(data(&store, "metadata?limit=9999").as_object().map(Map::len), Some(9_999));
}

#[test]
fn every_endpoint_is_on_the_page_for_people() {
    let store = Store::start().expect("tidepool starts");
    let get = |path: &str| Client::default().get(&format!("{}{path}", store.server.url()));
    let page = get("/").expect("an answer").text();
    let description = get("/api/v1/openapi.yaml").expect("an answer");
    assert_eq!(description.header("content-type"), Some("application/yaml; charset=utf-8"));
    let description = description.text();
    let paths = description.lines().filter_map(|line| line.strip_prefix("  /")?.strip_suffix(':'));
    let mut count = 0;
    for path in paths {
        // A part of the path that may repeat is an ellipsis there.
        let path = path.replace("{name}", "<name>").replace("{silenceID}", "<name>");
        let path = path.replace("{labels}", "…");
        let path = format!(" /{} ", path.replace("{decoder}", "…"));
        assert!(page.contains(&path), "{path} is not there:\n{page}");
        count += 1;
    }
    assert!(count > 20, "{count} paths:\n{description}");
}
