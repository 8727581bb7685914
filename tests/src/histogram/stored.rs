//! Histograms that are sent to a server, and the server's answers about them.
//!
//! The functions here are assertions: they panic if the server under test fails.

use crate::clock::{begin_ms, now_ms};
use crate::data_dir::{self, Block};
use crate::histogram::generate::{HistogramShape, SentSeries, SentValue, generate};
use crate::histogram::wire::{SentRow, encode, expected};
use crate::histogram::{ValueSeries, assert_hints_hold, assert_same_values};
use crate::process::Server;
use crate::remote_read::Reader;
use crate::remote_write::{Version, Writer};
use crate::sender::read_all;
use crate::tidepool::{Config, Store};
use crate::wait::{self, chain};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub const MINUTE_MS: i64 = 60_000;
const ROWS_PER_REQUEST: usize = 500;

/// Points of series, by the text of their labels.
pub type Exact<'a> = BTreeMap<String, Vec<(i64, &'a crate::histogram::Value)>>;

/// Timeout; Prometheus looks for work once a minute.
const TIMEOUT: Duration = Duration::from_secs(150);

/// Makes series whose last values are at the current time.
pub fn data_until_now(
    seed: u64,
    series: usize,
    scrapes: usize,
    interval_ms: i64,
) -> Vec<SentSeries> {
    data_until(now_ms(), seed, series, scrapes, interval_ms)
}

fn data_until(
    end_ms: i64,
    seed: u64,
    series: usize,
    scrapes: usize,
    interval_ms: i64,
) -> Vec<SentSeries> {
    let start_ms = end_ms - scrapes as i64 * interval_ms;
    generate(HistogramShape { seed, series, scrapes, start_ms, interval_ms })
}

/// Returns all values in time order.
pub fn rows(data: &[SentSeries]) -> Vec<SentRow<'_>> {
    let mut rows: Vec<SentRow<'_>> = Vec::new();
    for SentSeries { labels, values, .. } in data {
        rows.extend(values.iter().map(|(timestamp_ms, value)| SentRow {
            labels,
            timestamp_ms: *timestamp_ms,
            value,
        }));
    }
    rows.sort_by_key(|row| row.timestamp_ms);
    rows
}

/// Sends rows in their order; all must be acknowledged.
#[track_caller]
pub fn send(server: &Server, version: Version, rows: &[SentRow<'_>]) {
    let writer = Writer::new(&server.url());
    for rows in rows.chunks(ROWS_PER_REQUEST) {
        let response = writer.send_body(version, &encode(version, rows)).expect("an answer");
        assert!(response.is_success(), "{} {}", response.status, response.text());
    }
}

/// Returns a server's series, which both kinds of answer must give alike.
#[track_caller]
pub fn read(what: &str, server: &Server) -> Vec<ValueSeries> {
    let reader = Reader::new(&server.url());
    let all = read_all();
    let streamed = reader.streamed_values(&all).unwrap_or_else(|e| panic!("{what}: {}", chain(&e)));
    let sampled = reader.sampled_values(&all).unwrap_or_else(|e| panic!("{what}: {}", chain(&e)));
    for (kind, answer) in [("streamed", &streamed), ("sampled", &sampled)] {
        assert_hints_hold(&format!("{what}, {kind}"), answer);
    }
    assert_eq!(exact(&streamed), exact(&sampled), "{what}: streamed and sampled differ");
    sampled
}

/// Asserts that the server has exactly the sent data.
#[track_caller]
pub fn assert_holds(what: &str, server: &Server, data: &[SentSeries]) {
    assert_same_values(what, &expected(data), &read(what, server));
}

/// Returns values with the kinds of stale markers, without hints.
pub fn exact(series: &[ValueSeries]) -> Exact<'_> {
    let values = |series: &'_ ValueSeries| series.labels.to_string();
    series
        .iter()
        .map(|one| {
            let points = one.points.iter().map(|point| (point.timestamp_ms, &point.value));
            (values(one), points.collect())
        })
        .collect()
}

/// Makes data of the two hours before [`begin_ms()`], without negative zeros, which Prometheus'
/// answers omit.
pub fn two_hours(seed: u64) -> Vec<SentSeries> {
    let mut data = data_until(begin_ms(), seed, 27, 480, 15_000);
    for (_, value) in data.iter_mut().flat_map(|series| &mut series.values) {
        if let SentValue::Float(value) = value {
            *value += 0.0;
        }
    }
    data
}

/// Waits for blocks in a directory, and returns them.
#[track_caller]
pub fn wait_for(what: &str, data_dir: &Path, is_enough: impl Fn(&[Block]) -> bool) -> Vec<Block> {
    let found = || data_dir::blocks(data_dir).ok().filter(|blocks| is_enough(blocks));
    wait::until(what, TIMEOUT, found).unwrap_or_else(|error| panic!("{error}"))
}

/// Starts a store with blocks of this duration, which accepts out-of-order samples.
pub fn start(block_duration: &str, merges: bool) -> Store {
    start_with(block_duration, merges, |config| config)
}

/// As [`start`], with further flags.
pub fn start_with(
    block_duration: &str,
    merges: bool,
    configure: impl FnOnce(Config) -> Config,
) -> Store {
    Store::start_with(|config| {
        let config = configure(config);
        let config = match merges {
            false => config.block_duration(block_duration),
            true => config.merged_block_duration(block_duration),
        };
        config.flag("--out-of-order-window=3h")
    })
    .expect("tidepool starts")
}

/// Returns the statistics of a `meta.json`: floats, histograms.
pub fn kinds(block: &Block) -> (u64, u64) {
    let meta = std::fs::read(block.path.join("meta.json")).expect("a meta.json");
    let meta: serde_json::Value = serde_json::from_slice(&meta).expect("JSON");
    let number = |key: &str| meta["stats"][key].as_u64().unwrap_or(0);
    assert_eq!(number("numSamples"), number("numFloatSamples") + number("numHistogramSamples"));
    (number("numFloatSamples"), number("numHistogramSamples"))
}
