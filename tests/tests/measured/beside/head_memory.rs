//! Memory of the head, measured as the linear memory of its instance.

use tidepool_tests::clock::now_ms;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::send_all;
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::Store;

const SERIES: usize = 25_000;

const BLOCK_MS: i64 = 2 * 3_600_000;

/// Bytes for a series with a full chunk, including labels, index, and some fifty bytes in the
/// request template cache (8 MiB at most).
const BYTES_PER_SERIES_MAX: f64 = 760.0;
/// Bytes of the state of column records: 48 bytes of each series, in a table that doubles (here 32
/// for 25), and a number.
const COLUMN_BYTES_PER_SERIES_MAX: f64 = 70.0;

#[test]
fn a_series_with_a_full_chunk_takes_little() {
    assert_takes_at_most(BYTES_PER_SERIES_MAX, "prometheus");
}

#[test]
fn columns_take_little_more() {
    assert_takes_at_most(BYTES_PER_SERIES_MAX + COLUMN_BYTES_PER_SERIES_MAX, "auto");
}

fn assert_takes_at_most(bytes_max: f64, records: &str) {
    let flag = format!("--wal-records={records}");
    let store = Store::start_with(|config| config.flag(&flag)).expect("tidepool starts");
    let memory = || store.metric("tidepool_head_memory_bytes").expect("the metric");
    // Times at the end of a block, so that no chunk ends before it is full.
    let end_ms = now_ms() / BLOCK_MS * BLOCK_MS;
    let shape = Shape {
        seed: 5,
        series: SERIES,
        scrapes: 120,
        start_ms: end_ms - 120 * 15_000,
        interval_ms: 15_000,
        texture: Texture::Regular,
    };
    let data = Dataset::generate(shape);
    let empty = memory();
    send_all(&store, Version::V2, &data);
    assert_eq!(store.metric("prometheus_tsdb_head_series"), Some(SERIES as f64));
    let bytes = (memory() - empty) / SERIES as f64;
    println!("{bytes:.0} bytes a series with 120 samples, {records}");
    assert!(bytes <= bytes_max, "{bytes:.0} bytes a series");
}
