//! A log that is gathered in memory writes little, at the cost of samples that a kill loses.

use std::time::Duration;
use tidepool_tests::checksum::Checksum;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{Sender, assert_holds, read_all, recent_data, send_all};
use tidepool_tests::tidepool::{Store, WalSync};
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(60);

fn written(store: &Store, purpose: &str) -> f64 {
    let name = format!("tidepool_disk_written_bytes_total{{for=\"{purpose}\"}}");
    store.metric(&name).expect("the counter")
}

fn unwritten(store: &Store) -> f64 {
    store.metric("tidepool_wal_unwritten_bytes").expect("the gauge")
}

#[test]
fn a_gathered_log_writes_nothing_until_it_is_time_and_reads_see_all() {
    let store =
        Store::start_with(|config| config.wal_sync(WalSync::Batch).flag("--wal-sync-interval=1h"));
    let store = store.expect("tidepool starts");
    // Some 80 kB in column records.
    let data = recent_data(102, 100, 200);
    send_all(&store, Version::V2, &data);
    assert_eq!(written(&store, "log"), 0.0);
    assert!(unwritten(&store) > 50_000.0);
    assert_holds(&store, &data);
    // A clean stop loses nothing.
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_holds(&store, &data);
    assert_eq!(written(&store, "log"), 0.0, "reading it back writes nothing");
}

#[test]
fn a_full_buffer_is_written_early() {
    let store = Store::start_with(|config| {
        config
            .wal_sync(WalSync::Batch)
            .flag("--wal-sync-interval=1h")
            .flag("--wal-buffer-size=64KiB")
    });
    let store = store.expect("tidepool starts");
    let data = recent_data(103, 200, 200);
    send_all(&store, Version::V1, &data);
    assert!(written(&store, "log") > 65_536.0);
    assert!(unwritten(&store) <= 65_536.0);
    assert_holds(&store, &data);
}

/// A kill leaves whole requests from the first on, at least those before the last interval.
#[test]
fn kill_9_costs_no_more_than_the_interval() {
    let store =
        Store::start_with(|config| config.wal_sync(WalSync::Batch).flag("--wal-sync-interval=2s"));
    let store = store.expect("tidepool starts");
    let data = recent_data(104, 200, 400);
    let sender = Sender::new(&data, Version::V2);
    let writer = store.writer();
    let send = |count: usize| {
        for _ in 0..count {
            assert_eq!(sender.send_next(&writer).expect("data is left").status, 204);
        }
    };
    send(sender.request_count() / 2);
    let all_written = || (unwritten(&store) == 0.0).then_some(());
    wait::until("the log to be written", TIMEOUT, all_written).expect("after two seconds");
    let safe = sender.acknowledged();
    send(sender.request_count() / 4);
    let store = store.restart(Server::kill).expect("tidepool starts again");
    let read = store.reader().streamed(&[read_all()]).expect("an answer").remove(0);
    let count = Checksum::of(&read).count;
    let requests = (safe..=sender.acknowledged()).find(|n| sender.samples_of_first(*n) == count);
    let requests = requests.unwrap_or_else(|| panic!("{count} samples, {safe} requests were safe"));
    assert!(Checksum::of(&read) == Checksum::of(&sender.series_of_first(requests)));
}

#[test]
fn an_interval_beyond_an_hour_is_refused() {
    let store = Store::start_with(|config| config.flag("--wal-sync-interval=2h"));
    let error = wait::chain(&store.expect_err("it does not start"));
    assert!(error.contains("the largest value is 1h"), "{error}");
}
