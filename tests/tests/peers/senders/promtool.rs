//! `promtool push metrics`: pages as text, sent once.

use super::{of_job, samples_of};
use std::process::Stdio;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::peers::Release;
use tidepool_tests::promtool;
use tidepool_tests::target;
use tidepool_tests::tidepool::Store;

/// Pushes the page of the fifth scrape.
fn push(store: &Store, job: &str, message: &str) -> promtool::Output {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("page.txt");
    std::fs::write(&file, target::page(5)).expect("the page is written");
    let (url, path) = (store.server.url(), file.to_string_lossy());
    let (message, label) = (format!("--protobuf_message={message}"), format!("--label=job={job}"));
    let arguments = ["push", "metrics", &message, &label, &url, &path];
    promtool::run(Release::V3, arguments, Stdio::null()).expect("promtool runs")
}

#[test]
fn what_promtool_pushes_arrives() {
    let store = Store::start().expect("tidepool starts");
    let start_ms = now_ms();
    let output = push(&store, "pushed", "prometheus.WriteRequest");
    assert!(output.success, "{}{}", output.stdout, output.stderr);
    let found = of_job(&store, "pushed");
    let counter = samples_of(&found, target::COUNTER);
    assert_eq!(counter.len(), 1, "{found:?}");
    // The page has no times, so samples get that of the push, for which promtool looks at the clock
    // once for each family.
    let pushed_ms = start_ms..=now_ms();
    let mut at_once = found.clone();
    for sample in at_once.iter_mut().flat_map(|series| &mut series.samples) {
        assert!(pushed_ms.contains(&sample.timestamp_ms), "{found:?}");
        sample.timestamp_ms = counter[0].timestamp_ms;
    }
    assert_same("the page", &target::expected(&[("job", "pushed")], &counter), &at_once);
}

/// With a flag for 2.0, promtool 3.15 announces 2.0 and sends a message of 1.0, in which a receiver
/// of 2.0 knows no field. It must not get a success.
#[test]
fn a_message_that_is_not_what_its_type_says_is_no_success() {
    let store = Store::start().expect("tidepool starts");
    let output = push(&store, "lost", "io.prometheus.write.v2.Request");
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(!output.success && said.contains("400") && said.contains("WriteRequest"), "{said}");
    assert!(of_job(&store, "lost").is_empty());
}
