//! Acknowledged samples are kept: at once, after a clean restart, after `kill -9`, and when they
//! have moved from the head into blocks. Checksums over (labels, timestamp, value bits) decide.

use std::time::Duration;
use tidepool_tests::checksum::{Checksum, assert_same};
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{
    Sender, assert_holds, hours_of_data, kill_while_sending, read_all, recent_data, send_all,
    wait_for_blocks,
};
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::{Store, WalSync};
use tidepool_tests::wait;

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
/// Block duration of these tests; the data of three hours fills many blocks.
const BLOCK: &str = "10m";
const BLOCK_MS: i64 = 10 * MINUTE_MS;

#[test]
fn what_is_sent_is_read_from_the_head() {
    for version in Version::ALL {
        let store = Store::start().expect("tidepool starts");
        let data = recent_data(31, 300, 200);
        send_all(&store, version, &data);
        assert_holds(&store, &data);
    }
}

#[test]
fn a_clean_restart_keeps_everything() {
    let store = Store::start().expect("tidepool starts");
    let data = recent_data(32, 200, 150);
    send_all(&store, Version::V2, &data);
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_holds(&store, &data);
    // Restarted once more, after it has only read its log.
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_holds(&store, &data);
}

/// Without further writes, the store syncs by itself once the interval has passed.
#[test]
fn the_interval_syncs_what_was_written_last() {
    for policy in [WalSync::Interval, WalSync::Batch] {
        let store =
            Store::start_with(|config| config.wal_sync(policy).flag("--wal-sync-interval=500ms"))
                .expect("tidepool starts");
        let syncs = || store.metric("tidepool_wal_fsyncs_total").expect("the counter");
        // A write may itself sync, if the interval has passed since the last: not three of them.
        let has_synced = (34..37).any(|seed| {
            send_all(&store, Version::V2, &recent_data(seed, 2, 2));
            let by_writes = syncs();
            let more = || (syncs() > by_writes).then_some(());
            wait::until("a sync", Duration::from_secs(10), more).is_ok()
        });
        assert!(has_synced, "{policy:?}:\n{}", store.server.log());
        let synced = store.metric("tidepool_wal_last_fsync_timestamp_seconds").expect("the gauge");
        let now = now_ms() as f64 / 1000.0;
        assert!(synced <= now && synced > now - 60.0, "{policy:?}: {synced} at {now}");
    }
}

/// A restarted store continues the same series.
#[test]
fn writes_go_on_after_a_restart() {
    let mut store = Store::start().expect("tidepool starts");
    let data = recent_data(33, 100, 120);
    for (number, rows) in data.requests(100).iter().enumerate() {
        if number % 50 == 49 {
            let end = if number % 100 == 99 { Server::kill } else { Server::terminate };
            store = store.restart(end).expect("tidepool starts again");
        }
        let response = store.writer().send(Version::V1, rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    assert_holds(&store, &data);
}

/// Two senders at work, and a kill without warning, three times: every acknowledged request is
/// there, and one without an answer is there as a whole or not at all.
fn kill_in_the_middle(policy: WalSync) {
    let mut store = Store::start_with(|config| config.wal_sync(policy)).expect("tidepool starts");
    let mut expected = Vec::new();
    let start_ms = now_ms() - 30 * MINUTE_MS;
    for round in 0..3 {
        let shape = |seed| Shape {
            seed,
            series: 300,
            scrapes: 4_000,
            start_ms: start_ms + round * 9 * MINUTE_MS,
            interval_ms: 100,
            texture: Texture::Rough,
        };
        let data = [shape(40), shape(41)].map(Dataset::generate);
        let senders: Vec<Sender<'_>> =
            data.iter().map(|data| Sender::new(data, Version::V2)).collect();
        kill_while_sending(&store, &senders, 150);
        store = store.restart(Server::kill).expect("tidepool starts again");

        expected.extend(senders.iter().flat_map(Sender::acknowledged_series));
        let got = store.reader().streamed(&[read_all()]).expect("a stream").remove(0);
        let sum = Checksum::of(&got);
        // Each sender has one request without an answer, which may be stored or not.
        let unanswered: Vec<_> = senders.iter().map(Sender::unanswered_series).collect();
        let subset = (0..1u32 << unanswered.len()).find_map(|subset| {
            let chosen = unanswered.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
            let more: Vec<_> = chosen.flat_map(|(_, series)| series.clone()).collect();
            (Checksum::of(expected.iter().chain(&more)) == sum).then_some(more)
        });
        match subset {
            Some(more) => expected.extend(more),
            None => assert_same(&format!("{policy:?}, round {round}"), &expected, &got),
        }
    }
}

#[test]
fn kill_9_loses_nothing_acknowledged_with_sync_always() {
    kill_in_the_middle(WalSync::Always);
}

#[test]
fn kill_9_loses_nothing_acknowledged_with_sync_interval() {
    kill_in_the_middle(WalSync::Interval);
}

/// The process failed, not the machine: written data is with the kernel.
#[test]
fn kill_9_loses_nothing_acknowledged_with_sync_off() {
    kill_in_the_middle(WalSync::Off);
}

#[test]
fn blocks_and_head_together_hold_everything() {
    let store = Store::start_with(|c| c.block_duration(BLOCK)).expect("tidepool starts");
    let data = hours_of_data(51);
    send_all(&store, Version::V2, &data);
    let blocks = wait_for_blocks(&store, &data, BLOCK_MS);
    assert!(blocks.len() >= 10, "{blocks:?}");
    for block in &blocks {
        let aligned = block.min_ms.div_euclid(BLOCK_MS) == (block.end_ms - 1).div_euclid(BLOCK_MS);
        assert!(aligned, "{block:?} crosses a block range");
        assert!(block.samples > 0 && block.series > 0, "{block:?}");
    }
    assert_holds(&store, &data);

    // Ranges within one block, across blocks, and across blocks and head.
    let (first_ms, last_ms) = data.time_range_ms().expect("there are samples");
    for (start_ms, end_ms) in [
        (first_ms + MINUTE_MS, first_ms + 2 * MINUTE_MS),
        (first_ms + 7 * MINUTE_MS, first_ms + 47 * MINUTE_MS),
        (last_ms - 40 * MINUTE_MS, last_ms - SECOND_MS),
    ] {
        let sent: Vec<_> = data.series.iter().map(|s| s.between(start_ms, end_ms)).collect();
        let query = [everything(start_ms, end_ms)];
        let streamed = store.reader().streamed(&query).expect("a stream");
        assert_same("part, streamed", &sent, &streamed[0]);
        let samples = store.reader().samples(&query).expect("samples");
        assert_same("part, samples", &sent, &samples[0]);
    }

    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_holds(&store, &data);
    let store = store.restart(Server::kill).expect("tidepool starts again");
    assert_holds(&store, &data);
}

/// The log has only samples that blocks do not have: less than half of its size without blocks.
#[test]
fn the_log_shrinks_when_blocks_are_cut() {
    let data = hours_of_data(52);
    let whole = Store::start_with(|c| c.block_duration("24h")).expect("tidepool starts");
    send_all(&whole, Version::V2, &data);
    let wal = |store: &Store| data_dir::total_bytes(&store.config.data_dir().join("wal"));
    let whole_bytes = wal(&whole);
    drop(whole);

    let store = Store::start_with(|c| c.block_duration(BLOCK)).expect("tidepool starts");
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    let small = || (wal(&store) < whole_bytes / 2).then_some(());
    wait::until("the log to shrink", Duration::from_secs(30), small).unwrap_or_else(|_| {
        panic!("the log has {} bytes, without blocks {whole_bytes}", wal(&store))
    });
    let segments = data_dir::wal_segments(store.config.data_dir()).expect("the log is there");
    assert!(segments.first().is_some_and(|first| *first > 0), "segments {segments:?}");
    assert!(segments.is_sorted_by(|a, b| a + 1 == *b), "segments {segments:?} have a gap");
    assert_holds(&store, &data);
}

/// While blocks are cut, a read neither misses nor doubles samples acknowledged before it.
#[test]
fn reads_are_whole_while_blocks_are_cut() {
    let store = Store::start_with(|c| c.block_duration(BLOCK)).expect("tidepool starts");
    let data = hours_of_data(53);
    let sender = Sender::new(&data, Version::V2);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| sender.send_all(&store));
        while !sending.is_finished() {
            let before = sender.acknowledged();
            let answer = store.reader().streamed(&[read_all()]).expect("a stream");
            let got = Checksum::of(&answer[0]).count;
            let after = sender.acknowledged() + 1;
            let sent = |requests| sender.samples_of_first(requests);
            assert!(
                (sent(before)..=sent(after)).contains(&got),
                "{got} samples after {before} to {after} requests: {} to {}",
                sent(before),
                sent(after)
            );
        }
        sending.join().expect("the sender ends");
    });
    wait_for_blocks(&store, &data, BLOCK_MS);
    assert_holds(&store, &data);
}

/// A sender that repeats until it is acknowledged, and a store that is killed repeatedly while it
/// cuts blocks: in the end every sample is stored once.
#[test]
fn kill_9_while_blocks_are_cut_loses_and_doubles_nothing() {
    let mut store = Store::start_with(|c| c.block_duration(BLOCK)).expect("tidepool starts");
    let data = hours_of_data(54);
    let sender = Sender::new(&data, Version::V2);
    for round in 1..=6 {
        let target = sender.request_count() * round / 10;
        kill_while_sending(&store, std::slice::from_ref(&sender), target);
        store = store.restart(Server::kill).expect("tidepool starts again");
    }
    sender.send_all(&store);
    assert_holds(&store, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    assert_holds(&store, &data);
}
