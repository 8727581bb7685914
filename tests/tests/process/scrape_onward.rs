//! Scraped samples are forwarded like written ones, with staleness markers, and a shutdown writes
//! no markers.

use super::configuration::{reload, start};
use super::scrape::{TIMEOUT, assert_page, job, samples, series_of, wait_for_scrapes};
use std::fs;
use tidepool_tests::checksum::{Checksum, differences};
use tidepool_tests::process::Server;
use tidepool_tests::sender::read_all;
use tidepool_tests::series::{Labels, STALE_MARKER_BITS, Sample, Series};
use tidepool_tests::target::Target;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const INTERVAL: &str = "500ms";

fn is_mark(sample: &Sample) -> bool {
    sample.value.to_bits() == STALE_MARKER_BITS
}

/// Applies the rules below to the stored series.
fn relabeled(stored: Vec<Series>) -> Vec<Series> {
    let is_kept = |series: &Series| !series.labels.value("__name__").starts_with("wait_");
    let renamed = |series: Series| {
        let pairs = series.labels.pairs().iter().cloned();
        let mut pairs: Vec<(String, String)> = pairs.filter(|(name, _)| name != "kind").collect();
        let kind = series.labels.value("kind");
        pairs.push(("sort".to_owned(), kind.to_owned()));
        pairs.push(("site".to_owned(), "edge".to_owned()));
        Series { labels: Labels::from_pairs(pairs), samples: series.samples }
    };
    stored.into_iter().filter(is_kept).map(renamed).collect()
}

#[test]
fn scraped_samples_are_forwarded_relabeled_and_with_their_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start().expect("a target");
    let centre = Store::start().expect("the centre starts");
    let remote = format!(
        "enable-lifecycle: true\nremote_write:\n  - url: {}/api/v1/write\n    \
         queue_config: {{batch_send_deadline: 200ms}}\n    write_relabel_configs:\n      \
         - {{source_labels: [__name__], regex: wait_.*, action: drop}}\n      \
         - {{source_labels: [kind], regex: (.+), target_label: sort}}\n      \
         - {{regex: kind, action: labeldrop}}\n      \
         - {{target_label: site, replacement: edge}}\n",
        centre.server.url()
    );
    let text = format!("{remote}scrape_configs:\n{}", job("page", &[&target], INTERVAL));
    let (store, path) = start(directory.path(), &text, &[]);
    wait_for_scrapes(&store, "page", 4);

    // The target's series become stale.
    fs::write(&path, &remote).expect("a file");
    assert_eq!(reload(&store).0, 200);
    wait::until("the end of all series", TIMEOUT, || {
        let all = series_of(&store, "page");
        let has_ended = |series: &Series| series.samples.last().is_some_and(is_mark);
        all.iter().all(has_ended).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    assert_page(&store, "page", &target);

    let stored = series_of(&store, "page");
    let names = |name: &str| samples(&stored, name).len();
    assert_eq!(names("up"), names("scrape_series_added"), "the report ends, too");
    let wanted = relabeled(stored);
    let marks = wanted.iter().flat_map(|series| &series.samples).filter(|sample| is_mark(sample));
    assert!(marks.count() >= wanted.len(), "each series has an end");
    let read = || centre.reader().streamed(&[read_all()]).expect("an answer").remove(0);
    let same = || (Checksum::of(&read()) == Checksum::of(&wanted)).then_some(());
    wait::until("all at the centre", TIMEOUT, same).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", differences(&wanted, &read()), store.server.log())
    });
}

#[test]
fn a_shutdown_marks_no_series_as_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start().expect("a target");
    let text = format!("scrape_configs:\n{}", job("page", &[&target], INTERVAL));
    let (store, path) = start(directory.path(), &text, &[]);
    wait_for_scrapes(&store, "page", 3);
    // Nothing is scraped after the restart, so all samples are from before.
    fs::write(&path, "").expect("a file");
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    let all = series_of(&store, "page");
    let up = samples(&all, "up");
    assert!(up.len() >= 3, "{up:?}");
    // A failed scrape on a busy machine would mark the page's series as stale.
    let failed = up.iter().filter(|sample| sample.value != 1.0);
    let failed: Vec<i64> = failed.map(|sample| sample.timestamp_ms).collect();
    for series in &all {
        let marks = series.samples.iter().filter(|sample| is_mark(sample));
        let marks: Vec<i64> = marks.map(|sample| sample.timestamp_ms).collect();
        assert!(marks.iter().all(|mark| failed.contains(mark)), "{}: {marks:?}", series.labels);
    }
}
