//! `verify` accepts sound data of Prometheus and tidepool, and names each flipped byte.

use tidepool_tests::cli::tsdb;
use tidepool_tests::peers::Release;
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::sender::recent_data;
use tidepool_tests::{arguments, prometheus};

#[test]
fn what_prometheus_wrote_is_sound() {
    let data = recent_data(94, 200, 100);
    for release in Release::ALL {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = prometheus::Config::new(release, directory.path()).expect("a configuration");
        let server = config.receiver().start().expect("Prometheus starts");
        let writer = Writer::new(&server.url());
        for rows in data.requests(1000) {
            let response = writer.send(Version::V1, &rows).expect("an answer");
            assert!(response.status < 300, "{}", response.text());
        }
        let data_dir = directory.path().join("data");
        tsdb(arguments!["verify", &data_dir]);
        server.terminate().expect("Prometheus ends");
        let report = tsdb(arguments!["verify", &data_dir]);
        let samples = format!("{} samples", data.sample_count());
        assert!(report.contains(&samples), "{release:?}, not {samples}: {report}");
        // Also blocks of the importer.
        let text = tsdb(arguments!["export", &data_dir]);
        let file = directory.path().join("text");
        std::fs::write(&file, text).expect("a file");
        let from = directory.path().join("blocks");
        let arguments = ["tsdb".as_ref(), "create-blocks-from".as_ref(), "openmetrics".as_ref()];
        let arguments = arguments.into_iter().chain([file.as_os_str(), from.as_os_str()]);
        let made = tidepool_tests::promtool::run(release, arguments, std::process::Stdio::null());
        assert!(made.expect("promtool runs").success);
        let report = tsdb(arguments!["verify", &from]);
        assert!(report.contains("block ") && !report.contains("warning"), "{release:?}: {report}");
    }
}
