//! A store whose directory the command line inspects, and a check whether the files changed.
//!
//! The functions here are assertions: they panic if the program under test fails.

use crate::clock::begin_ms;
use crate::data_dir;
use crate::remote_write::Version;
use crate::sender::{hours_of_data_until, send_all, wait_for_blocks};
use crate::series::Dataset;
use crate::tidepool::{Config, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

const BLOCK: &str = "10m";
const BLOCK_MS: i64 = 600_000;
/// Timeout for the end of a process.
pub const WAIT: Duration = Duration::from_secs(30);

/// Starts a store with many blocks and a head that is only in the log. The samples end at
/// [`begin_ms()`], so the ranges of the blocks are always the same.
pub fn busy_store(seed: u64) -> (Store, Dataset) {
    busy_store_with(seed, |config| config)
}

/// As [`busy_store`], with other flags.
pub fn busy_store_with(seed: u64, configure: impl FnOnce(Config) -> Config) -> (Store, Dataset) {
    let started = Store::start_with(|config| configure(config.block_duration(BLOCK)));
    let store = started.expect("tidepool starts");
    let data = hours_of_data_until(seed, begin_ms());
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, BLOCK_MS);
    (store, data)
}

/// Returns the contents of all files of a directory by their paths.
pub fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let content = std::fs::read(&path).expect("a file");
            found.insert(path, content);
        }
    }
    found
}

/// Panics with the names of changed files if a directory differs from the earlier [`files`].
pub fn assert_unchanged(directory: &Path, before: &BTreeMap<PathBuf, Vec<u8>>, what: &str) {
    let after = files(directory);
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let bytes = |files: &BTreeMap<PathBuf, Vec<u8>>, path| files.get(path).map(Vec::len);
    let changed: Vec<_> = paths
        .into_iter()
        .filter(|&path| before.get(path) != after.get(path))
        .map(|path| (path, bytes(before, path), bytes(&after, path)))
        .collect();
    assert!(changed.is_empty(), "{what}: changed (bytes before, after): {changed:?}");
}

/// Copies a data directory, so that a test may change it.
pub fn copy(data_dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a temporary directory");
    data_dir::copy(data_dir, copy.path()).expect("a copy");
    copy
}
