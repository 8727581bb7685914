//! OTLP: Prometheus 3.15 and tidepool translate the same requests alike, and requests of the Python
//! SDK are accepted.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tidepool_tests::built::workspace;
use tidepool_tests::histogram::assert_same_values;
use tidepool_tests::http::Client;
use tidepool_tests::otlp::{self, all_series, assert_taken, metadata, requests};
use tidepool_tests::peers::{self, Release};
use tidepool_tests::process::Server;
use tidepool_tests::tidepool::Store;
use tidepool_tests::{data_dir, prometheus};

/// Translation strategy, with further settings of both: lines for Prometheus, flags for tidepool.
type Choice = (&'static str, &'static str, &'static [&'static str]);

const CHOICES: [Choice; 4] = [
    ("UnderscoreEscapingWithSuffixes", "", &[]),
    (
        "UnderscoreEscapingWithoutSuffixes",
        "\n  promote_resource_attributes: [k8s.pod.name, http.method, absent]\
         \n  keep_identifying_resource_attributes: true",
        &[
            "--otlp-promote-resource-attribute=k8s.pod.name",
            "--otlp-promote-resource-attribute=http.method",
            "--otlp-promote-resource-attribute=absent",
            "--otlp-keep-identifying-resource-attributes",
        ],
    ),
    (
        "NoUTF8EscapingWithSuffixes",
        "\n  promote_scope_metadata: true",
        &["--otlp-promote-scope-metadata"],
    ),
    (
        "NoTranslation",
        "\n  promote_resource_attributes: [k8s.pod.name, http.method]",
        &[
            "--otlp-promote-resource-attribute=k8s.pod.name",
            "--otlp-promote-resource-attribute=http.method",
        ],
    ),
];

fn peer(directory: &Path, name: &str, (strategy, lines, _): Choice) -> prometheus::Config {
    prometheus::Config::new(Release::V3, &directory.join(name))
        .expect("the directory can be used")
        .flag("--enable-feature=exemplar-storage")
        .otlp(&format!("\n  translation_strategy: {strategy}{lines}"))
}

fn ours((strategy, _, flags): Choice) -> Store {
    let store = Store::start_with(|config| {
        let config = config.flag(&format!("--otlp-translation-strategy={strategy}"));
        flags.iter().fold(config, |config, flag| config.flag(flag))
    });
    store.expect("tidepool starts")
}

/// Returns Prometheus' exemplars by series.
fn exemplars(server: &Server) -> BTreeMap<String, Vec<String>> {
    let selector = "%7B__name__%3D~%22.%2B%22%7D";
    let path = format!("/api/v1/query_exemplars?query={selector}&start=0&end=4000000000");
    let response = Client::default().get(&format!("{}{path}", server.url())).expect("an answer");
    let answer: Json = serde_json::from_slice(&response.body).expect("it is JSON");
    let all = answer["data"].as_array().expect("a list").iter();
    all.map(|one| {
        let exemplars = one["exemplars"].as_array().expect("a list").iter();
        (one["seriesLabels"].to_string(), exemplars.map(Json::to_string).collect())
    })
    .collect()
}

#[test]
fn series_and_exemplars_are_those_of_prometheus() {
    for (number, choice) in CHOICES.into_iter().enumerate() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let theirs = peer(directory.path(), "theirs", choice);
        let prometheus = theirs.start().expect("Prometheus starts");
        let store = ours(choice);
        for (i, request) in requests(number as u64).iter().enumerate() {
            let to = [prometheus.url(), store.server.url()];
            let [wanted, got] = to.map(|url| match i % 2 {
                0 => otlp::send(&url, request).expect("an answer"),
                _ => otlp::send_gzip(&url, request).expect("an answer"),
            });
            assert_eq!(wanted.status, 200, "{}: {}", choice.0, wanted.text());
            assert_taken(choice.0, &got);
            assert_eq!(got.header("content-type"), Some(otlp::CONTENT_TYPE));
        }
        let wanted = all_series(&prometheus);
        assert!(wanted.len() > 200, "{}", wanted.len());
        assert_same_values(choice.0, &wanted, &all_series(&store.server));

        // Prometheus reads exemplars from tidepool's log.
        let wanted = exemplars(&prometheus);
        assert!(wanted.values().map(Vec::len).sum::<usize>() > 300);
        let Store { server, config, directory: _own } = store;
        server.terminate().expect("tidepool ends");
        let heir = peer(directory.path(), "heir", choice);
        data_dir::copy(config.data_dir(), &heir.data_dir()).expect("a copy");
        let heir = heir.start().expect("Prometheus starts over tidepool's data");
        let got = exemplars(&heir);
        assert!(wanted.keys().eq(got.keys()), "{}", choice.0);
        for (series, wanted) in &wanted {
            assert_eq!(&got[series], wanted, "{}: {series}", choice.0);
        }
    }
}

/// The OpenTelemetry SDK for Python, at the versions that `tests/opentelemetry` pins.
#[test]
fn the_python_sdk_is_understood() {
    let python = peers::python("opentelemetry").unwrap_or_else(|missing| panic!("{missing}"));
    let store = Store::start().expect("tidepool starts");
    let endpoint = format!("{}{}", store.server.url(), otlp::PATH);
    let script = workspace().join("tests/opentelemetry/send.py");
    let output = Command::new(python).arg(script).arg(&endpoint).output().expect("Python runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let series = all_series(&store.server);
    let labels: Vec<_> = series.iter().map(|series| &series.labels).collect();
    for (metric, label, value) in [
        ("requests_total", "route", "/a"),
        ("queue_length", "job", "shop/api"),
        ("temperature_celsius", "instance", "i-1"),
        ("duration_seconds_bucket", "le", "+Inf"),
        ("duration_seconds_count", "job", "shop/api"),
        ("latency_milliseconds", "job", "shop/api"),
        ("target_info", "telemetry_sdk_language", "python"),
    ] {
        let found = labels.iter().any(|l| l.value("__name__") == metric && l.value(label) == value);
        assert!(found, "{metric} {label} {value}: {labels:#?}");
    }
    let said = metadata(&store.server);
    assert_eq!(said["requests_total"], "\"counter\" \"Requests served.\" \"\"");
    assert_eq!(
        said["latency_milliseconds"],
        "\"histogram\" \"How long it took.\" \"milliseconds\""
    );
    assert_eq!(store.metric("tidepool_http_requests_failed_total{endpoint=\"otlp\"}"), Some(0.0));
}
