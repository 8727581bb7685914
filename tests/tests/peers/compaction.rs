//! Merged blocks as upstream's tools read them.

use tidepool_tests::checksum::assert_same;
use tidepool_tests::peers::Release;
use tidepool_tests::promtool::{self, clear_nan_bits, parse_dump};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, send_all, wait_for_blocks, wait_for_merged};
use tidepool_tests::tidepool::Store;

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
