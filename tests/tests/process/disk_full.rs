//! A full disk is a pause: senders are asked to retry, reads continue, and the node resumes by
//! itself once there is space. Acknowledged samples are kept, before and after a restart.

use std::time::Duration;
use tidepool_tests::checksum::{Checksum, assert_same};
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::http::Response;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{Sender, read_all};
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::small_disk::{SmallDisk, on_small_disk};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

const MIB: u64 = 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts on a small disk; the server's own log is elsewhere.
fn start_on(disk: &SmallDisk, configure: impl FnOnce(Config) -> Config) -> Store {
    let directory = tempfile::tempdir().expect("a directory");
    let config = Config::new(directory.path()).data_in(&disk.path().join("data"));
    let config = configure(config);
    let server = config.start().expect("tidepool starts");
    Store { server, config, directory }
}

/// Makes data that takes about four bytes of log for each sample in column records.
fn data(seed: u64, series: usize, scrapes: usize, interval_ms: i64) -> Dataset {
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    Dataset::generate(Shape { seed, series, scrapes, start_ms, interval_ms, texture })
}

/// Sends until the store refuses, and returns the refusal.
#[track_caller]
fn send_until_refused(store: &Store, sender: &Sender<'_>) -> Response {
    let writer = store.writer();
    loop {
        let answer = sender.send_next(&writer).expect("more data than the disk can take");
        if answer.status != 204 {
            assert_eq!(answer.status, 503, "{}", answer.text());
            assert!(answer.header("retry-after").is_some(), "a sender must know when to come back");
            return answer;
        }
        // A log that is gathered in memory finds the disk full only when its interval is over.
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Sends until the store accepts a request again.
#[track_caller]
fn wait_for_writes(store: &Store, sender: &Sender<'_>) {
    let writer = store.writer();
    let taken = || {
        let answer = sender.send_next(&writer).expect("data is left");
        (answer.status == 204).then_some(())
    };
    wait::until("writes to be taken again", TIMEOUT, taken)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
}

/// Asserts that the store has all acknowledged samples and no others.
#[track_caller]
fn assert_acknowledged(what: &str, store: &Store, sender: &Sender<'_>) {
    let read = store.reader().streamed(&[read_all()]).expect("reads go on").remove(0);
    assert_same(what, &sender.acknowledged_series(), &read);
}

#[track_caller]
fn assert_no_leftovers(store: &Store) {
    let data = store.config.data_dir();
    for dir in [data.to_path_buf(), data.join("wal"), data.join("wbl")] {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            assert!(!name.contains(".tmp"), "{name} takes space in {}", dir.display());
        }
    }
}

#[test]
fn below_the_reserve_writes_pause_and_reads_go_on() {
    on_small_disk("below_the_reserve_writes_pause_and_reads_go_on", 24, |disk| {
        let store = start_on(disk, |config| config.flag("--disk-reserve=4MiB"));
        let paused = |store: &Store| store.metric("tidepool_writes_paused").expect("the gauge");
        let data = data(91, 300, 2_000, 500);
        let sender = Sender::new(&data, Version::V2);
        assert_eq!(sender.send_next(&store.writer()).expect("data").status, 204);
        let filler = disk.fill(5 * MIB);

        let refusal = send_until_refused(&store, &sender);
        for word in ["--disk-reserve", "4194304", "free"] {
            assert!(refusal.text().contains(word), "{:?} lacks {word}", refusal.text());
        }
        let acknowledged = sender.acknowledged();
        assert!(acknowledged > 100, "{acknowledged} requests of 1 MiB are too few");
        assert!(disk.free_bytes() < 4 * MIB, "it stops at the reserve");
        assert!(disk.free_bytes() > 2 * MIB, "and does not use it up: {}", disk.free_bytes());
        assert_eq!(paused(&store), 1.0);
        assert_acknowledged("while writes pause", &store, &sender);

        // Refused new series leave nothing behind.
        let series = store.metric("prometheus_tsdb_head_series");
        let strangers = data_of_strangers();
        let refused = Sender::new(&strangers, Version::V1);
        for _ in 0..20 {
            assert_eq!(send_until_refused(&store, &refused).status, 503);
        }
        assert_eq!(store.metric("prometheus_tsdb_head_series"), series);
        let mentions = store.server.log().matches("nearly full: writes are refused").count();
        assert_eq!(mentions, 1, "told once:\n{}", store.server.log());

        filler.remove();
        wait_for_writes(&store, &sender);
        assert_eq!(paused(&store), 0.0);
        assert!(store.server.log().contains("writes are accepted again"));
        for _ in 0..20 {
            assert_eq!(sender.send_next(&store.writer()).expect("data").status, 204);
        }
        assert_acknowledged("after the pause", &store, &sender);
        let store = store.restart(Server::terminate).expect("tidepool starts again");
        assert_acknowledged("after a restart", &store, &sender);
    });
}

fn data_of_strangers() -> Dataset {
    data(92, 500, 2, 500)
}

/// Another program may take the last byte between two looks. Then the write itself fails.
#[test]
fn a_disk_without_a_free_byte_loses_nothing_and_starts() {
    on_small_disk("a_disk_without_a_free_byte_loses_nothing_and_starts", 16, |disk| {
        let store = start_on(disk, |config| config.flag("--disk-reserve=0"));
        let data = data(93, 300, 1_500, 500);
        let sender = Sender::new(&data, Version::V2);
        assert_eq!(sender.send_next(&store.writer()).expect("data").status, 204);
        let filler = disk.fill(MIB);
        let refusal = send_until_refused(&store, &sender);
        assert!(refusal.text().contains("free space on the device"), "{}", refusal.text());
        for _ in 0..20 {
            send_until_refused(&store, &sender);
        }
        disk.fill(0);
        assert_eq!(disk.free_bytes(), 0);
        assert_acknowledged("on a full disk", &store, &sender);

        let store = store.restart(Server::terminate).expect("tidepool starts on a full disk");
        let store = store.restart(Server::kill).expect("and once more");
        assert_eq!(disk.free_bytes(), 0, "nothing was given back");
        assert_acknowledged("started on a full disk", &store, &sender);
        assert_eq!(sender.send_next(&store.writer()).expect("data").status, 503);
        assert_no_leftovers(&store);

        filler.remove();
        wait_for_writes(&store, &sender);
        for _ in 0..20 {
            assert_eq!(sender.send_next(&store.writer()).expect("data").status, 204);
        }
        assert_acknowledged("with space again", &store, &sender);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert_acknowledged("after a restart", &store, &sender);
    });
}

/// Cuts, checkpoints and merges meet the full disk repeatedly, while another program takes and
/// frees the space.
#[test]
fn cuts_and_merges_on_a_full_disk_lose_nothing() {
    on_small_disk("cuts_and_merges_on_a_full_disk_lose_nothing", 32, |disk| {
        let store = start_on(disk, |config| {
            config.merged_block_duration("1m").flag("--disk-reserve=64KiB")
        });
        let data = data(94, 400, 2_400, 500);
        let sender = Sender::new(&data, Version::V2);
        let writer = store.writer();
        for round in 0..6 {
            let mut left = MIB / 2;
            let filler = disk.fill(left);
            let mut refused = 0;
            while refused < 50 {
                match sender.send_next(&writer).expect("data is left").status {
                    204 => {
                        // Freed space is taken again, so that the disk is full at some time.
                        left = left.saturating_sub(4 * 1024);
                        disk.fill(left);
                    }
                    503 => {
                        refused += 1;
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    other => panic!("{other}"),
                }
            }
            assert_acknowledged(&format!("full, round {round}"), &store, &sender);
            filler.remove();
            wait_for_writes(&store, &sender);
            let target = sender.request_count() * (round + 1) / 7;
            while sender.acknowledged() < target {
                // The log may need more space than there is until the next blocks are cut.
                if sender.send_next(&writer).expect("data is left").status != 204 {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        let cut = || {
            let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
            let (_, last_ms) = data.time_range_ms()?;
            let share = sender.acknowledged() as i64 * 1_200_000 / sender.request_count() as i64;
            let end_ms = blocks.last()?.end_ms;
            (last_ms - 1_200_000 + share - end_ms <= 120_000).then_some(())
        };
        wait::until("the blocks", TIMEOUT, cut)
            .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
        assert_acknowledged("at the end", &store, &sender);
        let store = store.restart(Server::terminate).expect("tidepool starts again");
        assert_no_leftovers(&store);
        assert_acknowledged("after a restart", &store, &sender);
    });
}

/// The size limit keeps a disk of the node's own from running full, however long it runs.
#[test]
fn retention_by_size_frees_the_disk() {
    on_small_disk("retention_by_size_frees_the_disk", 16, |disk| {
        let store = start_on(disk, |config| {
            config
                .merged_block_duration("1m")
                .flag("--retention-size=40%")
                .flag("--disk-reserve=4MiB")
        });
        let data = data(95, 500, 4_000, 500);
        let sender = Sender::new(&data, Version::V2);
        let writer = store.writer();
        while let Some(answer) = sender.send_next(&writer) {
            if answer.status != 204 {
                assert_eq!(answer.status, 503, "{}", answer.text());
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let dropped = || (store.metric("tidepool_blocks_dropped_total")? > 0.0).then_some(());
        wait::until("blocks to be dropped", TIMEOUT, dropped)
            .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
        // The remaining samples are those sent from some time on.
        let read = store.reader().streamed(&[read_all()]).expect("an answer").remove(0);
        let first_ms = read.iter().filter_map(|s| s.samples.first()).map(|s| s.timestamp_ms).min();
        let first_ms = first_ms.expect("something is left");
        let kept: Vec<_> = data.series.iter().map(|s| s.between(first_ms, i64::MAX)).collect();
        assert_same("what is kept", &kept, &read);
        assert!(Checksum::of(&read).count < data.sample_count());
    });
}

/// With a log that is gathered in memory, acknowledged samples cannot be refused any more when they
/// are written: the write waits.
#[test]
fn gathered_records_outlast_a_full_disk() {
    on_small_disk("gathered_records_outlast_a_full_disk", 16, |disk| {
        let store = start_on(disk, |config| {
            config.flag("--wal-sync=batch").flag("--wal-sync-interval=1s").flag("--disk-reserve=0")
        });
        let data = data(96, 300, 1_500, 500);
        let sender = Sender::new(&data, Version::V2);
        for _ in 0..10 {
            assert_eq!(sender.send_next(&store.writer()).expect("data").status, 204);
        }
        let filler = disk.fill(0);
        let refusal = send_until_refused(&store, &sender);
        assert!(refusal.text().contains("stay in memory"), "{}", refusal.text());
        assert!(store.metric("tidepool_wal_unwritten_bytes").expect("the gauge") > 0.0);
        assert_acknowledged("on a full disk", &store, &sender);
        filler.remove();
        wait_for_writes(&store, &sender);
        assert_acknowledged("with space again", &store, &sender);
        let store = store.restart(Server::terminate).expect("tidepool starts again");
        assert_acknowledged("after a clean restart", &store, &sender);
    });
}

/// The store reported a clean stop, with exit code 0, though a power cut might lose records.
#[test]
fn a_stop_says_what_a_full_disk_has_not_taken() {
    on_small_disk("a_stop_says_what_a_full_disk_has_not_taken", 16, |disk| {
        let store = start_on(disk, |config| {
            config.flag("--wal-sync=batch").flag("--wal-sync-interval=1h").flag("--disk-reserve=0")
        });
        let data = data(97, 300, 100, 500);
        let sender = Sender::new(&data, Version::V2);
        disk.fill(0);
        for _ in 0..3 {
            assert_eq!(sender.send_next(&store.writer()).expect("data").status, 204);
        }
        let Store { server, directory, .. } = store;
        let ending = server.terminate().expect("it ends");
        let log = std::fs::read_to_string(directory.path().join("tidepool.log")).expect("the log");
        assert_eq!(ending.status.code(), Some(1), "{log}");
        assert!(log.contains("bytes of acknowledged records are lost"), "{log}");
        assert!(!log.contains("stopped cleanly"), "{log}");
    });
}
