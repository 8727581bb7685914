//! OTLP: Prometheus 3.15 and tidepool make the same of the same requests, and senders are answered
//! as the protocol wants it.

use prost::Message as _;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tidepool_tests::data_dir;
use tidepool_tests::histogram::{ValueSeries, assert_same_values};
use tidepool_tests::http::{Client, Response};
use tidepool_tests::otlp::{self, CUMULATIVE, DELTA, Generator};
use tidepool_tests::peers::{self, Release, workspace};
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use tidepool_tests::proto::opentelemetry::metrics::v1::metric::Data;
use tidepool_tests::proto::opentelemetry::metrics::v1::{Metric, NumberDataPoint, Sum};
use tidepool_tests::proto::rpc::Status;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::now_ms;

const ROUNDS: i64 = 20;
const ROUND_MS: i64 = 15_000;

/// Translation strategy, and what else is asked of both: lines for Prometheus, flags for tidepool.
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

/// Requests that ascend in time. The first has a resource whose data points are minutes apart.
fn requests(seed: u64) -> Vec<ExportMetricsServiceRequest> {
    let start_ms = now_ms() - ROUNDS * ROUND_MS;
    let mut generator = Generator::new(seed);
    let mut requests: Vec<_> =
        (0..ROUNDS).map(|round| generator.request(start_ms + round * ROUND_MS)).collect();
    let resource = otlp::attributes(&[("service.name", "slow"), ("host.name", "s")]);
    let ago = |minutes: i64| start_ms - minutes * 60_000;
    let points = [11, 4, 1].map(|minutes| otlp::gauge("slow", ago(minutes), minutes as f64));
    let slow = otlp::request(resource, points.to_vec());
    requests[0].resource_metrics.extend(slow.resource_metrics);
    requests
}

#[track_caller]
fn all_series(server: &Server) -> Vec<ValueSeries> {
    let query = everything(0, now_ms() + 60_000);
    let read = Reader::new(&server.url()).streamed_values(&query);
    let mut series = read.expect("an answer");
    series.retain(|series| !series.labels.value("__name__").starts_with("prometheus_"));
    series
}

fn metadata(server: &Server) -> BTreeMap<String, String> {
    let response = Client::default().get(&format!("{}/api/v1/metadata", server.url()));
    let answer: Json =
        serde_json::from_slice(&response.expect("an answer").body).expect("it is JSON");
    let families = answer["data"].as_object().expect("families");
    let says =
        |one: &Json| [&one["type"], &one["help"], &one["unit"]].map(Json::to_string).join(" ");
    families.iter().map(|(family, list)| (family.clone(), says(&list[0]))).collect()
}

/// What Prometheus has, by series.
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

#[track_caller]
fn assert_taken(what: &str, response: &Response) {
    assert_eq!(response.status, 200, "{what}: {}", response.text());
    assert_eq!(response.body, b"", "{what}");
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

        // Prometheus looks into our log for exemplars.
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

/// Prometheus 3.15 forgets what OTLP says of metrics, so what its translator hands on is written
/// down here.
#[test]
fn metadata_is_kept() {
    let store = Store::start().expect("tidepool starts");
    for request in requests(9) {
        assert_taken("all", &otlp::send(&store.server.url(), &request).expect("an answer"));
    }
    let says = |kind: &str, name: &str, unit: &str| {
        format!("\"{kind}\" \"What {name} means: \u{2103}.\" \"{unit}\"")
    };
    let mut wanted: BTreeMap<String, String> = [
        ("_2nd_gr_e_meters_per_second", "gauge", "2nd_größe", "meters_per_second"),
        ("cpu_usage_ratio", "gauge", "cpu.usage", ""),
        ("http_server_bytes_total", "counter", "http.server.bytes.total", "bytes"),
        ("http_server_requests_total", "counter", "http.server.requests", ""),
        ("latency_milliseconds", "histogram", "latency", "milliseconds"),
        ("quantiles", "summary", "quantiles", ""),
        ("queue_length", "gauge", "queue.length", ""),
        ("request_duration_seconds", "histogram", "request.duration", "seconds"),
        ("slow", "gauge", "slow", ""),
    ]
    .map(|(family, kind, name, unit)| (family.into(), says(kind, name, unit)))
    .into();
    wanted.insert("target_info".into(), "\"gauge\" \"Target metadata\" \"\"".into());
    assert_eq!(metadata(&store.server), wanted);
    let store = store.restart(Server::kill).expect("tidepool starts again");
    assert_eq!(metadata(&store.server), wanted, "after kill -9");
}

fn sum(name: &str, temporality: i32, timestamps_ms: &[i64]) -> Metric {
    let point = |timestamp_ms: &i64| NumberDataPoint {
        time_unix_nano: otlp::nanos(*timestamp_ms),
        ..NumberDataPoint::default()
    };
    let data_points = timestamps_ms.iter().map(point).collect();
    let sum = Sum { data_points, aggregation_temporality: temporality, is_monotonic: true };
    otlp::metric(name, "", Data::Sum(sum))
}

#[track_caller]
fn partial(response: &Response) -> ExportMetricsPartialSuccess {
    assert_eq!(response.status, 200, "{}", response.text());
    let answer = ExportMetricsServiceResponse::decode(response.body.as_slice());
    answer.expect("it decodes").partial_success.expect("a partial success")
}

#[track_caller]
fn refusal(response: &Response, status: u16) -> String {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.header("content-type"), Some(otlp::CONTENT_TYPE));
    let answer = Status::decode(response.body.as_slice()).expect("a google.rpc.Status");
    assert_ne!(answer.code, 0);
    answer.message
}

#[test]
fn what_is_rejected_is_said_and_the_rest_is_kept() {
    let store = Store::start().expect("tidepool starts");
    let url = store.server.url();
    let now = now_ms();
    let send = |metrics| otlp::send(&url, &otlp::request(vec![], metrics)).expect("an answer");

    let both = send(vec![sum("delta", DELTA, &[now, now + 1]), sum("good", CUMULATIVE, &[now])]);
    let said = partial(&both);
    assert_eq!(said.rejected_data_points, 2);
    assert!(said.error_message.contains("\"delta\": its temporality"), "{said:?}");
    assert_taken("the same once more", &send(vec![sum("good", CUMULATIVE, &[now])]));

    let message = refusal(&send(vec![sum("delta", DELTA, &[now])]), 400);
    assert!(message.contains("deltatocumulative"), "{message}");
    let far = send(vec![sum("good", CUMULATIVE, &[now + 1, now + 3_600_000])]);
    let said = partial(&far);
    assert_eq!(said.rejected_data_points, 1);
    assert!(said.error_message.contains("future"), "{said:?}");
    assert!(
        refusal(&send(vec![sum("good", CUMULATIVE, &[now + 3_600_000])]), 400)
            .contains("good_total")
    );

    let series = all_series(&store.server);
    let names: Vec<_> = series.iter().map(|series| series.labels.value("__name__")).collect();
    assert_eq!(names, ["good_total"]);
    assert_eq!(series[0].points.len(), 2);
    let of = |name: &str| store.metric(name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(of("tidepool_http_requests_total{endpoint=\"otlp\"}"), 5.0);
    assert_eq!(of("tidepool_http_requests_failed_total{endpoint=\"otlp\"}"), 2.0);
    assert_eq!(of("tidepool_translated_samples_total{endpoint=\"otlp\"}"), 3.0);
    assert_eq!(of("tidepool_translation_rejected_total{endpoint=\"otlp\"}"), 5.0);
}

#[test]
fn what_is_no_request_is_refused() {
    let store = Store::start_with(|config| config.flag("--max-request-size=64KiB"));
    let store = store.expect("tidepool starts");
    let url = store.server.url();
    let request = otlp::request(vec![], vec![otlp::gauge("g", now_ms(), 1.0)]);
    let body = request.encode_to_vec();
    let send = |headers: &[(&str, &str)], body: &[u8]| {
        otlp::send_body(&url, headers, body).expect("an answer")
    };
    assert!(
        refusal(&send(&[], &body[..body.len() - 1]), 400).contains("ExportMetricsServiceRequest")
    );
    let gzip = [("Content-Encoding", "gzip")];
    assert!(refusal(&send(&gzip, &body), 400).contains("gzip"));
    let compressed = otlp::gzip(&body).expect("gzip");
    assert!(refusal(&send(&gzip, &compressed[..compressed.len() - 9]), 400).contains("gzip"));
    assert!(refusal(&send(&[("Content-Encoding", "zstd")], &body), 415).contains("zstd"));
    let bomb = otlp::gzip(&vec![0; 60 << 20]).expect("gzip");
    assert!(bomb.len() < 64 << 10);
    assert!(refusal(&send(&gzip, &bomb), 413).contains("decompressed"));
    assert!(refusal(&send(&[], &vec![0; 65 << 10]), 413).contains("--max-request-size"));
    assert_taken("an empty request", &send(&[], b""));
    assert_taken("a request after all that", &send(&gzip, &compressed));

    let post = |content_type: &str| {
        let path = format!("{url}{}", otlp::PATH);
        let response = Client::default().post(&path, &[("Content-Type", content_type)], b"{}");
        refusal(&response.expect("an answer"), 415)
    };
    assert!(post("application/json").contains("not JSON"));
    let got = Client::default().get(&format!("{url}{}", otlp::PATH)).expect("an answer");
    assert_eq!((got.status, got.header("allow")), (405, Some("POST")));
    assert_eq!(store.metric("tidepool_http_inflight_bytes"), Some(0.0));
}

/// More than one piece, and more than a limit of the store lets in.
#[test]
fn large_requests_go_in_by_pieces_and_limits_hold() {
    let store = Store::start_with(|config| config.flag("--max-series=20000"));
    let store = store.expect("tidepool starts");
    let now = now_ms();
    let request = |names: std::ops::Range<u32>| {
        let metrics = names.map(|i| otlp::gauge(&format!("m.{i}"), now, f64::from(i)));
        otlp::request(otlp::attributes(&[("service.name", "a")]), metrics.collect())
    };
    let sent = request(0..20_000);
    assert_taken("many", &otlp::send_gzip(&store.server.url(), &sent).expect("an answer"));
    let series = all_series(&store.server);
    assert_eq!(series.len(), 20_000);
    assert!(series.iter().all(|series| series.labels.value("job") == "a"));
    let more = otlp::send(&store.server.url(), &request(19_999..20_002)).expect("an answer");
    assert!(refusal(&more, 429).contains("m_20000"), "{}", more.text());
    assert_eq!(more.header("retry-after"), Some("5"));
}

/// The SDK of OpenTelemetry for Python, at the versions that `tests/opentelemetry` pins.
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
