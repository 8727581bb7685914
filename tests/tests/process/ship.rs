//! Finished blocks are shipped to a directory or to an object storage that is down.

use std::fs;
use tidepool_tests::cli;
use tidepool_tests::object_storage::ObjectStorage;
use tidepool_tests::process::ProcessError;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, send_all, wait_for_blocks};
use tidepool_tests::shipped::{
    self, BLOCK, BLOCK_MS, LABEL, assert_untouched, assert_uploads_are_new, file_times, file_url,
    metric, until,
};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::{arguments, data_dir};

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

/// `tidepool tsdb compact`, which users run before Prometheus takes over, ignored pinned blocks: it
/// merged blocks that waited to be shipped, and their samples never reached the bucket.
#[test]
fn a_command_merges_no_block_that_waits() {
    let directory = tempfile::tempdir().expect("a directory");
    let bucket = directory.path().join("bucket");
    let out_of_reach = ObjectStorage::new(&directory.path().join("remote")).expect("a bucket");
    let node = Config::new(directory.path()).flag("--block-duration=5m").flag(LABEL);
    let node = node.flag("--max-block-duration=15m").started_by(out_of_reach.environment(None));
    let config = node.clone().flag(&format!("--ship={}", out_of_reach.url("")));
    let server = config.start().expect("tidepool starts");
    let mut store = Store { server, config, directory };
    let data = hours_of_data(95);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    store.server.kill().expect("tidepool ends");

    let data_dir = store.config.data_dir().to_owned();
    let output = cli::run(arguments!["compact", "--head", &data_dir], "");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("cut from the head"), "{output:?}");
    assert!(!output.stdout.contains("merged"), "{output:?}");
    assert!(output.stderr.contains("wait for an upload"), "{output:?}");
    let waiting = data_dir::blocks(&data_dir).expect("blocks").len();

    store.server = node.flag(&file_url(&bucket)).start().expect("tidepool starts again");
    let shipped = shipped::wait_for(&store, &bucket, waiting);
    assert_eq!(shipped.iter().map(|block| block.samples).sum::<u64>(), data.sample_count());
    store.server.kill().expect("tidepool ends");

    // Blocks in the bucket are merged, and no further than by the node.
    let report = cli::tsdb(arguments!["compact", &data_dir]);
    assert!(report.contains("merged: level 2"), "{report}");
    let blocks = data_dir::blocks(&data_dir).expect("blocks");
    assert!(blocks.iter().all(|block| block.end_ms - block.min_ms <= 3 * BLOCK_MS), "{report}");
}

/// The same with the list of another uploader, which may be at any path; and if the user wants it.
#[test]
fn a_command_reads_the_list_of_another_uploader() {
    let directory = tempfile::tempdir().expect("a directory");
    let list = directory.path().join("list.json");
    let store = Store::start_with(|config| {
        let flag = format!("--delay-compact-file={}", list.display());
        config.flag("--block-duration=5m").flag(&flag)
    })
    .expect("tidepool starts");
    let data = hours_of_data(96);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    store.server.kill().expect("tidepool ends");

    let data_dir = store.config.data_dir().to_owned();
    let ulids = || -> Vec<String> {
        data_dir::blocks(&data_dir).expect("blocks").into_iter().map(|block| block.ulid).collect()
    };
    let compact = |flags: &[&str]| {
        let data_dir = [data_dir.as_os_str()];
        let words = ["compact"].iter().chain(flags).map(std::ffi::OsStr::new);
        cli::run(&words.chain(data_dir).collect::<Vec<_>>(), "")
    };
    // All blocks but one are listed.
    let all = ulids();
    let (waits, uploaded) = all.split_first().expect("blocks");
    fs::write(&list, serde_json::json!({ "version": 1, "uploaded": uploaded }).to_string())
        .expect("a list");
    let output = compact(&[]);
    assert!(output.stdout.contains("merged: level 2"), "{output:?}");
    assert!(output.stderr.contains("1 blocks wait for an upload"), "{output:?}");
    assert!(ulids().contains(waits), "{output:?}");

    // A list that cannot be parsed may name none of them.
    fs::write(&list, "{").expect("a list");
    let before = ulids();
    let output = compact(&["--head"]);
    assert!(!output.stdout.contains("deleted"), "{output:?}");
    let after = ulids();
    assert!(before.iter().all(|ulid| after.contains(ulid)), "{output:?}");

    let output = compact(&["--merge-waiting"]);
    assert!(output.stdout.contains(&format!("{waits} deleted: a merged block holds it")));
    assert!(!output.stderr.contains("wait for an upload"), "{output:?}");

    // Nothing is guessed about settings that cannot be parsed.
    let settings = data_dir.join("compaction.json");
    fs::write(&settings, "{").expect("settings");
    let before = ulids();
    let output = compact(&[]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("compaction.json"), "{output:?}");
    assert_eq!(ulids(), before);
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
