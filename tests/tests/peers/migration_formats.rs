//! Data directories of a Prometheus with less common settings: other compressions of its log, head
//! snapshots, start timestamps, records of newer versions, blocks of every level.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::node::{Node, Owner, PROMETHEUS_2, PROMETHEUS_3, TIDEPOOL};
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::sender::recent_data;
use tidepool_tests::series::{Dataset, Row, Series, Shape, Texture};
use tidepool_tests::upstream_race::again_after_race;
use tidepool_tests::wait;

/// Sends one part of the data, out of `parts`.
fn send_part(node: &mut Node, server: &Server, data: &Dataset, (part, parts): (usize, usize)) {
    let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
    let per_part = scrapes.len().div_ceil(parts);
    for rows in scrapes.iter().skip(part * per_part).take(per_part) {
        node.send(server, rows);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("a name").file_name().to_string_lossy().into_owned()
    };
    entries.map(name).collect()
}

#[test]
fn every_compression_of_the_log_is_read() {
    for (owner, flag) in [
        (PROMETHEUS_2, "--no-storage.tsdb.wal-compression"),
        (PROMETHEUS_2, "--storage.tsdb.wal-compression"),
        (PROMETHEUS_3, "--no-storage.tsdb.wal-compression"),
        (PROMETHEUS_3, "--storage.tsdb.wal-compression-type=snappy"),
        (PROMETHEUS_3, "--storage.tsdb.wal-compression-type=zstd"),
    ] {
        let data = recent_data(111, 60, 400);
        let mut node = Node::default().prometheus_flag(flag);
        for part in 0..4 {
            let server = node.start(if part % 2 == 0 { owner } else { TIDEPOOL });
            node.assert_holds(&server, &format!("{owner:?} {flag}, part {part}"));
            send_part(&mut node, &server, &data, (part, 4));
            server.kill().expect("it can be killed");
        }
        let server = node.start(owner);
        node.assert_holds(&server, &format!("{owner:?} {flag}, at the end"));
    }
}

/// With a snapshot, Prometheus skips the replay of earlier records, even if tidepool has worked in
/// between and series have other numbers.
#[test]
fn snapshots_of_the_head_do_not_outlive_a_move() {
    for owner in [PROMETHEUS_2, PROMETHEUS_3] {
        let data = recent_data(112, 60, 400);
        let mut node =
            Node::default().prometheus_flag("--enable-feature=memory-snapshot-on-shutdown");
        for part in 0..4 {
            let server = node.start(if part % 2 == 0 { owner } else { TIDEPOOL });
            node.assert_holds(&server, &format!("{owner:?}, part {part}"));
            send_part(&mut node, &server, &data, (part, 4));
            server.terminate().expect("it ends");
            let has_snapshot =
                names(&node.data_dir()).iter().any(|name| name.starts_with("chunk_snapshot."));
            assert_eq!(has_snapshot, part % 2 == 0, "{:?}", names(&node.data_dir()));
        }
        let server = node.start(owner);
        node.assert_holds(&server, &format!("{owner:?}, at the end"));
    }
}

/// With start timestamps, the log has records of other types.
#[test]
fn records_with_start_timestamps_are_read() {
    let data = recent_data(113, 60, 200);
    let mut node = Node::default()
        .prometheus_flag("--enable-feature=st-storage")
        .prometheus_flag("--no-storage.tsdb.wal-compression");
    for part in 0..4 {
        let owner = if part % 2 == 0 { PROMETHEUS_3 } else { TIDEPOOL };
        let server = node.start(owner);
        assert_holds_but_signs_of_zero(&node, &server, &format!("part {part}"));
        send_part(&mut node, &server, &data, (part, 4));
        server.kill().expect("it can be killed");
        let log = fs::read(node.data_dir().join("wal/00000000")).expect("the log");
        let kinds = kinds_of_full_fragments(&log);
        assert!(kinds.contains(&SAMPLES_V2) && !kinds.contains(&SAMPLES), "{kinds:?}");
    }
    let server = node.start(PROMETHEUS_3);
    assert_holds_but_signs_of_zero(&node, &server, "at the end");
}

/// Types of records of samples without and with start timestamps.
const SAMPLES: u8 = 2;
const SAMPLES_V2: u8 = 11;

/// With start timestamps, Prometheus streams chunks of an encoding of its own, so SAMPLES are
/// requested, in which a zero has no sign.
fn assert_holds_but_signs_of_zero(node: &Node, server: &Server, when: &str) {
    let without_signs = |series: &[Series]| {
        let mut series = series.to_vec();
        let samples = series.iter_mut().flat_map(|s| &mut s.samples);
        samples.filter(|sample| sample.value == 0.0).for_each(|sample| sample.value = 0.0);
        series
    };
    let all = everything(i64::MIN / 2, i64::MAX / 2);
    let read = Reader::new(&server.url()).samples(&[all]);
    let read = read.unwrap_or_else(|e| panic!("{when}: {}", wait::chain(&e)));
    assert_same(when, &without_signs(node.acknowledged()), &without_signs(&read[0]));
}

/// Returns the first bytes of all records that consist of one fragment.
fn kinds_of_full_fragments(log: &[u8]) -> BTreeSet<u8> {
    let mut kinds = BTreeSet::new();
    for page in log.chunks(32 * 1024) {
        let mut rest = page;
        while let [kind, high, low, _, _, _, _, after @ ..] = rest
            && *kind != 0
        {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            kinds.extend(after.first().filter(|_| *kind == 1));
            rest = after.get(length..).unwrap_or_default();
        }
    }
    kinds
}

/// A record of an unknown type is skipped, counted and logged; records after it are replayed.
#[test]
fn unknown_records_are_skipped_and_counted() {
    let data = recent_data(114, 40, 100);
    let mut node = Node::default().prometheus_flag("--no-storage.tsdb.wal-compression");
    let server = node.start(PROMETHEUS_3);
    send_part(&mut node, &server, &data, (0, 2));
    server.terminate().expect("it ends");
    let number = data_dir::wal_segments(&node.data_dir()).expect("segments").last().copied();
    let next = number.expect("a segment") + 1;
    let unknown: Vec<u8> = [&[99u8][..], b"from a later day"].concat();
    let segment: Vec<u8> = [fragment(&unknown), fragment(&[]), fragment(&unknown)].concat();
    fs::write(node.data_dir().join(format!("wal/{next:08}")), segment).expect("a segment");

    let server = node.start(TIDEPOOL);
    node.assert_holds(&server, "behind unknown records");
    assert_eq!(server.metric("tidepool_wal_replay_skipped_records"), Some(3.0));
    send_part(&mut node, &server, &data, (1, 2));
    assert!(server.log().contains("skipped_records"), "{}", server.log());
    server.kill().expect("it can be killed");
    for owner in [TIDEPOOL, PROMETHEUS_3] {
        let server = node.start(owner);
        node.assert_holds(&server, &format!("{owner:?}, behind unknown records and further ones"));
        server.terminate().expect("it ends");
    }
}

/// Prometheus' cache of its head may be the only copy of samples from a damaged log.
#[test]
fn caches_are_quarantined_if_the_log_is_damaged() {
    let data = recent_data(117, 60, 400);
    let mut node = Node::default().prometheus_flag("--no-storage.tsdb.wal-compression");
    let server = node.start(PROMETHEUS_3);
    send_part(&mut node, &server, &data, (0, 1));
    server.terminate().expect("it ends");
    let cached = names(&node.data_dir().join("chunks_head"));
    assert!(!cached.is_empty(), "Prometheus has no full chunks");
    let path = node.data_dir().join("wal/00000000");
    let mut log = fs::read(&path).expect("the log");
    log[40_000] ^= 1;
    fs::write(&path, log).expect("the log is damaged");

    let server = node.start(TIDEPOOL);
    assert!(server.metric("tidepool_wal_replay_damaged_bytes") > Some(0.0), "{}", server.log());
    let kept = data_dir::quarantine(&node.data_dir()).expect("quarantined");
    let ends = |path: &PathBuf| path.to_string_lossy().ends_with("Z-chunks_head");
    let kept = kept.into_iter().find(ends).expect("chunks_head is quarantined");
    assert_eq!(names(&kept), cached);
    assert!(!node.data_dir().join("chunks_head").exists());
    assert!(server.log().contains("Z-chunks_head"), "{}", server.log());
    server.terminate().expect("it ends");
    let server = node.start(TIDEPOOL);
    assert_eq!(names(&kept), cached);
    server.terminate().expect("it ends");
    node.start(PROMETHEUS_3).terminate().expect("Prometheus starts beside it");
    assert_eq!(names(&kept), cached);
}

/// Makes a whole uncompressed record: type, length, checksum, data (`tsdb/docs/format/wal.md`).
fn fragment(record: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&u16::try_from(record.len()).expect("a short record").to_be_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(record).to_be_bytes());
    bytes.extend_from_slice(record);
    bytes
}

fn levels(node: &Node) -> Vec<u64> {
    let meta = |block: data_dir::Block| -> Option<u64> {
        let meta = fs::read(block.path.join("meta.json")).ok()?;
        let meta: serde_json::Value = serde_json::from_slice(&meta).ok()?;
        meta["compaction"]["level"].as_u64()
    };
    let blocks = data_dir::blocks(&node.data_dir()).unwrap_or_default();
    blocks.into_iter().filter_map(meta).collect()
}

fn wait_for_level(node: &Node, server: &Server, level: u64) {
    let reached = || levels(node).contains(&level).then_some(());
    wait::until("merged blocks", Duration::from_secs(150), reached)
        .unwrap_or_else(|e| panic!("{e}: {:?}\n{}", levels(node), server.log()));
}

/// Blocks that one server has merged are merged further by the other, and back.
fn merge_what_the_other_merged(first: Owner, second: Owner) {
    // Wherever they begin, six hours contain a whole range of 135 minutes and more after it.
    let (scrapes, interval_ms) = (6 * 120, 30_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    let data =
        Dataset::generate(Shape { seed: 115, series: 60, scrapes, start_ms, interval_ms, texture });
    let mut node = Node::default().blocks(5, 45).prometheus_records();
    let server = node.start(first);
    send_part(&mut node, &server, &data, (0, 1));
    wait_for_level(&node, &server, 3);
    node.assert_holds(&server, &format!("{first:?} has merged"));
    server.terminate().expect("it ends");
    let merged = levels(&node);
    assert!(merged.contains(&1) && merged.contains(&3), "{merged:?}");

    // With longer blocks, the existing ones are merged to the next level.
    let node = node.without_flags().blocks(5, 135).prometheus_records();
    let server = node.start(second);
    node.assert_holds(&server, &format!("{second:?} serves what {first:?} has merged"));
    wait_for_level(&node, &server, 4);
    node.assert_holds(&server, &format!("{second:?} has merged on"));
    server.terminate().expect("it ends");
    let server = node.start(first);
    node.assert_holds(&server, &format!("{first:?} serves what {second:?} has merged"));
}

#[test]
fn prometheus_2_merges_our_blocks() {
    again_after_race(|| {
        merge_what_the_other_merged(TIDEPOOL, PROMETHEUS_2);
    });
}

#[test]
fn prometheus_3_merges_our_blocks() {
    again_after_race(|| {
        merge_what_the_other_merged(TIDEPOOL, PROMETHEUS_3);
    });
}

#[test]
fn blocks_that_prometheus_2_merged_are_merged_on() {
    again_after_race(|| {
        merge_what_the_other_merged(PROMETHEUS_2, TIDEPOOL);
    });
}

#[test]
fn blocks_that_prometheus_3_merged_are_merged_on() {
    again_after_race(|| {
        merge_what_the_other_merged(PROMETHEUS_3, TIDEPOOL);
    });
}
