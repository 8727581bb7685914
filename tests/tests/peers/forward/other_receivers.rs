//! Final content of foreign receivers: VictoriaMetrics by its own export, Prometheus with exemplars
//! and native histograms.

use serde_json::Value as Json;
use tidepool_tests::checksum::{Checksum, differences};
use tidepool_tests::clock::now_ms;
use tidepool_tests::forwarding::{TIMEOUT, figure, node, wait_for_delivery};
use tidepool_tests::histogram::assert_same_values;
use tidepool_tests::histogram::generate::{HistogramShape, generate};
use tidepool_tests::histogram::wire::{SentRow, encode, expected};
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::proto::prometheus::{Exemplar, Label, TimeSeries, WriteRequest};
use tidepool_tests::remote_read::Reader;
use tidepool_tests::remote_write::{Version, message_v1};
use tidepool_tests::sender::{read_all, send_all};
use tidepool_tests::series::{Dataset, Labels, Sample, Series, Shape, Texture};
use tidepool_tests::wait;
use tidepool_tests::{prometheus, victoria_metrics};

/// Sends everything as soon as it is stored, including exemplars and histograms.
const ALL: &str = "    send_exemplars: true\n    send_native_histograms: true\n    \
                   queue_config: {batch_send_deadline: 200ms}\n";

/// Returns VictoriaMetrics' content from its export.
fn exported(server: &Server) -> Vec<Series> {
    victoria_metrics::flush(server).expect("it flushes");
    let selector = prometheus::percent_encode("{__name__!=\"\"}");
    let url = format!("{}/api/v1/export?match[]={selector}", server.url());
    let text = Client::default().get(&url).expect("an export").text();
    let series = |line: &str| {
        let line: Json = serde_json::from_str(line).expect("JSON");
        let labels = line["metric"].as_object().expect("labels").iter();
        let labels = labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or("?")));
        let times = line["timestamps"].as_array().expect("times").iter();
        let values = line["values"].as_array().expect("values").iter();
        let samples = times.zip(values).map(|(time, value)| Sample {
            timestamp_ms: time.as_i64().expect("a time"),
            value: value.as_f64().expect("a value"),
        });
        Series { labels: Labels::from_pairs(labels), samples: samples.collect() }
    };
    text.lines().map(series).collect()
}

/// VictoriaMetrics keeps fifteen decimal digits, so values are whole numbers here.
#[test]
fn victoria_metrics_has_all_that_was_written() {
    for version in Version::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let launch = victoria_metrics::launch(directory.path()).expect("it is installed");
        let server = launch.start().expect("it starts");
        let node = node(server.address(), version, ALL, |config| config);
        let (scrapes, interval_ms) = (120, 1_000);
        let start_ms = now_ms() - scrapes as i64 * interval_ms;
        let texture = Texture::Regular;
        let shape = Shape { seed: 131, series: 80, scrapes, start_ms, interval_ms, texture };
        let mut data = Dataset::generate(shape);
        for sample in data.series.iter_mut().flat_map(|series| &mut series.samples) {
            sample.value = (sample.value % 1e9).round() + 0.0;
        }
        send_all(&node, Version::V2, &data);
        wait_for_delivery(&node, data.sample_count());
        let mut got = Vec::new();
        wait::until("the samples to be visible", TIMEOUT, || {
            got = exported(&server);
            (Checksum::of(&got) == Checksum::of(&data.series)).then_some(())
        })
        .unwrap_or_else(|error| panic!("{error}: {}", differences(&data.series, &got)));
        assert_eq!(figure(&node, "prometheus_remote_storage_samples_failed_total", ""), 0.0);
    }
}

#[test]
fn prometheus_has_the_same_native_histograms() {
    for version in Version::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let config = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
        let server = config.receiver().start().expect("Prometheus starts");
        let node = node(server.address(), version, ALL, |config| config);
        let (series, scrapes, interval_ms) = (12, 40, 15_000);
        let start_ms = now_ms() - scrapes as i64 * interval_ms;
        let data = generate(HistogramShape { seed: 132, series, scrapes, start_ms, interval_ms });
        let mut rows: Vec<SentRow<'_>> = Vec::new();
        for one in &data {
            rows.extend(one.values.iter().map(|(timestamp_ms, value)| SentRow {
                labels: &one.labels,
                timestamp_ms: *timestamp_ms,
                value,
            }));
        }
        rows.sort_by_key(|row| row.timestamp_ms);
        for rows in rows.chunks(200) {
            let body = encode(Version::V2, rows);
            let answer = node.writer().send_body(Version::V2, &body).expect("an answer");
            assert!(answer.is_success(), "{} {}", answer.status, answer.text());
        }
        let kinds = ["samples", "histograms"];
        wait::until("all to be delivered", TIMEOUT, || {
            let sent = |kind| figure(&node, &format!("prometheus_remote_storage_{kind}_total"), "");
            (kinds.map(sent).iter().sum::<f64>() as usize == rows.len()).then_some(())
        })
        .unwrap_or_else(|error| panic!("{error}\n{}", node.server.log()));
        // Prometheus' SAMPLES have no negative zeros.
        let got = Reader::new(&server.url()).streamed_values(&read_all()).expect("an answer");
        assert_same_values(&format!("Prometheus by {version}"), &expected(&data), &got);
    }
}

/// Returns a server's exemplars as JSON text.
fn exemplars_of(server: &Server) -> String {
    let selector = prometheus::percent_encode("{__name__=~\".+\"}");
    let path = format!("/api/v1/query_exemplars?query={selector}&start=0&end=4000000000");
    let answer = Client::default().get(&format!("{}{path}", server.url())).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

#[test]
fn prometheus_has_the_same_exemplars() {
    for version in Version::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let config = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
        let config = config.receiver().flag("--enable-feature=exemplar-storage");
        let server = config.start().expect("Prometheus starts");
        let node = node(server.address(), version, ALL, |config| config);
        let start_ms = now_ms() - 30_000;
        for scrape in 0..30 {
            let at = start_ms + scrape * 1_000;
            let one = |number: i64| -> TimeSeries {
                let instance = format!("node-{number}");
                let pairs = [("__name__", "requests_total"), ("instance", &instance)];
                let series = Series::new(&pairs, &[(at, scrape as f64)]);
                let mut message = message_v1(&[series.row()]).timeseries.remove(0);
                let trace = format!("{:08x}", scrape * 100 + number);
                let labels = vec![Label { name: "trace_id".into(), value: trace }];
                let value = scrape as f64 / 4.0;
                message.exemplars.push(Exemplar { labels, value, timestamp: at - number });
                message
            };
            let timeseries = (0..10).map(one).collect();
            let request = WriteRequest { timeseries, metadata: Vec::new() };
            let answer = node.writer().send_message(Version::V1, &request).expect("an answer");
            assert!(answer.is_success(), "{} {}", answer.status, answer.text());
        }
        wait_for_delivery(&node, 300);
        let sent = figure(&node, "prometheus_remote_storage_exemplars_total", "");
        assert_eq!(sent, 300.0, "{version}");
        let (theirs, ours) = (exemplars_of(&server), exemplars_of(&node.server));
        assert_eq!(theirs.matches("\"trace_id\"").count(), 300, "{version}");
        assert_eq!(parsed(&theirs), parsed(&ours), "{version}");
    }
}

/// Returns exemplars by series, sorted.
fn parsed(text: &str) -> Vec<String> {
    let answer: Json = serde_json::from_str(text).expect("JSON");
    let mut all = Vec::new();
    for series in answer["data"].as_array().expect("a list") {
        for exemplar in series["exemplars"].as_array().expect("a list") {
            all.push(format!("{} {exemplar}", series["seriesLabels"]));
        }
    }
    all.sort();
    all
}
