//! Receivers of both versions of remote write.

use tidepool_tests::forwarding::{AT_ONCE, figure, node, wait_for, wait_for_delivery};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{recent_data, send_all};
use tidepool_tests::series::{Labels, Series};
use tidepool_tests::tidepool::Store;

#[test]
fn another_tidepool_gets_all_by_both_versions_and_from_logs_of_both_kinds() {
    for (version, records) in
        [(Version::V1, "prometheus"), (Version::V2, "prometheus"), (Version::V2, "columns")]
    {
        let centre = Store::start().expect("the centre starts");
        let node = node(centre.server.address(), version, AT_ONCE, |config| {
            config.flag(&format!("--wal-records={records}"))
        });
        let data = recent_data(91, 60, 120);
        send_all(&node, Version::V2, &data);
        wait_for("all to arrive", &node, &centre.server.url(), &data.series);
        // Each sample once.
        wait_for_delivery(&node, data.sample_count());
        // Delivered samples are not sent again after a restart.
        let node = node.restart(|server| server.kill()).expect("the node starts again");
        let more = recent_data(92, 60, 10);
        send_all(&node, Version::V1, &more);
        let both: Vec<Series> = data.series.iter().chain(&more.series).cloned().collect();
        wait_for("more to arrive", &node, &centre.server.url(), &both);
        // The rest, once.
        wait_for_delivery(&node, more.sample_count());
    }
}

#[test]
fn labels_are_added_and_changed_and_credentials_sent() {
    let centre = Store::start().expect("the centre starts");
    let lines = "    queue_config: {batch_send_deadline: 200ms, max_shards: 3, min_shards: 3}
    headers: {X-Scope-OrgID: edge}
    authorization: {credentials: secret}
    write_relabel_configs:
      - {source_labels: [__name__], regex: 'drop.*', action: drop}
      - {source_labels: [site], regex: (.)(.*), target_label: first, replacement: $1}
";
    let node = node(centre.server.address(), Version::V2, lines, |config| {
        config.flag("--external-label=site=north")
    });
    let at = tidepool_tests::clock::now_ms();
    let sent = [
        Series::new(&[("__name__", "kept"), ("a", "b")], &[(at, 1.0)]),
        Series::new(&[("__name__", "kept"), ("site", "own")], &[(at, 2.0)]),
        Series::new(&[("__name__", "dropped")], &[(at, 3.0)]),
    ];
    let rows: Vec<_> = sent.iter().map(Series::row).collect();
    let answer = node.writer().send(Version::V1, &rows).expect("an answer");
    assert_eq!(answer.status, 204);
    let labelled = |pairs: &[(&str, &str)], value| {
        let mut series = Series::new(&[], &[(at, value)]);
        series.labels = Labels::from_pairs(pairs.iter().copied());
        series
    };
    let expected = [
        labelled(&[("__name__", "kept"), ("a", "b"), ("first", "n"), ("site", "north")], 1.0),
        labelled(&[("__name__", "kept"), ("first", "o"), ("site", "own")], 2.0),
    ];
    wait_for("the changed ones", &node, &centre.server.url(), &expected);
    let name = "prometheus_remote_storage_samples_dropped_total";
    assert_eq!(figure(&node, name, "reason=\"dropped_series\""), 1.0);
}

#[test]
fn what_is_refused_is_dropped_and_counted() {
    // A receiver that accepts no writes at this path.
    let centre = Store::start().expect("the centre starts");
    let files = tempfile::tempdir().expect("a directory");
    let path = files.path().join("tidepool.yml");
    let url = format!("{}/nothing/here", centre.server.url());
    let yaml = format!(
        "remote_write:\n  - url: {url}\n    name: centre\n    queue_config: {{batch_send_deadline: 100ms}}\n"
    );
    std::fs::write(&path, yaml).expect("a file");
    let flag = format!("--config={}", path.display());
    let node = Store::start_with(|config| config.flag(&flag)).expect("the node starts");
    let data = recent_data(95, 10, 10);
    send_all(&node, Version::V2, &data);
    let refused =
        tidepool_tests::wait::until("the refusal", tidepool_tests::forwarding::TIMEOUT, || {
            let count = figure(&node, "prometheus_remote_storage_samples_failed_total", "");
            (count as u64 == data.sample_count()).then_some(())
        });
    refused.unwrap_or_else(|error| panic!("{error}; the log says:\n{}", node.server.log()));
    let by_status =
        figure(&node, "tidepool_remote_storage_samples_refused_total", "status=\"404\"");
    assert_eq!(by_status as u64, data.sample_count());
}

#[test]
fn what_is_wrong_in_the_section_is_named_with_its_place() {
    for (lines, what) in [
        ("    urll: x\n", ":3:5: remote_write[0].urll: there is no such key"),
        (
            "    queue_config: {capacity: no}\n",
            ":3:30: remote_write[0].queue_config.capacity: expected a whole number",
        ),
        (
            "    write_relabel_configs:\n      - {regex: a, acton: keep}\n",
            ":4:20: remote_write[0].write_relabel_configs[0].acton: there is no such key",
        ),
    ] {
        let files = tempfile::tempdir().expect("a directory");
        let path = files.path().join("tidepool.yml");
        let yaml = format!("remote_write:\n  - url: http://127.0.0.1:1/\n{lines}");
        std::fs::write(&path, yaml).expect("a file");
        let flag = format!("--config={}", path.display());
        let error = Store::start_with(|config| config.flag(&flag)).expect_err("it is wrong");
        let error = tidepool_tests::wait::chain(&error);
        assert!(error.contains(&format!("tidepool.yml{what}")), "{error}");
    }
}
