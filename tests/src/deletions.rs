//! A store with blocks, a head and out-of-order samples, from which series are deleted.
//!
//! The functions here are assertions: they panic if the server under test fails.

use crate::checksum::assert_same;
use crate::process::Server;
use crate::remote_read::Reader;
use crate::remote_write::Version;
use crate::sender::{hours_of_data, read_all, send_all, wait_for_blocks};
use crate::series::{Dataset, Row, Series};
use crate::tidepool::{Config, Store};
use crate::wait;

const BLOCK: &str = "20m";
const BLOCK_MS: i64 = 20 * 60_000;

/// Enables the admin endpoints, for deletions and snapshots.
pub fn with_admin(config: Config) -> Config {
    config.block_duration(BLOCK).flag("--enable-admin-api")
}

/// Returns the metric name of a series.
pub fn name(series: &Series) -> String {
    series.labels.value("__name__").to_owned()
}

/// Returns an out-of-order sample for each series, between two scrapes of the last minutes.
fn out_of_order_samples(data: &Dataset) -> Vec<Series> {
    let out_of_order = |series: &Series| {
        let sample = series.samples.iter().rev().nth(8)?;
        Some(Series {
            labels: series.labels.clone(),
            samples: vec![crate::series::Sample {
                timestamp_ms: sample.timestamp_ms + 3,
                value: 42.5,
            }],
        })
    };
    data.series.iter().filter_map(out_of_order).collect()
}

/// Starts a store with blocks, a head, and out-of-order samples in the head; returns it with its
/// content, in label order.
pub fn filled(seed: u64) -> (Store, Vec<Series>) {
    filled_with(seed, with_admin)
}

/// As [`filled`], with further flags.
pub fn filled_with(seed: u64, configure: impl FnOnce(Config) -> Config) -> (Store, Vec<Series>) {
    let store = Store::start_with(configure).expect("tidepool starts");
    let data = hours_of_data(seed);
    send_all(&store, Version::V2, &data);
    let out_of_order = out_of_order_samples(&data);
    let rows: Vec<Row<'_>> = out_of_order.iter().map(Series::row).collect();
    let response = store.writer().send(Version::V1, &rows).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
    wait_for_blocks(&store, &data, BLOCK_MS);
    let mut all = data.series;
    for out_of_order in out_of_order {
        let series = all.iter_mut().find(|series| series.labels == out_of_order.labels);
        let series = series.expect("out-of-order samples are of known series");
        series.samples.extend(out_of_order.samples);
        series.samples.sort_by_key(|sample| sample.timestamp_ms);
    }
    (store, all)
}

/// Reads everything by both kinds of answer, which must be equal.
#[track_caller]
pub fn assert_reads(server: &Server, expected: &[Series], when: &str) {
    let reader = Reader::new(&server.url());
    let streamed = reader.streamed(&[read_all()]).unwrap_or_else(|e| panic!("{}", wait::chain(&e)));
    assert_same(&format!("{when}, streamed"), expected, &streamed[0]);
    let samples = reader.samples(&[read_all()]).unwrap_or_else(|e| panic!("{}", wait::chain(&e)));
    assert_same(&format!("{when}, samples"), expected, &samples[0]);
}
