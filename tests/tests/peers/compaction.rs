//! Merged blocks, read by upstream's tools.

use tidepool_tests::checksum::assert_same;
use tidepool_tests::cli::tsdb;
use tidepool_tests::clock::now_ms;
use tidepool_tests::made;
use tidepool_tests::peers::Release;
use tidepool_tests::prometheus;
use tidepool_tests::promtool::{self, clear_nan_bits, parse_dump};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, send_all, wait_for_blocks, wait_for_merged};
use tidepool_tests::series::{Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::{arguments, data_dir};

const HOUR_MS: i64 = 3_600_000;

#[test]
fn promtool_reads_merged_blocks_and_the_log() {
    let store = Store::start_with(|c| c.merged_block_duration("5m").prometheus_records());
    let store = store.expect("tidepool starts");
    let data = hours_of_data(81);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, 300_000);
    wait_for_merged(&store, 300_000);
    store.server.terminate().expect("tidepool ends");
    let sent = clear_nan_bits(&data.series);
    for release in Release::ALL {
        let dump = promtool::tsdb(release, "dump", store.config.data_dir(), &[]);
        let dump = parse_dump(&dump).expect("a dump");
        assert_same(&format!("{release:?}, merged blocks and log"), &sent, &dump);
    }
}

/// Merges blocks of a Prometheus twice: the second time only an index is written, and the chunks
/// stay in the files of the blocks of the first merge.
#[test]
fn upstream_reads_a_block_that_took_over_files() {
    const SCRAPES: usize = 22 * 240;
    let start_ms = (now_ms() - 40 * HOUR_MS).div_euclid(18 * HOUR_MS) * 18 * HOUR_MS;
    let (interval_ms, texture) = (15_000, Texture::Regular);
    let shape = Shape { seed: 83, series: 20, scrapes: SCRAPES, start_ms, interval_ms, texture };
    let directory = tempfile::tempdir().expect("a directory");
    let config = prometheus::Config::new(Release::V3, directory.path()).expect("a configuration");
    let data_dir = config.data_dir();
    made::write_blocks(&data_dir, &shape, 2 * HOUR_MS).expect("blocks");
    // promtool 2.x requires the directory of a log.
    std::fs::create_dir_all(data_dir.join("wal")).expect("a directory");
    let before = promtool::tsdb(Release::V3, "dump", &data_dir, &[]);

    let report = tsdb(arguments!["compact", "--max-block-duration=36h", &data_dir]);
    assert!(report.contains("merged: level 3"), "{report}");
    let blocks = data_dir::blocks(&data_dir).expect("blocks");
    let files = std::fs::read_dir(blocks[0].path.join("chunks")).expect("chunks");
    assert_eq!((blocks.len(), files.count()), (3, 3), "{report}");
    tsdb(arguments!["verify", &data_dir]);
    assert!(tsdb(arguments!["dump", &data_dir]) == before);
    for release in Release::ALL {
        assert!(promtool::tsdb(release, "dump", &data_dir, &[]) == before, "{release:?}");
    }

    let server = config.start().expect("Prometheus starts");
    let counted = r#"sum(count_over_time({__name__!=""}[23h]))"#;
    let end_ms = start_ms + 22 * HOUR_MS;
    let found = prometheus::query(&server, counted, end_ms).expect("an answer");
    assert_eq!(found.into_values().collect::<Vec<_>>(), [(20 * SCRAPES).to_string()]);
}
