//! A head that works on one call for longer than `--head-timeout`. Nothing can interrupt the call:
//! the process logs this and ends, also while it is being stopped, and acknowledged samples are
//! there after the next start.
//!
//! The call is a request of so many new series that no machine stores them in so short a time.

use rustix::process::Signal;
use std::fs;
use std::thread::JoinHandle;
use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::HttpError;
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::sender::read_all;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store, WalSync};
use tidepool_tests::wait;

const WAIT: Duration = Duration::from_secs(60);
/// Far longer than a small write takes, and far shorter than [`MANY`] series.
const TIMEOUT: &str = "--head-timeout=200ms";
/// Makes a request of 27 MB, which is below the maximum.
const MANY: usize = 600_000;
const EXIT_CODE: i32 = 70;

/// Records wait in memory, or are written before the answer.
const POLICIES: [WalSync; 2] = [WalSync::Batch, WalSync::Off];

/// Starts a server with the short timeout; the store's config starts later ones without it.
fn start(policy: WalSync) -> Store {
    let directory = tempfile::tempdir().expect("a directory");
    let config = Config::new(directory.path()).wal_sync(policy).flag("--memory-limit=2GiB");
    let config = match policy {
        WalSync::Batch => config.flag("--wal-sync-interval=1h"),
        _ => config,
    };
    let server = config.clone().flag(TIMEOUT).start().expect("tidepool starts");
    Store { server, config, directory }
}

/// Writes a few samples, all of which are acknowledged.
fn acknowledged(store: &Store) -> Vec<Series> {
    let series: Vec<Series> = (0..10)
        .map(|number| {
            let labels = [("__name__", "acknowledged"), ("number", &number.to_string())];
            Series::new(&labels, &[(now_ms(), f64::from(number))])
        })
        .collect();
    for series in &series {
        let answer = store.writer().send(Version::V1, &[series.row()]).expect("an answer");
        assert_eq!(answer.status, 204, "{}", answer.text());
    }
    series
}

/// Sends a request that exceeds the head's timeout; returns the status of an answer, if any.
fn keep_busy(store: &Store) -> JoinHandle<Result<u16, HttpError>> {
    let url = store.server.url();
    let time_ms = now_ms();
    let many = (0..MANY).map(move |number| {
        Series::new(&[("__name__", "many"), ("n", &number.to_string())], &[(time_ms, 1.0)])
    });
    std::thread::spawn(move || {
        let many: Vec<Series> = many.collect();
        let rows: Vec<_> = many.iter().map(Series::row).collect();
        Writer::new(&url).send(Version::V1, &rows).map(|answer| answer.status)
    })
}

/// Returns the CPU time of the head thread (proc(5), `schedstat`).
fn head_ran(process_id: u32) -> Option<Duration> {
    let tasks = fs::read_dir(format!("/proc/{process_id}/task")).ok()?;
    let mut ran = tasks.filter_map(|task| {
        let task = task.ok()?.path();
        let name = fs::read_to_string(task.join("comm")).ok()?;
        let nanos = fs::read_to_string(task.join("schedstat")).ok()?;
        let nanos = nanos.split(' ').next()?.parse().ok()?;
        (name.trim_end() == "head").then(|| Duration::from_nanos(nanos))
    });
    ran.next()
}

/// Asserts that the process ends by itself, and logs the reason.
#[track_caller]
fn assert_ends(store: &mut Store, sender: JoinHandle<Result<u16, HttpError>>) {
    let status = store.server.wait_end(WAIT).expect("tidepool ends");
    let log = store.server.log();
    assert_eq!(status.code(), Some(EXIT_CODE), "{log}");
    for words in [
        "a call of the head takes longer than 200ms (--head-timeout)",
        "call=\"a write\"",
        "exit code 70. The next start replays the WAL",
        "raise --head-timeout",
    ] {
        assert!(log.contains(words), "{words:?} is missing: {log}");
    }
    let answered = sender.join().expect("the sender ends");
    assert!(answered.is_err(), "what the head worked on is not acknowledged: {answered:?}");
}

/// Asserts that the next start has the acknowledged samples, and counts no failed start.
#[track_caller]
fn assert_nothing_is_lost(store: Store, acknowledged: &[Series]) {
    let Store { config, directory, .. } = store;
    let server = config.start().expect("tidepool starts again");
    let store = Store { server, config, directory };
    assert_eq!(store.metric("tidepool_failed_starts_total"), Some(0.0));
    let mut found = store.reader().streamed(&[read_all()]).expect("a stream").remove(0);
    // The request that was not acknowledged may be stored in any part.
    found.retain(|series| series.labels.value("__name__") == "acknowledged");
    assert_same("after the end", acknowledged, &found);
}

#[test]
fn a_stuck_head_ends_the_process_and_nothing_acknowledged_is_lost() {
    for policy in POLICIES {
        let mut store = start(policy);
        let acknowledged = acknowledged(&store);
        let sender = keep_busy(&store);
        assert_ends(&mut store, sender);
        assert_nothing_is_lost(store, &acknowledged);
    }
}

/// The stop waits for the head, but no longer than the head's timeout.
#[test]
fn a_stuck_head_does_not_keep_the_process_from_stopping() {
    let mut store = start(WalSync::Interval);
    let acknowledged = acknowledged(&store);
    let process_id = store.server.process_id();
    let before = head_ran(process_id).expect("a head thread");
    let sender = keep_busy(&store);
    // Far more CPU time than it needs while it waits, and little enough to be seen in time.
    let is_busy = || head_ran(process_id).filter(|ran| *ran > before + Duration::from_millis(5));
    let looked = wait::until_every(Duration::from_millis(1), "a head that works", WAIT, is_busy);
    looked.expect("it gets the request");
    store.server.signal(Signal::TERM).expect("the signal is sent");
    assert_ends(&mut store, sender);
    assert_nothing_is_lost(store, &acknowledged);
}
