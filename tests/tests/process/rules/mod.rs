//! Recording and alerting rules: their samples, alerts over restarts and reloads, and mistakes in
//! rule files.

mod shipped;

use super::configuration::{reload, start};
use super::scrape::{TIMEOUT, api};
use serde_json::Value;
use std::fs;
use std::time::Duration;
use tidepool_tests::cli::run_command;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;
use tidepool_tests::sender::read_all;
use tidepool_tests::series::{STALE_MARKER_BITS, Sample, Series};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

/// Names the rule file, and evaluates it often.
const CONFIG: &str = "enable-lifecycle: true\nglobal: {evaluation_interval: 500ms}\n\
                      rule_files: ['rules/*.yml']\n";

const RULES: &str = r#"
groups:
  - name: first
    labels: {of: the group}
    rules:
      - {record: one, expr: vector(1)}
      - {record: "two:sum", expr: one + 1, labels: {of: the rule}}
      - alert: Always
        expr: '{__name__="two:sum"} > 1'
        for: 2s
        labels: {severity: "{{ if gt $value 1.5 }}page{{ end }}"}
        annotations: {summary: "{{ $labels.of }} is {{ $value | printf \"%.1f\" }}"}
  - name: second
    rules:
      - {record: histogram, expr: sum(native)}
      - {record: three, expr: vector(3)}
"#;

pub fn of(store: &Store, name: &str) -> Vec<Series> {
    let read = store.reader().streamed(&[read_all()]).expect("an answer");
    let series = read.into_iter().flatten();
    series.filter(|series| series.labels.value("__name__") == name).collect()
}

pub fn is_mark(sample: &Sample) -> bool {
    sample.value.to_bits() == STALE_MARKER_BITS
}

/// Stores samples in the text format.
#[track_caller]
pub fn import(store: &Store, text: &str) {
    let url = store.server.url() + "/api/v1/import/prometheus";
    let answer = Client::default().post(&url, &[], text.as_bytes()).expect("an answer");
    assert!(answer.is_success(), "{}", answer.text());
}

#[track_caller]
fn wait_for<T>(store: &Store, what: &str, found: impl FnMut() -> Option<T>) -> T {
    wait::until(what, TIMEOUT, found)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()))
}

/// The only alert, once it has a state.
#[track_caller]
fn alert(store: &Store, state: &str) -> Value {
    wait_for(store, state, || {
        let alerts = api(&store.server, "alerts");
        let alert = alerts["alerts"].get(0)?;
        (alert["state"] == state).then(|| alert.clone())
    })
}

#[test]
fn rules_are_evaluated_and_alerts_come_back_after_a_crash() {
    let directory = tempfile::tempdir().expect("a directory");
    let rules = directory.path().join("rules");
    fs::create_dir(&rules).expect("a directory");
    fs::write(rules.join("a.yml"), RULES).expect("a file");
    let (store, _) = start(directory.path(), CONFIG, &[]);
    let pending = alert(&store, "pending");
    let firing = alert(&store, "firing");
    assert_eq!(firing["activeAt"], pending["activeAt"]);
    let labels = serde_json::json!(
        {"alertname": "Always", "of": "the group", "severity": "page"}
    );
    assert_eq!(firing["labels"], labels, "labels of the rule override those of the sample");
    assert_eq!(firing["annotations"]["summary"], "the rule is 2.0");
    assert_eq!(firing["value"], "2e+00");

    // Each rule sees the samples of the rule before it in the same evaluation.
    let (one, two) = (of(&store, "one"), of(&store, "two:sum"));
    assert_eq!(one[0].samples[0].timestamp_ms, two[0].samples[0].timestamp_ms);
    assert_eq!(two[0].labels.value("of"), "the rule");
    // Slots are those of the interval: at one offset.
    let offsets = one[0].samples.iter().map(|sample| sample.timestamp_ms.rem_euclid(500));
    assert_eq!(offsets.collect::<std::collections::BTreeSet<_>>().len(), 1);
    // `ALERTS` says the state, and the series of the state before ends.
    let states = of(&store, "ALERTS");
    let of_state = |state: &str| {
        let found = states.iter().find(|series| series.labels.value("alertstate") == state);
        found.unwrap_or_else(|| panic!("{states:?}")).samples.clone()
    };
    let (pending_samples, firing_samples) = (of_state("pending"), of_state("firing"));
    let (mark, before) = pending_samples.split_last().expect("samples");
    assert!(is_mark(mark) && before.iter().all(|sample| sample.value == 1.0));
    assert_eq!(mark.timestamp_ms, firing_samples[0].timestamp_ms);
    // It fired at the first evaluation after two seconds.
    let due_ms = before[0].timestamp_ms + 2000;
    let mut evaluated = one[0].samples.iter().map(|sample| sample.timestamp_ms);
    let expected = evaluated.find(|time_ms| *time_ms >= due_ms);
    assert_eq!(Some(firing_samples[0].timestamp_ms), expected);

    // The alert is back before it could have fired again, active since the same second.
    let store = store.restart(Server::kill).expect("tidepool starts again");
    let again = alert(&store, "firing");
    let second = |alert: &Value| alert["activeAt"].as_str().expect("a time")[..19].to_owned();
    assert_eq!(second(&again), second(&firing), "{:?}", of(&store, "ALERTS_FOR_STATE"));
    wait_for(&store, "the next sample", || {
        let alerts = of(&store, "ALERTS");
        let firing = alerts.iter().find(|series| series.labels.value("alertstate") == "firing")?;
        (firing.samples.len() > firing_samples.len() + 2).then_some(())
    });
    let pending = of(&store, "ALERTS").into_iter();
    let pending = pending.filter(|series| series.labels.value("alertstate") == "pending");
    let samples: usize = pending.map(|series| series.samples.len()).sum();
    assert_eq!(samples, pending_samples.len(), "it was not pending again");

    // A reload ends the series of rules that are gone, and the others go on.
    let without = RULES.replace("      - {record: three, expr: vector(3)}\n", "");
    fs::write(rules.join("a.yml"), without).expect("a file");
    assert_eq!(reload(&store).0, 200);
    wait_for(&store, "the end of a series", || {
        let three = of(&store, "three");
        three[0].samples.last().filter(|sample| is_mark(sample)).map(drop)
    });
    assert_eq!(second(&alert(&store, "firing")), second(&firing));
    assert!(of(&store, "one")[0].samples.iter().all(|sample| !is_mark(sample)));
}

#[test]
fn mistakes_in_rule_files_are_reported_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let rules = directory.path().join("rules");
    fs::create_dir(&rules).expect("a directory");
    let file = |name: &str, text: &str| fs::write(rules.join(name), text).expect("a file");
    file(
        "a.yml",
        "groups:\n  - name: a\n    intervall: 1s\n    rules:\n      - {record: b, expr: sum(}\n",
    );
    file(
        "b.yml",
        "groups:\n  - name: a\n    rules:\n      - alert: B\n        expr: up\n        \
         annotations: {summary: '{{ $vale }}'}\n",
    );
    let path = directory.path().join("tidepool.yml");
    fs::write(&path, CONFIG).expect("a file");
    let data_dir = directory.path().join("data");
    let arguments =
        ["--config".as_ref(), path.as_os_str(), "--data-dir".as_ref(), data_dir.as_os_str()];
    let output = run_command("serve", &arguments, "");
    let said = output.stderr;
    assert_eq!(output.code, Some(2), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    for (line, place, what) in [
        (lines[0], "a.yml:3:5: groups[0].intervall: ", "did you mean interval?"),
        (lines[1], "a.yml:5:27: groups[0].rules[0].expr: ", "parse error"),
        (lines[2], "b.yml:6:", "undefined variable \"$vale\""),
    ] {
        assert!(line.contains(place) && line.contains(what), "{said}");
    }
    assert_eq!(lines.len(), 3, "{said}");
    assert!(!data_dir.exists());

    // The same mistakes, by the command; and a reload keeps what there was.
    let output = run_command("check", &["rules".as_ref(), rules.join("a.yml").as_os_str()], "");
    let checked = output.stderr;
    assert_eq!(output.code, Some(1), "{checked}");
    assert!(checked.contains("a.yml:3:5: ") && checked.contains("a.yml:5:27: "), "{checked}");
    file("a.yml", RULES);
    file("b.yml", "groups: []\n");
    let (store, _) = start(directory.path(), CONFIG, &[]);
    alert(&store, "firing");
    file("b.yml", "group: []\n");
    let (status, refusal) = reload(&store);
    assert!(status == 500 && refusal.contains("b.yml:1:1: group: "), "{status} {refusal}");
    alert(&store, "firing");
}

#[test]
fn the_api_selects_groups_and_rules_as_upstream_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let rules = directory.path().join("rules");
    fs::create_dir(&rules).expect("a directory");
    fs::write(rules.join("a.yml"), RULES).expect("a file");
    let (store, _) = start(directory.path(), CONFIG, &[]);
    alert(&store, "firing");
    let names = |query: &str| -> Vec<String> {
        let data = api(&store.server, &format!("rules?{query}"));
        let groups = data["groups"].as_array().expect("groups").iter();
        let rules = groups.flat_map(|group| group["rules"].as_array().expect("rules"));
        rules.map(|rule| rule["name"].as_str().expect("a name").to_owned()).collect()
    };
    let all = ["one", "two:sum", "Always", "histogram", "three"];
    assert_eq!(names(""), all);
    assert_eq!(names("type=alert"), ["Always"]);
    assert_eq!(names("type=record&rule_group[]=second"), ["histogram", "three"]);
    assert_eq!(names("rule_name[]=one&rule_name[]=three"), ["one", "three"]);
    assert_eq!(names("file[]=elsewhere.yml"), [""; 0]);
    assert_eq!(names("match[]=%7Bof%3D~%22the.*%22%7D"), ["one", "two:sum", "Always"]);
    let first = api(&store.server, "rules?group_limit=1");
    let token = first["groupNextToken"].as_str().expect("a token").to_owned();
    assert_eq!(names(&format!("group_limit=1&group_next_token={token}")), ["histogram", "three"]);
    let alerts = api(&store.server, "rules?type=alert&exclude_alerts=true");
    assert_eq!(alerts["groups"][0]["rules"][0]["alerts"], serde_json::json!([]));
    let rule = &api(&store.server, "rules?type=alert")["groups"][0]["rules"][0];
    assert_eq!((&rule["health"], &rule["state"]), (&"ok".into(), &"firing".into()));
    assert_eq!(rule["duration"], 2.0);
    let template = "{{ $labels.of }} is {{ $value | printf \"%.1f\" }}";
    assert_eq!(rule["annotations"]["summary"], template);
    assert_eq!(rule["alerts"][0]["annotations"]["summary"], "the rule is 2.0");
}
