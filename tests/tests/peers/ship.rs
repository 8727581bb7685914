//! Finished blocks are shipped to object storage, whatever happens to the node, the uplink or the
//! bucket meanwhile: to a server that speaks S3, with promtool as the reader of the bucket.

use std::fs;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::admin::Admin;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::data_dir::{self, Block};
use tidepool_tests::object_storage::ObjectStorage;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::promtool::{self, clear_nan_bits};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, send_all, wait_for_blocks};
use tidepool_tests::series::Dataset;
use tidepool_tests::shipped::{
    self, BLOCK, BLOCK_MS, LABEL, assert_untouched, assert_uploads_are_new, before, dump,
    file_times, file_url, metric, until,
};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(120);

fn level(block: &Block) -> i64 {
    shipped::meta(block)["compaction"]["level"].as_i64().unwrap_or(0)
}

/// Asserts that the bucket has exactly the sent samples, up to the end of its last block. Checks a
/// copy, because another block may be shipped meanwhile.
#[track_caller]
fn assert_bucket_holds(bucket: &Path, data: &Dataset) {
    let copy = tempfile::tempdir().expect("a directory");
    for block in shipped::blocks(bucket) {
        data_dir::copy(&block.path, &copy.path().join(&block.ulid)).expect("a copy");
    }
    let end_ms = shipped::blocks(copy.path()).last().expect("a block").end_ms;
    let sent = clear_nan_bits(&before(data, end_ms));
    assert_same("the bucket", &sent, &dump(copy.path()));
}

#[test]
fn finished_blocks_are_shipped_once_and_merged_here_afterwards() {
    let directory = tempfile::tempdir().expect("a directory");
    let bucket = directory.path().join("bucket/fleet");
    let store = Store::start_with(|config| {
        config.merged_block_duration(BLOCK).flag(LABEL).flag(&file_url(&bucket))
    })
    .expect("tidepool starts");
    let data = hours_of_data(91);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    let blocks = shipped::wait_for(&store, &bucket, 30);

    for block in &blocks {
        let meta = shipped::meta(block);
        assert_eq!(meta["compaction"]["level"], 1);
        let thanos = &meta["thanos"];
        assert_eq!(thanos["version"], 1);
        assert_eq!(thanos["labels"], serde_json::json!({ "node": "edge-7" }));
        assert_eq!(thanos["downsample"]["resolution"], 0);
        assert_eq!(thanos["segment_files"], serde_json::json!(["000001"]));
        for file in thanos["files"].as_array().expect("a list") {
            let path = file["rel_path"].as_str().expect("a path");
            let found = fs::metadata(block.path.join(path)).expect(path).len();
            let bytes = file["size_bytes"].as_u64();
            assert!(path == "meta.json" || bytes == Some(found), "{path}: {bytes:?}, {found}");
        }
        assert!(!block.path.join("tombstones").exists());
    }
    assert_bucket_holds(&bucket, &data);
    for release in Release::ALL {
        let list = promtool::tsdb(release, "list", &bucket, &[]);
        // Further blocks may be cut and shipped meanwhile.
        let count_max = shipped::blocks(&bucket).len();
        assert!((blocks.len() + 1..=count_max + 1).contains(&list.lines().count()), "{list}");
        assert!(blocks.iter().all(|block| list.contains(&block.ulid)), "{list}");
        promtool::tsdb(release, "analyze", &bucket, &[&blocks[0].ulid]);
    }

    // Shipped blocks may be merged on the node, and merged blocks are not shipped.
    let here = || data_dir::blocks(store.config.data_dir()).unwrap_or_default();
    until("merged blocks", &store, || here().len() < 12);
    shipped::wait_for(&store, &bucket, blocks.len());
    assert!(shipped::blocks(&bucket).iter().all(|block| level(block) == 1));

    // As above.
    let (mut times, mut count) = (Default::default(), 0);
    let end = |server: Server| {
        let ended = server.terminate();
        (times, count) = (file_times(&bucket), shipped::blocks(&bucket).len());
        ended
    };
    let store = store.restart(end).expect("tidepool starts again");
    until("a look", &store, || {
        store.server.log().matches("shipping of blocks started").count() == 2
    });
    until("two rounds", &store, || metric(&store, "tidepool_ship_rounds_total") >= 2.0);
    assert_uploads_are_new(&store, &bucket, count);
    assert_untouched(&bucket, &times);
}

/// Hours without the bucket: the node continues, nothing is merged or dropped for its age, and all
/// of it arrives in the end.
#[test]
fn what_a_dead_uplink_held_up_is_shipped_when_it_is_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = ObjectStorage::new(directory.path()).expect("a bucket");
    let bucket = storage.bucket().join("fleet/north");
    let ship = format!("--ship={}", storage.url("fleet/north"));
    let store = Store::start_with(|config| {
        let config = config.merged_block_duration(BLOCK).flag("--retention-time=40m");
        config.started_by(storage.environment(None)).flag(LABEL).flag(&ship)
    })
    .expect("tidepool starts");
    let data = hours_of_data(93);
    send_all(&store, Version::V2, &data);
    let blocks = wait_for_blocks(&store, &data, BLOCK_MS);
    let waiting = || store.metric("tidepool_ship_blocks_waiting").unwrap_or(0.0) as usize;
    until("waiting blocks", &store, || waiting() >= blocks.len());
    let here = || data_dir::blocks(store.config.data_dir()).unwrap_or_default();
    // One more block may be cut meanwhile.
    let is_lag = || {
        let blocks = here();
        let begin_ms = blocks.iter().map(|block| block.min_ms).min().unwrap_or_default();
        let end_ms = blocks.iter().map(|block| block.end_ms).max().unwrap_or_default();
        metric(&store, "tidepool_ship_lag_seconds") == (end_ms - begin_ms) as f64 / 1000.0
    };
    until("the lag of what waits", &store, is_lag);
    let failures = "tidepool_ship_upload_failures_total";
    until("failures", &store, || metric(&store, failures) >= 2.0);
    assert!(here().iter().all(|block| level(block) == 1));
    assert!(here().len() >= 30, "{} blocks", here().len());
    assert!(
        store.server.log().contains("shipping of blocks failed; it will be retried"),
        "{}",
        store.server.log()
    );

    let server = storage.start().expect("the storage starts");
    shipped::wait_for(&store, &bucket, blocks.len());
    until("no lag", &store, || metric(&store, "tidepool_ship_lag_seconds") == 0.0);
    assert_bucket_holds(&bucket, &data);
    // Blocks are dropped for their age from now on.
    until("dropped blocks", &store, || here().len() < 15);
    assert_eq!(metric(&store, "tidepool_blocks_dropped_unshipped_total"), 0.0);
    server.terminate().expect("the storage ends");
}

/// `kill -9` between a block's files: uploaded files are not sent again, and the block is not taken
/// for whole too early.
#[test]
fn a_killed_upload_goes_on_where_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = ObjectStorage::new(directory.path()).expect("a bucket");
    let bucket = storage.bucket();
    let server = storage.start().expect("the storage starts");
    let ship = format!("--ship={}", storage.url(""));
    let config = Config::new(directory.path()).block_duration(BLOCK).flag(LABEL).flag(&ship);
    let config = config.started_by(storage.environment(None));
    let slow = config.clone().flag("--ship-bandwidth=4KB");
    let store = Store {
        server: slow.start().expect("tidepool starts"),
        config: slow,
        directory: tempfile::tempdir().expect("a directory"),
    };
    let data = hours_of_data(95);
    send_all(&store, Version::V2, &data);
    let begun = || {
        let blocks = fs::read_dir(&bucket).ok()?.flatten().map(|entry| entry.path());
        let begun = blocks.filter(|block| !block.join("meta.json").exists());
        let mut begun = begun.map(|block| block.join("chunks/000001"));
        begun.find(|chunks| chunks.is_file())
    };
    let chunks = wait::until("a block's chunks", TIMEOUT, begun)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
    store.server.kill().expect("tidepool is killed");
    let block = chunks.ancestors().nth(2).expect("a block");
    assert!(!block.join("meta.json").exists(), "killed too late");
    let written = fs::metadata(&chunks).and_then(|found| found.modified()).expect("a file");

    let store = Store {
        server: config.start().expect("tidepool starts again"),
        config,
        directory: tempfile::tempdir().expect("a directory"),
    };
    wait_for_blocks(&store, &data, BLOCK_MS);
    shipped::wait_for(&store, &bucket, 30);
    assert!(block.join("meta.json").exists());
    let now = fs::metadata(&chunks).and_then(|found| found.modified()).expect("a file");
    assert_eq!(now, written, "sent again");
    assert_bucket_holds(&bucket, &data);
    server.terminate().expect("the storage ends");
}

#[test]
fn wrong_credentials_cost_no_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = ObjectStorage::new(directory.path()).expect("a bucket");
    let server = storage.start().expect("the storage starts");
    let ship = format!("--ship={}", storage.url(""));
    let store = Store::start_with(|config| {
        let config = config.block_duration(BLOCK).flag(LABEL).flag(&ship);
        config.started_by(storage.environment(Some("not-the-secret")))
    })
    .expect("tidepool starts");
    let data = hours_of_data(96);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    let failures = "tidepool_ship_upload_failures_total";
    until("failures", &store, || metric(&store, failures) >= 2.0);
    assert!(store.server.log().contains("SignatureDoesNotMatch"), "{}", store.server.log());
    assert!(shipped::blocks(&storage.bucket()).is_empty());
    server.terminate().expect("the storage ends");
}

/// Readers of a bucket know no tombstones: samples deleted before a block was shipped must not
/// appear there.
#[test]
fn what_was_deleted_is_not_shipped() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = ObjectStorage::new(directory.path()).expect("a bucket");
    let ship = format!("--ship={}", storage.url(""));
    let store = Store::start_with(|config| {
        let config = config.block_duration(BLOCK).flag(LABEL).flag(&ship);
        config.started_by(storage.environment(None)).flag("--enable-admin-api")
    })
    .expect("tidepool starts");
    let mut data = hours_of_data(97);
    send_all(&store, Version::V2, &data);
    let blocks = wait_for_blocks(&store, &data, BLOCK_MS);
    let name = data.series[0].labels.value("__name__").to_owned();
    Admin::new(&store.server.url()).delete(&[&name], 0, i64::MAX / 2);
    data.series.retain(|series| series.labels.value("__name__") != name);

    let server = storage.start().expect("the storage starts");
    shipped::wait_for(&store, &storage.bucket(), blocks.len());
    assert_bucket_holds(&storage.bucket(), &data);
    server.terminate().expect("the storage ends");
}
