//! The connection is down for hours of data time, and both ends are killed in that time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidepool_tests::admin::Admin;
use tidepool_tests::checksum::{Checksum, differences};
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::forwarding::{TIMEOUT, figure, node, wait_for};
use tidepool_tests::process::free_address;
use tidepool_tests::receiver::{Receiver, status, taken};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::Sender;
use tidepool_tests::series::{Dataset, Labels, Series, Shape, Texture};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;
use tidepool_tests::{arguments, cli};

/// Makes rough data of some hours that end now.
fn hours(seed: u64, hours: usize) -> Dataset {
    let (interval_ms, scrapes) = (15_000, hours * 240);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    Dataset::generate(Shape { seed, series: 60, scrapes, start_ms, interval_ms, texture })
}

const QUEUE: &str = "    queue_config: {batch_send_deadline: 200ms, max_backoff: 500ms}\n";

/// Starts a centre at an unused address, which accepts out-of-order samples.
fn centre_at(address: SocketAddr) -> Store {
    let directory = tempfile::tempdir().expect("a directory");
    let config = Config::new(directory.path()).flag("--out-of-order-window=12h");
    let server = config.launch_at(address).start().expect("the centre starts");
    Store { server, config, directory }
}

/// Sends this number of further requests.
fn send(sender: &Sender<'_>, node: &Store, requests: usize) {
    let writer = node.writer();
    for _ in 0..requests {
        let Some(answer) = sender.send_next(&writer) else { return };
        assert_eq!(answer.status, 204, "{}", answer.text());
    }
}

/// Six hours of data without the centre, of which the log keeps almost nothing: the node cuts
/// blocks, is killed repeatedly, and delivers everything once the centre is back. Then the centre
/// is killed in the middle of that.
#[test]
fn hours_without_the_centre_and_kills_on_both_sides() {
    for (version, order) in [
        (Version::V2, "oldest_first"),
        (Version::V1, "oldest_first"),
        (Version::V2, "newest_first"),
    ] {
        let address = free_address().expect("an address");
        let backlog = format!("{QUEUE}    backlog: {{order: {order}, newest_first_after: 5s}}\n");
        let centre = Store::start_with(|config| config.flag("--out-of-order-window=12h"));
        let centre = centre.expect("the centre starts");
        let launch = centre.config.launch_at(address);
        let Store { server, config, directory } = centre;
        server.terminate().expect("it ends");
        let mut node = node(address, version, &backlog, |config| {
            config
                .block_duration("30m")
                .flag("--wal-segment-size=256KiB")
                .flag("--remote-write-log-size=64KiB")
        });
        let data = hours(96, 6);
        let sender = Sender::new(&data, Version::V2);
        // Some samples arrive before the outage.
        let first = launch.start().expect("the centre starts");
        let requests = sender.request_count();
        send(&sender, &node, requests / 10);
        wait::until("some to arrive", TIMEOUT, || {
            (figure(&node, "prometheus_remote_storage_samples_total", "") > 1000.0).then_some(())
        })
        .expect("some");
        first.kill().expect("it is killed");
        for _ in 0..6 {
            send(&sender, &node, requests / 8);
            std::thread::sleep(Duration::from_millis(400));
            node = node.restart(|server| server.kill()).expect("the node starts again");
        }
        send(&sender, &node, requests);
        // Samples that are no longer in the log are recorded as a gap.
        wait::until("a gap", TIMEOUT, || {
            let rows = figure(&node, "tidepool_remote_storage_backlog_samples", "");
            (rows > 10_000.0).then_some(())
        })
        .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
        let centre = launch.start().expect("the centre starts");
        wait::until("some of the rest", TIMEOUT, || {
            let sent = figure(&node, "prometheus_remote_storage_samples_total", "");
            (sent > 5_000.0).then_some(())
        })
        .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
        centre.kill().expect("it is killed");
        let node = node.restart(|server| server.kill()).expect("the node starts again");
        let centre = launch.start().expect("the centre starts");
        let centre = Store { server: centre, config, directory };
        wait_for("all to arrive", &node, &centre.server.url(), &data.series);
        wait::until("nothing to be left", TIMEOUT, || {
            let rows = figure(&node, "tidepool_remote_storage_backlog_samples", "");
            (rows == 0.0).then_some(())
        })
        .expect("an end of the gap");
        let unknown = "reason=\"unintentionally_dropped_series\"";
        let name = "prometheus_remote_storage_samples_dropped_total";
        assert_eq!(figure(&node, name, unknown), 0.0);
    }
}

/// A command that cut blocks while the node was stopped deleted the log of pending samples.
#[test]
fn what_waits_outlives_an_offline_compaction() {
    for head in [false, true] {
        let address = free_address().expect("an address");
        let node = node(address, Version::V2, QUEUE, |config| {
            config.block_duration("30m").flag("--wal-segment-size=64KiB")
        });
        let data = hours(98, 2);
        let sender = Sender::new(&data, Version::V2);
        send(&sender, &node, sender.request_count());
        let Store { server, config, directory } = node;
        server.terminate().expect("the node ends");
        let data_dir = config.data_dir();
        match head {
            true => cli::tsdb(arguments!["compact", "--head", data_dir]),
            false => cli::tsdb(arguments!["compact", "--out-of-order-window=0s", data_dir]),
        };
        let server = config.start().expect("the node starts again");
        let node = Store { server, config, directory };
        let centre = centre_at(address);
        wait_for("all to arrive", &node, &centre.server.url(), &data.series);
    }
}

/// A deletion rewrites the out-of-order log: pending samples survive the rewrite, and restarts.
#[test]
fn out_of_order_samples_wait_through_a_deletion_and_restarts() {
    let address = free_address().expect("an address");
    let mut node = node(address, Version::V2, QUEUE, |config| config.flag("--enable-admin-api"));
    let now = now_ms();
    let at = |name: &str, times: std::ops::Range<i64>| {
        let samples: Vec<(i64, f64)> =
            times.map(|second| (now - 600_000 + second * 1_000, second as f64)).collect();
        Series::new(&[("__name__", name), ("job", "test")], &samples)
    };
    let write = |node: &Store, series: &[Series]| {
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let answer = node.writer().send(Version::V2, &rows).expect("an answer");
        assert_eq!(answer.status, 204, "{}", answer.text());
    };
    write(&node, &[at("kept", 300..400), at("gone", 300..400)]);
    // Out-of-order samples of both series; the deletion removes those of one.
    write(&node, &[at("kept", 0..100), at("gone", 0..100)]);
    Admin::new(&node.server.url()).delete(&["{__name__=\"gone\"}"], 0, now);
    write(&node, &[at("kept", 100..150)]);
    node = node.restart(|server| server.kill()).expect("the node starts again");
    write(&node, &[at("kept", 150..200)]);
    node = node.restart(|server| server.terminate()).expect("the node starts again");
    let centre = centre_at(address);
    let expected = [at("kept", 0..200), at("kept", 300..400)];
    let mut got = Vec::new();
    wait::until("all that was kept", TIMEOUT, || {
        got = centre.reader().streamed(&[tidepool_tests::sender::read_all()]).ok()?.remove(0);
        got.retain(|series: &Series| series.labels.value("__name__") == "kept");
        (Checksum::of(&got) == Checksum::of(&expected)).then_some(())
    })
    .unwrap_or_else(|error| {
        panic!("{error}: {}; {}", differences(&expected, &got), node.server.log())
    });
}

/// Samples pending for too long or beyond the size limit are dropped, oldest first, and counted.
#[test]
fn what_is_beyond_the_limits_is_dropped_and_counted() {
    let address = free_address().expect("an address");
    let lines = format!("{QUEUE}    backlog: {{max_bytes: 200KiB}}\n");
    let node = node(address, Version::V2, &lines, |config| {
        config.block_duration("30m").flag("--wal-segment-size=256KiB")
    });
    let data = hours(97, 4);
    let sender = Sender::new(&data, Version::V2);
    send(&sender, &node, sender.request_count());
    let name = "prometheus_remote_storage_samples_dropped_total";
    let reason = "reason=\"backlog_bytes\"";
    wait::until("samples to be dropped", TIMEOUT, || {
        let left = figure(&node, "tidepool_remote_storage_bytes_left", "");
        (figure(&node, name, reason) > 1000.0 && left < 250_000.0).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
    let centre = centre_at(address);
    let mut got: Vec<Series> = Vec::new();
    wait::until("the rest to arrive", TIMEOUT, || {
        let dropped = figure(&node, name, reason) as u64;
        got = centre.reader().streamed(&[tidepool_tests::sender::read_all()]).ok()?.remove(0);
        let count: usize = got.iter().map(|series| series.samples.len()).sum();
        (count as u64 + dropped == data.sample_count()).then_some(())
    })
    .unwrap_or_else(|error| {
        let count: usize = got.iter().map(|series| series.samples.len()).sum();
        let dropped = figure(&node, name, reason);
        let all = data.sample_count();
        panic!("{error}: {count} + {dropped} of {all}; the log says:\n{}", node.server.log())
    });
    // No sample that was not sent, and all of the newest.
    let lost = tidepool_tests::checksum::missing("the rest", &data.series, &got);
    assert_eq!(lost as f64, figure(&node, name, reason));
    let newest = data.time_range_ms().map_or(0, |(_, last)| last - 60_000);
    let newest_of = |all: &[Series]| -> Vec<Series> {
        all.iter().map(|series| series.between(newest, i64::MAX)).collect()
    };
    tidepool_tests::checksum::assert_same("the newest", &newest_of(&data.series), &newest_of(&got));
}

/// A request with a slow answer arrives, and is not counted as dropped as well if the rows behind
/// it exceed the limit.
#[test]
fn what_is_on_its_way_at_the_limit_is_counted_once() {
    let receiver = Receiver::start().expect("a receiver");
    let gate = Arc::new(Mutex::new(()));
    let shut = gate.lock().expect("no test has failed");
    let rows = takes(&receiver, {
        let gate = Arc::clone(&gate);
        move |_| drop(gate.lock().expect("no test has failed"))
    });
    let lines = "    metadata_config: {send: false}\n    queue_config: {batch_send_deadline: 200ms, \
                 max_shards: 1, max_samples_per_send: 500}\n    backlog: {max_bytes: 200KiB}\n";
    let node = node(receiver.address(), Version::V2, lines, |config| {
        config.block_duration("30m").flag("--wal-segment-size=256KiB")
    });
    let data = hours(158, 4);
    let sender = Sender::new(&data, Version::V2);
    send(&sender, &node, 1);
    wait::until("a request", TIMEOUT, || (!receiver.received().is_empty()).then_some(()))
        .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
    send(&sender, &node, sender.request_count());
    // The limit is checked once a second.
    std::thread::sleep(Duration::from_secs(3));
    drop(shut);
    let name = "prometheus_remote_storage_samples_dropped_total";
    let dropped = || figure(&node, name, "reason=\"backlog_bytes\"") as u64;
    let came = || rows.lock().expect("no test has failed").len() as u64;
    wait::until("an end of the backlog", TIMEOUT, || {
        let waits = figure(&node, "tidepool_remote_storage_backlog_samples", "")
            + figure(&node, "prometheus_remote_storage_samples_pending", "");
        let is_over = waits == 0.0 && came() + dropped() >= data.sample_count();
        (is_over && dropped() > 0).then_some(())
    })
    .unwrap_or_else(|error| {
        let (came, dropped, all) = (came(), dropped(), data.sample_count());
        panic!("{error}: {came} + {dropped} of {all}; the log says:\n{}", node.server.log())
    });
    assert_eq!(came() + dropped(), data.sample_count(), "{}", node.server.log());
    let rows = rows.lock().expect("no test has failed");
    assert!(rows.values().all(|times| *times == 1), "some came again; {}", node.server.log());
}

/// While forwarding cannot begin, as for want of memory, metrics report the pending samples, and
/// the log stays within its bound: dropped samples are counted.
#[test]
fn a_destination_that_cannot_begin_holds_no_more_than_it_may() {
    let receiver = Receiver::start().expect("a receiver");
    let node = node(receiver.address(), Version::V2, QUEUE, |config| {
        let config = config.block_duration("10m").flag("--wal-segment-size=64KiB");
        config.flag("--remote-write-log-size=256KiB").flag("--remote-write-memory-limit=3MiB")
    });
    // More series than the instance has memory for.
    let (series, scrapes, interval_ms) = (20_000, 8, 300_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Regular;
    let data =
        Dataset::generate(Shape { seed: 157, series, scrapes, start_ms, interval_ms, texture });
    let sender = Sender::new(&data, Version::V2);
    send(&sender, &node, sender.request_count());
    let held = node.config.data_dir().join("forward/held");
    wait::until("the log to be dropped", TIMEOUT, || {
        let dropped = figure(&node, "tidepool_remote_storage_log_bytes_dropped_total", "");
        let lags = figure(&node, "tidepool_remote_storage_lag_seconds", "") > 0.0;
        let bytes = data_dir::total_bytes(&held);
        (dropped > 0.0 && lags && bytes <= 512 << 10).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
    let is_told = || node.server.log().contains("--remote-write-memory-limit").then_some(());
    wait::until("why it cannot begin", TIMEOUT, is_told)
        .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
}

/// Rows that a receiver accepted, and how often each.
type DeliveredRows = Arc<Mutex<BTreeMap<(Labels, i64), usize>>>;

/// Makes the receiver accept everything, each request after a pause; they count from zero.
fn takes(receiver: &Receiver, pause: impl Fn(usize) + Send + Sync + 'static) -> DeliveredRows {
    let all: DeliveredRows = Arc::default();
    let (rows, count) = (Arc::clone(&all), AtomicUsize::new(0));
    receiver.answers(move |_, received| {
        pause(count.fetch_add(1, Relaxed));
        let mut rows = rows.lock().expect("no test has failed");
        for Series { labels, samples } in received.series().expect("it decodes") {
            for sample in samples {
                *rows.entry((labels.clone(), sample.timestamp_ms)).or_default() += 1;
            }
        }
        taken(received)
    });
    all
}

/// Starts a node that has all of this in blocks and almost nothing in its log, and whose receiver
/// answers 503.
fn node_with_backlog(receiver: &Receiver, data: &Dataset) -> Store {
    receiver.answers(|_, _| status(503));
    let lines = "    metadata_config: {send: false}\n    queue_config: {batch_send_deadline: 200ms, \
                 max_backoff: 500ms, max_shards: 1, capacity: 1000, max_samples_per_send: 500}\n";
    let node = node(receiver.address(), Version::V2, lines, |config| {
        let config = config.block_duration("30m").flag("--wal-segment-size=64KiB");
        config.flag("--remote-write-log-size=64KiB").flag("--head-snapshot=false")
    });
    let sender = Sender::new(data, Version::V2);
    send(&sender, &node, sender.request_count());
    wait::until("a gap", TIMEOUT, || {
        let rows = figure(&node, "tidepool_remote_storage_backlog_samples", "");
        (rows > 10_000.0).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
    node
}

/// A slow receiver gets the samples of blocks once, however often their read is restarted.
#[test]
fn a_slow_receiver_gets_the_backlog_once() {
    let receiver = Receiver::start().expect("a receiver");
    let data = hours(155, 2);
    let node = node_with_backlog(&receiver, &data);
    let rows = takes(&receiver, |number| {
        if number < 8 {
            // Longer than a read of the store stays open when the queue is full.
            std::thread::sleep(Duration::from_millis(1_500));
        }
    });
    wait::until("all to arrive", TIMEOUT, || {
        (rows.lock().expect("no test has failed").len() as u64 == data.sample_count()).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
    let rows = rows.lock().expect("no test has failed");
    let twice: usize = rows.values().map(|times| times - 1).sum();
    // At most one request that was under way when the log was truncated.
    assert!(twice <= 500, "{twice} of {} came again; {}", rows.len(), node.server.log());
}

/// A damaged block loses its own half hours, and blocks nothing else.
#[test]
fn a_damaged_block_holds_up_nothing_else() {
    let receiver = Receiver::start().expect("a receiver");
    let data = hours(156, 3);
    let node = node_with_backlog(&receiver, &data);
    let mut chunks: Vec<std::path::PathBuf> = Vec::new();
    wait::until("blocks", TIMEOUT, || {
        let blocks = data_dir::blocks(node.config.data_dir()).ok()?;
        chunks = blocks.iter().map(|block| block.path.join("chunks/000001")).collect();
        (chunks.len() >= 3).then_some(())
    })
    .expect("blocks");
    let node = node
        .restart(|server| {
            let ended = server.kill();
            let mut bytes = std::fs::read(&chunks[0]).expect("a file");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            std::fs::write(&chunks[0], bytes).expect("a file");
            ended
        })
        .expect("the node starts again");
    let rows = takes(&receiver, |_| {});
    let name = "prometheus_remote_storage_samples_dropped_total";
    let damaged = || figure(&node, name, "reason=\"damaged\"");
    wait::until("an end of the backlog", TIMEOUT, || {
        let rows = figure(&node, "tidepool_remote_storage_backlog_samples", "");
        (rows == 0.0 && damaged() > 0.0).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
    wait::until("the rest", TIMEOUT, || {
        let came = rows.lock().expect("no test has failed").len() as u64;
        (came + damaged() as u64 >= data.sample_count()).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
    // No more than the half hours of one block.
    let came = rows.lock().expect("no test has failed").len() as f64;
    assert!(came > 0.5 * data.sample_count() as f64, "{came} of {}", data.sample_count());
}
