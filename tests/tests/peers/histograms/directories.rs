//! A data directory with histograms moves from tidepool to Prometheus and back: blocks, merged
//! blocks, and the log.

use super::{assert_holds, data_until_now, read, receiver, rows, send};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::data_dir::{self, Block};
use tidepool_tests::histogram::generate::{Family, SentSeries, SentValue};
use tidepool_tests::histogram::wire::SentRow;
use tidepool_tests::histogram::{Kind, Point, Value, assert_same_values};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::promtool::tsdb;
use tidepool_tests::remote_write::Version;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

const BLOCK_MS: i64 = 600_000;
const BLOCK_FLAGS: [&str; 2] =
    ["--storage.tsdb.min-block-duration=10m", "--storage.tsdb.max-block-duration=10m"];
/// Prometheus looks for work once a minute.
const TIMEOUT: Duration = Duration::from_secs(150);

/// The last two hours, without negative zeros, which Prometheus' answers leave out.
fn two_hours(seed: u64) -> Vec<SentSeries> {
    let mut data = data_until_now(seed, 27, 480, 15_000);
    for (_, value) in data.iter_mut().flat_map(|series| &mut series.values) {
        if let SentValue::Float(value) = value {
            *value += 0.0;
        }
    }
    data
}

#[track_caller]
fn wait_for(what: &str, data_dir: &Path, is_enough: impl Fn(&[Block]) -> bool) -> Vec<Block> {
    let found = || data_dir::blocks(data_dir).ok().filter(|blocks| is_enough(blocks));
    wait::until(what, TIMEOUT, found).unwrap_or_else(|error| panic!("{error}"))
}

/// All but the last third of a part in order, that third late; some is only in the logs.
fn send_with_late(server: &Server, data: &[SentSeries]) {
    let all = rows(data);
    let part = |late: bool| -> Vec<SentRow<'_>> {
        let numbered = all.iter().enumerate().filter(|(n, _)| (n % 9 == 4) == late);
        numbered.map(|(_, row)| *row).collect()
    };
    send(server, Version::V2, &part(false));
    // Late by minutes, of recent times.
    let late = part(true);
    let (old, recent) = late.split_at(late.len() * 2 / 3);
    send(server, Version::V2, old);
    send(server, Version::V1, recent);
}

fn start(block_duration: &str, merges: bool) -> Store {
    Store::start_with(|config| {
        let config = match merges {
            false => config.block_duration(block_duration),
            true => config.merged_block_duration(block_duration),
        };
        config.flag("--out-of-order-window=3h")
    })
    .expect("tidepool starts")
}

/// Lines of a dump; that of a series whose kind changes is not complete, says its code.
fn dump(data_dir: &Path) -> BTreeSet<String> {
    let text = tsdb(Release::V3, "dump", data_dir, &[]);
    text.lines().map(str::to_string).collect()
}

/// Statistics of a `meta.json`: floats, histograms.
fn kinds(block: &Block) -> (u64, u64) {
    let meta = std::fs::read(block.path.join("meta.json")).expect("a meta.json");
    let meta: serde_json::Value = serde_json::from_slice(&meta).expect("JSON");
    let number = |key: &str| meta["stats"][key].as_u64().unwrap_or(0);
    assert_eq!(number("numSamples"), number("numFloatSamples") + number("numHistogramSamples"));
    (number("numFloatSamples"), number("numHistogramSamples"))
}

#[test]
fn promtool_and_prometheus_read_our_directory() {
    for merges in [false, true] {
        let store = start(if merges { "5m" } else { "10m" }, merges);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data: Vec<SentSeries> =
            two_hours(401).into_iter().filter(|s| s.family != Family::Mixed).collect();
        send_with_late(&store.server, &data);
        let is_enough = |blocks: &[Block]| blocks.len() >= if merges { 4 } else { 9 };
        wait_for("our blocks", store.config.data_dir(), is_enough);
        assert_holds("tidepool", &store.server, &data);
        let Store { server, config, directory: own } = store;
        server.terminate().expect("tidepool ends");
        let blocks = data_dir::blocks(config.data_dir()).expect("blocks");

        let theirs = receiver(directory.path(), "theirs");
        let server = theirs.start().expect("Prometheus starts");
        send(&server, Version::V2, &rows(&data));
        server.terminate().expect("Prometheus ends");

        let listed = tsdb(Release::V3, "list", config.data_dir(), &[]);
        for block in &blocks {
            assert!(listed.contains(&block.ulid), "{block:?}:\n{listed}");
            tsdb(Release::V3, "analyze", config.data_dir(), &["--extended", &block.ulid]);
        }
        let (ours, theirs) = (dump(config.data_dir()), dump(&theirs.data_dir()));
        let differ: Vec<_> = ours.symmetric_difference(&theirs).take(6).collect();
        assert!(differ.is_empty(), "{differ:#?}");
        assert!(ours.len() > 10_000, "{} lines", ours.len());

        let heir = receiver(directory.path(), "heir");
        data_dir::copy(config.data_dir(), &heir.data_dir()).expect("a copy");
        let server = heir.start().expect("Prometheus starts");
        assert_holds("Prometheus on our directory", &server, &data);
        drop(own);
    }
}

#[test]
fn statistics_tell_the_kinds_apart() {
    let store = start("10m", false);
    let data = two_hours(402);
    send(&store.server, Version::V1, &rows(&data));
    let data_dir = store.config.data_dir();
    let blocks = wait_for("our blocks", data_dir, |blocks| blocks.len() >= 8);
    // Which kind marks an end is up to the store.
    let stored = read("tidepool", &store.server);
    let mut histograms_in_all = 0;
    for block in blocks {
        let points = stored.iter().flat_map(|series| &series.points);
        let inside = points.filter(|p| (block.min_ms..block.end_ms).contains(&p.timestamp_ms));
        let is_float =
            |point: &&Point| matches!(point.value, Value::Float(_) | Value::Stale(Kind::Float));
        let (floats, histograms): (Vec<_>, Vec<_>) = inside.partition(is_float);
        assert_eq!(kinds(&block), (floats.len() as u64, histograms.len() as u64), "{block:?}");
        histograms_in_all += histograms.len();
    }
    assert!(histograms_in_all > 5_000);
}

#[test]
fn prometheus_compacts_our_blocks_and_we_merge_theirs() {
    let store = start("10m", false);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = two_hours(403);
    send_with_late(&store.server, &data);
    wait_for("our blocks", store.config.data_dir(), |blocks| blocks.len() >= 9);
    let Store { server, config: own, directory: _own_directory } = store;
    server.kill().expect("tidepool ends");
    let ours: BTreeSet<String> =
        data_dir::blocks(own.data_dir()).expect("blocks").into_iter().map(|b| b.ulid).collect();

    // Prometheus takes over, and compacts.
    let theirs = receiver(directory.path(), "theirs")
        .flag("--storage.tsdb.min-block-duration=10m")
        .flag("--storage.tsdb.max-block-duration=90m");
    data_dir::copy(own.data_dir(), &theirs.data_dir()).expect("a copy");
    let server = theirs.start().expect("Prometheus starts");
    assert_holds("Prometheus on our directory", &server, &data);
    wait_for("their compaction", &theirs.data_dir(), |blocks| {
        blocks.iter().filter(|block| ours.contains(&block.ulid)).count() * 2 < ours.len()
            && blocks.iter().any(|block| block.end_ms - block.min_ms >= 3 * BLOCK_MS)
    });
    assert_holds("compacted by Prometheus", &server, &data);
    server.terminate().expect("Prometheus ends");

    // And back: their blocks, their logs. Prometheus may merge a block of late samples of the head's
    // own time into an ordinary one, and then forgets at its next start what its log has of that
    // time; so its own next start is the measure.
    let back = tempfile::tempdir().expect("a temporary directory");
    let config =
        Config::new(back.path()).merged_block_duration("10m").flag("--out-of-order-window=3h");
    data_dir::copy(&theirs.data_dir(), config.data_dir()).expect("a copy");
    let server = theirs.start().expect("Prometheus starts again");
    let wanted = read("Prometheus, once more", &server);
    server.terminate().expect("Prometheus ends");
    let server = config.start().expect("tidepool starts");
    let got = read("tidepool on what Prometheus compacted", &server);
    assert_same_values("tidepool on what Prometheus compacted", &wanted, &got);
    assert!(got.iter().map(|series| series.points.len()).sum::<usize>() > 11_000);
}

#[test]
fn we_serve_and_merge_a_directory_of_prometheus() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let theirs = BLOCK_FLAGS.iter().fold(receiver(directory.path(), "theirs"), |c, f| c.flag(f));
    let data = two_hours(404);
    let server = theirs.start().expect("Prometheus starts");
    send_with_late(&server, &data);
    let blocks = wait_for("their blocks", &theirs.data_dir(), |blocks| blocks.len() >= 9);
    assert_holds("Prometheus", &server, &data);
    server.kill().expect("Prometheus ends");

    let config =
        Config::new(directory.path()).merged_block_duration("10m").flag("--out-of-order-window=3h");
    data_dir::copy(&theirs.data_dir(), config.data_dir()).expect("a copy");
    let server = config.start().expect("tidepool starts");
    assert_holds("tidepool on the directory of Prometheus", &server, &data);
    let theirs: BTreeSet<String> = blocks.into_iter().map(|block| block.ulid).collect();
    wait_for("our merges", config.data_dir(), |blocks| {
        blocks.iter().filter(|block| theirs.contains(&block.ulid)).count() < 4
            && blocks.iter().any(|block| block.end_ms - block.min_ms >= 3 * BLOCK_MS)
    });
    assert_holds("merged", &server, &data);
}
