//! `--wal-records`: columns take few bytes, no sample is lost in either direction, and the default
//! format of a directory.

use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::cli::tsdb;
use tidepool_tests::clock::now_ms;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{assert_holds, read_all, send_all};
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::{arguments, checksum, data_dir, soak};

const INTERVAL_MS: i64 = 15_000;
/// Part of the log line about the format at a start.
const FORMAT_LINE: &str = "format of floats in the WAL";

fn columns(config: Config) -> Config {
    config.flag("--wal-records=columns")
}

/// Makes an hour of data that ends now.
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
    // Labels are written once, and so are the first values.
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

    // The next start may use any format.
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
        let config = if life % 2 == 0 { columns(config) } else { config.prometheus_records() };
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

/// Runs a server on a directory until `kill -9`; returns bytes of the log for each sample, and the
/// logged format.
fn life(directory: &Path, part: i64, configure: impl FnOnce(Config) -> Config) -> (f64, String) {
    let config = configure(Config::new(directory).flag("--wal-compression=none"));
    let of_the_format = |log: &str| -> Vec<String> {
        log.lines().filter(|line| line.contains(FORMAT_LINE)).map(str::to_owned).collect()
    };
    // All starts write to one log.
    let lives = std::fs::read_to_string(directory.join("tidepool.log")).unwrap_or_default();
    let server = config.start().expect("tidepool starts");
    let mut said = of_the_format(&server.log()).split_off(of_the_format(&lives).len());
    assert_eq!(said.len(), 1, "{}", server.log());
    let said = said.remove(0);
    let start_ms = now_ms() - (600 - 60 * part) * INTERVAL_MS;
    let data = part_of_regular_data(200, start_ms, 60);
    let wal = config.data_dir().join("wal");
    let before = data_dir::total_bytes(&wal);
    let store =
        Store { server, config, directory: tempfile::tempdir().expect("one to be dropped") };
    send_all(&store, Version::V2, &data);
    let bytes = data_dir::total_bytes(&wal) - before;
    store.server.kill().expect("a kill");
    (bytes as f64 / data.sample_count() as f64, said)
}

#[track_caller]
fn assert_format(what: &str, (bytes, said): (f64, String), records: &str, reason: &str) {
    // Both formats include the labels of new series.
    let is_columns = bytes < 8.0;
    assert_eq!(is_columns, records == "columns", "{what}: {bytes} bytes a sample");
    assert!(said.contains(&format!("records={records}")), "{what}: {said}");
    assert!(said.contains(reason), "{what}: {said}");
}

#[test]
fn a_new_directory_gets_columns_and_stays_with_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let same = |config: Config| config;
    assert_format("new", life(directory.path(), 0, same), "columns", "new");
    assert_format("again", life(directory.path(), 1, same), "columns", "the log has them");
    // Without a log that shows the format, the mark does.
    tsdb(arguments!["compact", "--head", &directory.path().join("data")]);
    let made = "tidepool made the directory";
    assert_format("after a command", life(directory.path(), 2, same), "columns", made);

    let flag = "the flag says so";
    let prometheus = life(directory.path(), 3, Config::prometheus_records);
    assert_format("a flag", prometheus, "prometheus", flag);
    let log = "the log has them";
    assert_format("without the flag", life(directory.path(), 4, same), "prometheus", log);
    tsdb(arguments!["compact", "--head", &directory.path().join("data")]);
    let no_mark = "no mark of this version";
    assert_format("after a command", life(directory.path(), 5, same), "prometheus", no_mark);
    assert_format("the other flag", life(directory.path(), 6, columns), "columns", flag);
    assert_format("without it", life(directory.path(), 7, same), "columns", log);
}

/// A version without the mark wrote Prometheus' records: the format stays, however it ended.
#[test]
fn an_older_directory_keeps_the_records_of_prometheus() {
    for end in [Server::kill, Server::terminate] {
        let directory = tempfile::tempdir().expect("a directory");
        life(directory.path(), 0, Config::prometheus_records);
        let server = Config::new(directory.path()).prometheus_records().start();
        end(server.expect("tidepool starts")).expect("an end");
        let log = "the log has them";
        for part in 1..3 {
            let found = life(directory.path(), part, |config| config);
            assert_format("an older directory", found, "prometheus", log);
        }
        tsdb(arguments!["verify", &directory.path().join("data")]);
    }
}

/// A kill at any moment of the first start: the directory is still a new one, or has its mark.
#[test]
fn kills_during_the_first_start_change_nothing() {
    for number in 0..soak::count(12, 100) {
        let directory = tempfile::tempdir().expect("a directory");
        let config = Config::new(directory.path());
        let server = config.launch().and_then(|launch| launch.spawn()).expect("tidepool starts");
        std::thread::sleep(Duration::from_millis(5 * number as u64));
        server.kill().expect("a kill");
        let found = life(directory.path(), 0, |config| config);
        assert_format(&format!("kill {number}"), found, "columns", "");
    }
}
