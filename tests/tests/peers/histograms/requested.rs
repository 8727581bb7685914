//! PromQL gives the same result for histograms that Prometheus reads from tidepool and for those
//! that it stored itself: a wrong hint about a counter reset would change every `rate`.

use super::receiver;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::histogram::generate::SentSeries;
use tidepool_tests::histogram::stored::{MINUTE_MS, data_until_now, rows, send};
use tidepool_tests::histogram::wire::SentRow;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::{self, Answer};
use tidepool_tests::remote_write::Version;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::{self, chain};

/// Every function that looks at resets, and some that look at every value. None over many series,
/// because their order differs.
const QUESTIONS: [&str; 12] = [
    "rate({job=\"histograms\"}[7m])",
    "increase({job=\"histograms\"}[23m])",
    "irate({job=\"histograms\"}[5m])",
    "idelta({__name__=~\"latency_gauge.*\"}[5m])",
    "delta({__name__=~\"latency_gauge.*\"}[11m])",
    "resets({job=\"histograms\"}[40m])",
    "histogram_count(increase({job=\"histograms\"}[17m]))",
    "histogram_quantile(0.9, rate({job=\"histograms\"}[13m]))",
    "histogram_sum({job=\"histograms\"})",
    "avg_over_time({__name__=~\"latency_gauge.*\"}[20m])",
    "sum_over_time({__name__=~\"latency_gauge.*\"}[10m])",
    "count_over_time({job=\"histograms\"}[1h])",
];

#[track_caller]
fn ask(server: &Server, question: &str, time_ms: i64) -> Answer {
    prometheus::values(server, question, time_ms)
        .unwrap_or_else(|e| panic!("{question}: {}\n{}", chain(&e), server.log()))
}

/// Asserts that both give the same at times spread over all the data.
#[track_caller]
fn assert_alike(what: &str, reader: &Server, owner: &Server, start_ms: i64) {
    let end_ms = now_ms();
    let mut answers = 0;
    for question in QUESTIONS {
        for step in 1..=8 {
            let time_ms = start_ms + (end_ms - start_ms) * step / 8;
            let theirs = ask(owner, question, time_ms);
            let ours = ask(reader, question, time_ms);
            assert_eq!(ours, theirs, "{what}: {question} at {time_ms}");
            answers += theirs.len() - 2;
        }
    }
    assert!(answers > 500, "{what}: only {answers} answers");
}

fn reading(directory: &std::path::Path, store: &Store) -> Server {
    let config = prometheus::Config::new(Release::V3, &directory.join("reader"));
    let config = config.expect("the directory can be used");
    config.remote_read(&store.server.url()).start().expect("Prometheus starts")
}

fn compare(
    what: &str,
    data: &[SentSeries],
    flags: &[&str],
    out_of_order_every: usize,
    blocks: usize,
) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store =
        Store::start_with(|config| flags.iter().fold(config, |config, flag| config.flag(flag)));
    let store = store.expect("tidepool starts");
    let owner = receiver(directory.path(), "owner").start().expect("Prometheus starts");
    let all = rows(data);
    let part = |out_of_order: bool| -> Vec<SentRow<'_>> {
        let is_out_of_order =
            |number: usize| out_of_order_every > 0 && number % out_of_order_every == 1;
        let numbered = all.iter().enumerate().filter(|(n, _)| is_out_of_order(*n) == out_of_order);
        numbered.map(|(_, row)| *row).collect()
    };
    for server in [&store.server, &owner] {
        send(server, Version::V2, &part(false));
        send(server, Version::V2, &part(true));
    }
    let found = || data_dir::blocks(store.config.data_dir()).ok().filter(|b| b.len() >= blocks);
    wait::until("blocks", Duration::from_secs(60), found).expect("blocks");
    let store = store.restart(Server::kill).expect("tidepool starts again");
    let reader = reading(directory.path(), &store);
    let start_ms = all.first().map_or(0, |row| row.timestamp_ms) + MINUTE_MS;
    assert_alike(what, &reader, &owner, start_ms);
}

#[test]
fn from_the_head() {
    compare("head", &data_until_now(301, 45, 360, 15_000), &[], 0, 0);
}

#[test]
fn from_blocks() {
    let flags = ["--block-duration=10m", "--max-block-duration=10m"];
    compare("blocks", &data_until_now(302, 45, 360, 15_000), &flags, 0, 6);
}

#[test]
fn from_blocks_with_out_of_order_values() {
    let flags = ["--block-duration=10m", "--max-block-duration=10m", "--out-of-order-window=110m"];
    compare("late", &data_until_now(303, 45, 360, 15_000), &flags, 5, 4);
}

#[test]
fn from_merged_blocks_with_out_of_order_values() {
    let flags = ["--block-duration=5m", "--out-of-order-window=110m"];
    compare("merged", &data_until_now(304, 45, 360, 15_000), &flags, 5, 3);
}
