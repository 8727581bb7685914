//! Slow, broken or hostile clients, over raw sockets: each gets the right answer or none, is
//! disconnected in time, and leaves nothing behind. Other clients are served meanwhile.

mod http2;
mod lenient;
mod malformed;
mod memory_bounds;
mod messages;
mod slow_clients;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::remote_write::{PATH, Version};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

/// Timeout of every wait here.
const TIMEOUT: Duration = Duration::from_secs(30);

fn start(flags: &[&str]) -> Store {
    let with = |config: Config| flags.iter().fold(config, |config, flag| config.flag(flag));
    Store::start_with(with).expect("tidepool starts")
}

fn connect(store: &Store) -> TcpStream {
    let stream = TcpStream::connect(store.server.address()).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
}

fn send(store: &Store, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(store);
    stream.write_all(bytes).expect("the server takes it");
    stream
}

/// Reads until the server closes; a reset is an end, too.
fn rest_of(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server does not close: {error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the head of a write request, with these lines.
fn write_head(lines: &str) -> Vec<u8> {
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n\
         Content-Encoding: snappy\r\n{lines}\r\n"
    )
    .into_bytes()
}

/// Returns a counter or gauge of `/metrics` with its labels.
fn figure(store: &Store, series: &str) -> f64 {
    store.metric(series).unwrap_or_else(|| panic!("{series} is missing"))
}

fn assert_serves(store: &Store, name: &str) {
    let series = Series::new(&[("__name__", name)], &[(now_ms(), 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
}

/// Asserts that only the connection of this request is open, and that no memory is reserved.
#[track_caller]
fn assert_left_nothing(store: &Store) {
    let gone = || {
        let open = figure(store, "tidepool_http_connections");
        (open <= 1.0 && figure(store, "tidepool_http_inflight_bytes") == 0.0).then_some(())
    };
    wait::until("connections and room to be given back", TIMEOUT, gone)
        .unwrap_or_else(|e| panic!("{e}\n{}", store.server.log()));
}
