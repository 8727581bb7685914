//! promtool as a client of the HTTP API.

use serde_json::Value;
use std::process::Stdio;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::promtool;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

#[track_caller]
fn said(release: Release, arguments: &[&str]) -> String {
    let output = promtool::run(release, arguments, Stdio::null()).expect("promtool runs");
    let (stdout, stderr) = (output.stdout, output.stderr);
    assert!(output.success, "{release:?} {arguments:?}: {stdout}{stderr}");
    stdout
}

#[test]
fn promtool_asks_and_checks() {
    let store = Store::start().expect("tidepool starts");
    let now_ms = now_ms();
    let series = ["a", "b"].map(|instance| {
        Series::new(&[("__name__", "up"), ("instance", instance)], &[(now_ms, 1.0)])
    });
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    assert_eq!(store.writer().send(Version::V1, &rows).expect("an answer").status, 204);
    let url = store.server.url();
    let to_url = format!("--url={url}");
    for release in Release::ALL {
        let found = said(release, &["query", "series", &url, "--match=up"]);
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(
            lines,
            ["{__name__=\"up\", instance=\"a\"}", "{__name__=\"up\", instance=\"b\"}"]
        );
        assert_eq!(said(release, &["query", "labels", &url, "instance"]), "a\nb\n");
        let start = format!("--start={}", now_ms / 1000 + 7200);
        let end = format!("--end={}", now_ms / 1000 + 7300);
        assert_eq!(said(release, &["query", "labels", &url, "instance", &start, &end]), "");
        if release == Release::V3 {
            // The older release lacks this command.
            said(release, &["check", "healthy", &to_url]);
            said(release, &["check", "ready", &to_url]);
        }
        let time = format!("--time={}", now_ms as f64 / 1000.0);
        let found = said(release, &["query", "instant", &time, &url, "sum(up)"]);
        assert!(found.starts_with("{} => 2 @["), "{found}");

        // promtool writes into its working directory, and accepts no flag for another.
        let directory = tempfile::tempdir().expect("a temporary directory");
        let debug = std::process::Command::new(release.promtool().expect("promtool"))
            .args(["debug", "metrics", &url])
            .current_dir(directory.path())
            .output()
            .expect("promtool runs");
        assert!(debug.status.success(), "{}", String::from_utf8_lossy(&debug.stderr));
        let archive = std::fs::metadata(directory.path().join("debug.tar.gz")).expect("an archive");
        assert!(archive.len() > 1000, "{} bytes", archive.len());

        let metrics = Client::default().get(&format!("{url}/metrics")).expect("an answer");
        let complaints = promtool::check_metrics(release, &metrics.body).expect("promtool runs");
        assert_eq!(complaints, [""; 0]);
    }
}

/// The configuration that a Thanos sidecar reads is valid.
#[test]
fn the_configuration_that_is_shown_is_valid() {
    let flags = ["--external-label=node=edge \"7\"", "--external-label=on=true"];
    let store = Store::start_with(|c| flags.iter().fold(c, |config, flag| config.flag(flag)));
    let store = store.expect("tidepool starts");
    let url = format!("{}/api/v1/status/config", store.server.url());
    let answer = Client::default().get(&url).expect("an answer");
    let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let yaml = answer["data"]["yaml"].as_str().expect("a text");
    assert!(yaml.contains("external_labels"), "{yaml}");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("prometheus.yml");
    std::fs::write(&file, yaml).expect("a file");
    let file = file.to_str().expect("a plain path");
    for release in Release::ALL {
        said(release, &["check", "config", file]);
    }
}
