//! A node with the least memory that it can have.

use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock;
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::send_all;
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

/// The smallest node merges its blocks as well.
#[test]
fn the_least_memory_is_enough_to_merge() {
    let store = Store::start_with(|config| {
        let config = config.merged_block_duration("1m").flag("--retention-time=30d");
        config.flag("--memory-limit=96MiB").flag("--wal-sync=off")
    });
    let store = store.expect("tidepool starts");
    let data = Dataset::generate(Shape {
        seed: 12,
        series: 1_000,
        scrapes: 60,
        start_ms: clock::now_ms() - 60 * 15_000,
        interval_ms: 15_000,
        texture: Texture::Regular,
    });
    send_all(&store, Version::V2, &data);
    let merged = || (store.metric("tidepool_blocks_merged_total")? >= 3.0).then_some(());
    wait::until("merged blocks", Duration::from_secs(120), merged)
        .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", store.server.log()));
    let read = store.reader().streamed(&[everything(i64::MIN / 2, i64::MAX / 2)]);
    assert_same("what was merged", &data.series, &read.expect("an answer")[0]);
}
