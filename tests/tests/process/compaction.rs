//! Blocks are merged level by level and dropped when they are too old; no sample is lost, doubled
//! or partly visible, also with `kill -9` in the middle.

use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock;
use tidepool_tests::data_dir::{self, Block};
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{
    assert_holds, assert_holds_by_windows, hours_of_data, read_all, send_all, wait_for_blocks,
    wait_for_merged,
};
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const BLOCK: &str = "5m";
const BLOCK_MS: i64 = 300_000;
const TIMEOUT: Duration = Duration::from_secs(120);

fn blocks(store: &Store) -> Vec<Block> {
    data_dir::blocks(store.config.data_dir()).unwrap_or_default()
}

#[test]
fn blocks_are_merged_and_read_the_same() {
    let store = Store::start_with(|c| c.merged_block_duration(BLOCK)).expect("tidepool starts");
    let data = hours_of_data(81);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    wait_for_merged(&store, BLOCK_MS);
    assert_holds(&store, &data);

    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_holds(&store, &data);
}

#[test]
fn kill_9_while_blocks_are_merged_loses_and_doubles_nothing() {
    let mut store = Store::start_with(|c| c.merged_block_duration(BLOCK)).expect("tidepool starts");
    let data = hours_of_data(82);
    for (number, rows) in data.requests(500).iter().enumerate() {
        if number % 30 == 29 {
            store = store.restart(Server::kill).expect("tidepool starts again");
        }
        let response = store.writer().send(Version::V2, rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(300));
        store = store.restart(Server::kill).expect("tidepool starts again");
    }
    wait_for_merged(&store, BLOCK_MS);
    assert_holds(&store, &data);
}

#[test]
fn blocks_beyond_the_retention_go() {
    let store = Store::start_with(|c| c.block_duration(BLOCK).flag("--retention-time=1h"))
        .expect("tidepool starts");
    let data = hours_of_data(83);
    send_all(&store, Version::V1, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    let hour_ms = 3_600_000;
    // No more blocks are dropped then, so the read below sees the same blocks.
    let kept = || {
        let blocks = blocks(&store);
        let newest_ms = blocks.iter().map(|block| block.end_ms).max()?;
        blocks.iter().all(|block| block.end_ms > newest_ms - hour_ms).then_some(blocks)
    };
    let kept = wait::until("old blocks to go", TIMEOUT, kept)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
    assert!((10..=15).contains(&kept.len()), "{kept:?}");
    let from_ms = kept[0].min_ms;
    let recent: Vec<_> = data.series.iter().map(|s| s.between(from_ms, i64::MAX)).collect();
    let read = store.reader().streamed(&[read_all()]).expect("an answer");
    assert_same("what is kept", &recent, &read[0]);
}

/// Cuts and merges of many series need little memory: an instance's memory does not grow with the
/// blocks.
#[test]
fn memory_of_compaction_is_bounded() {
    let block_ms = 60_000;
    let store = Store::start_with(|c| {
        c.merged_block_duration("1m")
            .flag("--head-memory-limit=192MiB")
            .flag("--compactor-memory-limit=64MiB")
    });
    let store = store.expect("tidepool starts");
    let (scrapes, interval_ms) = (24, 30_000);
    let data = Dataset::generate(Shape {
        seed: 84,
        series: 100_000,
        scrapes,
        start_ms: clock::now_ms() - scrapes as i64 * interval_ms,
        interval_ms,
        texture: Texture::Regular,
    });
    send_all(&store, Version::V2, &data);
    let merged = || {
        let is_long = |block: &Block| block.end_ms - block.min_ms >= 3 * block_ms;
        blocks(&store).iter().any(is_long).then_some(())
    };
    wait::until("merged blocks", TIMEOUT, merged)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
    // A failed run is repeated by a fresh instance; failures must stay the exception.
    let failed = store.metric("prometheus_tsdb_compactions_failed_total").expect("the metric");
    assert!(failed <= 4.0, "{failed} of some fifteen failed:\n{}", store.server.log());
    assert_holds_by_windows(&store, &data, 6 * interval_ms);
}
