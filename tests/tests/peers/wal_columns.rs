//! `--wal-records=columns`: what Prometheus sees of them.

use tidepool_tests::cli::{self};
use tidepool_tests::peers::Release;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{recent_data, send_all};
use tidepool_tests::tidepool::Store;
use tidepool_tests::{arguments, checksum, prometheus, promtool};

#[test]
fn prometheus_passes_over_columns_until_blocks_are_made_of_them() {
    let data = recent_data(3, 200, 240);
    let store =
        Store::start_with(|config| config.flag("--wal-records=columns")).expect("tidepool starts");
    send_all(&store, Version::V2, &data);
    let Store { server, config, directory } = store;
    server.kill().expect("a kill");
    let data_dir = config.data_dir().to_owned();
    for release in [Release::V2, Release::V3] {
        let dump = promtool::tsdb(release, "dump", &data_dir, &[]);
        assert_eq!(dump, "", "{release:?} knows no columns");
    }
    let report = cli::run(arguments!["compact", "--head", &data_dir], "");
    assert_eq!(report.code, Some(0), "{}{}", report.stdout, report.stderr);
    for release in [Release::V2, Release::V3] {
        let dump = promtool::tsdb(release, "dump", &data_dir, &[]);
        let found = promtool::parse_dump(&dump).expect("a dump");
        let sent = promtool::clear_nan_bits(&data.series);
        checksum::assert_same("Prometheus' dump", &sent, &found);
    }
    // It starts on what is left of the log, too.
    let prometheus = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
    assert_eq!(prometheus.data_dir(), data_dir);
    let server = prometheus.start().expect("Prometheus starts");
    assert!(!server.log().contains("level=ERROR"), "{}", server.log());
    server.terminate().expect("an end");
}
