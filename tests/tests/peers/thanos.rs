//! Thanos reads the blocks that tidepool ships, and works with tidepool as with a Prometheus: store
//! gateway, querier, compactor and bucket tools over shipped blocks, and the sidecar beside a
//! running node.

use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tidepool_tests::checksum::{assert_same, differences};
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::http::Client;
use tidepool_tests::promtool::{Output, clear_nan_bits};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{send_all, wait_for_blocks};
use tidepool_tests::series::{Dataset, Labels, Row, Series, Shape, Texture};
use tidepool_tests::shipped::{self, before};
use tidepool_tests::thanos::{Component, Thanos};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

const BLOCK: &str = "10m";
const BLOCK_MS: i64 = 600_000;
const HOURS: u32 = 4;
const TIMEOUT: Duration = Duration::from_secs(120);
const EVERYTHING: &str = "{__name__=~\".+\"}";
/// External labels; no series has labels of these names, which would be replaced.
const LABELS: [(&str, &str); 2] = [("edge", "edge-7"), ("site", "north")];

/// Makes data of three hours that end now, without the markers and NaN that PromQL does not show.
fn hours_of_data(seed: u64) -> Dataset {
    let (series, scrapes, interval_ms) = (60, 720, 15_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Regular;
    Dataset::generate(Shape { seed, series, scrapes, start_ms, interval_ms, texture })
}

/// Returns the series with external labels, as a centre has them.
fn labelled(series: &[Series]) -> Vec<Series> {
    let labels = |series: &Series| {
        let own = series.labels.pairs().iter().cloned();
        let external = LABELS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Labels::from_pairs(own.chain(external).collect::<Vec<_>>())
    };
    let with = |series: &Series| Series { labels: labels(series), samples: series.samples.clone() };
    series.iter().map(with).collect()
}

/// Starts a node that ships to `bucket` in this directory.
fn shipping_node(directory: &Path, more: &str) -> Store {
    let ship = format!("--ship=file://{}/bucket", directory.display());
    let node = |config| with_labels(config).block_duration(BLOCK).flag(&ship).flag(more);
    Store::start_with(node).expect("tidepool starts")
}

fn with_labels(config: Config) -> Config {
    let flag = |(name, value)| format!("--external-label={name}={value}");
    LABELS.map(flag).iter().fold(config, |config, flag| config.flag(flag))
}

/// Asserts that a querier finds exactly these samples, once it has looked at the bucket.
#[track_caller]
fn assert_finds(what: &str, query: &Component, sent: &[Series], end_ms: i64) {
    let sent = labelled(sent);
    let count: usize = sent.iter().map(|series| series.samples.len()).sum();
    let mut last = Ok(Vec::new());
    let found = wait::until(what, TIMEOUT, || {
        last = query.samples(EVERYTHING, end_ms, HOURS);
        let found = last.as_ref().ok()?;
        let total: usize = found.iter().map(|series| series.samples.len()).sum();
        (total >= count).then(|| found.clone())
    });
    let found = found.unwrap_or_else(|error| match &last {
        Ok(found) => panic!("{error}: {}", differences(&sent, found)),
        Err(answer) => panic!("{error}: {answer}"),
    });
    assert_same(what, &sent, &found);
}

#[track_caller]
fn succeeds(what: &str, output: Output) -> String {
    assert!(output.success, "{what}: {}\n{}", output.stdout, output.stderr);
    output.stdout + &output.stderr
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

#[test]
fn a_centre_reads_what_was_shipped() {
    let directory = directory();
    let bucket = directory.path().join("bucket");
    let node = shipping_node(directory.path(), "--wal-sync=off");
    let data = hours_of_data(101);
    send_all(&node, Version::V2, &data);
    let here = wait_for_blocks(&node, &data, BLOCK_MS);
    let blocks = shipped::wait_for(&node, &bucket, here.len());
    node.server.terminate().expect("tidepool ends");
    let end_ms = blocks.last().expect("a block").end_ms;
    let sent = before(&data, end_ms);

    let thanos = Thanos::new(&directory.path().join("thanos"), &bucket).expect("a directory");
    let list = succeeds("ls", thanos.tool("ls", &["-o", "json"]).expect("thanos runs"));
    for block in &blocks {
        assert!(list.contains(&block.ulid), "{list}");
    }
    let inspected = succeeds("inspect", thanos.tool("inspect", &[]).expect("thanos runs"));
    assert!(inspected.contains("edge=edge-7") && inspected.contains("tidepool"), "{inspected}");
    let verify = ["--issues=index_known_issues", "--issues=overlapped_blocks"];
    let verified = succeeds("verify", thanos.tool("verify", &verify).expect("thanos runs"));
    // Findings are warnings; both verifiers must have run to their end.
    assert!(!verified.contains("level=warn") && !verified.contains("level=error"), "{verified}");
    for done in ["msg=\"verified issue\"", "msg=\"verify task completed\""] {
        assert!(verified.contains(done), "{verified}");
    }

    let store = thanos.store().expect("the store gateway starts");
    let query = thanos.query(&[&store]).expect("the querier starts");
    assert_finds("the shipped blocks", &query, &sent, end_ms);

    // Runs a compactor on a copy of the blocks.
    let compacted = directory.path().join("compacted");
    data_dir::copy(&bucket, &compacted).expect("a copy");
    let thanos = Thanos::new(&directory.path().join("centre"), &compacted).expect("a directory");
    let log = succeeds("compact", thanos.compact(&[]).expect("thanos runs"));
    assert!(!log.contains("halting"), "{log}");
    let merged = shipped::blocks(&compacted);
    assert!(merged.len() < blocks.len(), "{} of {} blocks: {log}", merged.len(), blocks.len());
    let store = thanos.store().expect("the store gateway starts");
    let query = thanos.query(&[&store]).expect("the querier starts");
    assert_finds("the compacted blocks", &query, &sent, end_ms);
}

/// Out-of-order samples for times of existing blocks come in blocks that overlap those. Readers
/// combine them; a compactor merges them only with a flag.
#[test]
fn out_of_order_samples_make_blocks_that_overlap() {
    let directory = directory();
    let bucket = directory.path().join("bucket");
    let node = shipping_node(directory.path(), "--out-of-order-window=2h");
    let data = hours_of_data(102);
    let out_of_order_from_ms = now_ms() - 90 * 60_000;
    // The last series comes out of order for half an hour of its time.
    let (out_of_order_series, rest) = data.series.split_last().expect("series");
    let is_out_of_order = |row: &Row<'_>| {
        row.labels == &out_of_order_series.labels
            && row.samples.iter().all(|sample| {
                (out_of_order_from_ms..out_of_order_from_ms + 30 * 60_000)
                    .contains(&sample.timestamp_ms)
            })
    };
    assert!(!rest.is_empty());
    let (mut on_time, mut out_of_order) = (Vec::new(), Vec::new());
    for scrape in data.scrapes() {
        let (held, sent): (Vec<_>, Vec<_>) = scrape.into_iter().partition(is_out_of_order);
        on_time.push(sent);
        out_of_order.extend(held);
    }
    // The last half hour comes after them.
    let newest = on_time.split_off(on_time.len() - 120);
    let accepts = |rows: &[Row<'_>]| {
        let answer = node.writer().send(Version::V2, rows).expect("an answer");
        assert_eq!(answer.status, 204, "{}", answer.text());
    };
    on_time.iter().for_each(|rows| accepts(rows));
    shipped::wait_for(&node, &bucket, 13);
    assert!(!out_of_order.is_empty());
    accepts(&out_of_order);
    newest.iter().for_each(|rows| accepts(rows));
    wait_for_blocks(&node, &data, BLOCK_MS);
    let overlap = || {
        let blocks = shipped::blocks(&bucket);
        let reaches = blocks.windows(2).filter(|pair| pair[1].min_ms < pair[0].end_ms).count();
        (reaches >= 3).then_some(blocks)
    };
    let blocks = wait::until("overlapping blocks", TIMEOUT, overlap)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", node.server.log()));
    let blocks = shipped::wait_for(&node, &bucket, blocks.len());
    node.server.terminate().expect("tidepool ends");
    let end_ms = blocks.iter().map(|block| block.end_ms).max().expect("a block");
    let sent = before(&data, end_ms);

    let thanos = Thanos::new(&directory.path().join("thanos"), &bucket).expect("a directory");
    let store = thanos.store().expect("the store gateway starts");
    let query = thanos.query(&[&store]).expect("the querier starts");
    assert_finds("overlapping blocks", &query, &sent, end_ms);

    let strict = thanos.compact(&["--no-debug.halt-on-error"]).expect("thanos runs");
    assert!(!strict.success && strict.stderr.contains("overlap"), "{}", strict.stderr);
    let vertical = ["--compact.enable-vertical-compaction"];
    succeeds("compact", thanos.compact(&vertical).expect("thanos runs"));
    let merged = shipped::blocks(&bucket);
    assert!(merged.windows(2).all(|pair| pair[1].min_ms >= pair[0].end_ms), "{merged:?}");
    let store = thanos.store().expect("the store gateway starts");
    let query = thanos.query(&[&store]).expect("the querier starts");
    assert_finds("overlapping blocks, compacted", &query, &sent, end_ms);
}

/// The sidecar takes the node for a Prometheus: it reads its labels and flags, answers from it, and
/// uploads its blocks, which are merged only then.
#[test]
fn the_sidecar_works_beside_a_node() {
    let directory = directory();
    let bucket = directory.path().join("bucket");
    let node_dir = directory.path().join("node");
    let list = node_dir.join("thanos.shipper.json");
    let node = Store::start_with(|config| {
        let delay = format!("--delay-compact-file={}", list.display());
        with_labels(config).data_in(&node_dir).merged_block_duration(BLOCK).flag(&delay)
    })
    .expect("tidepool starts");
    let data = hours_of_data(103);
    send_all(&node, Version::V2, &data);
    let blocks = wait_for_blocks(&node, &data, BLOCK_MS);
    let levels = || {
        let blocks = data_dir::blocks(&node_dir).unwrap_or_default();
        let level = |block| {
            let meta = shipped::meta_if_there(block)?;
            Some(meta["compaction"]["level"].as_i64().unwrap_or(0))
        };
        blocks.iter().filter_map(level).collect::<Vec<_>>()
    };
    assert!(levels().iter().all(|level| *level == 1), "{:?}", levels());

    std::fs::create_dir_all(&bucket).expect("a directory");
    let thanos = Thanos::new(&directory.path().join("thanos"), &bucket).expect("a directory");
    let sidecar = thanos.sidecar(&node.server.url(), &node_dir).expect("the sidecar starts");
    let query = thanos.query(&[&sidecar]).expect("the querier starts");
    let end_ms = now_ms() + 60_000;
    assert_finds("through the sidecar", &query, &data.series, end_ms);

    let ask = |path: &str| {
        let answer = Client::default().get(&format!("{}{path}", query.server.url()));
        answer.expect("an answer").text()
    };
    let start = (end_ms - 4 * 3_600_000) / 1000;
    let range = format!("start={start}&end={}", end_ms / 1000);
    let labels = ask(&format!("/api/v1/labels?{range}"));
    for name in ["__name__", "edge", "site"] {
        assert!(labels.contains(&format!("\"{name}\"")), "{labels}");
    }
    let nodes = ask(&format!("/api/v1/label/edge/values?{range}"));
    assert!(nodes.contains("\"edge-7\""), "{nodes}");
    let name = data.series[0].labels.value("__name__");
    let found = ask(&format!("/api/v1/series?{range}&match[]={name}"));
    assert!(found.contains(name) && found.contains("\"edge-7\""), "{found}");

    // The node may cut one more block meanwhile, which may be on its way.
    let uploaded = || {
        // The bucket shows a file while it is written.
        let found = data_dir::blocks(&bucket).ok()?;
        let is_there = |ulid: &String| found.iter().any(|found| found.ulid == *ulid);
        blocks.iter().all(|block| is_there(&block.ulid)).then_some(())
    };
    wait::until("the sidecar's uploads", TIMEOUT, uploaded)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", sidecar.server.log()));
    let known = directory.path().join("known");
    for block in &blocks {
        let (from, to) = (bucket.join(&block.ulid), known.join(&block.ulid));
        data_dir::copy(&from, &to).expect("a copy");
    }
    let end_ms = blocks.last().expect("a block").end_ms;
    let sent = clear_nan_bits(&before(&data, end_ms));
    assert_same("the sidecar's bucket", &sent, &shipped::dump(&known));
    wait::until("merged blocks", TIMEOUT, || levels().iter().any(|l| *l > 1).then_some(()))
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", node.server.log()));
}
