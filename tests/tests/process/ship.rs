//! Finished blocks go to a directory or to object storage that is not there.

use std::fs;
use tidepool_tests::object_storage::ObjectStorage;
use tidepool_tests::process::ProcessError;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, send_all, wait_for_blocks};
use tidepool_tests::shipped::{
    self, BLOCK, BLOCK_MS, LABEL, assert_untouched, assert_uploads_are_new, file_times, file_url,
    metric, until,
};
use tidepool_tests::tidepool::{Config, Store};

#[test]
fn without_its_list_a_node_asks_the_bucket_and_replaces_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let bucket = directory.path().join("bucket");
    let config = Config::new(directory.path()).block_duration(BLOCK).flag(&file_url(&bucket));
    let start = |label: &str| {
        let config = config.clone().flag(label);
        let directory = tempfile::tempdir().expect("a directory");
        Store { server: config.start().expect("tidepool starts"), config, directory }
    };
    let store = start(LABEL);
    let data = hours_of_data(92);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    let count = shipped::wait_for(&store, &bucket, 30).len();
    let times = file_times(&bucket);
    store.server.kill().expect("tidepool ends");

    let list = config.data_dir().join("thanos.shipper.json");
    let listed: serde_json::Value =
        serde_json::from_slice(&fs::read(&list).expect("a list")).expect("JSON");
    assert_eq!(listed["version"], 1);
    assert_eq!(listed["uploaded"].as_array().map(Vec::len), Some(count));
    fs::write(&list, "{\"version\":1,").expect("a damaged list");
    let store = start(LABEL);
    let there = "tidepool_ship_already_there_total";
    until("answers of the bucket", &store, || store.metric(there) == Some(count as f64));
    assert_uploads_are_new(&store, &bucket, count);
    assert!(store.server.log().contains("listing the bucket instead"));
    store.server.kill().expect("tidepool ends");

    // The same blocks under another node's name: a data directory that was copied.
    fs::remove_file(&list).expect("a list");
    let store = start("--external-label=node=edge-8");
    let conflicts = "tidepool_ship_conflicts_total";
    until("conflicts", &store, || store.metric(conflicts) >= Some(count as f64));
    assert!(store.server.log().contains("edge-7") && store.server.log().contains("edge-8"));
    assert_untouched(&bucket, &times);
}

#[test]
fn a_node_without_a_label_of_its_own_does_not_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = Config::new(directory.path());
    let bucket = file_url(&directory.path().join("bucket"));
    let refused = |config: Config| match config.start() {
        Err(ProcessError::EndedEarly { log, .. }) => log,
        other => panic!("{other:?}"),
    };
    let log = refused(config.clone().flag(&bucket));
    assert!(log.contains("--external-label=node=edge-7"), "{log}");
    let log = refused(config.flag("--ship=ftp://host/path").flag(LABEL));
    assert!(log.contains("s3://bucket"), "{log}");
}

#[test]
fn a_full_disk_counts_more_than_a_dead_uplink() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = ObjectStorage::new(directory.path()).expect("a bucket");
    let ship = format!("--ship={}", storage.url(""));
    let store = Store::start_with(|config| {
        let config = config.block_duration(BLOCK).flag("--retention-size=600KB");
        config.started_by(storage.environment(None)).flag(LABEL).flag(&ship)
    })
    .expect("tidepool starts");
    let data = hours_of_data(94);
    send_all(&store, Version::V2, &data);
    let dropped = "tidepool_blocks_dropped_unshipped_total";
    until("dropped blocks", &store, || metric(&store, dropped) > 0.0);
    let log = store.server.log();
    assert!(log.contains("dropped before it was uploaded"), "{log}");
}
