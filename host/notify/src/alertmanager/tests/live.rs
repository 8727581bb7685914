//! Live alerts: what is posted, what is dropped, and what a reload keeps.

use super::server::{End, Server, reply, with_header};
use super::{Setup, apply, at, metric, names, notice, notices, section, shown, until};
use crate::alertmanager::{AlertmanagerUrls, generator_url};
use serde_json::json;
use std::time::Duration;
use tidepool_rules::file::Labels;

const SENT: &str = "prometheus_notifications_sent_total";
const ERRORS: &str = "prometheus_notifications_errors_total";
const DROPPED: &str = "prometheus_notifications_dropped_total";
const QUEUED: &str = "prometheus_notifications_queue_length";

/// A port of this machine where nothing listens.
async fn closed_address() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").to_string()
}

#[tokio::test]
async fn an_alert_arrives_as_prometheus_sends_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::ok().await;
    let external = Labels::from([("site".to_owned(), "barn".to_owned())]);
    let alertmanagers = Setup::of(dir.path()).without_any();
    let section =
        at(&[server.address()], ", path_prefix: /am, basic_auth: {username: a, password: b}");
    alertmanagers.apply(&section, &external).expect("a configuration");
    let url = format!("http://{}/am/api/v2/alerts", server.address);
    assert_eq!(
        alertmanagers.urls(),
        AlertmanagerUrls { active: vec![url.clone()], dropped: vec![] }
    );
    alertmanagers.send(&[notice("Disk")], &generator_url("http://node:9090/", "up == 0"));
    let requests = server.wait_for(1).await;
    assert_eq!(requests[0].line, "POST /am/api/v2/alerts HTTP/1.1");
    // The credentials are `a:b` in base64, here in lower case.
    for header in ["content-type: application/json\r\n", "authorization: basic ytpi\r\n"] {
        assert!(requests[0].head.contains(header), "{header}: {}", requests[0].head);
    }
    assert_eq!(
        requests[0].body,
        json!([{
            "labels": {"alertname": "Disk", "site": "barn"},
            "annotations": {"summary": "of Disk"},
            "startsAt": "2023-11-14T22:13:20.000Z",
            "endsAt": "2023-11-14T22:17:20.000Z",
            "generatorURL": "http://node:9090/graph?g0.expr=up+%3D%3D+0&g0.tab=1",
        }])
    );
    until("it is counted", || metric(&alertmanagers, SENT, &url) == Some(1.0)).await;
    // A quiet journal needs no file, and neither does live sending.
    assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 0);
}

/// Names, labels and help as `notifier/metric.go` of Prometheus has them.
#[tokio::test]
async fn metrics_have_prometheus_names() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::ok().await;
    let alertmanagers = Setup::of(dir.path()).without_any();
    let before = shown(&alertmanagers);
    assert!(before.contains("prometheus_notifications_queue_capacity 100\n"), "{before}");
    assert!(before.contains("prometheus_notifications_alertmanagers_discovered 0\n"), "{before}");
    apply(&alertmanagers, &at(&[server.address()], ""));
    alertmanagers.send(&notices(&["A", "B"]), "");
    until("both are sent", || metric(&alertmanagers, SENT, &server.url()) == Some(2.0)).await;
    let (text, label) = (shown(&alertmanagers), format!("alertmanager=\"{}\"", server.url()));
    for line in [
        "# HELP prometheus_notifications_latency_seconds Latency quantiles for sending alert \
         notifications.\n# TYPE prometheus_notifications_latency_seconds summary\n",
        &format!("prometheus_notifications_latency_seconds{{{label},quantile=\"0.99\"}} "),
        &format!("prometheus_notifications_latency_seconds_count{{{label}}} 1\n"),
        "# HELP prometheus_notifications_latency_histogram_seconds Latency histogram for sending \
         alert notifications.\n# TYPE prometheus_notifications_latency_histogram_seconds \
         histogram\n",
        &format!(
            "prometheus_notifications_latency_histogram_seconds_bucket{{{label},le=\"10\"}} 1\n"
        ),
        "# HELP prometheus_notifications_errors_total Total number of sent alerts affected by \
         errors.\n# TYPE prometheus_notifications_errors_total counter\n",
        &format!("prometheus_notifications_errors_total{{{label}}} 0\n"),
        "# HELP prometheus_notifications_sent_total Total number of alerts sent.\n\
         # TYPE prometheus_notifications_sent_total counter\n",
        &format!("prometheus_notifications_sent_total{{{label}}} 2\n"),
        "# HELP prometheus_notifications_dropped_total Total number of alerts dropped due to \
         errors when sending to Alertmanager.\n\
         # TYPE prometheus_notifications_dropped_total counter\n",
        &format!("prometheus_notifications_dropped_total{{{label}}} 0\n"),
        "# HELP prometheus_notifications_queue_length The number of alert notifications in the \
         queue.\n# TYPE prometheus_notifications_queue_length gauge\n",
        "# HELP prometheus_notifications_queue_capacity The capacity of the alert notifications \
         queue.\n# TYPE prometheus_notifications_queue_capacity gauge\n",
        "# HELP prometheus_notifications_alertmanagers_discovered The number of alertmanagers \
         discovered and active.\n# TYPE prometheus_notifications_alertmanagers_discovered gauge\n\
         prometheus_notifications_alertmanagers_discovered 1\n",
        &format!("tidepool_notifications_alertmanager_not_notified_total{{{label}}} 0\n"),
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// Upstream: TestHandlerQueuing.
#[tokio::test]
async fn a_full_queue_drops_its_oldest_alerts() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::gated().await;
    let setup = Setup { queue_capacity: 5, batch_size: 2, ..Setup::of(dir.path()) };
    let alertmanagers = setup.start(&at(&[server.address()], ""));
    alertmanagers.send(&notices(&["A"]), "");
    server.wait_for(1).await;
    // Nothing else is sent while a request is under way.
    alertmanagers.send(&notices(&["B", "C", "D", "E"]), "");
    alertmanagers.send(&notices(&["F", "G", "H"]), "");
    assert_eq!(metric(&alertmanagers, QUEUED, &server.url()), Some(5.0));
    assert_eq!(metric(&alertmanagers, DROPPED, &server.url()), Some(2.0));
    (0..4).for_each(|_| server.allow_one());
    let requests = server.wait_for(4).await;
    let batches: Vec<Vec<&str>> = requests.iter().map(|request| names(&request.body)).collect();
    assert_eq!(batches, [vec!["A"], vec!["D", "E"], vec!["F", "G"], vec!["H"]]);
    until("all are sent", || metric(&alertmanagers, SENT, &server.url()) == Some(6.0)).await;
    assert_eq!(metric(&alertmanagers, QUEUED, &server.url()), Some(0.0));
}

#[tokio::test]
async fn a_batch_that_is_not_accepted_is_dropped_and_the_next_is_sent() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(|number| match number {
        0 => reply("500 Internal Server Error", "out of\nmemory"),
        _ => reply("202 Accepted", ""),
    })
    .await;
    let alertmanagers = Setup::of(dir.path()).start(&at(&[server.address()], ""));
    alertmanagers.send(&notices(&["A", "B"]), "");
    until("it is dropped", || metric(&alertmanagers, DROPPED, &server.url()) == Some(2.0)).await;
    assert_eq!(metric(&alertmanagers, ERRORS, &server.url()), Some(2.0));
    let status = alertmanagers.statuses().remove(0);
    let failure = status.failure.expect("a failure");
    assert_eq!(failure.error, "it answers 500 Internal Server Error: out of memory");
    alertmanagers.send(&notices(&["C"]), "");
    assert_eq!(names(&server.wait_for(2).await[1].body), ["C"]);
    until("it works again", || alertmanagers.statuses()[0].failure.is_none()).await;
    assert_eq!(metric(&alertmanagers, ERRORS, &server.url()), Some(2.0));
}

/// Go would follow the first with a GET, whose answer 200 would hide that the alerts are lost.
#[tokio::test]
async fn a_redirect_that_loses_alerts_is_a_failure() {
    let dir = tempfile::tempdir().expect("a directory");
    let target = Server::ok().await;
    let location = format!("Location: http://{}/elsewhere?token=secret", target.address);
    let server = Server::start(move |number| match number {
        0 => with_header("302 Found", &location, ""),
        _ => with_header("307 Temporary Redirect", &location, ""),
    })
    .await;
    let alertmanagers = Setup::of(dir.path()).start(&at(&[server.address()], ""));
    alertmanagers.send(&notices(&["A"]), "");
    until("it fails", || metric(&alertmanagers, ERRORS, &server.url()) == Some(1.0)).await;
    let error = alertmanagers.statuses().remove(0).failure.expect("a failure").error;
    let expected = format!(
        "it answers 302 Found to http://{}/elsewhere?token=xxxxx, which is not followed; give that \
         address",
        target.address
    );
    assert_eq!(error, expected);
    assert!(target.requests().is_empty());
    alertmanagers.send(&notices(&["B"]), "");
    let request = target.wait_for(1).await.remove(0);
    assert_eq!(request.line, "POST /elsewhere?token=secret HTTP/1.1");
    assert_eq!(names(&request.body), ["B"]);
    // And not if the configuration forbids it.
    apply(&alertmanagers, &at(&[server.address()], ", follow_redirects: false"));
    alertmanagers.send(&notices(&["C"]), "");
    until("it fails", || alertmanagers.statuses()[0].failure.is_some()).await;
    assert_eq!(target.requests().len(), 1);
}

#[tokio::test]
async fn strange_answers_hold_up_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let head = "HTTP/1.1 200 OK\r\n";
    let server = Server::start(move |number| match number {
        // A text without an end, one that is shorter than announced, and one that never comes.
        0 => (format!("{head}\r\n").into_bytes(), End::Endless),
        1 => (format!("{head}Content-Length: 50\r\n\r\nx").into_bytes(), End::Close),
        2 => (format!("{head}Content-Length: 50\r\n\r\nx").into_bytes(), End::Silence),
        // No answer, and no HTTP.
        3 => (Vec::new(), End::Silence),
        4 => (b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(), End::Close),
        5 => (Vec::new(), End::Endless),
        _ => reply("200 OK", ""),
    })
    .await;
    let alertmanagers = Setup::of(dir.path()).start(&at(&[server.address()], ", timeout: 3s"));
    for number in 0..7 {
        alertmanagers.send(&notices(&["A"]), "");
        server.wait_for(number + 1).await;
        let of = |name| metric(&alertmanagers, name, &server.url()).expect("a value");
        until("the request ends", || of(SENT) + of(ERRORS) == number as f64 + 1.0).await;
    }
    assert_eq!(metric(&alertmanagers, SENT, &server.url()), Some(4.0));
    assert_eq!(metric(&alertmanagers, DROPPED, &server.url()), Some(3.0));
}

/// Upstream: TestHangingNotifier, TestNotifierQueueIndependentOfFailedAlertmanager.
#[tokio::test]
async fn no_alertmanager_waits_for_another() {
    let dir = tempfile::tempdir().expect("a directory");
    let (hanging, server, closed) =
        (Server::gated().await, Server::ok().await, closed_address().await);
    let addresses = [hanging.address(), closed.clone(), server.address()];
    let alertmanagers = Setup::of(dir.path()).start(&at(&addresses, ""));
    for count in 1..=3 {
        alertmanagers.send(&notices(&["A"]), "");
        server.wait_for(count).await;
    }
    let url = format!("http://{closed}/api/v2/alerts");
    until("the others fail", || metric(&alertmanagers, ERRORS, &url) >= Some(1.0)).await;
    assert_eq!(hanging.requests().len(), 1);
}

/// Upstream: TestHandlerSendAllRemapPerAm, TestAlerstRelabelingIsIsolated.
#[tokio::test]
async fn rules_are_those_of_each_item() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, other) = (Server::ok().await, Server::ok().await);
    let alertmanagers = Setup::of(dir.path()).start(&section(&format!(
        "alert_relabel_configs: [{{target_label: all, replacement: x}}]\n\
         alertmanagers:\n\
         - static_configs: [{{targets: ['{}', 'drop:1']}}]\n  \
         relabel_configs: [{{action: drop, source_labels: [__address__], regex: 'drop:.*'}}]\n  \
         alert_relabel_configs: [{{action: drop, source_labels: [alertname], regex: B}}]\n\
         - static_configs: [{{targets: ['{}']}}]\n  \
         alert_relabel_configs: [{{target_label: own, replacement: y}}]\n",
        one.address, other.address
    )));
    assert_eq!(
        alertmanagers.urls(),
        AlertmanagerUrls {
            active: vec![one.url(), other.url()],
            dropped: vec!["http://drop:1/api/v2/alerts".into()],
        }
    );
    alertmanagers.send(&notices(&["A", "B"]), "");
    let body = one.wait_for(1).await.remove(0).body;
    assert_eq!(body[0]["labels"], json!({"alertname": "A", "all": "x"}));
    assert_eq!(body.as_array().expect("a list").len(), 1);
    let body = other.wait_for(1).await.remove(0).body;
    assert_eq!(body[1]["labels"], json!({"alertname": "B", "all": "x", "own": "y"}));
    // Alerts of which nothing is left cause no request.
    alertmanagers.send(&notices(&["B"]), "");
    other.wait_for(2).await;
    assert_eq!(metric(&alertmanagers, QUEUED, &one.url()), Some(0.0));
    assert_eq!(one.requests().len(), 1);
}

/// Upstream: TestReload, TestApplyConfig, TestQueuesDrainingOnApplyConfig.
#[tokio::test]
async fn a_reload_keeps_what_is_unchanged_and_drains_the_rest() {
    let dir = tempfile::tempdir().expect("a directory");
    let (kept, left, new) = (Server::gated().await, Server::gated().await, Server::ok().await);
    let item = |server: &Server, more: &str| {
        format!("- {{static_configs: [{{targets: ['{}']}}]{more}}}\n", server.address)
    };
    let of = |items: &[String]| section(&format!("alertmanagers:\n{}", items.concat()));
    let alertmanagers = Setup::of(dir.path()).start(&of(&[item(&kept, ""), item(&left, "")]));
    alertmanagers.send(&notices(&["A"]), "");
    kept.wait_for(1).await;
    left.wait_for(1).await;
    alertmanagers.send(&notices(&["B", "C"]), "");
    apply(&alertmanagers, &of(&[item(&new, ""), item(&kept, "")]));
    assert_eq!(alertmanagers.urls().active, [new.url(), kept.url()]);
    assert_eq!(metric(&alertmanagers, QUEUED, &kept.url()), Some(2.0));
    alertmanagers.send(&notices(&["D"]), "");
    assert_eq!(names(&new.wait_for(1).await[0].body), ["D"]);
    (0..2).for_each(|_| kept.allow_one());
    (0..2).for_each(|_| left.allow_one());
    assert_eq!(names(&kept.wait_for(2).await[1].body), ["B", "C", "D"]);
    assert_eq!(names(&left.wait_for(2).await[1].body), ["B", "C"]);
    // As upstream, the figures of one that left end.
    until("its figures end", || metric(&alertmanagers, SENT, &left.url()).is_none()).await;
    // A configuration that cannot be used changes nothing.
    let wrong = at(&[new.address()], ", tls_config: {ca_file: /nonexistent/ca.pem}");
    let error = alertmanagers.apply(&wrong, &Labels::new()).expect_err("no such file");
    assert!(error.to_string().starts_with("alerting.alertmanagers[0]: "), "{error}");
    assert_eq!(alertmanagers.urls().active, [new.url(), kept.url()]);
    alertmanagers.send(&notices(&["E"]), "");
    new.wait_for(2).await;
}

#[tokio::test]
async fn equal_items_have_a_queue_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::ok().await;
    let item = format!("- static_configs: [{{targets: ['{0}', '{0}']}}]\n", server.address);
    let twice = section(&format!("alertmanagers:\n{item}{item}"));
    let alertmanagers = Setup::of(dir.path()).start(&twice);
    alertmanagers.send(&notices(&["A"]), "");
    until("both are counted", || metric(&alertmanagers, SENT, &server.url()) == Some(2.0)).await;
    apply(&alertmanagers, &section(&format!("alertmanagers:\n{item}")));
    alertmanagers.send(&notices(&["B"]), "");
    server.wait_for(3).await;
    until("it is counted", || metric(&alertmanagers, SENT, &server.url()) == Some(3.0)).await;
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn alertmanagers_of_a_file_come_and_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, other) = (Server::ok().await, Server::ok().await);
    let list = dir.path().join("am.json");
    let write = |address: &str| {
        let text = json!([{"targets": [address], "labels": {"site": "barn"}}]).to_string();
        std::fs::write(dir.path().join("new.json"), text).expect("written");
        std::fs::rename(dir.path().join("new.json"), &list).expect("renamed");
    };
    write(&one.address());
    let config = "alertmanagers: [{file_sd_configs: [{files: [am.json], refresh_interval: 20ms}]}]";
    let mut config = section(config);
    config.set_directory(dir.path());
    let alertmanagers = Setup::of(dir.path()).start(&config);
    until("it is found", || alertmanagers.urls().active == [one.url()]).await;
    alertmanagers.send(&notices(&["A"]), "");
    one.wait_for(1).await;
    write(&other.address());
    until("the other is found", || alertmanagers.urls().active == [other.url()]).await;
    alertmanagers.send(&notices(&["B"]), "");
    assert_eq!(names(&other.wait_for(1).await[0].body), ["B"]);
    assert_eq!(one.requests().len(), 1);
}

/// Upstream: TestStop_DrainingEnabled, TestStop_DrainingDisabled.
#[tokio::test]
async fn a_stop_drains_queues_if_configured() {
    for drains in [true, false] {
        let dir = tempfile::tempdir().expect("a directory");
        let server = Server::gated().await;
        let setup = Setup { drains, batch_size: 2, ..Setup::of(dir.path()) };
        let alertmanagers = setup.start(&at(&[server.address()], ""));
        alertmanagers.send(&notices(&["A"]), "");
        server.wait_for(1).await;
        alertmanagers.send(&notices(&["B", "C", "D"]), "");
        let stopping = tokio::spawn({
            let alertmanagers = alertmanagers.clone();
            async move { alertmanagers.stop().await }
        });
        until("it stops", || alertmanagers.urls().active.is_empty()).await;
        // Nothing is taken, and nothing is applied any more.
        alertmanagers.send(&notices(&["E"]), "");
        apply(&alertmanagers, &at(&[server.address()], ""));
        (0..9).for_each(|_| server.allow_one());
        stopping.await.expect("it ends");
        let expected: &[&[&str]] = if drains { &[&["A"], &["B", "C"], &["D"]] } else { &[&["A"]] };
        let requests = server.requests();
        let batches: Vec<Vec<&str>> = requests.iter().map(|one| names(&one.body)).collect();
        assert_eq!(batches, expected);
    }
}

#[tokio::test]
async fn draining_ends_at_the_first_failure() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::bound("127.0.0.1:0", 0, |_| reply("503 Service Unavailable", "")).await;
    let setup = Setup { batch_size: 1, ..Setup::of(dir.path()) };
    let alertmanagers = setup.start(&at(&[server.address()], ""));
    alertmanagers.send(&notices(&["A", "B", "C", "D"]), "");
    server.wait_for(1).await;
    (0..9).for_each(|_| server.allow_one());
    let begin = std::time::Instant::now();
    alertmanagers.stop().await;
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(server.requests().len() < 4, "{:?}", server.requests());
}

/// Upstream: TestTableLinkForExpression, and `url.QueryEscape` of Go.
#[test]
fn links_are_those_of_prometheus() {
    let expected =
        "http://a/graph?g0.expr=rate%28x%7Ba%3D~%22b%7Cc%22%7D%5B5m%5D%29+%2A+2&g0.tab=1";
    assert_eq!(generator_url("http://a", "rate(x{a=~\"b|c\"}[5m]) * 2"), expected);
}
