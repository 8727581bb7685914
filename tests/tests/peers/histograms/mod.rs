//! Native histograms of every kind, through whole processes, with real Prometheus and promtool as
//! the judges: `kept` is about losing nothing, `judged` sends the same to both, `asked` has both
//! answer PromQL, `directories` moves data from one to the other.

mod asked;
mod directories;
mod judged;
mod kept;

use std::collections::BTreeMap;
use tidepool_tests::histogram::generate::{HistogramShape, SentSeries, generate};
use tidepool_tests::histogram::wire::{SentRow, encode, expected};
use tidepool_tests::histogram::{ValueSeries, assert_hints_hold, assert_same_values};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::remote_read::Reader;
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::sender::read_all;
use tidepool_tests::wait::{chain, now_ms};

const MINUTE_MS: i64 = 60_000;
const ROWS_PER_REQUEST: usize = 500;

/// Series whose last values are of now.
fn data_until_now(seed: u64, series: usize, scrapes: usize, interval_ms: i64) -> Vec<SentSeries> {
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    generate(HistogramShape { seed, series, scrapes, start_ms, interval_ms })
}

/// Everything in time order.
fn rows(data: &[SentSeries]) -> Vec<SentRow<'_>> {
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

/// Sends rows in their order; all have to be acknowledged.
#[track_caller]
fn send(server: &Server, version: Version, rows: &[SentRow<'_>]) {
    let writer = Writer::new(&server.url());
    for rows in rows.chunks(ROWS_PER_REQUEST) {
        let response = writer.send_body(version, &encode(version, rows)).expect("an answer");
        assert!(response.is_success(), "{} {}", response.status, response.text());
    }
}

/// What a server has, which both kinds of answer must tell alike.
#[track_caller]
fn read(what: &str, server: &Server) -> Vec<ValueSeries> {
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

/// The server holds exactly what was sent.
#[track_caller]
fn assert_holds(what: &str, server: &Server, data: &[SentSeries]) {
    assert_same_values(what, &expected(data), &read(what, server));
}

type Exact<'a> = BTreeMap<String, Vec<(i64, &'a tidepool_tests::histogram::Value)>>;

/// Values with the kind that marks an end, without hints.
fn exact(series: &[ValueSeries]) -> Exact<'_> {
    let values = |series: &'_ ValueSeries| series.labels.to_string();
    series
        .iter()
        .map(|one| {
            let points = one.points.iter().map(|point| (point.timestamp_ms, &point.value));
            (values(one), points.collect())
        })
        .collect()
}

/// A Prometheus that takes remote writes, late ones too.
fn receiver(directory: &std::path::Path, name: &str) -> prometheus::Config {
    prometheus::Config::new(Release::V3, &directory.join(name))
        .expect("the directory can be used")
        .receiver()
        .out_of_order_window("2h")
}
