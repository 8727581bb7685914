//! Instances that rest between two reads: their open files must not outlive their block for long
//! and must not hide deletions, and an instance that ended badly is not used again.

use crate::configuration::start;
use rustix::process::Signal;
use std::fs;
use std::thread;
use std::time::Duration;
use tidepool_tests::admin::Admin;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::data_dir::{self, Block};
use tidepool_tests::deletions::{assert_reads, filled, name};
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, read_all, recent_data, send_all, wait_for_blocks};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const CONFIG: &str = "block-duration: 10m\nmax-block-duration: 10m\n";
const BLOCK_MS: i64 = 600_000;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Half of the time that instances rest: events within it do not happen because instances end.
const PROMPT: Duration = Duration::from_secs(5);

/// Returns open files of blocks in a server, including deleted ones.
fn open_block_files(server: &Server) -> Vec<String> {
    let directory = format!("/proc/{}/fd", server.process_id());
    let links = fs::read_dir(directory).expect("the process lives").flatten();
    let paths = links.filter_map(|link| fs::read_link(link.path()).ok());
    let paths = paths.map(|path| path.to_string_lossy().into_owned());
    paths.filter(|path| path.contains("/index") || path.contains("/chunks/")).collect()
}

#[test]
fn space_of_dropped_blocks_is_free_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, path) = start(directory.path(), CONFIG, &[]);
    let data = hours_of_data(411);
    send_all(&store, Version::V2, &data);
    let before = wait_for_blocks(&store, &data, BLOCK_MS);
    let newest_ms = before.iter().map(|block| block.end_ms).max().expect("blocks");
    let is_old = |block: &Block| block.end_ms < newest_ms - 3_600_000;
    assert!(before.iter().any(is_old), "{before:?}");

    // Few series, so that the instance is kept.
    let read = [read_all()];
    store.reader().streamed(&read).expect("an answer");
    let open = open_block_files(&store.server);
    assert!(!open.is_empty(), "blocks are kept open");
    // Not before: the program may notice the change by itself.
    fs::write(&path, format!("{CONFIG}retention-time: 1h\n")).expect("a file");
    store.server.signal(Signal::HUP).expect("the signal is sent");
    wait::until("blocks to be dropped", TIMEOUT, || {
        let blocks = data_dir::blocks(store.config.data_dir()).ok()?;
        (!blocks.is_empty() && !blocks.iter().any(is_old)).then_some(())
    })
    .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
    let is_gone = |path: &String| path.contains("(deleted)") || path.contains(".tmp-for-deletion/");
    wait::until("files of dropped blocks to be closed", PROMPT, || {
        (!open_block_files(&store.server).iter().any(is_gone)).then_some(())
    })
    .unwrap_or_else(|e| panic!("{e}: {:?}", open_block_files(&store.server)));

    // The next read sees the remaining samples.
    let from_ms = data_dir::blocks(store.config.data_dir()).expect("blocks")[0].min_ms;
    let recent: Vec<_> = data.series.iter().map(|s| s.between(from_ms, i64::MAX)).collect();
    let found = store.reader().streamed(&read).expect("an answer");
    assert_same("what is left", &recent, &found[0]);
}

#[test]
fn what_is_deleted_is_gone_for_instances_that_know_the_blocks() {
    let (store, mut series) = filled(412);
    let admin = Admin::new(&store.server.url());
    for _ in 0..4 {
        // Two reads of each kind, so that later ones use instances that have the blocks open.
        for _ in 0..2 {
            assert_reads(&store.server, &series, "before a deletion");
        }
        let deleted = name(&series[0]);
        series.retain(|series| name(series) != deleted);
        admin.delete(
            &[&format!("{{__name__=\"{deleted}\"}}")],
            i64::MIN / 1_000_000,
            i64::MAX / 1_000_000,
        );
        assert_reads(&store.server, &series, "after a deletion");
    }
    assert!(!series.is_empty());
}

#[test]
fn a_query_that_ends_badly_leaves_the_next_one_alone() {
    let store = Store::start_with(|config| config.flag("--query-memory-limit=8MiB"));
    let store = store.expect("tidepool starts");
    let data = recent_data(413, 2_000, 30);
    send_all(&store, Version::V2, &data);
    let client = Client::default();
    let end_ms = data.series.iter().flat_map(|s| s.samples.last()).map(|s| s.timestamp_ms).max();
    let end = end_ms.expect("samples") as f64 / 1e3;
    let ask = |promql: &str| {
        let promql = percent_encode(promql);
        let url = format!("{}/api/v1/query?query={promql}&time={end}", store.server.url());
        client.get(&url).expect("an answer")
    };
    let narrow = "count by (__name__) ({__name__!=\"\"}) > 0";
    let expected = ask(narrow).text();
    assert!(expected.contains("\"status\":\"success\""), "{expected}");
    // Regular expressions that take more memory than there is.
    let costly = format!("{{__name__=~\"{}\"}}", "(.{0,111}x?){9}|".repeat(40));
    for _ in 0..5 {
        let failed = ask(&costly);
        assert!(!failed.is_success(), "{}", failed.text());
        for _ in 0..3 {
            assert_eq!(ask(narrow).text(), expected);
        }
    }
}

/// At the smallest limit, two resting instances take the memory that one read needs to begin: for
/// ten seconds each read was refused, though none ran.
#[test]
fn at_the_least_limit_none_keeps_a_read_out() {
    let store = Store::start_with(|config| config.flag("--memory-limit=96MiB"));
    let store = store.expect("tidepool starts");
    let data = recent_data(414, 100, 60);
    send_all(&store, Version::V2, &data);
    let read = || store.reader().streamed(&[read_all()]);
    // Two at a time, until two rest and leave less than a read needs to begin.
    wait::until("two to rest", PROMPT, || {
        thread::scope(|threads| {
            for _ in 0..4 {
                // Some may be refused, beside those that run.
                threads.spawn(read);
            }
        });
        (store.metric("tidepool_reads_memory_bytes")? > 2_700_000.0).then_some(())
    })
    .expect("two instances");
    let found = read().expect("none runs");
    assert_same("a read alone", &data.series, &found[0]);
}
