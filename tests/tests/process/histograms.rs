//! Native histograms of every kind: acknowledged ones are returned, from the head, from blocks,
//! from merged blocks, after `kill -9`, out of order and twice.

use std::time::Duration;
use tidepool_tests::data_dir::{self, Block};
use tidepool_tests::histogram::generate::{Family, SentSeries};
use tidepool_tests::histogram::stored::{
    MINUTE_MS, assert_holds, data_until_now, kinds, read, rows, send, start, two_hours, wait_for,
};
use tidepool_tests::histogram::wire::SentRow;
use tidepool_tests::histogram::{Kind, Point, Value};
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Random;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const BLOCKS_TIMEOUT: Duration = Duration::from_secs(150);

#[track_caller]
fn wait_for_blocks(what: &str, store: &Store, is_enough: impl Fn(&[Block]) -> bool) -> Vec<Block> {
    let found = || data_dir::blocks(store.config.data_dir()).ok().filter(|b| is_enough(b));
    wait::until(what, BLOCKS_TIMEOUT, found)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()))
}

#[test]
fn the_head_and_the_log_keep_every_kind() {
    for version in Version::ALL {
        let store = Store::start().expect("tidepool starts");
        let data = data_until_now(101, 36, 300, 1_000);
        let all = rows(&data);
        let (first, second) = all.split_at(all.len() / 2);
        send(&store.server, version, first);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        send(&store.server, version, second);
        assert_holds("in the head", &store.server, &data);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert_holds("after kill -9", &store.server, &data);
        let store = store.restart(Server::terminate).expect("tidepool starts again");
        assert_holds("after an ordinary end", &store.server, &data);
    }
}

/// Blocks of ten minutes, unmerged and merged to thirty: chunks are cut, clipped and joined.
#[test]
fn blocks_and_merged_blocks_keep_every_kind() {
    for merges in [false, true] {
        let store = Store::start_with(|config| match merges {
            false => config.block_duration("10m"),
            true => config.merged_block_duration("5m"),
        });
        let store = store.expect("tidepool starts");
        let data = data_until_now(102, 27, 400, 18_000);
        send(&store.server, Version::V2, &rows(&data));
        let is_enough = |blocks: &[Block]| match merges {
            false => blocks.len() >= 10,
            true => blocks.iter().any(|b| b.end_ms - b.min_ms > 40 * MINUTE_MS),
        };
        wait_for_blocks("blocks", &store, is_enough);
        assert_holds("in blocks", &store.server, &data);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert_holds("in blocks, after kill -9", &store.server, &data);
    }
}

/// Every third value comes out of order, in random order, once the blocks of its time exist; then
/// some of all are sent again.
#[test]
fn out_of_order_values_and_resends_are_merged_in() {
    for merges in [false, true] {
        let store = Store::start_with(|config| match merges {
            false => config.block_duration("10m").flag("--out-of-order-window=110m"),
            true => config.merged_block_duration("5m").flag("--out-of-order-window=110m"),
        });
        let store = store.expect("tidepool starts");
        // All values are inside the window.
        let data = data_until_now(103, 18, 300, 20_000);
        let all = rows(&data);
        let is_out_of_order = |number: &usize| number % 7 == 2 || number % 7 == 5;
        let part = |out_of_order: bool| -> Vec<SentRow<'_>> {
            let numbered =
                all.iter().enumerate().filter(|(n, _)| is_out_of_order(n) == out_of_order);
            numbered.map(|(_, row)| *row).collect()
        };
        let (in_order, mut out_of_order) = (part(false), part(true));
        send(&store.server, Version::V1, &in_order);
        wait_for_blocks("blocks", &store, |blocks| blocks.len() >= 4);
        shuffle(&mut out_of_order);
        let (first, second) = out_of_order.split_at(out_of_order.len() / 2);
        send(&store.server, Version::V2, first);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        send(&store.server, Version::V1, second);
        assert_holds("out-of-order", &store.server, &data);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert_holds("out-of-order, after kill -9", &store.server, &data);

        let mut again: Vec<SentRow<'_>> = all.iter().step_by(3).copied().collect();
        shuffle(&mut again);
        send(&store.server, Version::V2, &again);
        assert_holds("sent again", &store.server, &data);
        if merges {
            let merged =
                |blocks: &[Block]| blocks.iter().any(|b| b.end_ms - b.min_ms > 40 * MINUTE_MS);
            wait_for_blocks("merged blocks", &store, merged);
            assert_holds("sent again and merged", &store.server, &data);
        }
    }
}

fn shuffle<T>(list: &mut [T]) {
    let mut random = Random::new(9, 9);
    for last in (1..list.len()).rev() {
        list.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// Another value at a time that has one is refused, whatever the kind.
#[test]
fn another_value_at_the_same_time_is_refused() {
    use tidepool_tests::histogram::wire::encode;
    use tidepool_tests::remote_write::Writer;

    let store = Store::start().expect("tidepool starts");
    let data = data_until_now(104, 9, 100, 1_000);
    send(&store.server, Version::V2, &rows(&data));
    let writer = Writer::new(&store.server.url());
    for SentSeries { labels, family, values } in &data {
        if *family == Family::Mixed {
            continue;
        }
        let of_two = values.windows(2).rev().find(|two| {
            let [(_, a), (_, b)] = two else { return false };
            let end = |value: &tidepool_tests::histogram::Value| {
                matches!(value, tidepool_tests::histogram::Value::Stale(_))
            };
            a.canonical() != b.canonical() && !end(&a.canonical()) && !end(&b.canonical())
        });
        let [(_, other), (timestamp_ms, _)] = of_two.expect("values differ") else { continue };
        let row = SentRow { labels, timestamp_ms: *timestamp_ms, value: other };
        let response = writer.send_body(Version::V2, &encode(Version::V2, &[row]));
        let response = response.expect("an answer");
        assert_eq!(response.status, 400, "{labels}");
        assert!(response.text().contains("duplicate sample"), "{}", response.text());
    }
    assert_holds("afterwards", &store.server, &data);
}

#[test]
fn statistics_tell_the_kinds_apart() {
    let store = start("10m", false);
    let data = two_hours(402);
    send(&store.server, Version::V1, &rows(&data));
    let data_dir = store.config.data_dir();
    let blocks = wait_for("our blocks", data_dir, |blocks| blocks.len() >= 8);
    // The store chooses the kind of a stale marker.
    let stored = read("tidepool", &store.server);
    let mut histograms_in_all = 0;
    for block in blocks {
        let points = stored.iter().flat_map(|series| &series.points);
        let inside = points.filter(|p| (block.min_ms..block.end_ms).contains(&p.timestamp_ms));
        let is_float =
            |point: &&Point| matches!(point.value, Value::Float(_) | Value::Stale(Kind::Float));
        let (floats, histograms): (Vec<_>, Vec<_>) = inside.partition(is_float);
        assert_eq!(kinds(&block), (floats.len() as u64, histograms.len() as u64), "{block:?}");
        histograms_in_all += histograms.len();
    }
    assert!(histograms_in_all > 5_000);
}
