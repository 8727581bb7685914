//! Metrics report pending samples from the start on, also in a node that has delivered nothing yet.

use tidepool_tests::clock::now_ms;
use tidepool_tests::forwarding::{TIMEOUT, figure, node, wait_for_delivery};
use tidepool_tests::process::free_address;
use tidepool_tests::receiver::{Receiver, status, taken};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{recent_data, send_all};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const LAG: &str = "tidepool_remote_storage_lag_seconds";
const BYTES_LEFT: &str = "tidepool_remote_storage_bytes_left";

const QUEUE: &str = "    queue_config: {batch_send_deadline: 100ms, max_backoff: 200ms}\n";

#[track_caller]
fn wait_for_figure(node: &Store, name: &str, is_right: impl Fn(f64) -> bool) {
    wait::until(name, TIMEOUT, || is_right(figure(node, name, "")).then_some(())).unwrap_or_else(
        |error| panic!("{error}: {}; the log says:\n{}", figure(node, name, ""), node.server.log()),
    );
}

fn write(node: &Store, name: &str, time_ms: i64) {
    let series = Series::new(&[("__name__", name)], &[(time_ms, 1.0)]);
    let answer = node.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.text());
}

/// If no sample was ever delivered, the lag counts from the first one, before and after a kill.
#[test]
fn a_receiver_that_was_never_there_lags() {
    let address = free_address().expect("an address");
    let node = node(address, Version::V2, QUEUE, |config| config);
    // A minute, with a sample each second.
    let data = recent_data(141, 10, 61);
    send_all(&node, Version::V2, &data);
    wait_for_figure(&node, LAG, |lag| (55.0..=65.0).contains(&lag));
    wait_for_figure(&node, BYTES_LEFT, |bytes| bytes > 0.0);
    let node = node.restart(|server| server.kill()).expect("the node starts again");
    wait_for_figure(&node, LAG, |lag| (55.0..=65.0).contains(&lag));
    wait_for_figure(&node, BYTES_LEFT, |bytes| bytes > 0.0);
}

/// After a kill, the lag counts from the last sample delivered before.
#[test]
fn the_lag_survives_a_kill_and_ends_with_the_backlog() {
    let receiver = Receiver::start().expect("a receiver");
    let node = node(receiver.address(), Version::V2, QUEUE, |config| config);
    let now = now_ms();
    write(&node, "first", now - 600_000);
    wait_for_delivery(&node, 1);
    receiver.answers(|_, _| status(503));
    write(&node, "second", now);
    wait_for_figure(&node, LAG, |lag| lag == 600.0);
    let node = node.restart(|server| server.kill()).expect("the node starts again");
    wait_for_figure(&node, LAG, |lag| lag == 600.0);
    receiver.answers(|_, received| taken(received));
    wait_for_delivery(&node, 1);
    wait_for_figure(&node, LAG, |lag| lag == 0.0);
    wait_for_figure(&node, BYTES_LEFT, |bytes| bytes == 0.0);
}

/// A destination without pending samples in the log has no lag.
#[test]
fn what_the_rules_drop_does_not_lag() {
    let receiver = Receiver::start().expect("a receiver");
    let rules = "    write_relabel_configs:\n      - {source_labels: [__name__], regex: wanted, \
                 action: keep}\n";
    let node = node(receiver.address(), Version::V2, &format!("{QUEUE}{rules}"), |config| config);
    let now = now_ms();
    write(&node, "wanted", now - 600_000);
    wait_for_delivery(&node, 1);
    write(&node, "other", now);
    wait_for_figure(&node, "prometheus_remote_storage_highest_timestamp_in_seconds", |newest| {
        newest == now as f64 / 1000.0
    });
    wait_for_figure(&node, LAG, |lag| lag == 0.0);
}
