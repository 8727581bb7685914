//! Log lines about requests that are refused or fail.

use rustix::process::Signal;
use std::time::Duration;
use tidepool_tests::http::Client;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the log's lines about refused requests.
fn lines(store: &Store, message: &str) -> Vec<String> {
    let log = store.server.log();
    log.lines().filter(|line| line.contains(message)).map(str::to_owned).collect()
}

#[test]
fn a_refused_request_has_a_line_without_secrets() {
    let store = Store::start().expect("tidepool starts");
    let url = store.server.url();
    let client = Client::default();
    let question = "/api/v1/series?match[]=%7Bjob%3D%22topsecret&start=topsecret";
    assert_eq!(client.get(&(url.clone() + question)).expect("an answer").status, 400);
    let headers = [("authorization", "Bearer topsecret")];
    let write = client.post(&(url + "/api/v1/write"), &headers, b"no snappy");
    assert!((400..500).contains(&write.expect("an answer").status));
    let found = wait::until("two lines", TIMEOUT, || {
        let found = lines(&store, "request refused");
        (found.len() == 2).then_some(found)
    });
    let found = found.unwrap_or_else(|e| panic!("{e}: {}", store.server.log()));
    for (line, parts) in found.iter().zip([
        ["method=GET", "path=\"/api/v1/series\"", "client=127.0.0.1:", "status=400", "reason="],
        ["method=POST", "path=\"/api/v1/write\"", "client=127.0.0.1:", "status=4", "reason="],
    ]) {
        for part in parts {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(line.contains(" INFO ") && line.contains("request{request_id="), "{line}");
    }
    let log = store.server.log();
    assert!(!log.contains("topsecret"), "{log}");
}

#[test]
fn a_flood_of_refused_requests_has_ten_lines_and_their_number() {
    let store = Store::start().expect("tidepool starts");
    let url = store.server.url() + "/no/such/page";
    let client = Client::default();
    for _ in 0..25 {
        assert_eq!(client.get(&url).expect("an answer").status, 404);
    }
    store.server.signal(Signal::TERM).expect("a signal");
    // The window is not over: the stop ends it.
    let suppressed = wait::until("the number", TIMEOUT, || lines(&store, "suppressed=15").pop());
    let suppressed = suppressed.unwrap_or_else(|e| panic!("{e}: {}", store.server.log()));
    assert!(suppressed.contains("status=404"), "{suppressed}");
    assert_eq!(lines(&store, "request refused").len(), 10, "{}", store.server.log());
}
