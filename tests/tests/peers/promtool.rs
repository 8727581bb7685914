//! Both generations of upstream's own tool read tidepool's blocks and log.

use rustix::process::Signal;
use std::path::Path;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::data_dir::{self, Block};
use tidepool_tests::peers::Release;
use tidepool_tests::process::END_TIMEOUT;
use tidepool_tests::prometheus;
use tidepool_tests::promtool::{clear_nan_bits, parse_dump, tsdb};
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{assert_holds, hours_of_data, recent_data, send_all, wait_for_blocks};
use tidepool_tests::series::{Dataset, Series};
use tidepool_tests::tidepool::{Config, Store};

const BLOCK: &str = "10m";
const BLOCK_MS: i64 = 600_000;

#[track_caller]
fn dump(release: Release, data_dir: &Path) -> Vec<Series> {
    parse_dump(&tsdb(release, "dump", data_dir, &[])).expect("a dump")
}

/// Returns a stopped store with many blocks and a head that is only in the log.
fn stopped_store() -> (Store, Dataset, Vec<Block>) {
    let store = Store::start_with(|config| config.block_duration(BLOCK).prometheus_records());
    let mut store = store.expect("tidepool starts");
    let data = hours_of_data(61);
    send_all(&store, Version::V2, &data);
    let blocks = wait_for_blocks(&store, &data, BLOCK_MS);
    store.server.signal(Signal::TERM).expect("it can be stopped");
    store.server.wait_end(END_TIMEOUT).expect("tidepool ends");
    (store, data, blocks)
}

/// One start serves all checks, because cutting takes a while.
#[test]
fn promtool_lists_analyzes_and_dumps_our_blocks() {
    let (store, data, _) = stopped_store();
    let data_dir = store.config.data_dir();
    // Another block may have been cut during the stop.
    let blocks = data_dir::blocks(data_dir).expect("blocks");
    for release in Release::ALL {
        let list = tsdb(release, "list", data_dir, &[]);
        for block in &blocks {
            assert!(list.contains(&block.ulid), "{release:?} does not list {block:?}:\n{list}");
        }
        for block in [&blocks[0], &blocks[blocks.len() / 2]] {
            let analysis = tsdb(release, "analyze", data_dir, &[&block.ulid]);
            let total = format!("Series: {}\n", block.series);
            assert!(analysis.contains(&total), "{release:?}, not {total}:\n{analysis}");
        }
    }

    // Each block alone has the sent samples of its range.
    let sent = clear_nan_bits(&data.series);
    for block in &blocks {
        let alone = tempfile::tempdir().expect("a temporary directory");
        data_dir::copy(&block.path, &alone.path().join(&block.ulid)).expect("a copy");
        // The older promtool does not open a directory without a log.
        std::fs::create_dir(alone.path().join("wal")).expect("an empty log");
        let expected: Vec<Series> =
            sent.iter().map(|s| s.between(block.min_ms, block.end_ms - 1)).collect();
        let count: u64 = expected.iter().map(|s| s.samples.len() as u64).sum();
        assert_eq!(block.samples, count, "numSamples in meta.json of {block:?}");
        for release in Release::ALL {
            assert_same(
                &format!("{release:?}, {block:?}"),
                &expected,
                &dump(release, alone.path()),
            );
        }
    }

    // The whole directory has everything: promtool also replays tidepool's log.
    for release in Release::ALL {
        assert_same(&format!("{release:?}, blocks and log"), &sent, &dump(release, data_dir));
    }
}

/// A log that has never been truncated reads like Prometheus' own.
#[test]
fn promtool_dumps_our_log() {
    let store = Store::start_with(Config::prometheus_records).expect("tidepool starts");
    let data = recent_data(62, 300, 100);
    send_all(&store, Version::V1, &data);
    assert_holds(&store, &data);
    store.server.signal(Signal::KILL).expect("it can be killed");
    let sent = clear_nan_bits(&data.series);
    for release in Release::ALL {
        assert_same(&format!("{release:?}"), &sent, &dump(release, store.config.data_dir()));
    }
}

/// A node can move from tidepool to Prometheus with its data.
#[test]
fn prometheus_starts_on_our_data() {
    let (store, data, _) = stopped_store();
    for release in Release::ALL {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config =
            prometheus::Config::new(release, directory.path()).expect("the directory can be used");
        data_dir::copy(store.config.data_dir(), &config.data_dir()).expect("a copy");
        let server = config.start().expect("Prometheus starts");
        let reader = Reader::new(&server.url());
        let query = everything(i64::MIN / 2, i64::MAX / 2);
        let answer = reader.samples_message(&[query]).expect("samples");
        let samples: u64 =
            answer.results[0].timeseries.iter().map(|s| s.samples.len() as u64).sum();
        assert_eq!(samples, data.sample_count(), "{release:?}");
    }
}
