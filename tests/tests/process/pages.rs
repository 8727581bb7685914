//! Forbidden requests of pages in a browser, as raw requests: from pages of other origins, and from
//! pages whose own name was pointed at tidepool. A real browser tries the same in
//! `js/test/browser/cross_site.test.ts`.

use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Response, exchange};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::read_all;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

const TIMEOUT: Duration = Duration::from_secs(30);

const DELETE: &str = "/api/v1/admin/tsdb/delete_series?match%5B%5D=kept";
const SNAPSHOT: &str = "/api/v1/admin/tsdb/snapshot";
const IMPORT: &str = "/api/v1/import/prometheus";
const RELOAD: &str = "/-/reload";
const WRITE: &str = "/api/v1/write";
const LABELS: &str = "/api/v1/labels";

fn start(flags: &[&str]) -> Store {
    let all = ["--enable-admin-api", "--enable-lifecycle"].iter().chain(flags);
    let with =
        |config| all.fold(config, |config: tidepool_tests::tidepool::Config, f| config.flag(f));
    let store = Store::start_with(with).expect("tidepool starts");
    let series = Series::new(&[("__name__", "kept")], &[(now_ms(), 1.0)]);
    let response = store.writer().send(Version::V2, &[series.row()]).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
    store
}

/// Sends a simple request, as a form does, with these header fields and no other.
fn ask(store: &Store, method: &str, path: &str, fields: &[(&str, &str)]) -> Response {
    let body = if method == "POST" { "pushed 1\n" } else { "" };
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    exchange(store.server.address(), head.into_bytes(), TIMEOUT).expect("an answer")
}

fn status(store: &Store, method: &str, path: &str, fields: &[(&str, &str)]) -> u16 {
    ask(store, method, path, fields).status
}

/// Returns names of the series that have samples.
fn names(store: &Store) -> Vec<String> {
    let read = store.reader().streamed(&[read_all()]).expect("an answer");
    let series = read.iter().flatten().filter(|series| !series.samples.is_empty());
    series.map(|series| series.labels.value("__name__").to_owned()).collect()
}

#[test]
fn pages_of_other_origins_change_nothing() {
    let store = start(&[]);
    let own = store.server.address().to_string();
    let own_origin = format!("http://{own}");
    let foreign: &[&[(&str, &str)]] = &[
        &[("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")],
        &[("Origin", "http://evil.example")],
        &[("Origin", "null")],
        &[("Origin", "http://127.0.0.1")],
        &[("Origin", "http://127.0.0.1:1"), ("Sec-Fetch-Site", "same-site")],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site")],
    ];
    for fields in foreign {
        let fields = [fields, &[("Host", own.as_str())][..]].concat();
        for path in [DELETE, SNAPSHOT, IMPORT, RELOAD, WRITE, "/api/v1/otlp/v1/metrics"] {
            for method in ["POST", "PUT"] {
                let response = ask(&store, method, path, &fields);
                assert_eq!(response.status, 403, "{method} {path} {fields:?}");
                assert!(response.text().contains("another origin"), "{}", response.text());
                assert_eq!(response.header("access-control-allow-origin"), None);
            }
        }
        // Queries are allowed for the origins in `--cors-origin`.
        assert_eq!(status(&store, "GET", LABELS, &fields), 200);
        assert_eq!(status(&store, "POST", LABELS, &fields), 200);
    }
    assert_eq!(names(&store), ["kept"]);

    // Its own pages, address bars, and agents, which send no such header.
    let own_pages: &[&[(&str, &str)]] = &[
        &[("Origin", &own_origin), ("Sec-Fetch-Site", "same-origin")],
        &[("Origin", &own_origin)],
        &[("Sec-Fetch-Site", "none")],
        &[],
    ];
    for fields in own_pages {
        let fields = [fields, &[("Host", own.as_str())][..]].concat();
        assert_eq!(status(&store, "POST", SNAPSHOT, &fields), 200, "{fields:?}");
        assert_eq!(status(&store, "POST", RELOAD, &fields), 200, "{fields:?}");
        assert_eq!(status(&store, "POST", IMPORT, &fields), 204, "{fields:?}");
        assert_eq!(status(&store, "POST", DELETE, &fields), 204, "{fields:?}");
    }
    assert_eq!(names(&store), ["pushed"]);
    let refused = "tidepool_http_requests_refused_total{reason=\"foreign\"}";
    assert!(store.metric(refused).is_some_and(|count| count >= 84.0));
}

/// Before a request that is not simple, a browser sends a preflight request. Only queries are
/// allowed.
#[test]
fn nobody_is_invited_to_change_something() {
    let store = start(&[]);
    let own = store.server.address().to_string();
    let fields = [
        ("Host", own.as_str()),
        ("Origin", "http://evil.example"),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization"),
    ];
    for path in [DELETE, SNAPSHOT, IMPORT, RELOAD, WRITE, "/api/v1/push/influx/write"] {
        let response = ask(&store, "OPTIONS", path, &fields);
        assert_eq!(response.status, 405, "{path}");
        let says = |(name, _): &(String, String)| name.starts_with("access-control");
        assert!(!response.headers.iter().any(says), "{path}: {:?}", response.headers);
    }
    for path in [LABELS, "/api/v1/series", "/api/v1/nothing"] {
        let response = ask(&store, "OPTIONS", path, &fields);
        assert_eq!(response.header("access-control-allow-origin"), Some("*"), "{path}");
    }
}

/// A page at http://evil.example:9201 whose name resolves to this server: for the browser it has
/// the same origin, and may read answers as well.
#[test]
fn names_that_were_pointed_here_are_not_served() {
    let store = start(&["--allowed-host=node.example.com", "--allowed-host=*.edge.example"]);
    let port = store.server.address().port();
    for host in
        [format!("evil.example:{port}"), "evil.example".into(), "127.0.0.1.evil.example".into()]
    {
        let origin = format!("http://{host}");
        let fields = [("Host", host.as_str()), ("Origin", origin.as_str())];
        for (method, path, expected) in [
            ("POST", DELETE, 403),
            ("POST", SNAPSHOT, 403),
            ("POST", RELOAD, 403),
            // The sender of samples must not drop them.
            ("POST", IMPORT, 503),
            ("GET", LABELS, 403),
            ("GET", "/metrics", 403),
            ("POST", "/api/v1/read", 403),
        ] {
            let response = ask(&store, method, path, &fields);
            assert_eq!(response.status, expected, "{method} {path} {host}");
            assert!(response.text().contains("--allowed-host"), "{}", response.text());
        }
        assert_eq!(status(&store, "GET", "/-/healthy", &fields), 200);
    }
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("the machine's name");
    let known = [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        "[::1]".into(),
        "tidepool".into(),
        machine.trim().to_owned(),
        "node.example.com:80".into(),
        "a.edge.example".into(),
    ];
    for host in &known {
        assert_eq!(status(&store, "GET", LABELS, &[("Host", host)]), 200, "{host}");
        assert_eq!(status(&store, "POST", SNAPSHOT, &[("Host", host)]), 200, "{host}");
    }
    let both = [("Host", "127.0.0.1"), ("Host", "evil.example")];
    assert_eq!(status(&store, "GET", LABELS, &both), 400);
    // The host name in the request target counts, too.
    let whole = "http://evil.example/api/v1/labels";
    assert_eq!(status(&store, "GET", whole, &[("Host", "127.0.0.1")]), 403);
}

/// With credentials, the host name does not matter: pages of other sites do not have them.
#[test]
fn where_credentials_are_asked_for_any_name_will_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("credentials");
    std::fs::write(&file, "bearer t0ken\n").expect("a file");
    let flag = |name: &str| format!("--{name}-credentials-file={}", file.display());
    let flags = [flag("read"), flag("admin")];
    let store = start(&[&flags[0], &flags[1]]);
    let fields = [("Host", "node.example.com"), ("Authorization", "Bearer t0ken")];
    assert_eq!(status(&store, "GET", LABELS, &fields), 200);
    assert_eq!(status(&store, "POST", SNAPSHOT, &fields), 200);
    assert_eq!(status(&store, "POST", IMPORT, &fields), 503);
    let foreign = [fields[0], fields[1], ("Origin", "http://evil.example")];
    assert_eq!(status(&store, "POST", SNAPSHOT, &foreign), 403);
}
