//! Refused samples of a scrape are reported: in the target's last error, in counters, and by the
//! command that shows one scrape.

use super::configuration::start;
use super::scrape::{TIMEOUT, api, job, samples, series_of};
use tidepool_tests::arguments;
use tidepool_tests::cli::run_command;
use tidepool_tests::clock::now_ms;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Row, Series};
use tidepool_tests::target::Target;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

/// Returns a page with a valid series, one with a value of 5,000 bytes, and one with 200 labels.
fn page_of_large_labels(_: u64) -> String {
    let many: Vec<String> = (0..200).map(|number| format!("l{number}=\"x\"")).collect();
    format!("fine 1\nlong{{a=\"{}\"}} 1\nmany{{{}}} 1\n", "v".repeat(5_000), many.join(","))
}

fn page_of_nine(_: u64) -> String {
    (0..9).map(|number| format!("m{{n=\"{number}\"}} {number}\n")).collect()
}

/// Waits until the only target's last error contains this text, and returns it with its health.
#[track_caller]
fn wait_for_error(store: &Store, text: &str) -> (String, String) {
    let found = || {
        let target = api(&store.server, "targets")["activeTargets"][0].clone();
        let error = target["lastError"].as_str().unwrap_or_default().to_owned();
        let health = target["health"].as_str().unwrap_or_default().to_owned();
        error.contains(text).then_some((error, health))
    };
    wait::until(text, TIMEOUT, found)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()))
}

fn refused(store: &Store, reason: &str) -> f64 {
    let name = "tidepool_target_samples_refused_total";
    let of = format!("{name}{{scrape_job=\"page\",reason=\"{reason}\"}}");
    store.metric(&of).unwrap_or_else(|| panic!("{of} is missing"))
}

/// The target used to be up, without an error, and no counter moved.
#[test]
fn labels_that_are_too_large() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start_with(page_of_large_labels).expect("a target");
    let text = format!("scrape_configs:\n{}", job("page", &[&target], "200ms"));
    let (store, path) = start(directory.path(), &text, &[]);
    let (error, health) = wait_for_error(&store, "refused 2 of the scrape's samples");
    assert_eq!(health, "up");
    assert!(error.contains("2 with labels that are not valid or too large"), "{error}");
    let named = error.contains("value of") || error.contains("labels");
    assert!(named && error.len() < 2_000, "{error}");
    assert!(refused(&store, "labels") >= 2.0);
    assert_eq!(refused(&store, "series_limit"), 0.0);
    let stored = series_of(&store, "page");
    assert_eq!(samples(&stored, "up").first().map(|sample| sample.value), Some(1.0));
    assert!(!samples(&stored, "fine").is_empty());
    assert!(samples(&stored, "long").is_empty() && samples(&stored, "many").is_empty());

    // The command reports the same, with the limits of the file.
    let url = target.address().to_string();
    let shown = run_command("scrape", arguments![&url, "--config", &path], "");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown = shown.stdout;
    assert!(shown.contains("3 exposed, 3 after relabeling, 1 stored"), "{shown}");
    let (_, not_stored) = shown.split_once("# exposed, and not stored\n").expect("a list");
    assert!(not_stored.contains("# long{") && not_stored.contains("# many{"), "{not_stored}");

    // Pushed samples count by reason, too.
    let long = Series::new(&[("__name__", "long"), ("a", &"v".repeat(5_000))], &[(now_ms(), 1.0)]);
    let row = Row { labels: &long.labels, samples: &long.samples };
    let before = head_refused(&store, "labels");
    let answer = store.writer().send(Version::V1, &[row]).expect("an answer");
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(head_refused(&store, "labels"), before + 1.0);
}

fn head_refused(store: &Store, reason: &str) -> f64 {
    let name = format!("tidepool_head_samples_refused_total{{reason=\"{reason}\"}}");
    store.metric(&name).unwrap_or_else(|| panic!("{name} is missing"))
}

/// Without `up`, nothing showed a target that appeared when the limit was reached.
#[test]
fn series_beyond_the_limit_leave_the_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start_with(page_of_nine).expect("a target");
    let text = format!("max-series: 4\nscrape_configs:\n{}", job("page", &[&target], "200ms"));
    let (store, _) = start(directory.path(), &text, &[]);
    let (error, health) = wait_for_error(&store, "of series beyond the limit of series");
    assert_eq!(health, "up");
    assert!(error.contains("refused 5 of the scrape's samples: 5 of"), "{error}");
    assert!(error.contains("(m{"), "{error}");
    assert!(refused(&store, "series_limit") >= 5.0);
    let stored = series_of(&store, "page");
    assert_eq!(stored.iter().filter(|one| one.labels.value("__name__") == "m").count(), 4);
    for (name, value) in
        [("up", 1.0), ("scrape_samples_scraped", 9.0), ("scrape_series_added", 9.0)]
    {
        let first = samples(&stored, name).first().map(|sample| sample.value);
        assert_eq!(first, Some(value), "{name}");
    }
}

#[test]
fn a_disk_that_is_nearly_full_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start_with(page_of_nine).expect("a target");
    let text = format!("scrape_configs:\n{}", job("page", &[&target], "200ms"));
    // More than any disk has.
    let (store, _) = start(directory.path(), &text, &["--disk-reserve=1000000GiB"]);
    let (error, health) = wait_for_error(&store, "the disk is nearly full");
    assert_eq!(health, "up");
    assert!(error.starts_with("nothing of the scrape is stored: "), "{error}");
    // Nine, and a report of five.
    let count = refused(&store, "disk");
    assert!(count >= 14.0 && count % 14.0 == 0.0, "{count}");
    assert!(series_of(&store, "page").is_empty());
}
