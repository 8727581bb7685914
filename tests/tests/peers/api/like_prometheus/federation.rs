//! Federation, beside that of Prometheus.

use super::{TIMEOUT, parameter};
use tidepool_tests::http::{exchange, request_bytes, unchunked};
use tidepool_tests::process::Server;
use tidepool_tests::tidepool::Store;

/// Asserts that federation returns the same lines, after sorting the lines of each family.
pub fn assert_federation_alike(store: &Store, peer: &Server) {
    let asked = |server: &Server, query: &str, accept: &str| {
        let headers = [("Accept", accept), ("Connection", "close")];
        let path = format!("/federate?{query}");
        let request = request_bytes("GET", &path, &headers, 0, b"");
        let response = exchange(server.address(), request, TIMEOUT).expect("an answer");
        let content_type = response.header("content-type").unwrap_or_default().to_owned();
        let body = match response.header("transfer-encoding") {
            None => response.body,
            Some(_) => unchunked(&response.body),
        };
        (response.status, content_type, body)
    };
    let lines = |body: Vec<u8>| {
        let text = String::from_utf8(body).expect("text");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let all = [
        String::new(),
        parameter("match[]", "up"),
        parameter("match[]", "nothing"),
        parameter("match[]", "{__name__=~\".+\"}"),
        format!("{}&{}", parameter("match[]", "up"), parameter("match[]", "{job=\"node\"}")),
    ];
    for query in &all {
        for accept in ["", "*/*", "text/plain;version=0.0.4;escaping=allow-utf-8"] {
            let ours = asked(&store.server, query, accept);
            let theirs = asked(peer, query, accept);
            assert_eq!((ours.0, &ours.1), (theirs.0, &theirs.1), "{query} {accept}");
            assert_eq!(lines(ours.2), lines(theirs.2), "{query} {accept}");
        }
    }
    for wrong in ["up{", "sum(up)", "up[5m]"] {
        let query = parameter("match[]", wrong);
        assert_eq!(asked(&store.server, &query, "").0, 400, "{wrong}");
        assert_eq!(asked(peer, &query, "").0, 400, "{wrong}");
    }
    // With a single series, the encoding is unique.
    let accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
        encoding=delimited";
    let query = parameter("match[]", "requests_total{zone=\"x\"}");
    let (ours, theirs) = (asked(&store.server, &query, accept), asked(peer, &query, accept));
    assert!(!ours.2.is_empty());
    assert_eq!(ours, theirs);
}
