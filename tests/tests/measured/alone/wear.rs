//! The store's count of bytes written to its disk agrees with the kernel's.

use std::time::Duration;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, send_all, wait_for_blocks};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

/// Unit of the kernel's count.
const PAGE_BYTES: f64 = 4096.0;
const TIMEOUT: Duration = Duration::from_secs(60);

fn written(store: &Store, purpose: &str) -> f64 {
    let name = format!("tidepool_disk_written_bytes_total{{for=\"{purpose}\"}}");
    store.metric(&name).expect("the counter")
}

/// The kernel counts whole pages, and the file system's own writes.
#[test]
fn the_counters_agree_with_the_kernel() {
    // A memory file system, which a temporary directory may be on, writes nothing.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let config = Config::new(directory.path()).merged_block_duration("10m");
    let server = config.start().expect("tidepool starts");
    let store = Store { server, config, directory };
    let before = store.server.usage().expect("its usage").written_bytes;
    let data = hours_of_data(101);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, 600_000);
    let merged = || (store.metric("tidepool_blocks_merged_total")? > 0.0).then_some(());
    wait::until("a merge", TIMEOUT, merged).expect("a merge");
    let purposes = ["log", "checkpoint", "cut", "merge"];
    for purpose in purposes {
        assert!(written(&store, purpose) > 1_000.0, "nothing was written for {purpose}");
    }
    let counted: f64 = purposes.iter().map(|purpose| written(&store, purpose)).sum();
    let kernel = (store.server.usage().expect("its usage").written_bytes - before) as f64;
    let syncs_of =
        |purpose: &&str| store.metric(&format!("tidepool_disk_syncs_total{{for=\"{purpose}\"}}"));
    let syncs: f64 = purposes.iter().filter_map(syncs_of).sum();
    // Each sync writes the last page of a file, however little of it is new, and its metadata.
    let most = counted + syncs * 4.0 * PAGE_BYTES;
    assert!(
        kernel >= counted && kernel <= most,
        "counted {counted} bytes in {syncs} syncs, the kernel {kernel}; is {} on a disk?",
        store.config.data_dir().display()
    );
    let syncs = store.metric("tidepool_disk_syncs_total{for=\"cut\"}").expect("the counter");
    assert!(syncs >= 10.0, "{syncs} syncs for more than ten blocks");
}
