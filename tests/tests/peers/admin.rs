//! Deleting series, cleaning tombstones, snapshots: real Prometheus and promtool read the directory
//! afterwards.

use std::path::Path;
use tidepool_tests::admin::Admin;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::data_dir::{self, blocks, total_bytes};
use tidepool_tests::deletions::{assert_reads, filled, filled_with, name, with_admin};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::promtool::{self, clear_nan_bits, parse_dump};
use tidepool_tests::remote_read::Reader;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::read_all;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::{prometheus, wait};

/// Removes a time range from the series whose name is one of these.
fn without(all: &[Series], names: &[String], start_ms: i64, end_ms: i64) -> Vec<Series> {
    let rest = |series: &Series| {
        let mut series = series.clone();
        if names.contains(&name(&series)) {
            let deleted = start_ms..=end_ms;
            series.samples.retain(|sample| !deleted.contains(&sample.timestamp_ms));
        }
        series
    };
    all.iter().map(rest).filter(|series| !series.samples.is_empty()).collect()
}

/// Asserts Prometheus' answer. Its SAMPLES have no negative zero, and the chunks of its head may
/// have unused bytes.
#[track_caller]
fn assert_prometheus_reads(server: &Server, expected: &[Series], when: &str) {
    let mut expected = expected.to_vec();
    for sample in expected.iter_mut().flat_map(|series| &mut series.samples) {
        if sample.value == 0.0 {
            sample.value = 0.0;
        }
    }
    let reader = Reader::new(&server.url());
    let samples = reader.samples(&[read_all()]).unwrap_or_else(|e| panic!("{}", wait::chain(&e)));
    assert_same(when, &expected, &samples[0]);
}

#[track_caller]
fn assert_dumps(directory: &Path, expected: &[Series], when: &str) {
    for release in Release::ALL {
        let dump = promtool::tsdb(release, "dump", directory, &[]);
        let dump = parse_dump(&dump).expect("a dump");
        assert_same(&format!("{when}, {release:?}"), &clear_nan_bits(expected), &dump);
    }
}

/// Starts each Prometheus on a copy of a directory, and compares its answer.
fn assert_each_prometheus_reads(data_dir: &Path, expected: &[Series], when: &str) {
    for release in Release::ALL {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = prometheus::Config::new(release, directory.path()).expect("a directory");
        data_dir::copy(data_dir, &config.data_dir()).expect("a copy");
        let server = config.start().expect("Prometheus starts");
        assert_prometheus_reads(&server, expected, &format!("{when}, {release:?}"));
    }
}

fn tombstones(store: &Store) -> u64 {
    let blocks = blocks(store.config.data_dir()).expect("blocks");
    let of_block = |block: &data_dir::Block| {
        let meta = std::fs::read(block.path.join("meta.json")).expect("a meta.json");
        let meta: serde_json::Value = serde_json::from_slice(&meta).expect("JSON");
        meta["stats"]["numTombstones"].as_u64().unwrap_or(0)
    };
    blocks.iter().map(of_block).sum()
}

#[test]
fn what_is_deleted_is_gone_for_tidepool_and_for_prometheus() {
    let (store, all) = filled_with(91, |config| with_admin(config).prometheus_records());
    let (first_ms, last_ms) = (all[0].samples[0].timestamp_ms, i64::MAX / 2);
    let hour_ms = 3_600_000;
    let names = [name(&all[0]), name(&all[40])];
    let admin = Admin::new(&store.server.url());
    // From the middle of a block into the head; one selector is a regular expression.
    let start_ms = first_ms + hour_ms + 77_000;
    let selectors = [names[0].clone(), format!("{{__name__=~\"{}\"}}", names[1])];
    admin.delete(&[&selectors[0], &selectors[1]], start_ms, last_ms);
    let expected = without(&all, &names, start_ms, last_ms);
    assert_reads(&store.server, &expected, "after the deletion");
    let count = tombstones(&store);
    assert!(count > 10, "{count} tombstones");

    let store = store.restart(Server::kill).expect("tidepool starts again");
    assert_reads(&store.server, &expected, "after kill -9");
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_reads(&store.server, &expected, "after a restart");

    // A copy for promtool and Prometheus, before any block is rewritten.
    let copy = tempfile::tempdir().expect("a temporary directory");
    let Store { server, config, directory } = store;
    server.terminate().expect("tidepool ends");
    data_dir::copy(config.data_dir(), copy.path()).expect("a copy");
    assert_dumps(copy.path(), &expected, "with tombstones");
    assert_each_prometheus_reads(copy.path(), &expected, "with tombstones");

    let server = config.start().expect("tidepool starts again");
    let store = Store { server, config, directory };
    let bytes = || {
        blocks(store.config.data_dir())
            .expect("blocks")
            .iter()
            .map(|b| total_bytes(&b.path))
            .sum::<u64>()
    };
    let before = bytes();
    let admin = Admin::new(&store.server.url());
    admin.clean_tombstones();
    assert!(bytes() < before, "{} bytes of {before} are left", bytes());
    assert_eq!(tombstones(&store), 0);
    assert_reads(&store.server, &expected, "after cleaning");

    // Samples sent again are stored, since the head accepts its newest times.
    let newest = all[0].samples.last().expect("samples");
    let again = Series { labels: all[0].labels.clone(), samples: vec![*newest] };
    let response = store.writer().send(Version::V2, &[again.row()]).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
    let store = store.restart(Server::kill).expect("tidepool starts again");
    let expected: Vec<Series> = all
        .iter()
        .map(|series| without(std::slice::from_ref(series), &names, start_ms, last_ms).pop())
        .zip(&all)
        .filter_map(|(rest, before)| {
            let mut rest =
                rest.unwrap_or(Series { labels: before.labels.clone(), samples: vec![] });
            if before.labels == all[0].labels {
                rest.samples.push(*newest);
            }
            (!rest.samples.is_empty()).then_some(rest)
        })
        .collect();
    assert_reads(&store.server, &expected, "with a sample that was sent again");
}

/// Deletions in blocks and in the head, which Prometheus logs.
#[test]
fn what_prometheus_deleted_is_gone_for_tidepool() {
    for release in Release::ALL {
        let (store, all) = filled_with(93, |config| with_admin(config).prometheus_records());
        let Store { server, config, directory } = store;
        server.terminate().expect("tidepool ends");
        let prometheus = prometheus::Config::new(release, directory.path()).expect("a directory");
        let server = prometheus.flag("--web.enable-admin-api").start().expect("Prometheus starts");
        assert_prometheus_reads(&server, &all, "Prometheus on the directory");
        let names = [name(&all[3])];
        let start_ms = all[0].samples[0].timestamp_ms + 3_600_000;
        Admin::new(&server.url()).delete(&[&names[0]], start_ms, i64::MAX / 2);
        let expected = without(&all, &names, start_ms, i64::MAX / 2);
        // 2.x does not hide out-of-order samples; tidepool follows 3.x.
        if release == Release::V3 {
            assert_prometheus_reads(&server, &expected, "Prometheus after the deletion");
        }
        server.terminate().expect("Prometheus ends");

        let server = config.start().expect("tidepool starts again");
        assert_reads(&server, &expected, "tidepool after Prometheus' deletion");
        // An out-of-order sample for a deleted time is stored, also after a restart.
        let place = all.iter().position(|series| name(series) == names[0]).expect("it is there");
        let sample = all[place].samples.iter().rev().nth(20).expect("samples");
        let again = Series { labels: all[place].labels.clone(), samples: vec![*sample] };
        let store = Store { server, config, directory };
        let response = store.writer().send(Version::V2, &[again.row()]).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
        let store = store.restart(Server::kill).expect("tidepool starts again");
        let mut expected = expected;
        match expected.iter_mut().find(|series| series.labels == again.labels) {
            Some(series) => series.samples.push(*sample),
            None => expected.push(again),
        }
        assert_reads(&store.server, &expected, "with a sample that was sent again");
    }
}

#[test]
fn a_snapshot_is_a_directory_of_its_own() {
    let (store, all) = filled(94);
    let admin = Admin::new(&store.server.url());
    let names = [name(&all[5])];
    let start_ms = all[0].samples[0].timestamp_ms + 3_600_000;
    admin.delete(&[&names[0]], start_ms, i64::MAX / 2);
    let expected = without(&all, &names, start_ms, i64::MAX / 2);
    let snapshots = store.config.data_dir().join("snapshots");
    let whole = admin.snapshot(false);
    let blocks_only = admin.snapshot(true);
    // The name is in upstream's format: the time, and a number of sixteen digits.
    let (time, number) = whole.split_once('-').expect("two parts");
    assert!(time.len() == 16 && time.ends_with('Z') && number.len() == 16, "{whole}");
    let blocks_before = blocks(store.config.data_dir()).expect("blocks").len();
    assert_eq!(blocks(&snapshots.join(&blocks_only)).expect("blocks").len(), blocks_before);
    assert_eq!(blocks(&snapshots.join(&whole)).expect("blocks").len(), blocks_before + 1);

    // The store continues: neither its head nor its blocks have changed, and later deletions do not
    // affect the snapshot.
    assert_reads(&store.server, &expected, "after the snapshots");
    admin.delete(&["{__name__!=\"\"}"], start_ms, i64::MAX / 2);
    admin.clean_tombstones();
    let store = store.restart(Server::kill).expect("tidepool starts again");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config::new(directory.path());
    data_dir::copy(&snapshots.join(&whole), config.data_dir()).expect("a copy");
    assert_each_prometheus_reads(config.data_dir(), &expected, "a snapshot");
    // Older promtools require a log, which snapshots of Prometheus lack as well.
    std::fs::create_dir(config.data_dir().join("wal")).expect("a directory");
    assert_dumps(config.data_dir(), &expected, "a snapshot");

    // tidepool opens the snapshot, too.
    let server = config.start().expect("tidepool starts on a snapshot");
    assert_reads(&server, &expected, "tidepool on a snapshot");
    drop(store);
}
