//! Pushes of text: labels and time from the URL; invalid lines are named and the others stored.

use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::histogram::{Point, Value};
use tidepool_tests::otlp;
use tidepool_tests::series::Labels;
use tidepool_tests::text_push::{CLASSIC, OPEN_METRICS, all_series, assert_stored, push};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn url_gives_labels_and_time() {
    let store = Store::start().expect("tidepool starts");
    let before = now_ms();
    let at = before - 5_000;
    let query = format!("?extra_label=site=north%20side&extra_label=b=&timestamp={at}");
    assert_stored(&push(&store.server, &query, &[], b"m{site=\"x\",b=\"y\"} 1\n"));
    let path = "/metrics/job/backup/path@base64/L3Zhci90bXA?extra_label=job=overruled";
    // Go's client of the Pushgateway does not accept 204.
    let pushed = push(&store.server, path, &[], b"m 2\n");
    assert_eq!((pushed.status, pushed.text().as_str()), (200, ""));
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
        "line 4: this is not a value at column 3: \"f x\"",
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

/// 31 MiB of gzip members without data once kept the only network thread of a small node busy for
/// eight seconds.
#[test]
fn gzip_members_without_data_are_refused() {
    let store = Store::start().expect("tidepool starts");
    // An empty member: its head, an empty block, and the checksum and the size of nothing.
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let member = [&head[..], &[3, 0], &[0; 8]].concat();
    let headers = [("Content-Encoding", "gzip")];
    assert_stored(&push(&store.server, "", &headers, &member.repeat(1_000)));
    let refused = push(&store.server, "", &headers, &member.repeat(1_000_000));
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("1000 members"), "{}", refused.text());
}

/// Bodies larger than the pieces in which they are stored, and many at a time.
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
    // A body may be freed shortly after its answer.
    let is_given_back = || (store.metric("tidepool_http_inflight_bytes")? == 0.0).then_some(());
    wait::until("the room of bodies", TIMEOUT, is_given_back).expect("it is given back");
}
