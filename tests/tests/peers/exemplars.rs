//! Exemplars: both versions of remote write carry them, the newest are kept, they survive
//! `kill -9`, and Prometheus and tidepool read each other's exemplars from the log.

use std::path::Path;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::proto::prometheus::{Exemplar, Histogram, Label, TimeSeries, WriteRequest};
use tidepool_tests::proto::write_v2;
use tidepool_tests::remote_write::{Symbols, Version, Writer, Written, message_v1};
use tidepool_tests::series::{Random, Series};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::{data_dir, prometheus};

const SCRAPES: i64 = 40;
const SERIES: usize = 25;

/// Makes scrapes of some counters and native histograms with an exemplar each, some without labels,
/// some with the value NaN.
fn scrapes(seed: u64) -> Vec<WriteRequest> {
    let mut random = Random::new(seed, 0);
    let start_ms = now_ms() - SCRAPES * 1_000;
    let scrape = |scrape: i64| {
        let timestamp = start_ms + scrape * 1_000;
        let series = (0..SERIES).map(|number| {
            let instance = format!("node-{number}");
            let name = if number % 3 == 0 { "latency" } else { "requests_total" };
            let pairs = [("__name__", name), ("instance", &instance)];
            let series = Series::new(&pairs, &[(timestamp, scrape as f64)]);
            let trace = || Label { name: "trace_id".into(), value: format!("{:016x}", number) };
            let span = Label { name: "śpan".into(), value: format!("{:016x}", random.next_u64()) };
            // Prometheus takes an exemplar for a duplicate if it differs from the last in time
            // only.
            let (labels, value) = match random.one_in(6) {
                true => (vec![], scrape as f64),
                false => (vec![trace(), span], random.pick(&[0.25, f64::NAN, f64::INFINITY])),
            };
            let timestamp = timestamp - random.below(900) as i64;
            let exemplar = Exemplar { labels, value, timestamp };
            let mut message = message_v1(&[series.row()]).timeseries.remove(0);
            // Prometheus loses the first exemplar of a new series of histograms.
            if scrape > 0 {
                message.exemplars.push(exemplar);
            }
            if name == "latency" {
                message.samples.clear();
                message.histograms.push(Histogram { timestamp, ..Histogram::default() });
            }
            message
        });
        WriteRequest { timeseries: series.collect(), metadata: vec![] }
    };
    (0..SCRAPES).map(scrape).collect()
}

/// Converts a message to remote write 2.0.
fn to_v2(message: &WriteRequest) -> write_v2::Request {
    let mut symbols = Symbols::default();
    let refs = |labels: &[Label]| -> Vec<String> {
        labels.iter().flat_map(|label| [label.name.clone(), label.value.clone()]).collect()
    };
    let texts: Vec<(Vec<String>, Vec<Vec<String>>)> = message
        .timeseries
        .iter()
        .map(|series| {
            let exemplars = series.exemplars.iter().map(|e| refs(&e.labels)).collect();
            (refs(&series.labels), exemplars)
        })
        .collect();
    let mut timeseries = Vec::new();
    for (series, (labels, exemplar_labels)) in message.timeseries.iter().zip(&texts) {
        let labels_refs = labels.iter().map(|text| symbols.position(text)).collect();
        let exemplars = series.exemplars.iter().zip(exemplar_labels);
        let exemplars = exemplars.map(|(exemplar, labels)| write_v2::Exemplar {
            labels_refs: labels.iter().map(|text| symbols.position(text)).collect(),
            value: exemplar.value,
            timestamp: exemplar.timestamp,
        });
        let TimeSeries { samples, histograms, .. } = series;
        timeseries.push(write_v2::TimeSeries {
            labels_refs,
            exemplars: exemplars.collect(),
            samples: samples
                .iter()
                .map(|s| write_v2::Sample {
                    value: s.value,
                    timestamp: s.timestamp,
                    start_timestamp: 0,
                })
                .collect(),
            histograms: histograms
                .iter()
                .map(|h| write_v2::Histogram {
                    timestamp: h.timestamp,
                    ..write_v2::Histogram::default()
                })
                .collect(),
            ..write_v2::TimeSeries::default()
        });
    }
    write_v2::Request { symbols: symbols.into_strings(), timeseries }
}

#[track_caller]
fn send(server: &Server, version: Version, scrapes: &[WriteRequest]) {
    let writer = Writer::new(&server.url());
    for message in scrapes {
        let response = match version {
            Version::V1 => writer.send_message(version, message),
            Version::V2 => writer.send_message(version, &to_v2(message)),
        };
        let response = response.expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
        if version == Version::V2 {
            let written = Written::from_response(&response).expect("written headers");
            let exemplars = message.timeseries.iter().map(|series| series.exemplars.len());
            assert_eq!(written.exemplars, exemplars.sum::<usize>() as u64);
            assert_eq!(written.samples + written.histograms, SERIES as u64);
        }
    }
}

fn kept(store: &Store) -> f64 {
    store.metric("prometheus_tsdb_exemplar_exemplars_in_storage").expect("the metric")
}

fn keeper(directory: &Path, name: &str) -> prometheus::Config {
    prometheus::Config::new(Release::V3, &directory.join(name))
        .expect("the directory can be used")
        .receiver()
        .flag("--enable-feature=exemplar-storage")
}

/// Returns Prometheus' exemplars as JSON text.
fn exemplars_of(server: &Server) -> String {
    let selector = "%7B__name__%3D~%22.%2B%22%7D";
    let path = format!("/api/v1/query_exemplars?query={selector}&start=0&end=4000000000");
    let response = Client::default().get(&format!("{}{path}", server.url())).expect("an answer");
    assert_eq!(response.status, 200, "{}", response.text());
    response.text()
}

#[test]
fn prometheus_finds_our_exemplars_and_we_find_theirs() {
    for version in Version::ALL {
        let all = scrapes(501);
        let total = ((SCRAPES as usize - 1) * SERIES) as f64;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let theirs = keeper(directory.path(), "theirs");
        let prometheus = theirs.start().expect("Prometheus starts");
        let store = Store::start().expect("tidepool starts");
        for server in [&prometheus, &store.server] {
            send(server, version, &all);
        }
        let wanted = exemplars_of(&prometheus);
        assert_eq!(wanted.matches("\"timestamp\"").count() as f64, total);
        assert_eq!(kept(&store), total);

        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert_eq!(kept(&store), total, "after kill -9");
        // Stored exemplars are not added again, so sending these changes nothing.
        send(&store.server, Version::V2, &all);
        assert_eq!(kept(&store), total, "sent again");

        let heir = keeper(directory.path(), "heir");
        let Store { server, config, directory: _own } = store;
        server.terminate().expect("tidepool ends");
        data_dir::copy(config.data_dir(), &heir.data_dir()).expect("a copy");
        let server = heir.start().expect("Prometheus starts");
        assert_eq!(exemplars_of(&server), wanted, "{version}");

        prometheus.kill().expect("Prometheus ends");
        let back = Config::new(directory.path());
        data_dir::copy(&theirs.data_dir(), back.data_dir()).expect("a copy");
        let server = back.start().expect("tidepool starts");
        let store = Store { server, config: back, directory };
        assert_eq!(kept(&store), total, "those of Prometheus");
        send(&store.server, Version::V1, &all);
        assert_eq!(kept(&store), total, "those of Prometheus, sent again");
    }
}

#[test]
fn the_newest_are_kept() {
    let store = Store::start_with(|config| config.flag("--max-exemplars=110"));
    let store = store.expect("tidepool starts");
    let all = scrapes(502);
    send(&store.server, Version::V2, &all);
    assert_eq!(kept(&store), 110.0);
    let store = store.restart(Server::kill).expect("tidepool starts again");
    assert_eq!(kept(&store), 110.0, "after kill -9");
    // The last four scrapes are among them.
    send(&store.server, Version::V1, &all[all.len() - 4..]);
    assert_eq!(kept(&store), 110.0);
    let duplicates = exemplars_of_data_dir(&store);
    assert!(duplicates >= 110, "{duplicates} in the log");
}

/// Returns the number of exemplars that Prometheus finds in tidepool's log; its ring is larger.
fn exemplars_of_data_dir(store: &Store) -> usize {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let heir = keeper(directory.path(), "heir");
    data_dir::copy(store.config.data_dir(), &heir.data_dir()).expect("a copy");
    let server = heir.start().expect("Prometheus starts");
    exemplars_of(&server).matches("\"timestamp\"").count()
}
