//! Destinations are added, changed and removed while the node runs.

use std::path::PathBuf;
use tidepool_tests::clock::now_ms;
use tidepool_tests::forwarding::{TIMEOUT, wait_for, wait_for_delivery};
use tidepool_tests::http::Client;
use tidepool_tests::process::free_address;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{Sender, recent_data, send_all};
use tidepool_tests::series::{Dataset, Series, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

/// A node whose configuration file is changed.
struct Node {
    store: Store,
    config: PathBuf,
    _files: tempfile::TempDir,
}

fn destination(name: &str, url: &str, more: &str) -> String {
    format!(
        "  - url: {url}/api/v1/write\n    name: {name}\n    \
         protobuf_message: io.prometheus.write.v2.Request\n    \
         queue_config: {{batch_send_deadline: 100ms, max_backoff: 200ms}}\n{more}"
    )
}

impl Node {
    fn start(destinations: &[String], flags: &[&str]) -> Node {
        let files = tempfile::tempdir().expect("a directory");
        let config = files.path().join("tidepool.yml");
        std::fs::write(&config, yaml(destinations)).expect("a file");
        let store = Store::start_with(|node| {
            let node = flags.iter().fold(node, |node, flag| node.flag(flag));
            node.flag("--enable-lifecycle").flag(&format!("--config={}", config.display()))
        });
        Node { store: store.expect("the node starts"), config, _files: files }
    }

    /// Changes and reloads the file; returns the answer's status and text.
    fn reload(&self, destinations: &[String]) -> (u16, String) {
        std::fs::write(&self.config, yaml(destinations)).expect("a file");
        let url = format!("{}/-/reload", self.store.server.url());
        let answer = Client::default().post(&url, &[], b"").expect("an answer");
        (answer.status, answer.text())
    }

    fn files(&self) -> Vec<String> {
        let dir = self.store.config.data_dir().join("forward");
        let entries = std::fs::read_dir(dir).expect("a directory");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

fn yaml(destinations: &[String]) -> String {
    match destinations {
        [] => String::new(),
        all => format!("remote_write:\n{}", all.concat()),
    }
}

fn both<'a>(first: &'a Dataset, second: &'a Dataset) -> Vec<Series> {
    first.series.iter().chain(&second.series).cloned().collect()
}

#[test]
fn destinations_come_change_and_go() {
    let (centre, other) = (Store::start().expect("it starts"), Store::start().expect("it starts"));
    let (centre_url, other_url) = (centre.server.url(), other.server.url());
    let first = destination("centre", &centre_url, "");
    // None at first: samples written before the first destination are sent to none.
    let node = Node::start(&[], &[]);
    send_all(&node.store, Version::V2, &recent_data(121, 10, 10));
    let (status, said) = node.reload(std::slice::from_ref(&first));
    assert_eq!(status, 200, "{said}");
    let one = recent_data(122, 20, 20);
    send_all(&node.store, Version::V2, &one);
    wait_for("the first data", &node.store, &centre_url, &one.series);

    // Another destination is added, and the first continues: its counters stay.
    let second = destination("other", &other_url, "");
    let (status, said) = node.reload(&[second.clone(), first.clone()]);
    assert_eq!(status, 200, "{said}");
    let two = recent_data(123, 20, 20);
    send_all(&node.store, Version::V2, &two);
    wait_for("both at the first", &node.store, &centre_url, &both(&one, &two));
    wait_for("the second data at the other", &node.store, &other_url, &two.series);
    // Each sample once.
    wait_for_delivery(&node.store, one.sample_count() + two.sample_count());

    // An invalid configuration changes nothing, and the response says so.
    let wrong = destination("third", "https://127.0.0.1:1", "    tls_config: {ca_file: no.pem}\n");
    let (status, said) = node.reload(&[first.clone(), wrong]);
    assert!(status == 500 && said.contains("no.pem"), "{status} {said}");

    // The second destination is removed with its files; the first is changed, and continues.
    let changed = destination("centre", &centre_url, "    headers: {X-Changed: yes}\n");
    let (status, said) = node.reload(&[changed]);
    assert_eq!(status, 200, "{said}");
    let names = node.files();
    assert!(names.contains(&"centre.position".to_string()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("other")), "{names:?}");
    let three = recent_data(124, 20, 20);
    send_all(&node.store, Version::V2, &three);
    let all: Vec<Series> = both(&one, &two).into_iter().chain(three.series.clone()).collect();
    wait_for("all three", &node.store, &centre_url, &all);
    // Only the new samples.
    wait_for_delivery(&node.store, three.sample_count());
    let page = Client::default().get(&format!("{}/metrics", node.store.server.url()));
    assert!(!page.expect("a page").text().contains("remote_name=\"other\""));
}

/// A removed destination leaves no segment behind, and starts over if it is added again.
#[test]
fn what_was_kept_for_a_destination_goes_with_it() {
    let address = free_address().expect("an address");
    let gone = destination("centre", &format!("http://{address}"), "");
    let flags = ["--block-duration=10m", "--max-block-duration=10m", "--wal-segment-size=64KiB"];
    let node = Node::start(std::slice::from_ref(&gone), &flags);
    let (scrapes, interval_ms) = (240, 15_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Regular;
    let shape = Shape { seed: 125, series: 60, scrapes, start_ms, interval_ms, texture };
    let data = Dataset::generate(shape);
    Sender::new(&data, Version::V2).send_all(&node.store);
    let held = node.store.config.data_dir().join("forward/held/wal");
    let is_held = || std::fs::read_dir(&held).is_ok_and(|mut entries| entries.next().is_some());
    wait::until("segments to be held", TIMEOUT, || is_held().then_some(()))
        .unwrap_or_else(|error| panic!("{error}\n{}", node.store.server.log()));
    let (status, said) = node.reload(&[]);
    assert_eq!(status, 200, "{said}");
    assert!(!is_held(), "{:?}", node.files());
    assert!(node.files().iter().all(|name| !name.starts_with("centre")), "{:?}", node.files());

    let centre = Store::start().expect("the centre starts");
    let back = destination("centre", &centre.server.url(), "");
    let (status, said) = node.reload(&[back]);
    assert_eq!(status, 200, "{said}");
    let more = recent_data(126, 20, 20);
    send_all(&node.store, Version::V2, &more);
    wait_for("what is new", &node.store, &centre.server.url(), &more.series);
}
