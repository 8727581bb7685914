//! Metadata of metric families: both versions of remote write carry it, it survives `kill -9`, and
//! Prometheus finds it in tidepool's log. Metadata that Prometheus 3.15 scrapes is never in its own
//! log, whatever its flags; metadata that it receives is, and tidepool finds it there.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::proto::write_v2;
use tidepool_tests::remote_write::{Symbols, Version, Writer};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;
use tidepool_tests::{data_dir, prometheus};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Families with type, help and unit.
type Families = BTreeMap<String, String>;

fn says(kind: &Value, help: &Value, unit: &Value) -> String {
    json!({ "type": kind, "help": help, "unit": unit }).to_string()
}

/// Returns the data of an API endpoint.
fn data(server: &Server, endpoint: &str) -> Value {
    let url = format!("{}/api/v1/{endpoint}", server.url());
    let response = Client::default().get(&url).expect("an answer");
    let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(answer["status"], "success");
    answer["data"].clone()
}

fn families(server: &Server) -> Families {
    let data = data(server, "metadata");
    let families = data.as_object().expect("an object");
    // Servers differ in the order of the keys.
    let said = |one: &Value| says(&one["type"], &one["help"], &one["unit"]);
    families.iter().map(|(family, list)| (family.clone(), said(&list[0]))).collect()
}

#[track_caller]
fn wait_for_all(what: &str, server: &Server, wanted: &Families) {
    let all = || {
        let got = families(server);
        wanted.iter().all(|(family, says)| got.get(family) == Some(says)).then_some(())
    };
    if let Err(error) = wait::until(what, TIMEOUT, all) {
        let got = families(server);
        let differ = wanted.iter().filter(|(family, says)| got.get(*family) != Some(says));
        let differ: Vec<_> = differ.map(|(f, says)| (f, says, got.get(f))).take(5).collect();
        panic!("{error}: {} families; missing: {differ:#?}", got.len());
    }
}

/// Returns whether a scrape of a server's own target has ended.
fn is_scraped(server: &Server) -> bool {
    data(server, "targets")["activeTargets"][0]["health"] == "up"
}

/// Starts a Prometheus that scrapes itself and writes to a server.
fn writer(directory: &Path, name: &str, to: &Server, version: Version) -> Server {
    let config = prometheus::Config::new(Release::V3, &directory.join(name))
        .expect("the directory can be used");
    let own_address = config.address();
    let config = config.scrape("prometheus", own_address).remote_write(&to.url(), version);
    config.start().expect("the writer starts")
}

#[test]
fn what_prometheus_says_by_1_0_is_kept() {
    let store = Store::start().expect("tidepool starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = writer(directory.path(), "first", &store.server, Version::V1);
    // Before its first scrape has ended, Prometheus knows only the help of some families.
    let scraped = || is_scraped(&first).then_some(());
    wait::until("the writer's first scrape", TIMEOUT, scraped).expect("a scrape");
    let wanted = families(&first);
    assert!(wanted.len() > 200, "{wanted:?}");
    wait_for_all("metadata", &store.server, &wanted);
    first.terminate().expect("the writer ends");
    let store = store.restart(Server::kill).expect("tidepool starts again");
    wait_for_all("metadata after kill -9", &store.server, &wanted);

    // With 2.0, Prometheus 3.15 sends empty metadata with every series.
    let second = writer(directory.path(), "second", &store.server, Version::V2);
    let series = store.metric("prometheus_tsdb_head_series").expect("the metric");
    let more = || {
        let now = store.metric("prometheus_tsdb_head_series")?;
        (now > series * 1.5).then_some(())
    };
    wait::until("series by 2.0", TIMEOUT, more).expect("the second writer writes");
    wait_for_all("metadata after silence", &store.server, &wanted);
    assert!(families(&store.server).iter().all(|(_, says)| !says.contains("\"help\":\"\"")));
    drop(second);
}

/// Type (by number), help and unit of the families of these series.
const SAID: [(&str, &[&str], i32, &str, &str); 6] = [
    ("requests_total", &["requests_total"], 1, "Requests served.", ""),
    ("temperature_celsius", &["temperature_celsius"], 2, "How warm it is: \u{2103}.", "celsius"),
    ("native_seconds", &["native_seconds"], 3, "How long it took.", "seconds"),
    (
        "classic_seconds",
        &["classic_seconds_bucket", "classic_seconds_sum", "classic_seconds_count"],
        3,
        "How long it took, too.",
        "seconds",
    ),
    ("quantiles", &["quantiles", "quantiles_sum", "quantiles_count"], 5, "Some \"quantiles\".", ""),
    ("build_info", &["build_info"], 6, "", ""),
];

/// Makes a 2.0 request with a sample of all series and their metadata.
fn message(timestamp: i64) -> write_v2::Request {
    let mut symbols = Symbols::default();
    let mut timeseries = Vec::new();
    for (_, names, kind, help, unit) in SAID {
        for name in names {
            let metadata = write_v2::Metadata {
                r#type: kind,
                help_ref: symbols.position(help),
                unit_ref: symbols.position(unit),
            };
            let (key, value) = (symbols.position("__name__"), symbols.position(name));
            let sample = write_v2::Sample { value: 1.0, timestamp, start_timestamp: 0 };
            timeseries.push(write_v2::TimeSeries {
                labels_refs: vec![key, value],
                samples: vec![sample],
                metadata: Some(metadata),
                ..write_v2::TimeSeries::default()
            });
        }
    }
    write_v2::Request { symbols: symbols.into_strings(), timeseries }
}

/// Returns the metadata that must be known in the end.
fn wanted() -> Families {
    let kinds = ["unknown", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info"];
    let family = |(family, _, kind, help, unit): (&str, &[&str], i32, &str, &str)| {
        let says = says(&kinds[kind as usize].into(), &help.into(), &unit.into());
        (family.to_string(), says)
    };
    SAID.into_iter().map(family).collect()
}

fn receiver(directory: &Path) -> prometheus::Config {
    prometheus::Config::new(Release::V3, directory)
        .expect("the directory can be used")
        .flag("--enable-feature=metadata-wal-records")
        .receiver()
}

/// Prometheus reads metadata in tidepool's log, and sends it by 2.0 with the next samples.
#[test]
fn what_is_said_by_2_0_is_kept_and_prometheus_reads_it_in_our_log() {
    let wanted = wanted();
    let store = Store::start_with(Config::prometheus_records).expect("tidepool starts");
    let response = store.writer().send_message(Version::V2, &message(now_ms()));
    assert_eq!(response.expect("an answer").status, 204);
    wait_for_all("metadata", &store.server, &wanted);
    let store = store.restart(Server::kill).expect("tidepool starts again");
    wait_for_all("metadata after kill -9", &store.server, &wanted);
    let Store { server, config, directory: _own } = store;
    server.terminate().expect("tidepool ends");

    let directory = tempfile::tempdir().expect("a temporary directory");
    let last = Store::start().expect("tidepool starts");
    let heir = receiver(directory.path()).remote_write(&last.server.url(), Version::V2);
    data_dir::copy(config.data_dir(), &heir.data_dir()).expect("a copy");
    let server = heir.start().expect("Prometheus starts");
    let log = server.log();
    // Not about the log: a lock was left, and metadata has no interval with 2.0.
    let known = ["lockfile", "metadata_config"];
    let bad = |line: &&str| {
        let is_bad = line.contains("level=ERROR") || line.contains("level=WARN");
        is_bad && !known.iter().any(|word| line.contains(word))
    };
    let bad: Vec<_> = log.lines().filter(bad).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    // tidepool's log has metadata of one series of each family, and none of the others.
    let arrived = || {
        let samples = [(now_ms(), 2.0)];
        let names = SAID.iter().flat_map(|said| said.1);
        let series: Vec<_> = names.map(|n| Series::new(&[("__name__", n)], &samples)).collect();
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let response = Writer::new(&server.url()).send(Version::V1, &rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
        let got = families(&last.server);
        wanted.iter().all(|(family, says)| got.get(family) == Some(says)).then_some(())
    };
    wait::until("metadata sent on", TIMEOUT, arrived)
        .unwrap_or_else(|e| panic!("{e}\n{:#?}\n{}", families(&last.server), server.log()));
}

/// Records of Prometheus name series, not families.
#[test]
fn what_prometheus_keeps_in_its_log_is_taken_over() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let theirs = receiver(directory.path());
    let server = theirs.start().expect("Prometheus starts");
    let response = Writer::new(&server.url()).send_message(Version::V2, &message(now_ms()));
    assert_eq!(response.expect("an answer").status, 204);
    server.kill().expect("Prometheus ends");

    let own = tempfile::tempdir().expect("a temporary directory");
    let config = Config::new(own.path());
    data_dir::copy(&theirs.data_dir(), config.data_dir()).expect("a copy");
    let server = config.start().expect("tidepool starts");
    assert_eq!(families(&server), wanted());
}
