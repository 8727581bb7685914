//! The client library of client_golang, in a small program of this repository
//! (`tests/peers/senders/client`) that prints the library's interpretation of each answer.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use tidepool_tests::clock::now_ms;
use tidepool_tests::peers;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::proto::write_v2;
use tidepool_tests::remote_write::{Version, message_bytes, message_v2};
use tidepool_tests::sender::{assert_holds, recent_data};
use tidepool_tests::series::{Dataset, Row, Series};
use tidepool_tests::tidepool::{Config, Store};

/// The library's interpretation of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    /// Samples, histograms and exemplars written.
    written: [u64; 3],
    retries: u64,
    error: String,
}

fn client(url: &str, version: Version, directory: &Path, messages: &[Vec<u8>]) -> Command {
    let program = peers::built("go-client").unwrap_or_else(|e| panic!("{e}"));
    let mut command = Command::new(program);
    command.args(["-url", url, "-version", &version.to_string()]);
    for (number, message) in messages.iter().enumerate() {
        let path = directory.join(format!("{number}.message"));
        std::fs::write(&path, message).expect("a message is written");
        command.arg(path);
    }
    command
}

fn said(line: &str) -> Option<Said> {
    let mut words = line.splitn(5, ' ');
    let mut number = || words.next()?.parse().ok();
    let written = [number()?, number()?, number()?];
    let retries = number()?;
    Some(Said { written, retries, error: words.next()?.to_string() })
}

#[track_caller]
fn send(server: &Server, version: Version, messages: &[Vec<u8>]) -> Vec<Said> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = client(&server.url(), version, directory.path(), messages);
    answers(command.output().expect("the client runs"))
}

#[track_caller]
fn answers(output: std::process::Output) -> Vec<Said> {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| said(line).unwrap_or_else(|| panic!("{line:?}"))).collect()
}

/// Returns rough data, one message for each request, with the expected interpretations.
fn messages(version: Version, data: &Dataset) -> (Vec<Vec<u8>>, Vec<Said>) {
    let requests = data.requests(2_000);
    let samples = |rows: &[Row<'_>]| rows.iter().map(|row| row.samples.len() as u64).sum();
    let said = |rows: &Vec<Row<'_>>| Said {
        // The library expects no counts with 1.0.
        written: if version == Version::V2 { [samples(rows), 0, 0] } else { [0; 3] },
        retries: 0,
        error: String::new(),
    };
    let messages = requests.iter().map(|rows| message_bytes(version, rows)).collect();
    (messages, requests.iter().map(said).collect())
}

fn data(seed: u64) -> Dataset {
    let mut data = recent_data(seed, 300, 40);
    data.clear_negative_zeros();
    data
}

#[test]
fn what_the_library_sends_is_kept_and_counted() {
    for version in Version::ALL {
        let store = Store::start().expect("tidepool starts");
        let data = data(72);
        let (messages, expected) = messages(version, &data);
        assert_eq!(send(&store.server, version, &messages), expected);
        assert_holds(&store, &data);
        // Sent again, as after an answer that was lost.
        assert_eq!(send(&store.server, version, &messages), expected);
        assert_holds(&store, &data);
    }
}

#[test]
fn the_library_reads_what_was_written_of_each_kind() {
    let store = Store::start().expect("tidepool starts");
    let timestamp = now_ms();
    let series = |name: &str| Series::new(&[("__name__", name)], &[(timestamp, 1.0)]);
    let (float, native, nameless) = (series("float"), series("native"), series(""));
    let mut message = message_v2(&[float.row(), native.row(), nameless.row()]);
    let exemplar = write_v2::Exemplar { labels_refs: vec![], value: 0.5, timestamp };
    message.timeseries[0].exemplars.push(exemplar);
    message.timeseries[1].samples.clear();
    let histogram = write_v2::Histogram { timestamp, ..Default::default() };
    message.timeseries[1].histograms.push(histogram);
    let good =
        write_v2::Request { timeseries: message.timeseries[..2].to_vec(), ..message.clone() };
    let bytes = [good, message].map(|message| prost::Message::encode_to_vec(&message));
    let [good, partial] = &send(&store.server, Version::V2, &bytes)[..] else {
        panic!("two answers");
    };
    assert_eq!((good.written, good.error.as_str()), ([1, 1, 1], ""));
    // The written part of a partly refused request is counted, and the request is not retried.
    assert_eq!((partial.written, partial.retries), ([1, 1, 1], 0));
    assert!(partial.error.contains("400") && partial.error.contains("__name__"), "{partial:?}");
}

/// A restart loses nothing: the library retries until all is acknowledged.
#[test]
fn the_library_tries_again_until_we_are_back() {
    for version in Version::ALL {
        let store = Store::start_with(Config::keeps_address).expect("tidepool starts");
        let data = data(73);
        let (messages, _) = messages(version, &data);
        let url = store.server.url();
        let files = tempfile::tempdir().expect("a temporary directory");
        let address = store.server.address();
        let send = || {
            let busy = TcpListener::bind(address).expect("the address is free");
            let mut client = client(&url, version, files.path(), &messages);
            client.stdout(Stdio::piped()).stderr(Stdio::piped());
            let client = client.spawn().expect("the client runs");
            // Its first attempt meets a server that closes the connection.
            drop(busy.accept().expect("the client connects"));
            client
        };
        let (store, client) = store.outage(send).expect("tidepool starts again");
        let said = answers(client.wait_with_output().expect("the client ends"));
        assert!(said[0].retries > 0, "{said:?}");
        assert!(said.iter().all(|answer| answer.error.is_empty()), "{said:?}");
        assert_holds(&store, &data);
    }
}

/// As from a job to a Pushgateway: the library sends protobuf by default.
#[test]
fn pushed_metrics_are_stored() {
    let store = Store::start().expect("tidepool starts");
    let url = format!("{}/api/v1/import/prometheus", store.server.url());
    let program = peers::built("go-client").unwrap_or_else(|e| panic!("{e}"));
    let pushed = Command::new(program).args(["-url", &url, "-push", "backup"]).output();
    let pushed = pushed.expect("the client runs");
    assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    let labels = "job=\"backup\",path=\"/var/tmp\"";
    for (expression, value) in [
        (format!("runs_total{{kind=\"full\",{labels}}}"), "3"),
        (format!("last_success{{{labels}}}"), "1.5"),
        (format!("size_bytes_bucket{{le=\"2.5\",{labels}}}"), "2"),
        (format!("size_bytes_sum{{{labels}}}"), "9.5"),
        (format!("histogram_count(duration_seconds{{{labels}}})"), "3"),
        (format!("histogram_sum(duration_seconds{{{labels}}})"), "9.5"),
        (format!("age{{quantile=\"0.5\",{labels}}}"), "2"),
        // Each series once, and the library's own two of the push.
        ("count({job=\"backup\"})".to_owned(), "11"),
    ] {
        let found = prometheus::query(&store.server, &expression, now_ms()).expect("an answer");
        let values: Vec<&str> = found.values().map(String::as_str).collect();
        assert_eq!(values, [value], "{expression}: {found:?}");
    }
}
