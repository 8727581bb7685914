//! Requests whose translation would take far longer than their size suggests.

use prost::Message as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::request_bytes;
use tidepool_tests::otlp::{self, CUMULATIVE};
use tidepool_tests::proto::opentelemetry::metrics::v1::metric::Data;
use tidepool_tests::proto::opentelemetry::metrics::v1::{Histogram, HistogramDataPoint};
use tidepool_tests::proto::rpc::Status;
use tidepool_tests::text_push::{PATH, assert_stored, push};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);
const GZIP: [(&str, &str); 1] = [("Content-Encoding", "gzip")];

fn import_figure(store: &Store, name: &str) -> f64 {
    store.metric(&format!("{name}{{endpoint=\"import\"}}")).expect("a figure")
}

/// Bodies of some megabytes whose 256,000 rows each repeat a label of 250 kB.
#[test]
fn labels_that_all_rows_repeat_are_paid_for() {
    const BUCKETS: u32 = 16_000;
    let store = Store::start().expect("tidepool starts");
    let point = HistogramDataPoint {
        time_unix_nano: otlp::nanos(now_ms()),
        bucket_counts: vec![0; BUCKETS as usize + 1],
        explicit_bounds: (0..BUCKETS).map(f64::from).collect(),
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram { data_points: vec![point; 16], aggregation_temporality: CUMULATIVE };
    let name = "x".repeat(250_000);
    let resource = otlp::attributes(&[("service.name", &name)]);
    let request = otlp::request(resource, vec![otlp::metric("h", "", Data::Histogram(histogram))]);
    let answer = otlp::send_gzip(&store.server.url(), &request).expect("an answer");
    assert_eq!(answer.status, 413, "{}", answer.text());
    let said = Status::decode(answer.body.as_slice()).expect("a google.rpc.Status");
    assert!(said.message.contains("label text"), "{said:?}");

    let body = otlp::gzip("a 1\n".repeat(256_000).as_bytes()).expect("gzip");
    let long = format!("?extra_label=b={}", "x".repeat(8000));
    let answer = push(&store.server, &long, &GZIP, &body);
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert!(answer.text().contains("label text"), "{}", answer.text());
    for endpoint in ["otlp", "import"] {
        let name = format!("tidepool_http_requests_failed_total{{endpoint=\"{endpoint}\"}}");
        assert_eq!(store.metric(&name), Some(1.0), "{endpoint}");
    }
    assert_stored(&push(&store.server, "", &[], b"good 1\n"));
}

/// Each of these lines opens a string that no line ends.
#[test]
fn wrong_lines_do_not_read_the_rest_of_their_text() {
    let store = Store::start().expect("tidepool starts");
    let lines = (2 << 20) / 5;
    let body = otlp::gzip("{\"\\\"\n".repeat(lines).as_bytes()).expect("gzip");
    let begin = Instant::now();
    let answer = push(&store.server, "", &GZIP, &body);
    assert_eq!(answer.status, 400, "{}", answer.text());
    // The parser used to take half an hour.
    assert!(begin.elapsed() < TIMEOUT, "{:?}", begin.elapsed());
    assert_eq!(import_figure(&store, "tidepool_translation_rejected_total"), lines as f64);
    assert_stored(&push(&store.server, "", &[], b"good 1\n"));
}

#[test]
fn translation_ends_with_its_client() {
    const ROWS: usize = 7 << 20;
    let store = Store::start().expect("tidepool starts");
    let body = otlp::gzip("a 1\n".repeat(ROWS).as_bytes()).expect("gzip");
    let request = request_bytes("POST", PATH, &GZIP, body.len(), &body);
    let mut client = TcpStream::connect(store.server.address()).expect("a connection");
    client.write_all(&request).expect("it is sent");
    let rows = || store.metric("tidepool_head_samples_duplicate_total");
    let has_begun = || rows().filter(|rows| *rows > 0.0);
    wait::until("the first rows", TIMEOUT, has_begun).expect("they are stored");
    drop(client);
    let is_given_back = || (store.metric("tidepool_http_inflight_bytes")? == 0.0).then_some(());
    wait::until("the room of bodies", TIMEOUT, is_given_back).expect("it is given back");
    let rows = rows().expect("a figure");
    assert!(rows < ROWS as f64 / 2.0, "{rows} of {ROWS} rows");
}
