//! Many blocks, and few open files for them.

use std::fs;
use std::thread;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, read_all, send_all, wait_for_blocks};
use tidepool_tests::tidepool::{Config, Store};

const BLOCK_MS: i64 = 600_000;
const READS: usize = 10;

fn descriptors(server: &Server) -> usize {
    let directory = format!("/proc/{}/fd", server.process_id());
    fs::read_dir(directory).expect("the process lives").count()
}

fn unmerged(config: Config) -> Config {
    config.flag("--block-duration=10m").flag("--max-block-duration=10m")
}

/// Reads used to open all files of all blocks, and failed if the limit was below their number.
#[test]
fn reads_of_many_blocks_need_few_open_files() {
    let data = hours_of_data(419);
    let mut store = Store::start_with(unmerged).expect("tidepool starts");
    send_all(&store, Version::V2, &data);
    let blocks = wait_for_blocks(&store, &data, BLOCK_MS);
    let unlimited = store.reader().streamed(&[read_all()]).expect("an answer").remove(0);
    assert_same("what was sent", &data.series, &unlimited);
    assert_eq!(store.metric("tidepool_block_files_closed_total"), Some(0.0));
    let half = store.metric("process_max_fds").map(|limit| (limit / 2.0).floor().min(32_768.0));
    assert_eq!(store.metric("tidepool_block_files_open_limit"), half);

    // Fewer than the blocks' files, but one for each read.
    let files_max = blocks.len() / 2;
    assert!(files_max >= 4, "{} blocks", blocks.len());
    let flag = format!("--max-open-block-files={files_max}");
    store.config = store.config.flag(&flag);
    let store = store.restart(Server::kill).expect("tidepool starts again");
    let before = descriptors(&store.server);
    let figure = |name: &str| store.metric(name).unwrap_or_else(|| panic!("{name} is missing"));
    thread::scope(|scope| {
        for _ in 0..READS {
            scope.spawn(|| {
                let read = store.reader().streamed(&[read_all()]).expect("an answer");
                assert_same("with few open files", &unlimited, &read[0]);
            });
        }
    });
    assert!(figure("tidepool_block_files_closed_total") > 0.0);
    assert_eq!(figure("tidepool_block_files_open_limit"), files_max as f64);
    assert!(figure("tidepool_block_files_open") <= files_max as f64);
    // Instances that rest keep no more than that open, beside the connections of this test.
    let after = descriptors(&store.server);
    assert!(after <= before + files_max + 2 * READS, "{before} before, {after} after");
}
