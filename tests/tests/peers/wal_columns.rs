//! A log of column records, as in a directory of tidepool's own: its content for Prometheus, and
//! the way to Prometheus and back.

use tidepool_tests::cli::{self};
use tidepool_tests::node::{KILL, Node, PROMETHEUS_3, STOP, TIDEPOOL};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{recent_data, send_all};
use tidepool_tests::series::{Dataset, Row};
use tidepool_tests::tidepool::Store;
use tidepool_tests::{arguments, checksum, prometheus, promtool};

/// Returns one of `parts` equal parts of the scrapes.
fn part(data: &Dataset, number: usize, parts: usize) -> Vec<Row<'_>> {
    let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
    let length = scrapes.len() / parts;
    scrapes[number * length..(number + 1) * length].concat()
}

#[track_caller]
fn compact_head(node: &Node) {
    let report = cli::run(arguments!["compact", "--head", &node.data_dir()], "");
    assert_eq!(report.code, Some(0), "{}{}", report.stdout, report.stderr);
}

#[track_caller]
fn assert_writes(server: &Server, records: &str) {
    let log = server.log();
    let line = log.lines().rfind(|line| line.contains("format of floats in the WAL"));
    let line = line.unwrap_or_else(|| panic!("no word of the format: {log}"));
    assert!(line.contains(&format!("records={records}")), "{line}");
}

#[test]
fn prometheus_passes_over_columns_until_blocks_are_made_of_them() {
    let data = recent_data(3, 200, 240);
    let store = Store::start().expect("tidepool starts");
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
    // Prometheus also starts on the rest of the log.
    let prometheus = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
    assert_eq!(prometheus.data_dir(), data_dir);
    let server = prometheus.start().expect("Prometheus starts");
    assert!(!server.log().contains("level=ERROR"), "{}", server.log());
    server.terminate().expect("an end");
}

/// Without a flag: one command between tidepool and Prometheus the first time, none after it.
#[test]
fn a_node_moves_to_prometheus_by_one_command_and_back() {
    for end in [STOP, KILL] {
        let data = recent_data(211, 60, 360);
        let mut node = Node::default().out_of_order_window("30m");
        let server = node.start(TIDEPOOL);
        assert_writes(&server, "columns");
        node.send(&server, &part(&data, 1, 6));
        // Out-of-order samples have a log of their own.
        node.send(&server, &part(&data, 0, 6));
        end(server).expect("it ends");
        let server = node.start(TIDEPOOL);
        assert_writes(&server, "columns");
        node.send(&server, &part(&data, 2, 6));
        end(server).expect("it ends");

        compact_head(&node);
        node.assert_promtool_agrees(Release::V3);
        let server = node.start(PROMETHEUS_3);
        node.assert_holds(&server, "Prometheus has taken over");
        node.send(&server, &part(&data, 3, 6));
        end(server).expect("it ends");

        let server = node.start(TIDEPOOL);
        assert_writes(&server, "prometheus");
        node.assert_holds(&server, "tidepool is back");
        node.send(&server, &part(&data, 4, 6));
        end(server).expect("it ends");
        for release in Release::ALL {
            node.assert_promtool_agrees(release);
        }
        let server = node.start(PROMETHEUS_3);
        node.assert_holds(&server, "Prometheus, without a command");
        node.send(&server, &part(&data, 5, 6));
        end(server).expect("it ends");
        let server = node.start(TIDEPOOL);
        assert_writes(&server, "prometheus");
        node.assert_holds(&server, "at the end");
    }
}

/// Blocks are cut from the log, and Prometheus opens the directory without writing: later records
/// are still Prometheus' own.
#[test]
fn a_prometheus_that_writes_nothing_counts() {
    let data = recent_data(212, 60, 300);
    let mut node = Node::default();
    let server = node.start(TIDEPOOL);
    node.send(&server, &part(&data, 0, 3));
    STOP(server).expect("it ends");
    compact_head(&node);
    // The command alone does not count as a move.
    let server = node.start(TIDEPOOL);
    assert_writes(&server, "columns");
    node.send(&server, &part(&data, 1, 3));
    STOP(server).expect("it ends");
    compact_head(&node);
    let server = node.start(PROMETHEUS_3);
    node.assert_holds(&server, "Prometheus looks in");
    STOP(server).expect("it ends");
    for _ in 0..2 {
        let server = node.start(TIDEPOOL);
        assert_writes(&server, "prometheus");
        STOP(server).expect("it ends");
    }
    let server = node.start(TIDEPOOL);
    node.send(&server, &part(&data, 2, 3));
    KILL(server).expect("it ends");
    let server = node.start(PROMETHEUS_3);
    node.assert_holds(&server, "Prometheus is back");
}

/// The command was not run: Prometheus skips column records, and as long as it has not truncated
/// its log, the command still restores them, with the samples that Prometheus took meanwhile.
#[test]
fn a_forgotten_command_can_be_made_up_for() {
    let data = recent_data(213, 60, 300);
    let mut node = Node::default();
    let server = node.start(TIDEPOOL);
    node.send(&server, &part(&data, 0, 2));
    KILL(server).expect("it ends");
    let server = node.start(PROMETHEUS_3);
    assert!(!server.log().contains("level=ERROR"), "{}", server.log());
    node.send(&server, &part(&data, 1, 2));
    STOP(server).expect("it ends");
    let dump = promtool::tsdb(Release::V3, "dump", &node.data_dir(), &[]);
    let seen = promtool::parse_dump(&dump).expect("a dump");
    let seen: usize = seen.iter().map(|series| series.samples.len()).sum();
    assert!(seen as u64 <= data.sample_count() / 2, "{seen} samples are seen");
    compact_head(&node);
    node.assert_promtool_agrees(Release::V3);
    let server = node.start(PROMETHEUS_3);
    node.assert_holds(&server, "after all");
}
