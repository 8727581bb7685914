//! Rules beside Prometheus: the same file, evaluated by both at the same slots.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::prometheus;
use tidepool_tests::remote_read::Reader;
use tidepool_tests::sender::read_all;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

/// Everything depends on the time alone, so that both servers see the same at each slot. Alerts
/// come and go with a wave of twelve seconds.
const RULES: &str = r#"
groups:
  - name: waves
    interval: 1s
    rules:
      - {record: wave, expr: vector(time() % 12)}
      - {record: time, expr: time()}
      - record: sides
        expr: label_replace(wave, "side", "left", "", "") or label_replace(-wave, "side", "right", "", "")
        labels: {unit: seconds}
      - {record: sometimes, expr: sides > 6}
      - {alert: Fast, expr: wave > 3}
      - alert: Held
        expr: sides{side="left"} > 3
        for: 3s
        labels: {severity: "{{ if gt $value 8.0 }}high{{ else }}low{{ end }}", side: ""}
      - {alert: Kept, expr: wave > 9, keep_firing_for: 4s, labels: {what: "{{ $labels.absent }}"}}
      - {alert: HeldAndKept, expr: wave > 7, for: 2s, keep_firing_for: 2s}
      - {alert: Never, expr: wave > 3, for: 1m}
      - {alert: Wrong, expr: wave > 3, labels: {text: "{{ index $labels.a 3 }}"}}
      - record: state
        expr: count by (alertname, alertstate) (ALERTS)
  - name: limited
    interval: 1s
    limit: 1
    rules:
      - {record: too_many, expr: sides}
      - {record: enough, expr: 'sides{side="left"}'}
  - name: late
    interval: 2s
    query_offset: 3s
    labels: {of: group}
    rules:
      - {record: shifted, expr: wave, labels: {of: rule}}
      - {record: shifted_again, expr: shifted * 2}
"#;

/// After so long, both have seen a whole wave, and what was before it counts no longer.
const SETTLE_MS: i64 = 30_000;

/// What is compared: more than a wave.
const WINDOW_MS: i64 = 16_000;

const MISSED: &str = "prometheus_rule_group_iterations_missed_total{";

const TIMEOUT: Duration = Duration::from_secs(90);

/// Series of rules, with the samples between two times.
fn between(url: &str, times_ms: (i64, i64)) -> Vec<Series> {
    let read = Reader::new(url).streamed(&[read_all()]).expect("an answer");
    let is_in = |time_ms: i64| (times_ms.0..times_ms.1).contains(&time_ms);
    let mut series: Vec<Series> = read.into_iter().flatten().collect();
    for series in &mut series {
        series.samples.retain(|sample| is_in(sample.timestamp_ms));
    }
    series.retain(|series| !series.samples.is_empty());
    series
}

/// Slots that a server has left out.
fn missed(url: &str) -> f64 {
    let page = Client::default().get(&format!("{url}/metrics")).expect("an answer").text();
    let lines = page.lines().filter(|line| line.starts_with(MISSED));
    let values =
        lines.map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()));
    let values: Vec<f64> = values.map(|value| value.expect("a number")).collect();
    assert_eq!(values.len(), 3, "one of each group: {page}");
    values.iter().sum()
}

fn wait_until(time_ms: i64) {
    wait::until("a time", TIMEOUT, || (now_ms() > time_ms).then_some(())).expect("time passes");
}

#[test]
fn rules_give_the_samples_of_prometheus() {
    let directory = tempfile::tempdir().expect("a directory");
    let rules = directory.path().join("rules.yml");
    fs::write(&rules, RULES).expect("a file");
    let file = directory.path().join("tidepool.yml");
    // With the same path, groups have the same slots.
    fs::write(&file, format!("rule_files: [{:?}]\n", rules.display().to_string())).expect("a file");
    let theirs = prometheus::Config::new(Release::V3, &directory.path().join("prometheus"))
        .expect("a configuration")
        .rule_file(&rules)
        .start()
        .unwrap_or_else(|error| panic!("{}", wait::chain(&error)));
    let ours = Store::start_with(|config| config.flag(&format!("--config={}", file.display())));
    let ours = ours.unwrap_or_else(|error| panic!("{}", wait::chain(&error)));
    let urls = [theirs.url(), ours.server.url()];
    let mut begin_ms = now_ms() + SETTLE_MS;
    // On a machine that is busy, either may leave a slot out. Then the next window counts, in which
    // alerts depend on no wave with such a slot.
    let (theirs, ours) = loop {
        let end_ms = begin_ms + WINDOW_MS;
        wait_until(begin_ms - WINDOW_MS);
        let before = urls.clone().map(|url| missed(&url));
        // One slot more, so that the last one compared is complete.
        wait_until(end_ms + 3000);
        if before == urls.clone().map(|url| missed(&url)) {
            break (between(&urls[0], (begin_ms, end_ms)), between(&urls[1], (begin_ms, end_ms)));
        }
        begin_ms = now_ms() + SETTLE_MS;
    };
    let names: BTreeSet<&str> = theirs.iter().map(|one| one.labels.value("__name__")).collect();
    let alerts: BTreeSet<&str> = theirs.iter().map(|one| one.labels.value("alertname")).collect();
    for name in ["ALERTS", "ALERTS_FOR_STATE", "enough", "shifted_again", "sometimes", "state"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert!(!names.contains("too_many"), "{names:?}");
    assert_eq!(alerts.len(), 7, "all alerts, and what is none: {alerts:?}");
    assert_same("rules", &theirs, &ours);
}
