//! A log that has far more than a head should: blocks are cut during the replay, and a kill at any
//! moment neither loses nor doubles a sample.

use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{assert_holds, send_all};
use tidepool_tests::series::{Dataset, Random, Shape, Texture};
use tidepool_tests::soak;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

/// Number of kills during the replay.
const KILLS: (usize, usize) = (6, 60);

/// Makes twenty hours of data, too many for the memory limit of the second start.
fn data(seed: u64) -> Dataset {
    let (scrapes, interval_ms) = (4800, 15_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    Dataset::generate(Shape { seed, series: 400, scrapes, start_ms, interval_ms, texture })
}

/// Returns the same directory with blocks of two hours and little memory.
fn small(config: &Config) -> Config {
    let config = Config::new(config.data_dir().parent().expect("a directory of the test's"));
    config.flag("--memory-limit=96MiB").flag("--max-failed-starts=0").flag("--retention-time=0")
}

fn kills_cost_nothing(records: &str) {
    let data = data(7);
    // No block is cut before the first restart.
    let store = Store::start_with(|config| {
        let config = config.flag("--block-duration=1000h").flag("--out-of-order-window=24h");
        config.flag("--wal-segment-size=1MiB").flag(&format!("--wal-records={records}"))
    })
    .expect("tidepool starts");
    send_all(&store, Version::V2, &data);
    let Store { server, config, directory } = store;
    server.kill().expect("a kill");
    let log_bytes = data_dir::total_bytes(&config.data_dir().join("wal"));

    let config = small(&config);
    let kills = soak::count(KILLS.0, KILLS.1);
    let mut random = Random::new(kills as u64, 1);
    for _ in 0..kills {
        let server = config.launch().and_then(|launch| launch.spawn()).expect("tidepool starts");
        std::thread::sleep(Duration::from_millis(50 + random.below(1200)));
        server.kill().expect("a kill");
    }
    let server = config.start().expect("tidepool starts");
    let mut store = Store { server, config, directory };
    assert!(store.server.log().contains("block cut from the log"), "{}", store.server.log());
    let blocks = data_dir::blocks(store.config.data_dir()).expect("blocks");
    // Whatever blocks they were merged into since.
    let cut: u64 = blocks.iter().map(|block| block.samples).sum();
    assert!(cut * 2 > data.sample_count(), "{cut} samples in {blocks:?}");
    // The log is truncated after the start, by a checkpoint.
    let left_bytes = || data_dir::total_bytes(&store.config.data_dir().join("wal"));
    let is_truncated = || (left_bytes() < log_bytes * 3 / 4).then_some(());
    wait::until("the log's truncation", Duration::from_secs(60), is_truncated)
        .unwrap_or_else(|e| panic!("{e}; {} of {log_bytes} bytes are left", left_bytes()));
    assert_holds(&store, &data);
    for end in [Server::kill, Server::terminate] {
        store = store.restart(end).expect("tidepool starts again");
        assert_holds(&store, &data);
    }
}

#[test]
fn kills_while_blocks_are_cut_from_the_log_cost_nothing() {
    kills_cost_nothing("prometheus");
}

#[test]
fn kills_while_blocks_are_cut_from_a_log_of_columns_cost_nothing() {
    kills_cost_nothing("columns");
}
