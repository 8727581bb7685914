//! A connection with every kind of fault: each sample still arrives, in its series' order, and
//! twice only if the answer to its request was lost.

use std::collections::{BTreeMap, BTreeSet};
use tidepool_tests::checksum::{Checksum, differences};
use tidepool_tests::clock::now_ms;
use tidepool_tests::fault_proxy::{Fate, FaultProxy};
use tidepool_tests::forwarding::{figure, node, wait_for, wait_for_delivery};
use tidepool_tests::receiver::Receiver;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{Sender, recent_data, send_all};
use tidepool_tests::series::{Dataset, Labels, Series, Shape, Texture};
use tidepool_tests::tidepool::Store;

/// Small requests of several shards, so that many have a fault.
const QUEUE: &str = "    queue_config: {batch_send_deadline: 100ms, max_samples_per_send: 200, \
                     min_shards: 4, max_shards: 4, min_backoff: 5ms, max_backoff: 50ms, \
                     retry_on_http_429: true}\n";

const FAULTS: [Fate; 9] = [
    Fate::Arrives,
    Fate::Lost,
    Fate::AnswerLost,
    Fate::AnswerCut,
    Fate::Delayed { ms: 20 },
    Fate::Slow { pause_ms: 1 },
    Fate::Refused { status: 500, retry_after_s: None },
    Fate::Refused { status: 503, retry_after_s: Some(0) },
    Fate::Refused { status: 429, retry_after_s: Some(0) },
];

#[test]
fn each_fault_costs_at_most_one_request_twice_and_no_order() {
    for version in Version::ALL {
        let receiver = Receiver::start().expect("a receiver");
        let proxy = FaultProxy::start(receiver.address(), 21).expect("a proxy");
        proxy.meets(&FAULTS);
        let node = node(proxy.address(), version, QUEUE, |config| config);
        let (series, scrapes, interval_ms) = (100, 120, 1_000);
        let start_ms = now_ms() - scrapes as i64 * interval_ms;
        let texture = Texture::Regular;
        let shape = Shape { seed: 98, series, scrapes, start_ms, interval_ms, texture };
        let data = Dataset::generate(shape);
        send_all(&node, version, &data);
        wait_for_delivery(&node, data.sample_count());

        let mut got: BTreeMap<Labels, Series> = BTreeMap::new();
        let mut bodies = BTreeSet::new();
        let mut repeated = 0;
        for request in receiver.received() {
            let all = request.series().unwrap_or_else(|error| panic!("{error}"));
            // 1.0 sends metadata in requests of their own, which have no series.
            if all.is_empty() {
                continue;
            }
            // A repeated request is exactly the same.
            if !bodies.insert(request.body) {
                repeated += 1;
                continue;
            }
            for Series { labels, samples } in all {
                let one = got.entry(labels.clone()).or_insert(Series { labels, samples: vec![] });
                one.samples.extend(samples);
            }
        }
        let got: Vec<Series> = got.into_values().collect();
        assert_eq!(
            Checksum::of(&got),
            Checksum::of(&data.series),
            "{}",
            differences(&data.series, &got)
        );
        for series in &got {
            let in_order = series.samples.is_sorted_by(|a, b| a.timestamp_ms < b.timestamp_ms);
            assert!(in_order, "{} came out of order", series.labels);
        }
        let counts = proxy.counts();
        let of = |fate| counts.get(&fate).copied().unwrap_or(0);
        let unanswered = of(Fate::AnswerLost) + of(Fate::AnswerCut);
        assert!(unanswered > 5 && of(Fate::Lost) > 2, "{counts:?}");
        assert!(repeated <= unanswered, "{repeated} came again, of {counts:?}");
        assert_eq!(figure(&node, "prometheus_remote_storage_samples_failed_total", ""), 0.0);
        assert!(figure(&node, "prometheus_remote_storage_samples_retried_total", "") > 0.0);
    }
}

/// The same with a real receiver, and the node is killed repeatedly.
#[test]
fn faults_on_the_way_and_kills_end_with_the_same_samples() {
    for version in Version::ALL {
        let centre = Store::start_with(|config| config.flag("--out-of-order-window=12h"));
        let centre = centre.expect("the centre starts");
        let proxy = FaultProxy::start(centre.server.address(), 22).expect("a proxy");
        proxy.meets(&FAULTS);
        let mut node = node(proxy.address(), version, QUEUE, |config| config);
        let data = recent_data(99, 80, 120);
        let sender = Sender::new(&data, Version::V2);
        let writes = sender.request_count();
        for _ in 0..4 {
            for _ in 0..writes.div_ceil(4) {
                let Some(answer) = sender.send_next(&node.writer()) else { break };
                assert_eq!(answer.status, 204, "{}", answer.text());
            }
            node = node.restart(|server| server.kill()).expect("the node starts again");
        }
        assert_eq!(sender.acknowledged(), writes);
        wait_for("all to arrive", &node, &centre.server.url(), &data.series);
    }
}
