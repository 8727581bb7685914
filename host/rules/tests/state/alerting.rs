//! Alerts: cases of upstream's `alerting_test.go` and `manager_test.go`, with what a query answers
//! in place of a store.

use crate::engine::{
    Histogram, MINUTE, Memory, Vector, alerts, at, defaults, float, group_of, groups_of, labels,
    options, rule,
};
use tidepool_rules::alert::{Change, State};
use tidepool_rules::engine::{Answer, NewValue, Sample, Value};
use tidepool_rules::group::{Group, KindSnapshot, Options};

/// The samples of an hour, each five minutes, of two instances that are below 100.
fn below_100(time_ms: i64) -> Vector {
    let step = usize::try_from(time_ms / (5 * MINUTE)).expect("not negative");
    let rows = [("0", [75, 85, 95, 105, 105, 95, 85]), ("1", [80, 90, 100, 110, 120, 130, 140])];
    let found = rows.into_iter().filter(|(_, row)| row[step] < 100);
    let sample = |(instance, row): (&str, [i32; 7])| {
        let name = ("__name__", "http_requests");
        let severity = ("severity", "overwrite-me");
        float(row[step].into(), &[name, ("instance", instance), severity])
    };
    found.map(sample).collect()
}

/// The series of a name at a time: the value of a label, and the value.
fn series_at(memory: &Memory, name: &str, label: &str, time_ms: i64) -> Vec<(String, f64)> {
    let rows = memory.rows.iter().filter(|(series, _)| series.get("__name__") == name);
    let at = rows.filter_map(|(series, row)| match row.get(&time_ms)? {
        NewValue::Float(value) => Some((series.get(label).to_owned(), *value)),
        _ => None,
    });
    at.collect()
}

/// Evaluates a rule each minute, and returns the states that `ALERTS` has at each time.
fn states(group: &mut Group, memory: &mut Memory, minutes: i64) -> Vec<String> {
    let mut states = Vec::new();
    for minute in 0..minutes {
        let report = group.evaluate(minute * MINUTE, memory, &options());
        assert!(report.rules[0].result.is_ok());
        let found = series_at(memory, "ALERTS", "alertstate", minute * MINUTE);
        states.push(found.into_iter().map(|(state, _)| state).collect::<Vec<_>>().join(" "));
    }
    states
}

#[test]
fn alerts_wait_fire_and_end() {
    for offset in [0, 1] {
        let text = format!(
            "groups: [{{name: g, interval: 5m, query_offset: {offset}m, rules: [{{alert: Low, \
             expr: q, for: 1m, labels: {{severity: '{{{{\"c\"}}}}ritical'}}}}]}}]",
        );
        let mut group = groups_of("f", &text, &defaults()).remove(0);
        group.skip_restore();
        let mut memory = at(below_100);
        let (zero, since_0, since_25) = (vec![], offset * 60, (25 + offset) * 60);
        for (time, pending, firing, since) in [
            (0, vec!["0", "1"], vec![], since_0),
            (5, vec![], vec!["0", "1"], since_0),
            (10, vec![], vec!["0"], since_0),
            (15, vec![], vec![], 0),
            (20, vec![], zero, 0),
            (25, vec!["0"], vec![], since_25),
            (30, vec![], vec!["0"], since_25),
        ] {
            group.evaluate((time + offset) * MINUTE, &mut memory, &options());
            let rows = memory.rows.iter().filter(|(series, row)| {
                let is_there = row.get(&(time * MINUTE)) == Some(&NewValue::Float(1.0));
                series.get("__name__") == "ALERTS" && is_there
            });
            let of = |state: &str| -> Vec<String> {
                let found = rows.clone().filter(|(series, _)| series.get("alertstate") == state);
                found.map(|(series, _)| series.get("instance").to_owned()).collect()
            };
            assert_eq!(
                (of("pending"), of("firing")),
                (strings(&pending), strings(&firing)),
                "{time}"
            );
            let for_state = series_at(&memory, "ALERTS_FOR_STATE", "instance", time * MINUTE);
            assert_eq!(for_state.len(), pending.len() + firing.len(), "{time}");
            assert!(for_state.iter().all(|(_, value)| *value == since as f64), "{for_state:?}");
            for alert in alerts(&group) {
                assert_eq!(
                    (alert.labels.get("__name__"), alert.labels.get("severity")),
                    ("", "critical")
                );
            }
        }
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn labels_that_change_begin_another_alert() {
    let mut memory = at(|time_ms| {
        let values = [75.0, 85.0, 70.0, 70.0];
        let value = values.get(usize::try_from(time_ms / MINUTE).expect("not negative"));
        value.map(|value| float(*value, &[("instance", "0")])).into_iter().collect()
    });
    let mut group = group_of(
        "{alert: Low, expr: q, for: 1m, labels: {severity: \
         '{{ if lt $value 80.0 }}critical{{ else }}warning{{ end }}'}}",
    );
    let found = states(&mut group, &mut memory, 5);
    assert_eq!(found, ["pending", "pending", "pending", "firing", ""]);
    let severities: Vec<String> =
        alerts(&group).iter().map(|alert| alert.labels.get("severity").to_owned()).collect();
    assert_eq!(severities, ["critical"]);
    let pending = labels(&[
        ("__name__", "ALERTS"),
        ("alertname", "Low"),
        ("alertstate", "pending"),
        ("instance", "0"),
        ("severity", "warning"),
    ]);
    assert_eq!(memory.floats(&pending), [(MINUTE, Some(1.0)), (2 * MINUTE, None)]);
}

#[test]
fn templates_see_the_configuration() {
    let text = "There are {{ len $externalLabels }} external Labels, of which foo is \
                {{ $externalLabels.foo }}. The URL is {{ $externalURL }}.";
    let file = format!(
        "groups: [{{name: g, rules: [{{alert: A, expr: q, labels: {{l: '{text}', empty: ''}}}}]}}]"
    );
    let external = [("foo".to_owned(), "bar".to_owned()), ("dings".into(), "bums".into())];
    for (labels, url, expected) in [
        (vec![], "", "There are 0 external Labels, of which foo is . The URL is ."),
        (
            external.to_vec(),
            "http://localhost:1234",
            "There are 2 external Labels, of which foo is bar. The URL is http://localhost:1234.",
        ),
    ] {
        let mut defaults = defaults();
        defaults.external_labels = std::sync::Arc::new(labels.into_iter().collect());
        defaults.external_url = url.into();
        let mut group = groups_of("f", &file, &defaults).remove(0);
        let mut memory = at(|_| vec![float(1.0, &[("empty", "was here")])]);
        group.evaluate(0, &mut memory, &options());
        let found = &alerts(&group)[0].labels;
        assert_eq!((found.get("l"), found.get("empty")), (expected, ""));
    }
}

#[test]
fn templates_query_at_the_slot_without_the_offset() {
    let text = "groups: [{name: g, query_offset: 1m, rules: [{alert: A, expr: 'sum(r) < 100', \
                labels: {label: value}, annotations: {broken: '{{ nope }}', failing: \
                '{{ with query \"fails\" }}{{ end }}', v: '{{- with \"sort(r)\" | query -}}\
                {{- range $i,$v := . -}}{{ $v.Labels.instance }}: {{ $v.Value }} {{ end }}{{- end -}}'}}]}]";
    let mut group = groups_of("f", text, &defaults()).remove(0);
    let mut memory = Memory::new(|query, _| match (query.expression, query.time_ms) {
        ("sum(r) < 100", MINUTE) => Ok(Answer::Scalar(70.0)),
        ("sort(r)", 120_000) => {
            let samples = [(7.0, "0"), (8.0, "1")];
            let samples = samples.map(|(value, instance)| float(value, &[("instance", instance)]));
            Ok(Answer::Vector(samples.to_vec()))
        }
        (other, time_ms) => Err(format!("{other} at {time_ms}")),
    });
    let report = group.evaluate(2 * MINUTE, &mut memory, &options());
    assert_eq!(report.rules[0].template_failures, 2);
    let found = alerts(&group).remove(0);
    assert_eq!(found.annotations["v"], "0: 7 1: 8 ");
    // What Go's `template` says of both.
    assert_eq!(
        found.annotations["broken"],
        "<error expanding template: error parsing template __alert_A: template: __alert_A:1: \
         function \"nope\" not defined>",
    );
    assert_eq!(
        found.annotations["failing"],
        "<error expanding template: error executing template __alert_A: template: __alert_A:1:120: \
         executing \"__alert_A\" at <query \"fails\">: error calling query: fails at 120000>",
    );
}

#[test]
fn a_histogram_is_its_text_in_templates_and_stays_one_in_the_store() {
    let sample =
        || Sample { labels: labels(&[]), value: Value::Histogram(Histogram("{count:3}", 7)) };
    let mut memory = at(move |_| vec![sample()]);
    let mut group = group_of("{alert: H, expr: q, for: 1m, labels: {histogram: '{{ $value }}'}}");
    group.evaluate(0, &mut memory, &options());
    assert_eq!(alerts(&group)[0].labels.get("histogram"), "{count:3}");
    assert_eq!(alerts(&group)[0].value, 0.0);

    let mut group = group_of("{record: h, expr: q}");
    group.evaluate(0, &mut memory, &options());
    let row = &memory.rows[&labels(&[("__name__", "h")])];
    assert_eq!(row[&0], NewValue::Histogram(Histogram("{count:3}", 7)));
}

#[test]
fn alerts_keep_firing() {
    let found = |times: i64| {
        move |time_ms: i64| if time_ms < times * MINUTE { vec![float(75.0, &[])] } else { vec![] }
    };
    let text = "{alert: High, expr: q, for: 1m, keep_firing_for: 1m}";
    let (mut group, mut memory) = (group_of(text), at(found(4)));
    let expected = ["pending", "firing", "firing", "firing", "firing", ""];
    assert_eq!(states(&mut group, &mut memory, 6), expected);
    // One that never fired has nothing to keep.
    let (mut group, mut memory) = (group_of(text), at(found(1)));
    assert_eq!(states(&mut group, &mut memory, 3), ["pending", "", ""]);
}

#[test]
fn resolved_alerts_do_not_fill_the_memory() {
    let mut memory = at(|time_ms| vec![float(1.0, &[("k", &time_ms.to_string())])]);
    let mut group = group_of("{alert: A, expr: q}");
    let options = Options { rule_alerts_max: 3, ..options() };
    for minute in 0..10 {
        let report = group.evaluate(minute * MINUTE, &mut memory, &options);
        assert!(report.rules[0].result.is_ok());
    }
    let found: Vec<_> = alerts(&group).iter().map(|alert| alert.active_at_ms / MINUTE).collect();
    assert_eq!(found, [7, 8, 9]);
}

#[test]
fn receivers_are_told_again_until_the_end_is_known() {
    let mut memory = at(|time_ms| match time_ms / MINUTE {
        1..=3 => vec![float(1.0, &[("k", "v")])],
        _ => vec![],
    });
    let mut group = group_of("{alert: A, expr: q, for: 1m, annotations: {a: b}}");
    let options = Options { resend_delay_ms: 2 * MINUTE, ..options() };
    let mut told = Vec::new();
    let mut changes = Vec::new();
    for minute in 0..22 {
        let report = group.evaluate(minute * MINUTE, &mut memory, &options);
        for notice in &report.rules[0].notices {
            assert_eq!(notice.labels, labels(&[("alertname", "A"), ("k", "v")]));
            assert_eq!((notice.starts_at_ms, notice.annotations.len()), (2 * MINUTE, 1));
            told.push((minute, notice.is_resolved, notice.ends_at_ms / MINUTE));
        }
        let transitions = &report.rules[0].transitions;
        changes.extend(transitions.iter().map(|transition| (minute, transition.change)));
    }
    let expected = [
        (2, false, 10),
        (4, true, 4),
        // More than two minutes later, as upstream's `Before`.
        (7, true, 4),
        (10, true, 4),
        (13, true, 4),
        (16, true, 4),
        (19, true, 4),
    ];
    assert_eq!(told, expected);
    assert_eq!(changes, [(1, Change::Pending), (2, Change::Firing), (4, Change::Resolved)]);
    // Kept for 15 minutes.
    assert_eq!(alerts(&group).len(), 0);
}

#[test]
fn the_state_of_a_rule_is_the_greatest_of_its_alerts() {
    let state = |group: &Group| match rule(group).kind {
        KindSnapshot::Alerting { state, .. } => state,
        KindSnapshot::Recording => panic!("a recording rule"),
    };
    let mut memory = at(|time_ms| match time_ms / MINUTE {
        0 => vec![],
        1 => vec![float(1.0, &[("k", "a")])],
        2 => vec![float(1.0, &[("k", "a")]), float(1.0, &[("k", "b")])],
        _ => vec![],
    });
    let mut group = group_of("{alert: A, expr: q, for: 1m}");
    let mut found = vec![state(&group)];
    for minute in 0..4 {
        group.evaluate(minute * MINUTE, &mut memory, &options());
        found.push(state(&group));
    }
    use State::{Firing, Inactive, Pending, Unknown};
    assert_eq!(found, [Unknown, Inactive, Pending, Firing, Inactive]);
}
