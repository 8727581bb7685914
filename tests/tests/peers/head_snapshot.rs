//! A head snapshot, and a Prometheus that works in the directory before the next start.

use tidepool_tests::head_snapshot::{FILE, was_used};
use tidepool_tests::node::{Node, Owner};
use tidepool_tests::peers::Release;
use tidepool_tests::sender::recent_data;
use tidepool_tests::series::{Dataset, Row, Series};

/// Returns rows of all series with one part of their samples, out of `parts`.
fn part(data: &Dataset, number: usize, parts: usize) -> Vec<Row<'_>> {
    let row = |series: &'_ Series| {
        let from = series.samples.len() * number / parts;
        from..series.samples.len() * (number + 1) / parts
    };
    let rows = data.series.iter();
    rows.map(|s| Row { labels: &s.labels, samples: &s.samples[row(s)] }).collect()
}

/// A real Prometheus works in the directory in between, with and without writing.
#[test]
fn a_snapshot_from_before_prometheus_is_not_used() {
    for release in [Release::V2, Release::V3] {
        let mut node = Node::default().out_of_order_window("30m").prometheus_records();
        let data = recent_data(74, 50, 300);
        for round in 0..3 {
            let server = node.start(Owner::Tidepool);
            assert!(!was_used(&server), "{release:?} was here");
            node.assert_holds(&server, "back in tidepool");
            node.send(&server, &part(&data, 2 * round, 6));
            server.terminate().expect("it ends");
            assert!(node.data_dir().join(FILE).exists());

            let server = node.start(Owner::Prometheus(release));
            node.assert_holds(&server, "in Prometheus");
            if round > 0 {
                node.send(&server, &part(&data, 2 * round + 1, 6));
            }
            server.terminate().expect("it ends");
        }
        node.assert_promtool_agrees(release);
        let server = node.start(Owner::Tidepool);
        node.assert_holds(&server, "at the end");
        server.terminate().expect("it ends");
        let server = node.start(Owner::Tidepool);
        assert!(was_used(&server));
        node.assert_holds(&server, "from a snapshot of it all");
    }
}
