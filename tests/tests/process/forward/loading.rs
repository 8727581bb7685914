//! The configuration is checked as far as possible when it is loaded, and working destinations
//! continue; its secrets are shown nowhere.

use std::path::Path;
use tidepool_tests::forwarding::{TIMEOUT, figure, wait_for_delivery};
use tidepool_tests::http::Client;
use tidepool_tests::receiver::{Receiver, status, taken};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{recent_data, send_all};
use tidepool_tests::tidepool::{Store, command};
use tidepool_tests::wait;

/// Starts a node with this configuration file.
fn start(config: &Path, yaml: &str) -> Store {
    std::fs::write(config, yaml).expect("a file");
    let store = Store::start_with(|node| {
        node.flag("--enable-lifecycle").flag(&format!("--config={}", config.display()))
    });
    store.expect("the node starts")
}

/// Changes and reloads the file; returns the answer's status and text.
fn reload(node: &Store, config: &Path, yaml: &str) -> (u16, String) {
    std::fs::write(config, yaml).expect("a file");
    let url = format!("{}/-/reload", node.server.url());
    let answer = Client::default().post(&url, &[], b"").expect("an answer");
    (answer.status, answer.text())
}

fn destination(url: &str, more: &str) -> String {
    format!(
        "remote_write:\n  - url: {url}\n    name: centre\n    \
         protobuf_message: io.prometheus.write.v2.Request\n    queue_config: \
         {{batch_send_deadline: 100ms, max_backoff: 200ms}}\n    metadata_config: {{send: false}}\n\
         {more}"
    )
}

/// Neither a start nor a reload accepts settings with which every request would fail, and they do
/// not end the destination that works.
#[test]
fn what_can_never_work_is_refused_when_it_is_loaded() {
    let files = tempfile::tempdir().expect("a directory");
    let config = files.path().join("tidepool.yml");
    let receiver = Receiver::start().expect("a receiver");
    let url = receiver.url();
    let good = destination(&url, "");
    let node = start(&config, &good);
    let text = files.path().join("text");
    std::fs::write(&text, "two\nlines").expect("a file");
    let text = text.display();
    let wrong = [
        (
            "    write_relabel_configs:\n      - {source_labels: [a], regex: 'a(', action: keep}\n"
                .to_owned(),
            "tidepool.yml:8:9: remote_write[0].write_relabel_configs[0]: the regular expression \"a(\"",
        ),
        (
            "    write_relabel_configs:\n      - {action: replace, replacement: x}\n".to_owned(),
            "needs a target_label",
        ),
        (
            "    basic_auth: {username: me, password_file: /no/such/file}\n".to_owned(),
            "basic_auth.password_file /no/such/file: No such file",
        ),
        (
            "    authorization: {credentials_file: /no/such/file}\n".to_owned(),
            "authorization.credentials_file /no/such/file: No such file",
        ),
        (
            format!("    authorization: {{credentials_file: {text}}}\n"),
            "authorization has characters that cannot be sent",
        ),
        // Also if the URL does not use the settings.
        ("    tls_config: {ca_file: /no/such/file}\n".to_owned(), "tls_config.ca_file /no/such"),
        (format!("    tls_config: {{ca_file: {text}}}\n"), "no certificate in PEM"),
        ("    tls_config: {server_name: 'a b'}\n".to_owned(), "tls_config.server_name \"a b\""),
    ];
    for (lines, said) in &wrong {
        let yaml = destination(&url, lines);
        let (status, text) = reload(&node, &config, &yaml);
        assert!(status == 500 && text.contains(said), "{lines}: {status} {text}");
        let output = command()
            .arg(format!("--config={}", config.display()))
            .arg(format!("--data-dir={}", files.path().join("data").display()))
            .arg("--listen=127.0.0.1:0")
            .output()
            .expect("tidepool runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said), "{lines}: {text}");
    }
    // The working destination is not interrupted: its counters continue.
    let data = recent_data(151, 10, 10);
    send_all(&node, Version::V2, &data);
    wait_for_delivery(&node, data.sample_count());
    let (status, text) = reload(&node, &config, &destination(&url, &wrong[0].0));
    assert_eq!(status, 500, "{text}");
    let more = recent_data(152, 10, 10);
    send_all(&node, Version::V2, &more);
    wait_for_delivery(&node, data.sample_count() + more.sample_count());
}

/// A token in the query is sent, and shown by no page and in no log.
#[test]
fn a_token_in_a_url_is_not_shown() {
    let files = tempfile::tempdir().expect("a directory");
    let config = files.path().join("tidepool.yml");
    let receiver = Receiver::start().expect("a receiver");
    receiver.answers(|number, received| if number < 2 { status(503) } else { taken(received) });
    let secret = "t0k3n-of-nobody";
    let yaml = destination(&format!("{}?tenant=a&token={secret}", receiver.url()), "");
    std::fs::write(&config, &yaml).expect("a file");
    let flag = format!("--remote-write-url={}?{secret}", receiver.url());
    let node = Store::start_with(|node| {
        let node = node.flag(&flag).flag("--enable-lifecycle").flag("--log-level=debug");
        node.flag(&format!("--config={}", config.display()))
    });
    let node = node.expect("the node starts");
    let data = recent_data(153, 5, 5);
    send_all(&node, Version::V2, &data);
    wait_for_delivery(&node, data.sample_count());
    let wrong = yaml.replace("http://", "htp://");
    let (status, said) = reload(&node, &config, &wrong);
    assert!(status == 500 && said.contains("token=xxxxx"), "{status} {said}");
    let as_flag = format!("remote-write-url: 'http://me:{secret}@127.0.0.1/'\n");
    let (status, refused) = reload(&node, &config, &as_flag);
    assert!(status == 500 && refused.contains("basic_auth"), "{status} {refused}");
    let page = |path: &str| {
        let answer = Client::default().get(&format!("{}{path}", node.server.url()));
        answer.expect("an answer").text()
    };
    let (metrics, flags) = (page("/metrics"), page("/api/v1/status/flags"));
    for (what, shown) in [
        ("/metrics", &metrics),
        ("/status/flags", &flags),
        ("the log", &node.server.log()),
        ("a refusal", &said),
        ("another refusal", &refused),
    ] {
        assert!(!shown.contains(secret), "{what}: {shown}");
    }
    assert!(metrics.contains("tenant=xxxxx&token=xxxxx"), "{metrics}");
    assert!(receiver.received().iter().any(|request| request.path.ends_with(secret)));
    assert!(receiver.received().iter().any(|request| request.path.contains("tenant=a")));
}

/// A destination that is identified by its URL alone is a new one when the URL changes: the samples
/// lost with its position are counted, and the log says how to keep it.
#[test]
fn a_position_that_is_lost_is_counted() {
    const LOST: &str = "tidepool_remote_storage_positions_dropped_total";
    let files = tempfile::tempdir().expect("a directory");
    let config = files.path().join("tidepool.yml");
    let receiver = Receiver::start().expect("a receiver");
    receiver.answers(|_, _| status(503));
    let named = |url: &str, name: &str| format!("remote_write:\n  - url: {url}\n{name}");
    let url = receiver.url();
    let node = start(&config, &named(&url, ""));
    assert_eq!(node.metric(LOST), Some(0.0));
    let (status, said) = reload(&node, &config, &named(&format!("{url}/"), ""));
    assert_eq!(status, 200, "{said}");
    assert_eq!(node.metric(LOST), Some(1.0));
    let log = node.server.log();
    assert!(log.contains("`name`") && log.contains("position"), "{log}");
    // A destination with a name keeps its position.
    let (status, said) = reload(&node, &config, &named(&url, "    name: centre\n"));
    assert_eq!(status, 200, "{said}");
    assert_eq!(node.metric(LOST), Some(2.0));
    let (status, said) = reload(&node, &config, &named(&format!("{url}/"), "    name: centre\n"));
    assert_eq!(status, 200, "{said}");
    assert_eq!(node.metric(LOST), Some(2.0));
    // Nor is the position lost uncounted at a start.
    std::fs::write(&config, named(&url, "")).expect("a file");
    let node = node.restart(|server| server.terminate()).expect("the node starts again");
    assert_eq!(node.metric(LOST), Some(1.0));
}

/// A name that was derived from the URL means nothing to people.
#[test]
fn the_log_names_the_receiver() {
    let files = tempfile::tempdir().expect("a directory");
    let config = files.path().join("tidepool.yml");
    let receiver = Receiver::start().expect("a receiver");
    receiver.answers(|_, _| status(503));
    let node = start(&config, &format!("remote_write:\n  - url: {}\n", receiver.url()));
    send_all(&node, Version::V2, &recent_data(155, 1, 1));
    for said in ["forwarding started", "sending failed"] {
        let line = wait::until(said, TIMEOUT, || {
            node.server.log().lines().find(|line| line.contains(said)).map(str::to_owned)
        });
        let line = line.unwrap_or_else(|error| panic!("{error}; {}", node.server.log()));
        assert!(line.contains(&receiver.address().to_string()), "{line}");
        assert!(line.contains("remote_name="), "{line}");
    }
}

/// Fewer shards than have waiting rows: each of these is emptied, all at the same time.
#[test]
fn fewer_shards_lose_no_answer() {
    let files = tempfile::tempdir().expect("a directory");
    let config = files.path().join("tidepool.yml");
    let receiver = Receiver::start().expect("a receiver");
    receiver.answers(|_, _| status(503));
    let shards = |count: u32| {
        format!(
            "remote_write:\n  - url: {}\n    name: centre\n    metadata_config: {{send: false}}\n    \
             queue_config: {{min_shards: {count}, max_shards: {count}, batch_send_deadline: 100ms, \
             max_samples_per_send: 20, min_backoff: 30ms, max_backoff: 100ms}}\n",
            receiver.url()
        )
    };
    let node = start(&config, &shards(50));
    let data = recent_data(154, 400, 30);
    send_all(&node, Version::V2, &data);
    let pending = "prometheus_remote_storage_samples_pending";
    wait::until("rows to wait", TIMEOUT, || {
        (figure(&node, pending, "") as u64 == data.sample_count()).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}; {}", node.server.log()));
    receiver.answers(|_, received| taken(received));
    let (status, said) = reload(&node, &config, &shards(1));
    assert_eq!(status, 200, "{said}");
    wait::until("all to arrive", TIMEOUT, || {
        (figure(&node, pending, "") == 0.0
            && figure(&node, "tidepool_remote_storage_lag_seconds", "") == 0.0)
            .then_some(())
    })
    .unwrap_or_else(|error| {
        panic!("{error}: {} wait; {}", figure(&node, pending, ""), node.server.log())
    });
    assert_eq!(figure(&node, "prometheus_remote_storage_samples_failed_total", ""), 0.0);
}
