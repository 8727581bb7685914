//! promtool judges tidepool's own metrics, and Prometheus uses the same lock on the data.

use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::ProcessError;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;
use tidepool_tests::{prometheus, promtool};

/// Both generations of promtool accept tidepool's metrics, without complaints.
#[test]
fn own_metrics_are_a_valid_exposition() {
    let store = Store::start().expect("tidepool starts");
    let up = Series::new(&[("__name__", "up")], &[(now_ms(), 1.0)]);
    store.writer().send(Version::V2, &[up.row()]).expect("an answer");
    let response = Client::default().get(&format!("{}/metrics", store.server.url()));
    let response = response.expect("an answer");
    assert_eq!(response.status, 200);
    let content_type = response.header("Content-Type").unwrap_or_default();
    assert!(content_type.starts_with("text/plain"), "{content_type}");
    assert!(response.text().lines().any(|line| line.starts_with("tidepool_")));
    for release in Release::ALL {
        let complaints = promtool::check_metrics(release, &response.body);
        assert_eq!(complaints.expect("promtool runs"), [""; 0], "{release:?}");
    }
}

/// The first of the two servers locks the other one out.
#[test]
fn prometheus_and_tidepool_do_not_share_a_directory() {
    for release in Release::ALL {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let prometheus = || {
            let config = prometheus::Config::new(release, directory.path()).expect("a directory");
            // The older one is Debian's, which locks only if a flag tells it to.
            match release {
                Release::V2 => config.flag("--storage.tsdb.use-lockfile"),
                Release::V3 => config,
            }
        };
        let tidepool = Config::new(directory.path());
        let server = prometheus().start().expect("Prometheus starts");
        let Err(ProcessError::EndedEarly { log, .. }) = tidepool.start() else {
            panic!("tidepool starts beside {release:?}");
        };
        assert!(log.contains("in use by another process"), "{release:?}: {log}");
        server.kill().expect("Prometheus ends");
        let server = tidepool.start().expect("tidepool starts");
        let error = prometheus().start().expect_err("Prometheus is kept out");
        let error = wait::chain(&error);
        assert!(error.contains("lock"), "{release:?}: {error}");
        assert_eq!(
            Client::default().get(&format!("{}/-/ready", server.url())).expect("an answer").status,
            200
        );
        server.kill().expect("tidepool ends");
        prometheus().start().expect("Prometheus starts").terminate().expect("Prometheus ends");
    }
}
