//! Content of a bucket that is a directory, and the node's metrics about it.
//!
//! The functions here are assertions: they panic if the server under test fails.

use crate::data_dir::{self, Block};
use crate::peers::Release;
use crate::promtool::{self, parse_dump};
use crate::series::{Dataset, Series};
use crate::tidepool::Store;
use crate::wait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

const TIMEOUT: Duration = Duration::from_secs(120);
/// Duration of blocks, as a flag.
pub const BLOCK: &str = "5m";
/// Duration of blocks in milliseconds.
pub const BLOCK_MS: i64 = 300_000;
/// External label by which the node differs from others.
pub const LABEL: &str = "--external-label=node=edge-7";

/// Returns the `meta.json` of a block.
#[track_caller]
pub fn meta(block: &Block) -> Value {
    meta_if_there(block).expect("a meta.json")
}

/// Returns the `meta.json` of a block; `None` if the block was deleted since it was listed, as by a
/// merge.
#[track_caller]
pub fn meta_if_there(block: &Block) -> Option<Value> {
    let text = match std::fs::read(block.path.join("meta.json")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        text => text.expect("a meta.json"),
    };
    Some(serde_json::from_slice(&text).expect("JSON"))
}

/// Returns the finished blocks of a bucket, in time order.
#[track_caller]
pub fn blocks(bucket: &Path) -> Vec<Block> {
    match bucket.is_dir() {
        true => data_dir::blocks(bucket).expect("a bucket"),
        false => Vec::new(),
    }
}

/// Waits until the bucket has this number of blocks and no block of the node is pending.
#[track_caller]
pub fn wait_for(store: &Store, bucket: &Path, blocks_min: usize) -> Vec<Block> {
    let all = || {
        let waiting = store.metric("tidepool_ship_blocks_waiting")?;
        // A file may be incomplete, and the bucket may not exist yet.
        let found = data_dir::blocks(bucket).ok()?;
        (waiting == 0.0 && found.len() >= blocks_min).then_some(found)
    };
    wait::until("shipped blocks", TIMEOUT, all)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()))
}

/// Asserts that the blocks of an earlier list are not uploaded again. A start may cut a block that
/// was not due before.
#[track_caller]
pub fn assert_uploads_are_new(store: &Store, bucket: &Path, count_before: usize) {
    wait_for(store, bucket, count_before);
    // An upload is counted after its last file. A repeated upload would be counted permanently.
    let (mut uploads, mut new) = (0.0, 0);
    let are_new = || {
        new = data_dir::blocks(bucket).ok()?.len().checked_sub(count_before)?;
        uploads = metric(store, "tidepool_ship_uploads_total");
        (uploads == new as f64).then_some(())
    };
    wait::until("uploads of new blocks alone", TIMEOUT, are_new)
        .unwrap_or_else(|e| panic!("{e}: {uploads} of {new}\n{}", store.server.log()));
}

/// Returns the samples that promtool finds in the blocks of a bucket.
#[track_caller]
pub fn dump(bucket: &Path) -> Vec<Series> {
    let copy = tempfile::tempdir().expect("a directory");
    data_dir::copy(bucket, copy.path()).expect("a copy");
    // Without this directory, promtool does not accept a data directory.
    std::fs::create_dir_all(copy.path().join("wal")).expect("a directory");
    parse_dump(&promtool::tsdb(Release::V3, "dump", copy.path(), &[])).expect("a dump")
}

/// Returns the samples of a data set before a time.
pub fn before(data: &Dataset, end_ms: i64) -> Vec<Series> {
    let cut = data.series.iter().map(|series| series.between(i64::MIN, end_ms - 1));
    cut.filter(|series| !series.samples.is_empty()).collect()
}

/// Returns the flag that ships to a directory.
pub fn file_url(bucket: &Path) -> String {
    format!("--ship=file://{}", bucket.display())
}

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, store: &Store, mut look: impl FnMut() -> bool) {
    wait::until(what, TIMEOUT, || look().then_some(()))
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
}

/// Returns a metric of the node, which must exist.
#[track_caller]
pub fn metric(store: &Store, name: &str) -> f64 {
    store.metric(name).unwrap_or_else(|| panic!("{name} is not there"))
}

/// Asserts that none of these files was written again.
#[track_caller]
pub fn assert_untouched(bucket: &Path, times: &BTreeMap<String, SystemTime>) {
    let times_now = file_times(bucket);
    assert!(times.iter().all(|(file, time)| times_now.get(file) == Some(time)));
}

/// Returns every file of the blocks with its modification time.
pub fn file_times(bucket: &Path) -> BTreeMap<String, SystemTime> {
    let mut times = BTreeMap::new();
    for block in blocks(bucket) {
        for file in ["meta.json", "index", "chunks/000001"] {
            let path = block.path.join(file);
            let written = fs::metadata(&path).and_then(|found| found.modified());
            times.insert(path.display().to_string(), written.expect("a file"));
        }
    }
    times
}
