//! Paths of decoders beside those of the store.

use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::plugins::{TOKEN, influx_store};

#[test]
fn a_path_of_a_decoder_is_for_writers() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = influx_store(directory.path());
    let url = |path: &str| format!("{}{path}", store.server.url());
    let body = format!("m value=1 {}\n", now_ms() * 1_000_000);
    let post = |path: &str, headers: &[(&str, &str)]| {
        Client::default().post(&url(path), headers, body.as_bytes()).expect("an answer").status
    };
    let token = format!("Token {TOKEN}");
    let with_token = [("authorization", token.as_str())];
    for path in ["/write?db=x", "/api/v2/write?bucket=b", "/api/v1/push/influx/write"] {
        assert_eq!((post(path, &[]), post(path, &with_token)), (401, 204), "{path}");
    }
    assert_eq!(post("/api/v2/write/more", &with_token), 404);
    let got = Client::default().get(&url("/write")).expect("an answer");
    assert_eq!(got.status, 401, "the same path for another method");
}
