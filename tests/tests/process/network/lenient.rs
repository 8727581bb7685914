//! Unusual requests, which are accepted or refused as by Go's servers.

use super::{TIMEOUT, rest_of, send, start};
use std::io::Write;
use std::net::TcpStream;
use tidepool_tests::authority::Authority;
use tidepool_tests::guarded::Node;
use tidepool_tests::http::{Response, exchange, request_bytes};
use tidepool_tests::tidepool::Store;

fn ask(store: &Store, method: &str, path: &str, kind: &str, body: &str) -> Response {
    let headers = [("Content-Type", kind)];
    let bytes = request_bytes(method, path, &headers, body.len(), body.as_bytes());
    exchange(store.server.address(), bytes, TIMEOUT).expect("an answer")
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Paths of a client whose base URL ends in a slash. Prometheus redirects such clients to the right
/// address.
#[test]
fn doubled_slashes_count_as_one_and_those_at_the_end_as_none() {
    let store = start(&[]);
    for (method, path, body) in [
        ("GET", "//api/v1/query?query=41%2B1", ""),
        ("GET", "///api//v1///query?query=41%2B1", ""),
        ("POST", "//api/v1/query", "query=41%2B1"),
        ("POST", "//api/v1//query?time=1", "query=41%2B1"),
    ] {
        let response = ask(&store, method, path, FORM, body);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        assert!(response.text().contains("\"42\"]"), "{path}: {}", response.text());
    }
    for path in ["/api/v1/query/?query=41%2B1", "/api/v1/query//?query=41%2B1", "/metrics/"] {
        assert_eq!(ask(&store, "GET", path, FORM, "").status, 200, "{path}");
    }
    for path in ["//nowhere", "/nowhere/", "/api/v1//", "/api/"] {
        assert_eq!(ask(&store, "GET", path, FORM, "").status, 404, "{path}");
    }
}

/// The credentials of an endpoint are required under each of its addresses.
#[test]
fn doubled_slashes_are_no_way_around_credentials() {
    let node = Node::open_to_all().with_credentials();
    let server = node.start();
    let get = |path: &str| {
        let bytes = request_bytes("GET", path, &[], 0, b"");
        exchange(server.address(), bytes, TIMEOUT).expect("an answer").status
    };
    for path in ["/api/v1/query?query=1", "//api/v1/query?query=1", "//metrics", "/federate/"] {
        assert_eq!(get(path), 401, "{path}");
    }
    assert_eq!(get("//-/healthy"), 200);
}

/// A form as `curl -F` sends it.
#[test]
fn forms_in_parts_are_forms() {
    let store = start(&[]);
    let kind = "multipart/form-data; boundary=------------------------d74496d66958873e";
    let field = |name: &str, value: &str| {
        format!(
            "--------------------------d74496d66958873e\r\n\
             Content-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )
    };
    let end = "--------------------------d74496d66958873e--\r\n";
    let range = field("query", "time()") + &field("start", "1") + &field("end", "3");
    let range = range + &field("step", "1") + end;
    for (path, body, said) in [
        ("/api/v1/query", field("query", "41+1") + end, "\"42\"]"),
        // The URL's parameter comes first, as in Go.
        ("/api/v1/query?query=1", field("query", "41+1") + end, ",\"1\"]"),
        ("/api/v1/query_range", range, "[[1,\"1\"],[2,\"2\"],[3,\"3\"]]"),
        ("/api/v1/series", field("match[]", "up") + end, "\"data\":[]"),
    ] {
        let response = ask(&store, "POST", path, kind, &body);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        assert!(response.text().contains(said), "{path}: {}", response.text());
    }
    let cut = ask(&store, "POST", "/api/v1/query", kind, &field("query", "41+1"));
    assert_eq!(cut.status, 400);
    assert!(cut.text().contains("multipart/form-data: it has no end"), "{}", cut.text());
}

#[test]
fn requests_of_http_1_1_need_a_host() {
    let store = start(&[]);
    for (head, status) in [
        ("GET /-/healthy HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        ("GET http://localhost/-/healthy HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        ("GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200),
        ("GET /-/healthy HTTP/1.0\r\n\r\n", 200),
    ] {
        let answer = rest_of(send(&store, head.as_bytes()));
        assert_eq!(answer.get(8..13), Some(format!(" {status} ").as_str()), "{head}: {answer}");
        assert_eq!(answer.contains("missing required Host header"), status == 400, "{answer}");
    }
}

/// A browser or script that uses `http` instead of `https`.
#[test]
fn http_at_the_port_of_tls_is_answered() {
    let authority = Authority::new();
    let node = Node::open_to_all();
    let ca = node.file("ca.crt", &authority.certificate);
    let server = node.with_tls(&authority).start_secure(&ca);
    for (said, is_answered) in [
        ("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", true),
        ("POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", true),
        ("SSH-2.0-OpenSSH_9.2p1\r\n", false),
    ] {
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.write_all(said.as_bytes()).expect("the server takes it");
        let answer = rest_of(stream);
        assert_eq!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), is_answered, "{answer}");
        let sentence = "\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
        assert_eq!(answer.ends_with(sentence), is_answered, "{answer}");
    }
}
