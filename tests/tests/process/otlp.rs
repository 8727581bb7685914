//! OTLP: senders are answered as the protocol demands, and metadata is kept.

use prost::Message as _;
use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, Response};
use tidepool_tests::otlp::{self, CUMULATIVE, DELTA, all_series, assert_taken, metadata, requests};
use tidepool_tests::process::Server;
use tidepool_tests::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use tidepool_tests::proto::opentelemetry::metrics::v1::metric::Data;
use tidepool_tests::proto::opentelemetry::metrics::v1::{
    Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum, Summary, SummaryDataPoint,
};
use tidepool_tests::proto::rpc::Status;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);
const DAY_MS: i64 = 24 * 3_600_000;

/// Prometheus 3.15 drops the metadata of OTLP metrics, so the output of its translator is written
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
        time_unix_nano: if *timestamp_ms == 0 { 0 } else { otlp::nanos(*timestamp_ms) },
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

/// One invalid time made thousands of samples of `target_info`, and as many rejected points.
#[test]
fn wrong_times_reject_their_own_points_alone() {
    let store = Store::start().expect("tidepool starts");
    let url = store.server.url();
    let now = now_ms();
    let resource = || otlp::attributes(&[("service.name", "a"), ("host.name", "h")]);
    let send = |metrics| otlp::send(&url, &otlp::request(resource(), metrics)).expect("an answer");
    assert_taken("one", &send(vec![sum("good", CUMULATIVE, &[now])]));
    for (wrong_ms, why) in
        [(0, "it has no time"), (1000, "good_total"), (now - DAY_MS, "good_total")]
    {
        let said = partial(&send(vec![sum("good", CUMULATIVE, &[wrong_ms, now + 1])]));
        assert_eq!(said.rejected_data_points, 1, "{wrong_ms}: {said:?}");
        assert!(said.error_message.contains(why), "{said:?}");
    }
    let far = vec![sum("good", CUMULATIVE, &[now + 2, now + DAY_MS])];
    assert_eq!(partial(&send(far)).rejected_data_points, 1);
    let of_target: Vec<i64> = all_series(&store.server)
        .iter()
        .filter(|series| series.labels.value("__name__") == "target_info")
        .flat_map(|series| series.points.iter().map(|point| point.timestamp_ms))
        .collect();
    assert_eq!(of_target, [now, now + 1, now + 2]);
}

/// A histogram or a summary is one data point, however many rows it becomes.
#[test]
fn rejected_points_are_those_of_the_sender() {
    let store = Store::start().expect("tidepool starts");
    let url = store.server.url();
    let now = now_ms();
    let histograms = |buckets: usize, timestamps_ms: &[i64]| {
        let point = |timestamp_ms: &i64| HistogramDataPoint {
            time_unix_nano: otlp::nanos(*timestamp_ms),
            sum: Some(1.0),
            bucket_counts: vec![0; buckets + 1],
            explicit_bounds: (0..buckets).map(|bound| bound as f64).collect(),
            ..HistogramDataPoint::default()
        };
        let data_points = timestamps_ms.iter().map(point).collect();
        let histogram = Histogram { data_points, aggregation_temporality: CUMULATIVE };
        otlp::metric("h", "", Data::Histogram(histogram))
    };
    let summary = |timestamp_ms: i64| {
        let point =
            SummaryDataPoint { time_unix_nano: otlp::nanos(timestamp_ms), ..Default::default() };
        otlp::metric("q", "", Data::Summary(Summary { data_points: vec![point] }))
    };
    let resource = otlp::attributes(&[("service.name", "a"), ("host.name", "h")]);
    let rejected = |metrics| {
        let request = otlp::request(resource.clone(), metrics);
        partial(&otlp::send(&url, &request).expect("an answer")).rejected_data_points
    };
    let far = now + DAY_MS;
    assert_eq!(rejected(vec![histograms(10, &[now, far])]), 1);
    let mixed = vec![
        sum("good", CUMULATIVE, &[now, far, far + 1]),
        histograms(10, &[now, far, now + 1, far + 1]),
        summary(far),
    ];
    assert_eq!(rejected(mixed), 5);
    // Larger than one piece.
    assert_eq!(rejected(vec![histograms(15_000, &[now + 2, far])]), 1);
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
    // A body may be freed shortly after its answer.
    let is_given_back = || (store.metric("tidepool_http_inflight_bytes")? == 0.0).then_some(());
    wait::until("the room of bodies", TIMEOUT, is_given_back).expect("it is given back");
}

/// More than one piece, and more than a limit of the store accepts.
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
