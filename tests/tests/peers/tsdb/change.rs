//! `compact` and `import` need exclusive use of the directory, and lose no sample of the head.

use rustix::process::Signal;
use std::path::Path;
use tidepool_tests::busy::{WAIT, busy_store};
use tidepool_tests::cli::{self, tsdb};
use tidepool_tests::peers::Release;
use tidepool_tests::sender::assert_holds;
use tidepool_tests::{arguments, data_dir, promtool};

#[test]
fn compaction_cuts_and_merges_and_loses_nothing() {
    let (mut store, data) = busy_store(99);
    let data_dir = store.config.data_dir().to_owned();
    store.server.signal(Signal::KILL).expect("it can be killed");
    store.server.wait_end(WAIT).expect("tidepool ends");
    let before = tsdb(arguments!["dump", &data_dir]);
    let block_count = || data_dir::blocks(&data_dir).expect("blocks").len();
    let unmerged = block_count();

    let report =
        tsdb(arguments!["compact", "--block-duration=10m", "--max-block-duration=36h", &data_dir]);
    assert!(report.contains("merged: level 2") && report.contains("deleted"), "{report}");
    assert!(block_count() < unmerged / 2, "{report}");
    assert!(tsdb(arguments!["dump", &data_dir]) == before);

    // Samples that are only in the log prevent an import of the same time.
    let (_, last_ms) = data.time_range_ms().expect("samples");
    let line = format!("imported 1 {}\n# EOF\n", last_ms / 1000 - 1);
    let refused = cli::run(arguments!["import", "-", &data_dir], &line);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("compact --head"), "{}", refused.stderr);
    assert!(tsdb(arguments!["dump", &data_dir]) == before);

    let report = tsdb(arguments![
        "compact",
        "--head",
        "--block-duration=10m",
        "--max-block-duration=36h",
        &data_dir
    ]);
    assert!(report.contains("cut from the head"), "{report}");
    assert!(tsdb(arguments!["dump", &data_dir]) == before);
    let ends = data_dir::blocks(&data_dir).expect("blocks").into_iter().map(|block| block.end_ms);
    assert_eq!(ends.max(), Some(last_ms + 1), "what comes next is not out-of-order");
    let report = tsdb(arguments!["verify", &data_dir]);
    for release in Release::ALL {
        assert!(promtool::tsdb(release, "dump", &data_dir, &[]) == before, "{release:?}");
    }
    assert_eq!(
        tsdb(arguments!["compact", "--block-duration=10m", "--max-block-duration=36h", &data_dir]),
        "",
        "{report}"
    );

    // The server continues with the directory.
    let server = store.config.start().expect("tidepool starts again");
    store.server = server;
    assert_holds(&store, &data);
    store.server.signal(Signal::TERM).expect("it can be stopped");
    store.server.wait_end(WAIT).expect("tidepool ends");

    let imported = cli::run(arguments!["import", "-q", "-", &data_dir], &line);
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let all = tsdb(arguments!["dump", &data_dir]);
    assert_eq!(all.lines().count(), before.lines().count() + 1);

    // All but the newest block, which has the head's last samples, and which merges leave alone.
    let flags = ["--retention-time=1ms", "--block-duration=10m"];
    let newest = tsdb(arguments!["compact", flags[0], flags[1], &data_dir]);
    assert!(newest.contains("older than --retention-time"), "{newest}");
    let left = data_dir::blocks(&data_dir).expect("blocks");
    assert_eq!(left.len(), 1, "{left:?}");
    let (first_ms, _) = data.time_range_ms().expect("samples");
    assert!(left[0].min_ms > first_ms && left[0].end_ms == last_ms + 1, "{left:?}");
}

#[test]
fn a_snapshot_is_a_data_directory_of_its_own() {
    let (mut store, _) = busy_store(97);
    let data_dir = store.config.data_dir().to_owned();
    store.server.signal(Signal::KILL).expect("it can be killed");
    store.server.wait_end(WAIT).expect("tidepool ends");
    let before = tsdb(arguments!["dump", &data_dir]);
    let block_count = data_dir::blocks(&data_dir).expect("blocks").len();

    let whole = tsdb(arguments!["snapshot", &data_dir]);
    let whole = Path::new(whole.trim_end());
    assert!(whole.starts_with(data_dir.join("snapshots")), "{whole:?}");
    assert_eq!(data_dir::blocks(whole).expect("blocks").len(), block_count + 1);
    assert!(tsdb(arguments!["dump", whole]) == before);
    tsdb(arguments!["verify", whole]);
    // promtool 2.x requires the directory of a log, which upstream's own snapshots lack as well.
    std::fs::create_dir(whole.join("wal")).expect("a directory");
    for release in Release::ALL {
        assert!(promtool::tsdb(release, "dump", whole, &[]) == before, "{release:?}");
    }
    let blocks = tsdb(arguments!["snapshot", "--skip-head", &data_dir]);
    let blocks = data_dir::blocks(Path::new(blocks.trim_end())).expect("blocks");
    assert_eq!(blocks.len(), block_count);
    assert!(tsdb(arguments!["dump", &data_dir]) == before, "the directory is as it was");
}
