//! `--wal-records=columns`: few bytes, nothing lost in either direction, and what Prometheus sees.

use rustix::process::Signal;
use tidepool_tests::cli::tsdb;
use tidepool_tests::clock::now_ms;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{assert_holds, read_all, send_all};
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::{arguments, checksum, data_dir};

const INTERVAL_MS: i64 = 15_000;

fn columns(config: Config) -> Config {
    config.flag("--wal-records=columns")
}

/// An hour that ends now.
fn regular_data() -> Dataset {
    part_of_regular_data(1000, now_ms() - 240 * INTERVAL_MS, 240)
}

fn part_of_regular_data(series: usize, start_ms: i64, scrapes: usize) -> Dataset {
    let (interval_ms, texture) = (INTERVAL_MS, Texture::Regular);
    Dataset::generate(Shape { seed: 3, series, scrapes, start_ms, interval_ms, texture })
}

/// Sends data; returns the length of the log.
fn log_bytes_of(store: &Store, data: &Dataset) -> u64 {
    send_all(store, Version::V2, data);
    data_dir::total_bytes(&store.config.data_dir().join("wal"))
}

#[test]
fn a_log_of_columns_is_small_and_comes_back() {
    // Labels come once, and so do the first values.
    let first = part_of_regular_data(1000, now_ms() - INTERVAL_MS, 1);
    let store = Store::start_with(columns).expect("tidepool starts");
    let first_bytes = log_bytes_of(&store, &first);
    drop(store);

    let data = regular_data();
    let mut store = Store::start_with(columns).expect("tidepool starts");
    let bytes = log_bytes_of(&store, &data) - first_bytes;
    let samples = data.sample_count() - first.sample_count();
    assert!(bytes < 2 * samples, "{bytes} bytes for {samples} samples");
    store = store.restart(Server::kill).expect("tidepool starts again");
    assert_holds(&store, &data);
    let Store { server, config, directory } = store;
    server.kill().expect("a kill");
    let report = tsdb(arguments!["verify", config.data_dir()]);
    assert!(!report.contains("error"), "{report}");

    // The next life may write what it likes.
    let config = Config::new(directory.path());
    let server = config.start().expect("tidepool starts");
    let store = Store { server, config, directory };
    assert_holds(&store, &data);
}

#[test]
fn kinds_of_records_may_alternate() {
    let directory = tempfile::tempdir().expect("a directory");
    let start_ms = now_ms() - 240 * INTERVAL_MS;
    let mut parts = Vec::new();
    for life in 0..4 {
        let config = Config::new(directory.path());
        let config = if life % 2 == 0 { columns(config) } else { config };
        let server = config.start().expect("tidepool starts");
        let store =
            Store { server, config, directory: tempfile::tempdir().expect("one to be dropped") };
        let data = part_of_regular_data(50, start_ms + life * 60 * INTERVAL_MS, 60);
        send_all(&store, Version::ALL[life as usize / 2], &data);
        parts.extend(data.series);
        store.server.end_by(Signal::KILL).expect("a kill");
    }
    let config = columns(Config::new(directory.path()));
    let server = config.start().expect("tidepool starts");
    let store = Store { server, config, directory };
    let found = store.reader().streamed(&[read_all()]).expect("a stream").remove(0);
    checksum::assert_same("of four lives", &parts, &found);
}
