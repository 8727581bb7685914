//! Clients that disconnect, and clients that wait for their turn.

use super::{KINDS, dataset, store_with};
use prost::Message;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use tidepool_tests::http::request_bytes;
use tidepool_tests::proto::prometheus::read_request::ResponseType;
use tidepool_tests::remote_read::request;
use tidepool_tests::remote_write::compress;
use tidepool_tests::sender::read_all;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Requests more than the sockets between the two can hold, and reads only the first bytes.
fn stalled(store: &Store, kind: ResponseType) -> TcpStream {
    let body = compress(&request(&vec![read_all(); 30], kind).encode_to_vec());
    let bytes = request_bytes("POST", "/api/v1/read", &[], body.len(), &body);
    let mut stream = TcpStream::connect(store.server.address()).expect("a connection");
    stream.write_all(&bytes).expect("the request is taken");
    stream.read_exact(&mut [0; 9]).expect("the answer begins");
    stream
}

fn wait_for_cursors(store: &Store, are_open: bool) {
    let as_wanted = || {
        let open = store.metric("tidepool_head_open_cursors")?;
        ((open > 0.0) == are_open).then_some(())
    };
    wait::until("open cursors", TIMEOUT, as_wanted)
        .unwrap_or_else(|error| panic!("open: {are_open}: {error}"));
}

#[test]
fn the_work_for_a_client_that_left_is_ended() {
    let store = store_with(&[], &dataset(41, 5_000, 6));
    for kind in KINDS {
        let stream = stalled(&store, kind);
        wait_for_cursors(&store, true);
        drop(stream);
        // Long before the deadline of two minutes.
        wait_for_cursors(&store, false);
    }
}

/// One read at a time: the second gets its answer after the first has disconnected; a third that
/// disconnected while it waited takes no turn.
#[test]
fn reads_wait_for_their_turn() {
    let store = store_with(&["--read-concurrency=1"], &dataset(42, 5_000, 6));
    for kind in KINDS {
        let first = stalled(&store, kind);
        wait_for_cursors(&store, true);
        let body = compress(&request(&[read_all()], kind).encode_to_vec());
        let bytes = request_bytes("POST", "/api/v1/read", &[], body.len(), &body);
        let mut leaving = TcpStream::connect(store.server.address()).expect("a connection");
        leaving.write_all(&bytes).expect("the request is taken");
        let reader = store.reader();
        let (answered, answer) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let response = reader.post(&request(&[read_all()], kind));
                answered.send(response.expect("an answer").status).expect("the test waits");
            });
            let early = answer.recv_timeout(Duration::from_millis(500));
            assert_eq!(early, Err(RecvTimeoutError::Timeout), "the first read still runs");
            drop(leaving);
            drop(first);
            assert_eq!(answer.recv_timeout(TIMEOUT), Ok(200));
        });
    }
}
