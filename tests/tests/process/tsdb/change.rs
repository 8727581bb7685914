//! `compact` and `import` need exclusive use of the directory, and keep a node's files.

use tidepool_tests::busy::busy_store;
use tidepool_tests::clock::now_ms;
use tidepool_tests::proto::write_v2::Exemplar;
use tidepool_tests::remote_write::{Version, message_v2};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::{arguments, cli};

#[test]
fn a_running_server_keeps_others_out() {
    let (store, _) = busy_store(98);
    let data_dir = store.config.data_dir();
    for arguments in [
        &arguments!["compact", data_dir][..],
        arguments!["snapshot", data_dir],
        arguments!["import", "-", data_dir],
        arguments!["restore", data_dir, data_dir],
    ] {
        let output = cli::run(arguments, "# EOF\n");
        assert_eq!(output.code, Some(1));
        assert!(output.stderr.contains("in use by another process"), "{}", output.stderr);
    }
}

/// The checkpoint that the command writes used to lack them.
#[test]
fn exemplars_outlive_compact() {
    let store = Store::start().expect("tidepool starts");
    let first_ms = now_ms() - 6 * 3_600_000;
    for minute in 0..300 {
        let timestamp = first_ms + minute * 60_000;
        let series = Series::new(&[("__name__", "m")], &[(timestamp, minute as f64)]);
        let mut message = message_v2(&[series.row()]);
        let exemplar = Exemplar { labels_refs: vec![], value: minute as f64, timestamp };
        message.timeseries[0].exemplars.push(exemplar);
        let answer = store.writer().send_message(Version::V2, &message).expect("an answer");
        assert_eq!(answer.status, 204, "{}", answer.text());
    }
    let kept = "prometheus_tsdb_exemplar_exemplars_in_storage";
    assert_eq!(store.metric(kept), Some(300.0));
    let Store { server, config, directory } = store;
    server.terminate().expect("tidepool ends");
    for head in [false, true] {
        let arguments = arguments!["compact", "--block-duration=30m", config.data_dir()];
        let with_head = arguments!["compact", "--head", config.data_dir()];
        let arguments = if head { &with_head[..] } else { &arguments[..] };
        let output = cli::run(arguments, "");
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(output.stdout.contains("cut from the head"), "{}", output.stdout);
        let server = config.start().expect("tidepool starts again");
        assert_eq!(server.metric(kept), Some(300.0), "--head: {head}");
        server.kill().expect("tidepool ends");
    }
    drop(directory);
}
