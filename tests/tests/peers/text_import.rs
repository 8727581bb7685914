//! Text as a push: what is sent is stored as Prometheus 3.15 stores what it scrapes from the same
//! text, wrong lines are named and the others kept.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use tidepool_tests::histogram::{Point, Value, ValueSeries, assert_same_values};
use tidepool_tests::http::{Client, Response};
use tidepool_tests::otlp;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::series::Labels;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::{self, now_ms};

const PATH: &str = "/api/v1/import/prometheus";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Every kind of family, at a time.
fn text(content_type: &str, timestamp_ms: i64) -> String {
    let (requests, time, end) = match content_type {
        OPEN_METRICS => {
            let seconds = format!("{}.{:03}", timestamp_ms / 1000, timestamp_ms % 1000);
            ("requests", seconds, "# UNIT size_bytes bytes\n# EOF\n")
        }
        _ => ("requests_total", timestamp_ms.to_string(), "\n# a remark\n"),
    };
    let mut text = format!(
        "# HELP {requests} Requests \\\\ served,\\nby \u{fc}ber.\n# TYPE {requests} counter\n"
    );
    for (series, value) in [
        ("requests_total{path=\"/\",code=\"200\"}", "1027"),
        ("requests_total{path=\"a\\\\b\\\"c\\nd\",code=\"\"}", "3e10"),
    ] {
        text += &format!("{series} {value} {time}\n");
    }
    text += "# TYPE temperature gauge\n# HELP temperature How warm.\n";
    for (series, value) in [
        ("temperature{room=\"lab\"}", "-0"),
        ("temperature{room=\"hall\"}", "NaN"),
        ("temperature{room=\"oven\"}", "+Inf"),
        ("temperature{instance=\"own\",job=\"own\"}", "-Inf"),
        ("{\"temperature\",\"the.room\"=\"cellar\"}", "4.9e-324"),
    ] {
        text += &format!("{series} {value} {time}\n");
    }
    text += "# TYPE size_bytes histogram\n# HELP size_bytes How large.\n";
    for (series, value) in [
        ("size_bytes_bucket{le=\"1\"}", "1"),
        ("size_bytes_bucket{le=\"2.5\"}", "3"),
        ("size_bytes_bucket{le=\"+Inf\"}", "4"),
        ("size_bytes_sum", "12.75"),
        ("size_bytes_count", "4"),
    ] {
        text += &format!("{series} {value} {time}\n");
    }
    text += "# TYPE quantiles summary\n";
    for (series, value) in
        [("quantiles{quantile=\"0.5\"}", "0.25"), ("quantiles_sum", "7"), ("quantiles_count", "2")]
    {
        text += &format!("{series} {value} {time}\n");
    }
    text + end
}

/// Serves a text to all who come.
fn serve(content_type: &'static str, text: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let _ = stream.read(&mut [0; 4096]);
            let length = text.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n"
            );
            let _ =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes()));
        }
    });
    address
}

fn push(server: &Server, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let url = format!("{}{PATH}{path}", server.url());
    Client::default().post(&url, headers, body).expect("an answer")
}

#[track_caller]
fn assert_stored(response: &Response) {
    assert_eq!((response.status, response.text().as_str()), (204, ""));
}

fn all_series(server: &Server) -> Vec<ValueSeries> {
    let query = everything(0, now_ms() + 60_000);
    Reader::new(&server.url()).streamed_values(&query).expect("an answer")
}

/// Without what a scrape adds.
fn scraped(server: &Server, address: SocketAddr) -> Vec<ValueSeries> {
    let address = address.to_string();
    let added = [("job", "pushed"), ("instance", address.as_str())];
    let mut series = all_series(server);
    series.retain(|series| {
        let name = series.labels.value("__name__");
        name != "up" && !name.starts_with("scrape_")
    });
    for one in &mut series {
        let pairs = one.labels.pairs().iter();
        let pairs = pairs.filter(|(name, value)| !added.contains(&(name.as_str(), value.as_str())));
        one.labels = Labels::from_pairs(pairs.cloned());
    }
    series
}

fn metadata(server: &Server) -> serde_json::Value {
    let url = format!("{}/api/v1/metadata", server.url());
    let response = Client::default().get(&url).expect("an answer");
    let answer: serde_json::Value = serde_json::from_slice(&response.body).expect("it is JSON");
    answer["data"].clone()
}

#[test]
fn what_is_pushed_is_what_prometheus_scrapes() {
    for content_type in [CLASSIC, OPEN_METRICS] {
        let text = text(content_type, now_ms() - 60_000);
        let address = serve(content_type, text.clone());
        let directory = tempfile::tempdir().expect("a temporary directory");
        let prometheus = prometheus::Config::new(Release::V3, directory.path())
            .expect("the directory can be used")
            .scrape_honestly("pushed", address)
            .start()
            .expect("Prometheus starts");
        let store = Store::start().expect("tidepool starts");
        assert_stored(&push(&store.server, "", &[("Content-Type", content_type)], text.as_bytes()));

        let all = || Some(scraped(&prometheus, address)).filter(|series| series.len() > 10);
        let wanted = wait::until("a scrape", TIMEOUT, all).expect("series");
        assert_same_values(content_type, &wanted, &all_series(&store.server));
        assert_eq!(metadata(&store.server), metadata(&prometheus), "{content_type}");

        // Once more, compressed: nothing new.
        let compressed = otlp::gzip(text.as_bytes()).expect("gzip");
        let headers = [("Content-Type", content_type), ("Content-Encoding", "gzip")];
        assert_stored(&push(&store.server, "", &headers, &compressed));
        assert_same_values(content_type, &wanted, &all_series(&store.server));
    }
}

#[test]
fn url_gives_labels_and_time() {
    let store = Store::start().expect("tidepool starts");
    let before = now_ms();
    let at = before - 5_000;
    let query = format!("?extra_label=site=north%20side&extra_label=b=&timestamp={at}");
    assert_stored(&push(&store.server, &query, &[], b"m{site=\"x\",b=\"y\"} 1\n"));
    let path = "/metrics/job/backup/path@base64/L3Zhci90bXA?extra_label=job=overruled";
    assert_stored(&push(&store.server, path, &[], b"m 2\n"));
    let curl = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_stored(&push(&store.server, "", &curl, b"now 3"));
    let series = all_series(&store.server);
    let found: Vec<_> = series
        .iter()
        .map(|series| (series.labels.pairs().to_vec(), series.points[0].timestamp_ms))
        .collect();
    let labels =
        |pairs: &[(&str, &str)]| Labels::from_pairs(pairs.iter().copied()).pairs().to_vec();
    let after = now_ms();
    assert_eq!(found.len(), 3);
    assert_eq!(
        found[0].0,
        labels(&[("__name__", "m"), ("job", "overruled"), ("path", "/var/tmp")])
    );
    assert_eq!(found[1], (labels(&[("__name__", "m"), ("site", "north side")]), at));
    assert_eq!(found[2].0, labels(&[("__name__", "now")]));
    for (_, time) in [&found[0], &found[2]] {
        assert!((before..=after).contains(time), "{before} {time} {after}");
    }
    for (path, status) in [
        ("x", 404),
        ("/metrics/instance/a", 404),
        ("?extra_label=a", 400),
        ("?timestamp=soon", 400),
    ] {
        let response = push(&store.server, path, &[], b"n 1\n");
        assert_eq!(response.status, status, "{path}: {}", response.text());
    }
    assert_eq!(all_series(&store.server).len(), 3);
}

#[test]
fn wrong_lines_are_named_and_the_others_kept() {
    let store = Store::start().expect("tidepool starts");
    let now = now_ms();
    let far = now + 3_600_000;
    let body = format!("a 1 {now}\nb{{c=\"d}} 2\ne 3 {far}\nf x\ng 4 {now}\n");
    let response = push(&store.server, "", &[("Content-Type", CLASSIC)], body.as_bytes());
    let said = response.text();
    assert_eq!(response.status, 400, "{said}");
    for part in [
        "2 samples were stored; 2 lines are wrong, 1 samples were refused",
        "line 2: ",
        "line 4: this is no value at byte 2: \"f x\"",
        "future",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    let cut = push(&store.server, "", &[("Content-Type", OPEN_METRICS)], b"h 5\n");
    assert_eq!(cut.status, 400);
    assert!(cut.text().contains("# EOF"), "{}", cut.text());
    let wrong = push(&store.server, "", &[("Content-Type", "application/json")], b"{}");
    assert_eq!(wrong.status, 415, "{}", wrong.text());
    let names: Vec<_> = all_series(&store.server)
        .iter()
        .map(|series| series.labels.value("__name__").to_owned())
        .collect();
    assert_eq!(names, ["a", "g", "h"]);
    let of = |name: &str| store.metric(name);
    assert_eq!(of("tidepool_http_requests_failed_total{endpoint=\"import\"}"), Some(3.0));
    assert_eq!(of("tidepool_translation_rejected_total{endpoint=\"import\"}"), Some(4.0));
}

/// Bodies larger than the pieces they go in, and many at a time.
#[test]
fn many_large_pushes_at_a_time_are_stored() {
    const SENDERS: i64 = 12;
    const LINES: i64 = 20_000;
    let store = Store::start().expect("tidepool starts");
    let now = now_ms();
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let server = &store.server;
            scope.spawn(move || {
                let line = |i: i64| {
                    format!("m{{sender=\"{sender}\",i=\"{}\"}} {i} {}\n", i % 100, now - LINES + i)
                };
                let body: String = (0..LINES).map(line).collect();
                let body = otlp::gzip(body.as_bytes()).expect("gzip");
                let response = push(server, "", &[("Content-Encoding", "gzip")], &body);
                assert_stored(&response);
            });
        }
    });
    let series = all_series(&store.server);
    assert_eq!(series.len() as i64, SENDERS * 100);
    for one in &series {
        let number: i64 = one.labels.value("i").parse().expect("a number");
        let point = |step: i64| {
            let i = step * 100 + number;
            let value = Value::of_float(i as f64);
            Point { timestamp_ms: now - LINES + i, value, hint: Default::default() }
        };
        let wanted: Vec<Point> = (0..LINES / 100).map(point).collect();
        assert_eq!(one.points, wanted);
    }
    assert_eq!(store.metric("tidepool_http_inflight_bytes"), Some(0.0));
}
