//! tidepool scrapes by itself: a page whose every sample is known, over a reload and a restart.

use super::configuration::{reload, start};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;
use tidepool_tests::arguments;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::cli::run_command;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::sender::read_all;
use tidepool_tests::series::{STALE_MARKER_BITS, Sample, Series};
use tidepool_tests::target::{self, COUNTER, Target};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The interval of most jobs here.
const INTERVAL: &str = "500ms";

/// Returns a job that scrapes targets at an interval.
pub fn job(name: &str, targets: &[&Target], interval: &str) -> String {
    let addresses: Vec<String> = targets.iter().map(|one| one.address().to_string()).collect();
    format!(
        "  - job_name: {name}\n    scrape_interval: {interval}\n    scrape_timeout: {interval}\n    \
         static_configs:\n      - targets: [{}]\n",
        addresses.iter().map(|address| format!("'{address}'")).collect::<Vec<_>>().join(", ")
    )
}

pub fn series_of(store: &Store, job: &str) -> Vec<Series> {
    let read = store.reader().streamed(&[read_all()]).expect("an answer");
    read.into_iter().flatten().filter(|series| series.labels.value("job") == job).collect()
}

pub fn samples(series: &[Series], name: &str) -> Vec<Sample> {
    let found = series.iter().find(|series| series.labels.value("__name__") == name);
    found.map(|series| series.samples.clone()).unwrap_or_default()
}

/// Returns the counter's samples of a job, without staleness markers.
pub fn counted(store: &Store, job: &str) -> Vec<Sample> {
    let mut counter = samples(&series_of(store, job), COUNTER);
    counter.retain(|sample| sample.value.to_bits() != STALE_MARKER_BITS);
    counter
}

/// Waits until this number of scrapes of a job is stored. A failed scrape, which is possible on a
/// busy machine, leaves a marker and does not count.
#[track_caller]
pub fn wait_for_scrapes(store: &Store, job: &str, count: usize) {
    wait::until("scrapes", TIMEOUT, || (counted(store, job).len() >= count).then_some(()))
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
}

pub fn api(server: &Server, path: &str) -> Value {
    let answer = Client::default().get(&format!("{}/api/v1/{path}", server.url()));
    let answer: Value = serde_json::from_slice(&answer.expect("an answer").body).expect("JSON");
    assert_eq!(answer["status"], "success", "{answer}");
    answer["data"].clone()
}

/// Returns the page's own series, without those that a scraper adds and without staleness markers.
fn page_of(series: Vec<Series>) -> Vec<Series> {
    let is_own = |name: &str| name == "up" || name.starts_with("scrape_");
    let mut page: Vec<Series> =
        series.into_iter().filter(|one| !is_own(one.labels.value("__name__"))).collect();
    for series in &mut page {
        series.samples.retain(|sample| sample.value.to_bits() != STALE_MARKER_BITS);
    }
    page
}

#[track_caller]
pub fn assert_page(store: &Store, job: &str, target: &Target) {
    let found = page_of(series_of(store, job));
    let counter = samples(&found, COUNTER);
    let numbers: Vec<f64> = counter.iter().map(|sample| sample.value).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "scrapes came twice: {numbers:?}");
    let address = target.address().to_string();
    let expected = target::expected(&[("job", job), ("instance", &address)], &counter);
    assert_same(job, &expected, &found);
}

#[test]
fn pages_are_scraped_and_a_reload_changes_the_targets() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, second) = (Target::start().expect("a target"), Target::start().expect("another"));
    let lifecycle = "enable-lifecycle: true\n";
    let text = format!("{lifecycle}scrape_configs:\n{}", job("page", &[&first], INTERVAL));
    let (store, path) = start(directory.path(), &text, &[]);
    wait_for_scrapes(&store, "page", 4);
    assert_page(&store, "page", &first);
    let all = series_of(&store, "page");
    // On a busy machine a scrape may take longer than its interval.
    let up = samples(&all, "up");
    let is_up = |sample: &&Sample| sample.value == 1.0;
    assert!(up.iter().filter(is_up).count() >= 4, "{up:?}");
    let scraped = samples(&all, "scrape_samples_scraped");
    for (up, scraped) in up.iter().zip(&scraped).filter(|(up, _)| is_up(up)) {
        assert_eq!((scraped.timestamp_ms, scraped.value), (up.timestamp_ms, 8.0));
    }
    // All samples of a scrape have one time.
    let times = |name: &str| -> Vec<i64> {
        samples(&all, name).iter().map(|sample| sample.timestamp_ms).collect()
    };
    assert_eq!(times("up"), times("scrape_duration_seconds"));

    let targets = api(&store.server, "targets");
    let active = &targets["activeTargets"][0];
    assert_eq!(active["scrapePool"], "page");
    assert_eq!(active["scrapeUrl"], format!("http://{}/metrics", first.address()));
    assert_eq!(active["labels"]["instance"], first.address().to_string());
    assert_eq!(api(&store.server, "scrape_pools")["scrapePools"], serde_json::json!(["page"]));

    let text = format!("{lifecycle}scrape_configs:\n{}", job("other", &[&second], INTERVAL));
    fs::write(&path, text).expect("a file");
    assert_eq!(reload(&store).0, 200);
    wait_for_scrapes(&store, "other", 2);
    let before = first.scrapes();
    wait_for_scrapes(&store, "other", 5);
    assert_eq!(first.scrapes(), before, "a job that is gone is scraped no more");
    // A mistake changes nothing.
    fs::write(&path, "enable-lifecycle: true\nscrape_configs: [{job_nam: a}]\n").expect("a file");
    let (status, why) = reload(&store);
    assert!(status != 200 && why.contains("job_nam"), "{status} {why}");
    let count = counted(&store, "other").len();
    wait_for_scrapes(&store, "other", count + 2);

    fs::write(&path, lifecycle).expect("a file");
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    assert_page(&store, "page", &first);
}

#[test]
fn a_target_that_cannot_be_scraped_is_down_and_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start().expect("a target");
    let mut text = format!("scrape_configs:\n{}", job("page", &[&target], INTERVAL));
    text.push_str("    scrape_failure_log_file: failures.log\n");
    drop(target);
    let (store, _) = start(directory.path(), &text, &[]);
    // On a busy machine a scrape may time out before it is refused.
    let refused = || {
        let target = api(&store.server, "targets")["activeTargets"][0].clone();
        let why = target["lastError"].as_str().unwrap_or_default().to_owned();
        why.contains("refused").then_some((target, why))
    };
    let refused = wait::until("a refused scrape", TIMEOUT, refused);
    let (target, why) = refused.unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    assert_eq!(target["health"], "down", "{target}");
    // The file is written in the background.
    let failures = directory.path().join("failures.log");
    let is_logged = || {
        let log = fs::read_to_string(&failures).ok()?;
        // The last line may be incomplete.
        let lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let is_it = |line: &Value| line["job_name"] == "page" && line["msg"] == why.as_str();
        lines.collect::<Vec<_>>().iter().any(is_it).then_some(())
    };
    wait::until("a line of the failure", TIMEOUT, is_logged)
        .unwrap_or_else(|error| panic!("{error}: {:?}", fs::read_to_string(&failures)));
    wait::until("a sample of up", TIMEOUT, || {
        let up = samples(&series_of(&store, "page"), "up");
        up.first().map(|sample| assert_eq!(sample.value, 0.0))
    })
    .unwrap_or_else(|error| panic!("{error}"));
}

/// A list of thousands of such targets used to fill the log.
#[test]
fn targets_that_cannot_be_scraped_are_named_up_to_ten() {
    let directory = tempfile::tempdir().expect("a directory");
    let targets: Vec<String> = (0..40).map(|number| format!("bad?{number}:80")).collect();
    let list = serde_json::json!([{ "targets": targets }]).to_string();
    fs::write(directory.path().join("list.json"), list).expect("a file");
    let text = "scrape_configs:\n- job_name: listed\n  file_sd_configs: [{files: [list.json]}]\n";
    let (store, _) = start(directory.path(), text, &[]);
    let rest = || {
        let log = store.server.log();
        log.contains("more targets cannot be scraped").then_some(log)
    };
    let log = wait::until("the rest", TIMEOUT, rest)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    let named = log.lines().filter(|line| line.contains("a target cannot be scraped"));
    let named: Vec<&str> = named.collect();
    assert_eq!(named.len(), 10, "{log}");
    assert!(named[0].contains("is not a valid hostname"), "{}", named[0]);
    let rest = log.lines().find(|line| line.contains("more targets cannot be scraped"));
    assert!(rest.is_some_and(|line| line.contains("more=30")), "{rest:?}");
    assert_eq!(api(&store.server, "targets")["activeTargets"], serde_json::json!([]));
    let failed = store.metric("prometheus_target_sync_failed_total{scrape_job=\"listed\"}");
    assert_eq!(failed, Some(40.0));
}

/// Returns label sets as JSON, in order.
fn label_sets(samples: &[Value]) -> BTreeSet<String> {
    let sorted = |sample: &Value| {
        let labels = sample["labels"].as_object().expect("labels");
        let pairs = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        format!("{:?}", pairs.collect::<BTreeSet<_>>())
    };
    samples.iter().map(sorted).collect()
}

#[test]
fn a_scrape_from_the_command_line_shows_what_a_server_stores() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target::start().expect("a target");
    let more = "    metric_relabel_configs:\n      - {source_labels: [__name__], regex: \
                wait_.*, action: drop}\n      - {target_label: added, replacement: x}\n";
    let text = format!("scrape_configs:\n{}{more}", job("page", &[&target], INTERVAL));
    let (store, path) = start(directory.path(), &text, &[]);
    wait_for_scrapes(&store, "page", 1);
    let stored = series_of(&store, "page");
    let stored = stored.iter().map(|series| {
        let pairs = series.labels.pairs().iter();
        let pairs = pairs.map(|(name, value)| (name.as_str(), Some(value.as_str())));
        format!("{:?}", pairs.collect::<BTreeSet<_>>())
    });
    let stored: BTreeSet<String> = stored.collect();

    let address = target.address().to_string();
    let by_job = arguments![
        &address,
        "--config",
        path.as_path(),
        "--job=page",
        "--timeout=20s",
        "-o",
        "json"
    ];
    let shown = run_command("scrape", by_job, "");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let json: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let list = |key: &str| json[key].as_array().expect("a list").clone();
    let shown = [list("samples"), list("report")].concat();
    assert_eq!(label_sets(&shown), stored);
    let counter = list("samples").into_iter().find(|one| one["labels"]["__name__"] == COUNTER);
    let counter = counter.expect("the counter");
    assert_eq!((&counter["type"], &counter["labels"]["added"]), (&"counter".into(), &"x".into()));
    assert_eq!(list("refused").len(), 4, "{json}");
    assert_eq!(json["samplesScraped"], 8.0);

    // Without a job, with the metadata of a target.
    let url = format!("http://{address}/metrics");
    let shown = run_command("scrape", arguments![&url, "--metadata"], "");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for line in [
        format!("# target: {url} {{instance=\"{address}\", job=\"scrape\"}}\n"),
        "# samples: 8 exposed, 8 after relabeling, 8 stored\n".to_owned(),
        format!("# HELP {COUNTER} {}\n# TYPE {COUNTER} counter\n", target::COUNTER_HELP),
        "# TYPE wait_seconds histogram\nwait_seconds_bucket{".to_owned(),
        format!("\nup{{instance=\"{address}\",job=\"scrape\"}} 1\n"),
    ] {
        assert!(shown.stdout.contains(&line), "{line}: {}", shown.stdout);
    }

    drop(target);
    let shown = run_command("scrape", arguments![&url, "--timeout=2s"], "");
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(shown.stdout.contains("# FAILED: ") && shown.stdout.contains("job=\"scrape\"} 0\n"));
    for (arguments, code, said) in [
        (arguments!["ftp://a/"].as_slice(), 1, "is no URL such as"),
        (arguments![&url, "--job=page"], 2, "--config"),
        (arguments![&url, "--config", path.as_path(), "--job=none"], 1, "the file has page"),
    ] {
        let refused = run_command("scrape", arguments, "");
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
}
