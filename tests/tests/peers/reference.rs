//! The clients of these tests against Prometheus itself: they must be right before they test
//! tidepool.

use rustix::process::Signal;
use std::ffi::OsStr;
use std::process::Stdio;
use tidepool_tests::checksum::{Checksum, assert_same};
use tidepool_tests::clock;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{Reader, everything, matcher, query};
use tidepool_tests::remote_write::{Version, Writer, Written};
use tidepool_tests::series::{Dataset, Series, Shape, Texture};
use tidepool_tests::{prometheus, promtool, wait};

const ROWS_PER_REQUEST: usize = 2_000;

/// Makes rough data of two hours that end now.
fn dataset(seed: u64) -> Dataset {
    let (scrapes, interval_ms) = (300, 15_000);
    let start_ms = clock::now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    Dataset::generate(Shape { seed, series: 150, scrapes, start_ms, interval_ms, texture })
}

fn start(release: Release, directory: &std::path::Path) -> Server {
    prometheus::Config::new(release, directory)
        .expect("the directory can be used")
        .receiver()
        .start()
        .expect("Prometheus starts")
}

/// Prometheus' own SAMPLES encoder takes negative zero for the default value and leaves it out.
fn clear_negative_zero(series: &[Series]) -> Vec<Series> {
    let mut series = series.to_vec();
    for sample in series.iter_mut().flat_map(|s| &mut s.samples) {
        if sample.value == 0.0 {
            sample.value = 0.0;
        }
    }
    series
}

/// Asserts that sent samples are returned by both kinds of answer.
fn round_trip(release: Release, version: Version) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = start(release, directory.path());
    let data = dataset(11);
    let writer = Writer::new(&server.url());
    for rows in data.requests(ROWS_PER_REQUEST) {
        let response = writer.send(version, &rows).expect("the write is answered");
        assert_eq!(response.status, 204, "{}", response.text());
        if version == Version::V2 {
            let samples = rows.iter().map(|row| row.samples.len() as u64).sum();
            let expected = Written { samples, ..Written::default() };
            assert_eq!(Written::from_response(&response), Some(expected));
        }
    }

    let reader = Reader::new(&server.url());
    let (start_ms, end_ms) = data.time_range_ms().expect("there are samples");
    let whole = everything(start_ms, end_ms);
    let middle_ms = (start_ms + end_ms) / 2;
    let idle = vec![matcher(Type::Eq, "mode", "idle")];
    let part = query(middle_ms, middle_ms + 600_000, idle);
    let queries = [whole, part];

    let part_sent: Vec<_> = data
        .series
        .iter()
        .filter(|s| s.labels.value("mode") == "idle")
        .map(|s| s.between(middle_ms, middle_ms + 600_000))
        .collect();
    // Chunks that 2.x still appends to may end in a byte of padding, which the decoder refuses.
    if release == Release::V3 {
        let results = reader.streamed(&queries).unwrap_or_else(|e| panic!("{}", wait::chain(&e)));
        assert_same("streamed", &data.series, &results[0]);
        assert_same("streamed", &part_sent, &results[1]);
        assert!(Checksum::of(&results[1]).count > 0);
    }
    let results = reader.samples(&queries).unwrap_or_else(|e| panic!("{}", wait::chain(&e)));
    assert_same("samples", &clear_negative_zero(&data.series), &results[0]);
    assert_same("samples", &clear_negative_zero(&part_sent), &results[1]);
    let ending = server.terminate().expect("Prometheus ends");
    assert!(ending.status.success(), "{ending:?}");
}

#[test]
fn prometheus_3_takes_and_gives_back_remote_write_1() {
    round_trip(Release::V3, Version::V1);
}

#[test]
fn prometheus_3_takes_and_gives_back_remote_write_2() {
    round_trip(Release::V3, Version::V2);
}

#[test]
fn prometheus_2_takes_and_gives_back_remote_write_1() {
    round_trip(Release::V2, Version::V1);
}

/// Both promtools dump the sent samples from Prometheus' own log.
#[test]
fn dumps_of_both_promtools_can_be_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = start(Release::V3, directory.path());
    let data = dataset(12);
    let writer = Writer::new(&server.url());
    for rows in data.requests(ROWS_PER_REQUEST) {
        let response = writer.send(Version::V2, &rows).expect("the write is answered");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    server.end_by(Signal::INT).expect("Prometheus ends");
    let sent = promtool::clear_nan_bits(&data.series);
    for release in Release::ALL {
        let data_dir = directory.path().join("data");
        let arguments = [OsStr::new("tsdb"), OsStr::new("dump"), data_dir.as_os_str()];
        let output = promtool::run(release, arguments, Stdio::null()).expect("promtool runs");
        assert!(output.success, "{release:?}: {}", output.stderr);
        let dumped = promtool::parse_dump(&output.stdout).expect("a dump");
        assert_same("dump", &sent, &dumped);
    }
}

/// Killed in the middle, Prometheus keeps its acknowledged samples, which tests `kill` as well.
#[test]
fn usage_is_measured_and_kill_kills() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = start(Release::V3, directory.path());
    let before = server.usage().expect("Prometheus runs");
    let data = dataset(13);
    let writer = Writer::new(&server.url());
    for rows in data.requests(ROWS_PER_REQUEST) {
        let response = writer.send(Version::V1, &rows).expect("the write is answered");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    let after = server.usage().expect("Prometheus runs");
    assert!(after.cpu > before.cpu && after.written_bytes > before.written_bytes, "{after:?}");
    let ending = server.kill().expect("Prometheus ends");
    assert!(!ending.status.success());

    let server = start(Release::V3, directory.path());
    let (start_ms, end_ms) = data.time_range_ms().expect("there are samples");
    let results = Reader::new(&server.url()).streamed(&[everything(start_ms, end_ms)]);
    assert_same("after the kill", &data.series, &results.expect("Prometheus answers")[0]);
}
