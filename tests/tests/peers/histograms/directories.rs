//! A data directory with histograms moves from tidepool to Prometheus and back: blocks, merged
//! blocks, and the log. The ranges of blocks do not depend on the time of day: the samples end at a
//! fixed time.

use super::receiver;
use std::collections::BTreeSet;
use std::path::Path;
use tidepool_tests::clock::begin_ms;
use tidepool_tests::data_dir::{self, Block};
use tidepool_tests::histogram::assert_values_between;
use tidepool_tests::histogram::generate::{Family, SentSeries};
use tidepool_tests::histogram::stored::{
    assert_holds, read, rows, send, start_with, two_hours, wait_for,
};
use tidepool_tests::histogram::wire::{SentRow, expected};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::promtool::tsdb;
use tidepool_tests::remote_write::Version;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::upstream_race::again_after_race;

const BLOCK_MS: i64 = 600_000;

const BLOCK_FLAGS: [&str; 2] =
    ["--storage.tsdb.min-block-duration=10m", "--storage.tsdb.max-block-duration=10m"];

/// Sends all but the last third of a part in order, then that third; some is only in the logs.
fn send_with_out_of_order(server: &Server, data: &[SentSeries]) {
    let all = rows(data);
    let part = |out_of_order: bool| -> Vec<SentRow<'_>> {
        let numbered = all.iter().enumerate().filter(|(n, _)| (n % 9 == 4) == out_of_order);
        numbered.map(|(_, row)| *row).collect()
    };
    send(server, Version::V2, &part(false));
    // Out of order by minutes, near the newest time.
    let out_of_order = part(true);
    let (old, recent) = out_of_order.split_at(out_of_order.len() * 2 / 3);
    send(server, Version::V2, old);
    send(server, Version::V1, recent);
}

/// Returns the lines of a dump, which is incomplete for a series whose kind changes (exit code).
fn dump(data_dir: &Path) -> BTreeSet<String> {
    let text = tsdb(Release::V3, "dump", data_dir, &[]);
    text.lines().map(str::to_string).collect()
}

#[test]
fn promtool_and_prometheus_read_our_directory() {
    for merges in [false, true] {
        let store =
            start_with(if merges { "5m" } else { "10m" }, merges, Config::prometheus_records);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data: Vec<SentSeries> =
            two_hours(401).into_iter().filter(|s| s.family != Family::Mixed).collect();
        send_with_out_of_order(&store.server, &data);
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
fn prometheus_compacts_our_blocks_and_we_merge_theirs() {
    let store = start_with("10m", false, Config::prometheus_records);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = two_hours(403);
    send_with_out_of_order(&store.server, &data);
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

    // Back to tidepool, with Prometheus' blocks and logs. Prometheus may merge a block of
    // out-of-order samples of the head's own time with another, and drops the log's samples of that
    // time at its next start. tidepool drops them only if the merged block cannot be distinguished
    // from an ordinary one. So it has at least the samples of Prometheus' own next start, and none
    // that were not sent.
    let back = tempfile::tempdir().expect("a temporary directory");
    let config =
        Config::new(back.path()).merged_block_duration("10m").flag("--out-of-order-window=3h");
    data_dir::copy(&theirs.data_dir(), config.data_dir()).expect("a copy");
    let server = theirs.start().expect("Prometheus starts again");
    let wanted = read("Prometheus, once more", &server);
    server.terminate().expect("Prometheus ends");
    let server = config.start().expect("tidepool starts");
    let got = read("tidepool on what Prometheus compacted", &server);
    let what = "tidepool on what Prometheus compacted";
    assert_values_between(what, &wanted, &expected(&data), &got);
    assert!(got.iter().map(|series| series.points.len()).sum::<usize>() > 11_000);
}

#[test]
fn we_serve_and_merge_a_directory_of_prometheus() {
    again_after_race(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let theirs =
            BLOCK_FLAGS.iter().fold(receiver(directory.path(), "theirs"), |c, f| c.flag(f));
        let data = two_hours(404);
        let server = theirs.start().expect("Prometheus starts");
        send_with_out_of_order(&server, &data);
        let blocks = wait_for("their blocks", &theirs.data_dir(), |blocks| blocks.len() >= 9);
        assert_holds("Prometheus", &server, &data);
        server.kill().expect("Prometheus ends");

        let config = Config::new(directory.path())
            .merged_block_duration("10m")
            .flag("--out-of-order-window=3h");
        data_dir::copy(&theirs.data_dir(), config.data_dir()).expect("a copy");
        let server = config.start().expect("tidepool starts");
        assert_holds("tidepool on the directory of Prometheus", &server, &data);
        let theirs: BTreeSet<String> = blocks.iter().map(|block| block.ulid.clone()).collect();
        // Three ranges make up one of the next level. The newest finished range of that level may
        // have the newest block of all, which is not merged; all blocks of Prometheus before it are
        // merged. A block of Prometheus ends after its last sample: three are shorter than three
        // ranges.
        let level_ms = 3 * BLOCK_MS;
        let merged_ms = begin_ms().div_euclid(level_ms) * level_ms - level_ms;
        let is_left = |block: &Block| theirs.contains(&block.ulid) && block.end_ms <= merged_ms;
        assert!(blocks.iter().filter(|block| is_left(block)).count() >= 6, "{blocks:?}");
        wait_for("our merges", config.data_dir(), |blocks| {
            !blocks.iter().any(is_left)
                && blocks.iter().any(|block| block.end_ms - block.min_ms > 2 * BLOCK_MS)
        });
        assert_holds("merged", &server, &data);
    });
}
