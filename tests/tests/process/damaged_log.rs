//! Damaged logs: a start loses the damaged records and nothing else, the damaged segments are
//! quarantined, and the node then continues normally.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tidepool_tests::arguments;
use tidepool_tests::checksum::{assert_same, missing};
use tidepool_tests::cli::{self, tsdb};
use tidepool_tests::data_dir::{self, segment};
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::promtool::{clear_nan_bits, parse_dump};
use tidepool_tests::remote_read::everything;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{
    assert_holds, hours_of_data, read_all, recent_data, send_all, wait_for_blocks,
};
use tidepool_tests::series::{Sample, Series};
use tidepool_tests::tidepool::{Config, Store};

/// Maximum samples of one request, and so of one record.
const RECORD_SAMPLES: usize = 2_000;

fn read(store: &Store) -> Vec<Series> {
    store.reader().streamed(&[read_all()]).expect("a stream").remove(0)
}

fn quarantine(data_dir: &Path) -> Vec<PathBuf> {
    data_dir::quarantine(data_dir).expect("a directory")
}

fn get(server: &Server, path: &str) -> String {
    let answer = Client::default().get(&format!("{}{path}", server.url())).expect("an answer");
    assert_eq!(answer.status, 200, "{path}");
    answer.text()
}

/// Damage in the middle of the only segment, which is also the last: records after it are kept.
#[test]
fn a_bad_byte_costs_one_record() {
    let store = Store::start_with(Config::prometheus_records).expect("tidepool starts");
    let data = recent_data(201, 200, 150);
    send_all(&store, Version::V2, &data);
    let data_dir = store.config.data_dir().to_owned();
    let Store { server, config, directory } = store;
    server.kill().expect("tidepool ends");
    let path = segment(&data_dir, 0);
    let size = fs::read(&path).expect("a segment").len();
    for at in [size / 2, size * 3 / 4] {
        data_dir::flip(&path, at).expect("a file");
    }
    let found = fs::read(&path).expect("a segment");

    let server = config.start().expect("tidepool starts");
    let store = Store { server, config, directory };
    let kept = read(&store);
    let lost = missing("after the damage", &data.series, &kept);
    assert!((1..=2 * RECORD_SAMPLES).contains(&lost), "{lost} samples are lost");
    let aside = quarantine(&data_dir);
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert!(aside[0].to_string_lossy().ends_with("-wal-00000000"), "{aside:?}");
    assert_eq!(fs::read(&aside[0]).expect("a file"), found);
    for (metric, expected) in [
        ("prometheus_tsdb_wal_corruptions_total", 2.0),
        ("tidepool_wal_quarantined_total", 1.0),
        ("tidepool_quarantine_bytes", size as f64),
    ] {
        assert_eq!(store.metric(metric), Some(expected), "{metric}");
    }
    let log = store.server.log();
    for words in ["00000000", "a wrong checksum", "offset=", "repaired a damaged WAL segment"] {
        assert!(log.contains(words), "{words:?} is missing: {log}");
    }
    let report = tsdb(arguments!["verify", &data_dir]);
    let line = report.lines().find(|line| line.starts_with("set-aside/")).expect("a warning");
    assert!(line.contains("warning: quarantined") && line.contains("2 places of"), "{line}");
    for command in ["dump", "list"] {
        let output = cli::run(arguments![command, &data_dir], "");
        assert!(output.stderr.contains("1 in set-aside left out"), "{}", output.stderr);
    }

    // The next start reports no damage.
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_same("the second start", &kept, &read(&store));
    assert_eq!(store.metric("prometheus_tsdb_wal_corruptions_total"), Some(0.0));
    assert_eq!(quarantine(&data_dir).len(), 1);
    store.server.terminate().expect("tidepool ends");

    // Quarantined segments can be read, by themselves.
    let alone = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(alone.path().join("wal")).expect("a directory");
    fs::copy(&aside[0], segment(alone.path(), 0)).expect("a copy");
    let dump = parse_dump(&tsdb(arguments!["dump", alone.path()])).expect("a dump");
    assert_same("quarantined", &clear_nan_bits(&kept), &dump);
}

/// Returns the number of lost samples of each series; the others must be unchanged.
fn lost_of_each(sent: &[Series], kept: &[Series]) -> Vec<usize> {
    let kept: BTreeMap<_, _> = kept.iter().map(|series| (&series.labels, series)).collect();
    let lost_of = |sent: &Series| {
        let kept = kept.get(&sent.labels).map_or(&[][..], |series| &series.samples);
        let mut rest = kept.iter().peekable();
        let lost = sent.samples.iter().filter(|sample| {
            let is_it = |kept: &&Sample| {
                kept.timestamp_ms == sample.timestamp_ms
                    && kept.value.to_bits() == sample.value.to_bits()
            };
            rest.next_if(is_it).is_none()
        });
        let lost = lost.count();
        assert_eq!(rest.next(), None, "{} was not sent like this", sent.labels);
        lost
    };
    sent.iter().map(lost_of).collect()
}

/// A column record needs those before it, up to the last one that needs none. So a bad byte costs
/// more there, but no more than the page about flash says: 64 samples of each series, or 65,536
/// samples if there are fewer than 1,024 series; and the request that ends them.
#[test]
fn a_bad_byte_in_columns_costs_no_more_than_is_said() {
    for (series, scrapes) in [(200, 1_200), (1_500, 200)] {
        let store = Store::start().expect("tidepool starts");
        let data = recent_data(208, series, scrapes);
        send_all(&store, Version::V2, &data);
        let Store { server, config, directory: _own } = store;
        server.kill().expect("tidepool ends");
        let size = fs::read(segment(config.data_dir(), 0)).expect("a segment").len();
        // A record of Prometheus takes nine bytes for each of these.
        assert!((size as u64) < 6 * data.sample_count(), "{size} bytes are no columns");
        let all_max = (64 * series).max(65_536) + RECORD_SAMPLES;
        let mut most = 0;
        for part in [2, 4, 5, 7] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let copy = Config::new(directory.path());
            data_dir::copy(config.data_dir(), copy.data_dir()).expect("a copy");
            data_dir::flip(&segment(copy.data_dir(), 0), size * part / 9).expect("a file");
            let server = copy.start().expect("tidepool starts");
            let kept = read(&Store { server, config: copy, directory });
            let lost_of_each = lost_of_each(&data.series, &kept);
            let lost: usize = lost_of_each.iter().sum();
            assert!((1..=all_max).contains(&lost), "{lost} samples of {series} series are lost");
            let most_of_one = lost_of_each.into_iter().max().unwrap_or(0);
            // The request at the end may have two samples of one series.
            let is_bounded = series < 1_024 || most_of_one <= 64 + 2;
            assert!(is_bounded, "{most_of_one} samples of one of {series} series are lost");
            most = most.max(lost);
        }
        assert!(most > RECORD_SAMPLES, "one record is the least; {most} samples are no test");
    }
}

/// A checkpoint is made from the head, so damaged bytes that are not read again do no harm.
#[test]
fn old_segments_that_go_bad_while_it_runs_hinder_nothing() {
    let store = Store::start_with(|c| c.block_duration("10m")).expect("tidepool starts");
    let data = hours_of_data(202);
    let data_dir = store.config.data_dir().to_owned();
    let mut spoiled = 0;
    for rows in data.requests(RECORD_SAMPLES) {
        let answer = store.writer().send(Version::V2, &rows).expect("an answer");
        assert_eq!(answer.status, 204, "{}", answer.text());
        let segments = data_dir::wal_segments(&data_dir).expect("segments");
        // All but the newest segment, which is being written.
        for number in &segments[..segments.len() - 1] {
            // A checkpoint may just have removed the segment.
            let path = segment(&data_dir, *number);
            if let Ok(len) = fs::metadata(&path).map(|meta| meta.len()) {
                let file = fs::OpenOptions::new().write(true).open(&path);
                if let Ok(file) = file {
                    use std::os::unix::fs::FileExt;
                    file.write_all_at(&[0xa5; 64], len / 2).expect("written");
                    spoiled += 1;
                }
            }
        }
    }
    assert!(spoiled > 10, "only {spoiled} segments were spoiled");
    wait_for_blocks(&store, &data, 600_000);
    assert_holds(&store, &data);
    assert_eq!(store.metric("prometheus_tsdb_compactions_failed_total"), Some(0.0));
    // Only samples of the damaged log are lost with the next start, and no more than those after
    // the last block.
    let blocks = data_dir::blocks(&data_dir).expect("blocks");
    let end_ms = blocks.iter().map(|block| block.end_ms).max().expect("a block");
    let store = store.restart(Server::kill).expect("tidepool starts again");
    let in_blocks: Vec<_> =
        data.series.iter().map(|series| series.between(i64::MIN, end_ms - 1)).collect();
    let got = store.reader().streamed(&[everything(i64::MIN, end_ms - 1)]).expect("a stream");
    assert_same("what is in blocks", &in_blocks, &got[0]);
    missing("all", &data.series, &read(&store));
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_eq!(store.metric("prometheus_tsdb_wal_corruptions_total"), Some(0.0));
}

/// The bound is kept by deleting the oldest.
#[test]
fn what_is_quarantined_is_bounded() {
    let mut store = Store::start_with(|c| c.flag("--quarantine-size=100KB")).expect("it starts");
    let data_dir = store.config.data_dir().to_owned();
    for round in 0..4 {
        send_all(&store, Version::V2, &recent_data(203 + round, 200, 60));
        let Store { server, config, directory } = store;
        server.kill().expect("tidepool ends");
        let last = *data_dir::wal_segments(&data_dir).expect("segments").last().expect("one");
        data_dir::flip(&segment(&data_dir, last), 20).expect("a file");
        let server = config.start().expect("tidepool starts");
        store = Store { server, config, directory };
    }
    let aside = quarantine(&data_dir);
    let bytes = data_dir::total_bytes(&data_dir.join("set-aside"));
    assert!(aside.len() == 1 || bytes <= 100 << 10, "{aside:?}: {bytes} bytes");
    assert!(aside[0].to_string_lossy().contains("/00000") && aside.len() < 4, "{aside:?}");
    assert!(store.server.log().contains("deleted the oldest quarantined files"));
    assert!(get(&store.server, "/metrics").contains("tidepool_quarantine_bytes"));
}

/// The settings have Prometheus' keys, and the state is that of its documentation.
#[test]
fn the_state_of_the_replay_is_told() {
    let store = Store::start().expect("tidepool starts");
    send_all(&store, Version::V2, &recent_data(207, 20, 20));
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    let path = "/api/v1/status/walreplay";
    let body: serde_json::Value = serde_json::from_str(&get(&store.server, path)).expect("JSON");
    let expected = serde_json::json!({"status": "success", "data": {
        "min": 0, "max": 0, "current": 0, "state": "done"}});
    assert_eq!(body, expected);
}
