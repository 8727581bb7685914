//! Starts that fail during the replay: if the engine fails repeatedly without progress, the whole
//! log is quarantined, and the node serves; the samples of the log can be restored.

use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tidepool_tests::arguments;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::cli::tsdb;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{assert_holds, read_all, send_all};
use tidepool_tests::series::{Dataset, Series, Shape, Texture};
use tidepool_tests::tidepool::{Config, Store};

const WAIT: Duration = Duration::from_secs(60);

/// Makes data whose replay takes a while, and some hundred megabytes.
fn large(seed: u64) -> Dataset {
    let (series, scrapes, interval_ms) = (60_000, 20, 15_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    Dataset::generate(Shape {
        seed,
        series,
        scrapes,
        start_ms,
        interval_ms,
        texture: Texture::Regular,
    })
}

/// Returns a directory with such a log, and no server.
fn with_large_log(seed: u64) -> (Config, tempfile::TempDir, Dataset) {
    let store = Store::start().expect("tidepool starts");
    let data = large(seed);
    send_all(&store, Version::V2, &data);
    let Store { server, config, directory } = store;
    server.kill().expect("tidepool ends");
    (config, directory, data)
}

fn failed_starts(data_dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(data_dir).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("failed-starts")).collect()
}

/// Returns the only quarantined entry, which must be logs.
fn quarantined_logs(data_dir: &Path) -> PathBuf {
    let paths = data_dir::quarantine(data_dir).expect("a directory");
    assert_eq!(paths.len(), 1, "{paths:?}");
    assert!(paths[0].to_string_lossy().ends_with("-logs"), "{paths:?}");
    assert!(paths[0].join("wal/00000000").exists(), "{paths:?}");
    paths[0].clone()
}

/// Waits until a start reads the log.
#[track_caller]
fn wait_for_replay(server: &mut Server, data_dir: &Path) {
    let begun = Instant::now();
    let is_reading = || fs::metadata(data_dir.join("starting")).is_ok_and(|note| note.len() > 0);
    // The note may be that of the start before; signals are handled before anything listens.
    let listening = format!("listening address={}", server.address());
    while !(server.log().contains(&listening) && is_reading()) {
        assert!(begun.elapsed() < WAIT, "{}", server.log());
        std::thread::yield_now();
    }
}

#[track_caller]
fn takes_writes(store: &Store) {
    let series = Series::new(&[("__name__", "after")], &[(now_ms(), 1.0)]);
    let answer = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.text());
    let got = store.reader().streamed(&[read_all()]).expect("a stream").remove(0);
    assert!(got.contains(&series), "{} series", got.len());
}

/// Writes the note of this number of starts in a row at which the engine failed after one record.
fn fail_starts(data_dir: &Path, count: u32) {
    fs::write(data_dir.join(format!("failed-starts.{count}")), "1\n").expect("a file");
}

#[test]
fn a_log_at_which_the_engine_fails_is_quarantined_and_can_be_had_back() {
    let (config, directory, data) = with_large_log(301);
    let data_dir = config.data_dir().to_owned();
    fail_starts(&data_dir, 3);
    let server = config.start().expect("tidepool starts");
    let store = Store { server, config, directory };
    assert_eq!(store.metric("tidepool_logs_quarantined_total"), Some(1.0));
    assert_eq!(failed_starts(&data_dir), Vec::<String>::new());
    takes_writes(&store);
    let log = store.server.log();
    for words in ["3 times in a row", "is missing now", "tsdb restore"] {
        assert!(log.contains(words), "{words:?} is missing: {log}");
    }
    let Store { server, config, directory } = store;
    server.terminate().expect("tidepool ends");

    let kept = quarantined_logs(&data_dir);
    let report = tsdb(arguments!["verify", &data_dir]);
    assert!(report.contains("-logs: warning: quarantined"), "{report}");
    // The command is the one in the log line.
    tsdb(arguments!["restore", &kept, &data_dir]);
    assert!(!data_dir::blocks(&data_dir).expect("blocks").is_empty());
    fs::remove_dir_all(data_dir.join("wal")).expect("removed: what came after");
    let server = config.start().expect("tidepool starts");
    assert_holds(&Store { server, config, directory }, &data);
}

/// The blocks of the quarantined log end after the node's own log begins: newer samples of series
/// that are behind others are only there.
#[test]
fn a_restored_log_hides_nothing_of_the_one_that_followed() {
    let store = Store::start().expect("tidepool starts");
    let begin_ms = now_ms() - 3_600_000;
    let series = |i: &str, seconds: std::ops::Range<i64>| {
        let samples: Vec<(i64, f64)> =
            seconds.step_by(10).map(|s| (begin_ms + s * 1000, s as f64)).collect();
        Series::new(&[("__name__", "m"), ("i", i)], &samples)
    };
    let send = |store: &Store, series: &[Series]| {
        for series in series {
            let answer = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
            assert_eq!(answer.status, 204, "{}", answer.text());
        }
    };
    send(&store, &[series("ahead", 0..1800), series("behind", 0..1500)]);
    let Store { server, config, directory } = store;
    server.kill().expect("tidepool ends");
    let data_dir = config.data_dir().to_owned();
    fail_starts(&data_dir, 3);
    let store = Store { server: config.start().expect("tidepool starts"), config, directory };
    // One of these was in the quarantined log with another value: the later value counts.
    send(&store, &[series("behind", 1500..1800), series("ahead", 1800..2100)]);
    let labels = [("__name__", "m"), ("i", "behind")];
    send(&store, &[Series::new(&labels, &[(begin_ms + 1_000_000, -1.0)])]);
    let kept = quarantined_logs(&data_dir);
    let Store { server, config, directory } = store;
    server.terminate().expect("tidepool ends");
    tsdb(arguments!["restore", &kept, &data_dir]);
    let mut behind = series("behind", 0..1800);
    behind.samples[100].value = -1.0;
    let expected = [series("ahead", 0..2100), behind];
    let mut store = Store { server: config.start().expect("tidepool starts"), config, directory };
    for end in [Server::kill, Server::terminate] {
        let got = store.reader().streamed(&[read_all()]).expect("a stream").remove(0);
        assert_same("restored", &expected, &got);
        store = store.restart(end).expect("tidepool starts again");
    }
    let Store { server, config, directory } = store;
    server.terminate().expect("tidepool ends");
    tsdb(arguments!["compact", "--head", &data_dir]);
    let store = Store { server: config.start().expect("tidepool starts"), config, directory };
    let got = store.reader().streamed(&[read_all()]).expect("a stream").remove(0);
    assert_same("merged", &expected, &got);
}

/// Ended from outside repeatedly during the replay, as by kills, power cuts and stops: this does
/// not count as a failure of the log, which is complete in the end. Meanwhile the server reports
/// its progress.
#[test]
fn a_start_that_is_ended_from_outside_does_not_count() {
    let (config, directory, data) = with_large_log(302);
    let data_dir = config.data_dir().to_owned();
    // However quick it is, the next start reads the log.
    let config = config.flag("--max-failed-starts=2").flag("--head-snapshot=false");
    let spawn = || config.launch().expect("a free port").spawn().expect("it can be spawned");
    for kill in 0..6 {
        let mut server = spawn();
        wait_for_replay(&mut server, &data_dir);
        if kill % 3 == 2 {
            let ending = server.end_by(Signal::TERM).expect("tidepool ends");
            assert_eq!(ending.status.code(), Some(0));
            assert!(!data_dir.join("starting").exists());
        } else {
            server.kill().expect("tidepool ends");
        }
        assert_eq!(failed_starts(&data_dir), Vec::<String>::new());
    }

    let mut server = spawn();
    let mut seen = Vec::new();
    let client = Client::default();
    loop {
        let answer = |path: &str| client.get(&format!("{}{path}", server.url())).ok();
        if let Some(status) = answer("/api/v1/status/walreplay") {
            assert_eq!(status.status, 200);
            let body: serde_json::Value = serde_json::from_str(&status.text()).expect("JSON");
            seen.push(body["data"]["state"].as_str().unwrap_or_default().to_owned());
        }
        match answer("/-/ready") {
            Some(ready) if ready.status == 200 => break,
            Some(ready) => {
                assert_eq!(ready.status, 503);
                let text = ready.text();
                let is_known = text == "The store is starting.\n"
                    || text.starts_with("The log is being replayed: segment 1 of ");
                assert!(is_known, "{text}");
            }
            None => assert!(server.wait_end(Duration::ZERO).is_err(), "{}", server.log()),
        }
    }
    assert!(seen.iter().any(|state| state == "in progress"), "{seen:?}");
    // The file has the lines of all starts.
    let log = server.log();
    let log = log.rsplit("tidepool starts").next().unwrap_or_default();
    assert_eq!(log.matches("log replayed").count(), 1, "{log}");
    assert_eq!(log.matches("WAL replayed").count(), 0, "{log}");
    assert!(!data_dir.join("starting").exists() && !data_dir.join("set-aside").exists());
    let store = Store { server, config: config.clone(), directory };
    assert_eq!(store.metric("tidepool_logs_quarantined_total"), Some(0.0));
    assert_holds(&store, &data);
}

/// A start without enough memory for the log does not count as a failure, however often it happens,
/// and whatever the limit.
#[test]
fn too_little_memory_never_counts() {
    let (config, directory, data) = with_large_log(304);
    let data_dir = config.data_dir().to_owned();
    for limit in ["8MiB", "8MiB", "12MiB", "8MiB"] {
        let config = config.clone().flag(&format!("--head-memory-limit={limit}"));
        let server = config.flag("--max-failed-starts=1").start().expect("tidepool starts");
        assert_eq!(server.metric("tidepool_wal_replay_skipped"), Some(1.0), "{}", server.log());
        assert_eq!(failed_starts(&data_dir), Vec::<String>::new());
        assert!(!data_dir.join("set-aside").exists());
        server.kill().expect("tidepool ends");
    }
    let server = config.clone().start().expect("tidepool starts");
    let store = Store { server, config, directory };
    assert_holds(&store, &data);
}

/// With 0 the log is never quarantined; a start that gets ready resets the count.
#[test]
fn without_a_limit_it_is_never_quarantined() {
    let (config, directory, data) = with_large_log(303);
    let data_dir = config.data_dir().to_owned();
    fail_starts(&data_dir, 500);
    let server = config.clone().flag("--max-failed-starts=0").start().expect("tidepool starts");
    let store = Store { server, config, directory };
    assert!(store.server.log().contains("earlier starts failed"), "{}", store.server.log());
    assert!(!data_dir.join("set-aside").exists());
    assert_holds(&store, &data);
    assert_eq!(failed_starts(&data_dir), Vec::<String>::new());
}

/// An error that no retry can cure ends the process before any file is changed.
#[test]
fn a_limit_too_small_for_anything_ends_the_process() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config::new(directory.path()).flag("--head-memory-limit=64KB");
    let launch = config.launch().expect("a free port");
    let mut server = launch.spawn().expect("it can be spawned");
    let status = server.wait_end(WAIT).expect("it ends by itself");
    assert_eq!(status.code(), Some(2), "{}", server.log());
    let said = server.log();
    assert!(said.contains("--head-memory-limit") && said.contains("8MiB"), "{said}");
    assert!(!config.data_dir().join("set-aside").exists());
}
