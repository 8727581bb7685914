//! A log that was damaged and repaired, as read by Prometheus, which truncates a log at the first
//! damage.

use tidepool_tests::checksum::assert_same;
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{read_all, recent_data, send_all};
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::{data_dir, prometheus};

#[test]
fn prometheus_reads_all_of_a_repaired_log() {
    let store = Store::start_with(Config::prometheus_records).expect("tidepool starts");
    let data = recent_data(201, 200, 150);
    send_all(&store, Version::V2, &data);
    let data_dir = store.config.data_dir().to_owned();
    let Store { server, config, directory: _own } = store;
    server.kill().expect("tidepool ends");
    let path = data_dir::segment(&data_dir, 0);
    let size = std::fs::read(&path).expect("a segment").len();
    for at in [size / 2, size * 3 / 4] {
        data_dir::flip(&path, at).expect("a file");
    }
    let server = config.start().expect("tidepool starts");
    let answer = Reader::new(&server.url()).streamed(&[read_all()]);
    let kept = answer.expect("a stream").remove(0);
    server.terminate().expect("tidepool ends");
    for release in Release::ALL {
        let directory = tempfile::tempdir().expect("a temporary directory");
        data_dir::copy(&data_dir, &directory.path().join("data")).expect("a copy");
        let config = prometheus::Config::new(release, directory.path()).expect("a configuration");
        let server = config.receiver().start().expect("Prometheus starts");
        let all = everything(i64::MIN / 2, i64::MAX / 2);
        let got = Reader::new(&server.url()).streamed(&[all]).expect("a stream").remove(0);
        assert_same(&format!("{release:?}"), &kept, &got);
        assert_eq!(server.metric("prometheus_tsdb_wal_corruptions_total"), Some(0.0));
    }
}

#[test]
fn the_state_of_the_replay_is_told_as_prometheus_tells_it() {
    let data = |server: &Server| {
        let url = format!("{}/api/v1/status/walreplay", server.url());
        let answer = Client::default().get(&url).expect("an answer");
        let answer: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        answer["data"].as_object().expect("an object").clone()
    };
    let store = Store::start().expect("tidepool starts");
    let ours = data(&store.server);
    for release in Release::ALL {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = prometheus::Config::new(release, directory.path()).expect("a configuration");
        let server = config.start().expect("Prometheus starts");
        for key in data(&server).keys() {
            assert!(ours.contains_key(key), "{release:?} has {key}");
        }
        server.terminate().expect("Prometheus ends");
    }
}
