//! Upstream's compliance tests for remote-write receivers, all of them, and strictly.
//!
//! The suite accepts a 400 for nearly everything. Here each of its requests must get the one status
//! that it hopes for: 204, unless its content is invalid on purpose.

use std::collections::BTreeMap;
use std::process::Command;
use tidepool_tests::peers;
use tidepool_tests::tidepool::Store;

/// Name of tidepool in the suite; each of its requests is a test with this suffix.
const NAME: &str = "tidepool";
/// Smallest number of requests that the suite sends.
const REQUESTS_MIN: usize = 200;

/// Parts of the names of tests whose requests are not a type or encoding of remote write.
const FOREIGN: [&str; 2] = ["TestBadContentTypes", "TestBadContentEncodings"];

/// Parts of the names of tests whose requests are wrong, wholly or in part.
const WRONG: [&str; 13] = [
    "TestCorruptRequestBody",
    "TestRW1ErrorHandling",
    "bad_count_histogram",
    "empty_metric",
    "exemplar_with_empty_name",
    "exemplar_without_name_label",
    "metadata_with_empty_name",
    "metadata_without_name_label",
    "multiple_metrics,_1_without_name_label",
    "multiple_metrics,_without_name_label",
    "simple_metric_without_name_label",
    // The suite would prefer a success for these two. The specification says that a series MUST
    // have a sample or a histogram; Prometheus refuses them, too. Exemplars of a stored series are
    // accepted, but this series is not stored.
    "exemplars_without_data",
    "metadata_without_data",
];

fn expected_status(test: &str) -> u16 {
    let is_among = |parts: &[&str]| test.split('/').any(|part| parts.contains(&part));
    match () {
        () if is_among(&FOREIGN) => 415,
        () if is_among(&WRONG) => 400,
        () => 204,
    }
}

/// Returns the status of each request by its test, from the suite's log.
fn statuses(output: &str) -> BTreeMap<&str, u16> {
    let said = format!("Response code from {NAME:?}: ");
    let mut test = "";
    let mut statuses = BTreeMap::new();
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("=== RUN").or(line.strip_prefix("=== NAME")) {
            test = name.trim();
        } else if let Some((_, status)) = line.split_once(&said) {
            statuses.insert(test, status.parse().expect("a status"));
        }
    }
    statuses
}

#[test]
fn the_upstream_suite_passes_strictly() {
    let store = Store::start().expect("tidepool starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("config.yml");
    let url = format!("{}/api/v1/write", store.server.url());
    let yaml = format!("remote_write:\n  - name: {NAME}\n    url: {url}\n");
    std::fs::write(&config, yaml).expect("the configuration is written");

    let suite = peers::built("write-compliance").unwrap_or_else(|e| panic!("{e}"));
    let output = Command::new(suite)
        .arg("-test.v")
        .env("PROMETHEUS_RW2_COMPLIANCE_CONFIG_FILE", &config)
        .env_remove("PROMETHEUS_RW2_COMPLIANCE_RECEIVERS")
        .current_dir(directory.path())
        .output()
        .expect("the suite runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}:\n{all}", output.status);
    assert!(!text.contains("--- FAIL") && !text.contains("--- SKIP"), "{all}");

    let statuses = statuses(&text);
    assert!(statuses.len() >= REQUESTS_MIN, "{} requests:\n{all}", statuses.len());
    let is_other = |(test, status): &(&&str, &u16)| **status != expected_status(test);
    let others: Vec<_> = statuses.iter().filter(is_other).collect();
    assert!(others.is_empty(), "{others:#?}\n{all}");
    // Every kind of invalid request occurred.
    for part in FOREIGN.iter().chain(&WRONG) {
        assert!(statuses.keys().any(|test| test.split('/').any(|p| p == *part)), "{part}\n{all}");
    }
}
