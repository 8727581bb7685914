//! A Prometheus that keeps start timestamps (`--enable-feature=st-storage`) writes chunks of other
//! encodings (XOR2 and its like). tidepool serves such blocks, merges them and keeps their content.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::admin::Admin;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::begin_ms;
use tidepool_tests::data_dir;
use tidepool_tests::histogram::assert_same_values;
use tidepool_tests::node::{Node, PROMETHEUS_3, TIDEPOOL};
use tidepool_tests::process::Server;
use tidepool_tests::proto::prometheus::Query;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{Reader, everything, matcher, query};
use tidepool_tests::sender::uncut_ms_max;
use tidepool_tests::series::{Labels, Series};
use tidepool_tests::started::{StartedData, encodings_in, lines_in};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const MINUTE_MS: i64 = 60_000;
const BLOCK_MS: i64 = 5 * MINUTE_MS;

/// Numbers of encodings on disk.
const XOR: usize = 1;
const XOR2: usize = 4;
const HISTOGRAM_ST: usize = 5;

/// Makes two hours of data that end a while ago.
fn hours(seed: u64) -> StartedData {
    let first_ms = (begin_ms() - 180 * MINUTE_MS).div_euclid(BLOCK_MS) * BLOCK_MS;
    StartedData::generate(seed, 40, 480, first_ms, 15_000)
}

fn all() -> Query {
    everything(i64::MIN / 2, i64::MAX / 2)
}

/// Selects the series that are no histograms.
fn floats_of(data: &StartedData) -> Query {
    let name = data.labels[0].value("__name__");
    query(i64::MIN / 2, i64::MAX / 2, vec![matcher(Type::Eq, "__name__", name)])
}

fn blocks_end_ms(data_dir: &Path) -> Option<i64> {
    data_dir::blocks(data_dir).ok()?.iter().map(|block| block.end_ms).max()
}

/// Asserts the streamed samples, whose chunks have encodings that every client knows.
#[track_caller]
fn assert_serves(server: &Server, asked: &Query, sent: &[Series], when: &str) {
    let read = Reader::new(&server.url()).streamed(std::slice::from_ref(asked));
    let read = read.unwrap_or_else(|e| panic!("{when}: {}\n{}", wait::chain(&e), server.log()));
    assert_same(when, sent, &read[0]);
}

#[track_caller]
fn wait_for_merged(data_dir: &Path, server: &Server, blocks_max: usize) {
    let merged = || (data_dir::blocks(data_dir).ok()?.len() <= blocks_max).then_some(());
    wait::until("merged blocks", Duration::from_secs(90), merged)
        .unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
}

/// Blocks of random samples, made and read back by upstream's packages.
#[test]
fn blocks_of_upstream_are_served_merged_and_cleaned() {
    let data = hours(121);
    let store = Store::start_with(|config| {
        data.write_blocks(config.data_dir(), BLOCK_MS);
        config
            .merged_block_duration("5m")
            .flag("--max-block-duration=45m")
            .flag("--enable-admin-api")
    })
    .expect("tidepool starts");
    let data_dir = store.config.data_dir().to_owned();
    let sent = data.series();
    assert_serves(&store.server, &all(), &sent, "as upstream wrote them");
    wait_for_merged(&data_dir, &store.server, 8);
    assert_serves(&store.server, &all(), &sent, "merged");

    // The deletion begins in the middle of chunks.
    let (first_ms, _) = data.scrapes[100];
    let (last_ms, _) = data.scrapes[250];
    let is_deleted = |labels: &Labels, time_ms: i64| {
        labels.value("series") < "00010" && (first_ms..=last_ms).contains(&time_ms)
    };
    let admin = Admin::new(&store.server.url());
    admin.delete(&[r#"requests_total{series=~"0000.*"}"#], first_ms, last_ms);
    admin.clean_tombstones();
    let mut kept = sent;
    for series in &mut kept {
        let Series { labels, samples } = series;
        samples.retain(|sample| !is_deleted(labels, sample.timestamp_ms));
    }
    assert_serves(&store.server, &all(), &kept, "with deletions");
    store.server.terminate().expect("it ends");

    let expected = data.lines(|labels, time_ms| !is_deleted(labels, time_ms));
    assert_same_lines(&lines_in(&data_dir), &expected);
    let encodings = encodings_in(&data_dir);
    assert!(encodings[XOR2] > 0 && encodings[XOR] > 0, "{encodings:?}");
}

#[track_caller]
fn assert_same_lines(found: &BTreeSet<String>, expected: &BTreeSet<String>) {
    let missing: Vec<_> = expected.difference(found).take(5).collect();
    let beyond: Vec<_> = found.difference(expected).take(5).collect();
    assert!(missing.is_empty() && beyond.is_empty(), "missing {missing:?}\nbeyond {beyond:?}");
}

/// Start timestamps in blocks are kept; those only in the log are lost, their samples are not.
#[test]
fn a_prometheus_with_start_timestamps_moves_there_and_back() {
    let data = StartedData::generate(122, 30, 720, begin_ms() - 180 * MINUTE_MS, 15_000);
    let node = Node::default().blocks(5, 45).prometheus_flag("--enable-feature=st-storage");
    let directory = node.data_dir();
    // The first half is in blocks, except for the part that a head keeps.
    let (cut_ms, _) = data.scrapes[data.scrapes.len() / 2];
    data.write_server(&directory, BLOCK_MS, 3 * BLOCK_MS, cut_ms);
    let encodings = encodings_in(&directory);
    assert!(encodings[XOR2] > 0 && encodings[HISTOGRAM_ST] > 0, "{encodings:?}");
    assert_eq!(encodings[XOR], 0);
    let end_ms = blocks_end_ms(&directory).expect("a block");
    assert!(cut_ms - end_ms < 2 * BLOCK_MS, "{end_ms} {cut_ms}");
    let in_blocks = lines_in(&directory);
    let floats: BTreeSet<String> =
        in_blocks.iter().filter(|line| line.contains(" f ")).cloned().collect();
    assert!(floats.len() < in_blocks.len());
    assert_same_lines(&floats, &data.lines(|_, time_ms| time_ms < end_ms));

    // tidepool takes over, cuts blocks of its own from the log, and merges all of them.
    let server = node.start(TIDEPOOL);
    let read = || {
        let read = Reader::new(&server.url()).streamed_values(&all());
        read.unwrap_or_else(|e| panic!("{}\n{}", wait::chain(&e), server.log()))
    };
    let before = read();
    let samples: usize = before.iter().map(|series| series.points.len()).sum();
    assert_eq!(samples, data.scrapes.len() * (data.labels.len() + 1));
    let sent = data.series();
    assert_serves(&server, &floats_of(&data), &sent, "the directory of Prometheus");
    let (last_ms, _) = data.scrapes[data.scrapes.len() - 1];
    let is_merged = || {
        let blocks = data_dir::blocks(&directory).ok()?;
        let is_long = |block: &data_dir::Block| block.end_ms - block.min_ms > 16 * MINUTE_MS;
        let is_cut = last_ms - blocks_end_ms(&directory)? <= uncut_ms_max(BLOCK_MS);
        (is_cut && blocks.iter().any(is_long)).then_some(())
    };
    wait::until("merged blocks", Duration::from_secs(90), is_merged)
        .unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
    assert_same_values("merged", &before, &read());
    assert_serves(&server, &floats_of(&data), &sent, "merged");
    server.terminate().expect("it ends");
    let after = lines_in(&directory);
    let lost: Vec<_> = in_blocks.difference(&after).take(5).collect();
    assert!(lost.is_empty(), "{lost:?}");

    // Back to Prometheus, which finds the same samples. Its streamed answers have chunks as stored,
    // in encodings that clients do not know.
    let server = node.start(PROMETHEUS_3);
    let reader = Reader::new(&server.url());
    let read = reader.sampled_values(&all()).expect("an answer");
    assert_same_values("Prometheus once more", &before, &read);
    let read = reader.samples(&[floats_of(&data)]).expect("an answer");
    assert_same("Prometheus once more", &sent, &read[0]);
}
