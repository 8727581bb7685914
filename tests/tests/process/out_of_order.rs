//! Out-of-order samples: within the out-of-order window they are accepted whatever came before,
//! survive `kill -9`, are written to blocks, and change nothing when they are repeated.

use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{assert_holds, recent_data};
use tidepool_tests::series::{Dataset, Row, Series, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const MINUTE_MS: i64 = 60_000;
const BLOCK: &str = "10m";

fn accepts(store: &Store, version: Version, rows: &[Row<'_>]) {
    let response = store.writer().send(version, rows).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
}

/// Makes data of the last two hours, with few samples in a request.
fn two_hours(seed: u64) -> Dataset {
    let (interval_ms, scrapes) = (30_000, 230);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Regular;
    Dataset::generate(Shape { seed, series: 40, scrapes, start_ms, interval_ms, texture })
}

/// Four senders drain a backlog at different speeds, more than an hour apart in data time.
#[test]
fn senders_may_lag_behind_one_another() {
    let store = Store::start().expect("tidepool starts");
    let data = two_hours(71);
    let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
    let mut sent = [0; 4];
    while sent.iter().any(|sent| *sent < scrapes.len()) {
        for (sender, sent) in sent.iter_mut().enumerate() {
            // The first sender ends long before the last one is far along.
            for _ in 0..[64, 16, 4, 1][sender] {
                let Some(scrape) = scrapes.get(*sent) else { break };
                let own = scrape.iter().enumerate().filter(|(number, _)| number % 4 == sender);
                let rows: Vec<Row<'_>> = own.map(|(_, row)| *row).collect();
                accepts(&store, Version::V2, &rows);
                *sent += 1;
            }
        }
    }
    assert_holds(&store, &data);
}

/// The same series backwards: all but the newest scrape is out of order.
#[test]
fn a_backlog_may_come_backwards_and_survives_kill_9() {
    for version in Version::ALL {
        let mut store = Store::start().expect("tidepool starts");
        let data = recent_data(72, 50, 200);
        let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
        for (number, rows) in scrapes.iter().rev().enumerate() {
            if number == 150 {
                store = store.restart(Server::kill).expect("tidepool starts again");
            }
            accepts(&store, version, rows);
        }
        assert_holds(&store, &data);
        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert_holds(&store, &data);
    }
}

/// Samples for the ranges of existing blocks get blocks of their own.
#[test]
fn out_of_order_samples_reach_blocks_and_resends_change_nothing() {
    let start = |window: &str| {
        let window = format!("--out-of-order-window={window}");
        Store::start_with(|config| config.block_duration(BLOCK).flag(&window))
    };
    let store = start("110m").expect("tidepool starts");
    let data = two_hours(73);
    let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
    // Every third scrape is held back until blocks of its time are cut; those that will be too old
    // by then are never sent.
    let oldest_ms = now_ms() - 105 * MINUTE_MS;
    let is_recent = |rows: &&Vec<Row<'_>>| {
        rows.iter().all(|row| row.samples.iter().all(|s| s.timestamp_ms > oldest_ms))
    };
    let third = |number: usize| number % 3 == 1;
    let numbered = || scrapes.iter().enumerate();
    let first = numbered().filter(|(number, _)| !third(*number)).map(|(_, rows)| rows);
    let out_of_order = numbered().filter(|(number, _)| third(*number)).map(|(_, rows)| rows);
    let out_of_order: Vec<_> = out_of_order.filter(is_recent).collect();
    for rows in first.clone() {
        accepts(&store, Version::V1, rows);
    }
    wait_for_blocks(&store, 9);
    for rows in &out_of_order {
        accepts(&store, Version::V2, rows);
    }
    let sent: Vec<Series> = first
        .chain(out_of_order.iter().copied())
        .flat_map(|rows| rows.iter().map(to_series))
        .collect();
    let check = |store: &Store, when: &str| {
        let read = store.reader().streamed(&[everything(i64::MIN / 2, i64::MAX / 2)]);
        assert_same(when, &sent, &read.expect("an answer")[0]);
    };
    check(&store, "out-of-order samples");
    // Sent again: stored samples are accepted and change nothing.
    for rows in out_of_order.iter().rev().take(20) {
        accepts(&store, Version::V2, rows);
    }
    check(&store, "after a resend");
    let store = store.restart(Server::kill).expect("tidepool starts again");
    check(&store, "after kill -9");
}

fn to_series(row: &Row<'_>) -> Series {
    Series { labels: row.labels.clone(), samples: row.samples.to_vec() }
}

fn wait_for_blocks(store: &Store, count: usize) {
    let directory = store.config.data_dir();
    wait::until("blocks", Duration::from_secs(30), || {
        data_dir::blocks(directory).ok().filter(|blocks| blocks.len() >= count)
    })
    .unwrap_or_else(|error| panic!("{error}"));
}
