//! Prometheus as the receiver, in both generations.

use tidepool_tests::forwarding::{AT_ONCE, figure, node, wait_for};
use tidepool_tests::peers::Release;
use tidepool_tests::prometheus;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{recent_data, send_all};

#[test]
fn a_prometheus_gets_all_by_both_versions() {
    for version in Version::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let config = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
        let prometheus = config.receiver().start().expect("Prometheus starts");
        let node = node(prometheus.address(), version, AT_ONCE, |config| config);
        let data = recent_data(93, 60, 120);
        send_all(&node, Version::V2, &data);
        wait_for("all to arrive", &node, &prometheus.url(), &data.series);
        let failed = figure(&node, "prometheus_remote_storage_samples_failed_total", "");
        assert_eq!(failed, 0.0);
    }
}

#[test]
fn an_older_prometheus_gets_1_0_once_it_has_refused_2_0() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = prometheus::Config::new(Release::V2, directory.path()).expect("a directory");
    let prometheus = config.receiver().start().expect("Prometheus starts");
    let node = node(prometheus.address(), Version::V2, AT_ONCE, |config| config);
    let data = recent_data(94, 20, 30);
    send_all(&node, Version::V2, &data);
    wait_for("all to arrive", &node, &prometheus.url(), &data.series);
}
