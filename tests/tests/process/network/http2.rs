//! HTTP/2 without a library, for clients that break its rules.

use super::{assert_left_nothing, assert_serves, figure, rest_of, send, start};
use std::io::{Read, Write};
use std::time::Duration;

/// Encodes a frame of HTTP/2 (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).expect("a short frame");
    [&[0, 0, len, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A client that closes after the preface is answered with the server's own preface, a frame of
/// settings (RFC 9113 section 3.4), and its connection slot is released.
#[test]
fn a_preface_of_http2_alone_is_answered_in_http2() {
    let store = start(&[]);
    let mut stream = send(&store, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let mut head = [0; 9];
    stream.read_exact(&mut head).expect("a frame");
    let (kind, flags, number) = (head[3], head[4], &head[5..]);
    assert_eq!((kind, flags, number), (4, 0, &[0; 4][..]), "{head:?}");
    drop(stream);
    assert_left_nothing(&store);
}

/// An HTTP/2 client can block its answers alone, by granting them no window. Such clients are
/// disconnected in time, too.
#[test]
fn answers_that_nobody_takes_over_http2_are_given_up() {
    let store = start(&["--max-connections=4", "--send-timeout=1s"]);
    let no_window = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    // Indexed and literal fields: GET, http, and a path (RFC 7541 section 6).
    let path = b"/metrics";
    let fields = [&[0x82, 0x86, 0x04, path.len() as u8], path.as_slice()].concat();
    let asks = [frame(1, 5, 1, &fields), frame(1, 5, 3, &fields)].concat();
    let acknowledged = frame(4, 1, 0, b"");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let bytes = [preface, &no_window, &acknowledged, &asks].concat();
    let ping = frame(6, 0, 0, b"12345678");
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let stream = send(&store, &bytes);
            let (mut writer, ping) = (stream.try_clone().expect("a socket"), ping.clone());
            // The client is alive, and ends when the server has closed.
            let pings = std::thread::spawn(move || {
                while writer.write_all(&ping).is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            (stream, pings)
        })
        .collect();
    for (stream, pings) in clients {
        rest_of(stream);
        pings.join().expect("the client ends");
    }
    assert_serves(&store, "up");
    let name = "tidepool_http_connections_closed_total{reason=\"slow_reader\"}";
    assert_left_nothing(&store);
    assert_eq!(figure(&store, name), 4.0);
}
