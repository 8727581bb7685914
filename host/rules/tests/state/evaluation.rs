//! Samples, errors and bounds: cases of upstream's `recording_test.go` and `manager_test.go`.

use crate::engine::{
    MINUTE, Memory, Vector, alerts, at, defaults, float, group_of, groups_of, labels, options, rule,
};
use std::time::Duration;
use tidepool_rules::engine::{Answer, NewValue, Reads};
use tidepool_rules::error::RuleError;
use tidepool_rules::group::{Group, Health, Options};
use tidepool_rules::template::Limits;

#[test]
fn equal_labels_are_an_error() {
    let two = |_| vec![float(0.0, &[]), float(0.0, &[("test", "x")])];
    for (text, expected) in [
        ("{alert: foo, expr: q, labels: {test: test}}", RuleError::SameAlertLabels),
        ("{record: foo, expr: q, labels: {test: test}}", RuleError::SameSeries),
    ] {
        let (mut group, mut memory) = (group_of(text), at(two));
        let report = group.evaluate(0, &mut memory, &options());
        assert_eq!(report.rules[0].result, Err(expected.clone()));
        let rule = rule(&group);
        assert_eq!((rule.health, rule.last_error), (Health::Err, Some(expected.to_string())));
        assert!(memory.rows.is_empty());
    }
}

#[test]
fn a_limit_is_one_of_alerts_or_series() {
    let two = |_| vec![float(1.0, &[("label", "1")]), float(1.0, &[("label", "2")])];
    for (key, of) in [("alert", "alerts"), ("record", "series")] {
        for (limit, error) in [(0, false), (-1, false), (2, false), (1, true)] {
            let text =
                format!("groups: [{{name: g, limit: {limit}, rules: [{{{key}: foo, expr: q}}]}}]");
            let mut group = groups_of("f", &text, &defaults()).remove(0);
            let report = group.evaluate(0, &mut at(two), &options());
            let expected = format!("exceeded limit of 1 with 2 {of}");
            let found = report.rules[0].result.as_ref().err().map(ToString::to_string);
            assert_eq!(found, error.then_some(expected));
        }
    }
}

#[test]
fn above_the_bound_alerts_stay_as_they_are() {
    let mut memory = at(|time_ms| {
        let names =
            ["a", "b", "c"].iter().take(1 + usize::try_from(time_ms / MINUTE).expect("fits"));
        names.map(|name| float(1.0, &[("k", name)])).collect()
    });
    let mut group = group_of("{alert: A, expr: q}");
    let options = Options { alerts_max: 7, alerts_elsewhere: 5, ..options() };
    for minute in 0..2 {
        assert!(group.evaluate(minute * MINUTE, &mut memory, &options).rules[0].result.is_ok());
    }
    let report = group.evaluate(2 * MINUTE, &mut memory, &options);
    assert_eq!(report.rules[0].result, Err(RuleError::AlertsMax { alerts: 3, alerts_max: 2 }));
    assert!(rule(&group).last_error.is_some_and(|error| error.contains("--alerts-max")));
    assert!(report.rules[0].transitions.is_empty());
    assert_eq!((group.alert_count(), alerts(&group).len()), (2, 2));
}

#[test]
fn series_that_end_get_a_marker() {
    for offset in [0, MINUTE] {
        let text = format!(
            "groups: [{{name: g, interval: 1s, query_offset: {}s, rules: [{{record: a_plus_one, expr: q}}]}}]",
            offset / 1000
        );
        let mut group = groups_of("f", &text, &defaults()).remove(0);
        let mut memory = at(|time_ms| match time_ms {
            0 => vec![float(2.0, &[("__name__", "a")])],
            1000 => vec![float(3.0, &[("__name__", "a")])],
            _ => vec![],
        });
        for time_ms in [0, 1000, 2000, 3000] {
            group.evaluate(time_ms + offset, &mut memory, &options());
        }
        let series = labels(&[("__name__", "a_plus_one")]);
        assert_eq!(memory.floats(&series), [(0, Some(2.0)), (1000, Some(3.0)), (2000, None)]);
    }
}

#[test]
fn a_failed_rule_keeps_its_series() {
    let mut memory = Memory::new(|query, _| match query.time_ms / MINUTE {
        0 | 2 => Ok(Answer::Vector(vec![float(1.0, &[])])),
        1 => Err("no disk".into()),
        3 => Ok(Answer::Other),
        _ => Ok(Answer::Vector(vec![])),
    });
    let mut group = group_of("{record: r, expr: q}");
    let error = |group: &Group| rule(group).last_error;
    let mut errors = Vec::new();
    for minute in 0..4 {
        group.evaluate(minute * MINUTE, &mut memory, &options());
        errors.push(error(&group));
    }
    memory.broken = Some("read only".into());
    group.evaluate(4 * MINUTE, &mut memory, &options());
    errors.push(error(&group));
    memory.broken = None;
    group.evaluate(5 * MINUTE, &mut memory, &options());
    errors.push(error(&group));
    let text = |text: &str| Some(text.to_owned());
    let other = text("rule result is not a vector or scalar");
    assert_eq!(errors, [None, text("no disk"), None, other, text("read only"), None]);
    let expected = [(0, Some(1.0)), (2 * MINUTE, Some(1.0)), (5 * MINUTE, None)];
    assert_eq!(memory.floats(&labels(&[("__name__", "r")])), expected);
}

#[test]
fn health_tells_of_refused_samples() {
    let mut group = group_of("{record: r, expr: q}");
    let mut memory = at(|time_ms| vec![float(time_ms as f64, &[])]);
    assert_eq!((rule(&group).health, rule(&group).last_error), (Health::Unknown, None));
    for minute in [0, 1] {
        group.evaluate(minute * MINUTE, &mut memory, &options());
        assert_eq!((rule(&group).health, rule(&group).last_error), (Health::Ok, None));
    }
    let report = group.evaluate(0, &mut memory, &options());
    assert_eq!(report.rules[0].refused.out_of_order, 1);
    assert_eq!(rule(&group).health, Health::Err);
    assert_eq!(rule(&group).last_error.as_deref(), Some("out of order sample"));
}

#[test]
fn the_next_rule_sees_the_samples_of_the_one_before() {
    let mut memory = Memory::new(|query, rows| {
        let origin = query.origin;
        assert_eq!((origin.file, origin.group, origin.is_alert), ("rules.yml", "g", false));
        assert_eq!(format!("to_{}", origin.rule), query.expression);
        let before =
            rows.get(&labels(&[("__name__", "a")])).and_then(|row| row.get(&query.time_ms));
        let value = if let Some(NewValue::Float(value)) = before { *value } else { 1.0 };
        Ok(Answer::Scalar(value * 2.0))
    });
    let text = "groups: [{name: g, rules: [{record: a, expr: to_a}, {record: b, expr: to_b}]}]";
    let mut group = groups_of("rules.yml", text, &defaults()).remove(0);
    let report = group.evaluate(0, &mut memory, &options());
    assert_eq!((report.samples, report.rules.len()), (2, 2));
    assert_eq!(memory.floats(&labels(&[("__name__", "b")])), [(0, Some(4.0))]);
    // A group that is stopped leaves the rest.
    memory.stopping_after = 3;
    assert_eq!(group.evaluate(MINUTE, &mut memory, &options()).rules.len(), 1);
}

#[test]
fn offset_and_labels_of_a_group() {
    let text = "groups: [{name: group1, query_offset: 2m}, {name: group2, query_offset: 0s}, \
                {name: group3, labels: {a: group, b: group}, rules: [{record: r, expr: q, \
                labels: {b: rule, c: rule}}]}]";
    let mut defaults = defaults();
    defaults.query_offset = Duration::from_secs(60);
    let groups = groups_of("f", text, &defaults);
    let offsets: Vec<i64> = groups.iter().map(Group::query_offset_ms).collect();
    assert_eq!(offsets, [2 * MINUTE, 0, MINUTE]);
    let found: Vec<_> = rule(&groups[2]).labels.into_iter().collect();
    let expected = [("a", "group"), ("b", "rule"), ("c", "rule")];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn a_recorded_series_has_name_and_labels_of_its_rule() {
    for (metric, own, expected) in [
        ("metric", "", &[("label_a", "1"), ("label_b", "3")][..]),
        ("", "", &[("label_a", "1"), ("label_b", "3")]),
        ("metric", "extra: foo", &[("extra", "foo"), ("label_a", "1"), ("label_b", "3")]),
        ("metric", "label_a: from_rule", &[("label_a", "from_rule"), ("label_b", "3")]),
        ("metric", "label_a: ''", &[("label_b", "3")]),
    ] {
        let mut group = group_of(&format!("{{record: test_rule, expr: q, labels: {{{own}}}}}"));
        let mut memory = at(move |_| {
            vec![float(1.0, &[("__name__", metric), ("label_a", "1"), ("label_b", "3")])]
        });
        group.evaluate(0, &mut memory, &options());
        let series = labels(expected).with([("__name__", "test_rule")]);
        assert_eq!(memory.rows.keys().collect::<Vec<_>>(), [&series]);
    }
}

/// A query reads the series of the names that it consists of; `*` is any series.
fn names(expression: &str) -> Reads {
    match expression {
        "*" => Reads::Anything,
        names => Reads::Names(names.split('+').map(str::to_owned).collect()),
    }
}

/// Evaluates rules of which each gives one sample without labels; returns the number of appends.
fn appends(rules: &str, broken: Option<&str>) -> (usize, Group, Memory) {
    let text = format!("groups: [{{name: g, rules: [{rules}]}}]");
    let mut group = groups_of("f", &text, &defaults()).remove(0);
    group.skip_restore();
    let mut memory = at(|_| -> Vector { vec![float(1.0, &[])] });
    (memory.reads, memory.broken) = (names, broken.map(str::to_owned));
    group.evaluate(0, &mut memory, &options());
    (memory.appends, group, memory)
}

#[test]
fn samples_are_stored_before_a_rule_that_may_read_them() {
    for (rules, expected) in [
        ("{record: a, expr: x}, {record: b, expr: x+y}, {record: c, expr: z}", 1),
        ("{record: a, expr: x}, {record: b, expr: x+a}, {record: c, expr: z}", 2),
        ("{record: a, expr: x}, {record: b, expr: a}, {record: c, expr: b}", 3),
        ("{record: a, expr: x}, {record: b, expr: x}, {record: c, expr: '*'}", 2),
        ("{record: a, expr: '*'}, {record: b, expr: x}", 1),
        ("{alert: A, expr: x}, {record: b, expr: ALERTS}", 2),
        ("{alert: A, expr: x}, {record: b, expr: ALERTS_FOR_STATE}", 2),
        ("{alert: A, expr: x}, {record: b, expr: A}", 1),
        // What templates query may be anything.
        ("{record: a, expr: x}, {alert: B, expr: x, labels: {l: '{{ query \"a\" }}'}}", 2),
        // The second sample of a series has to be refused.
        ("{record: a, expr: x}, {record: a, expr: y}", 2),
    ] {
        assert_eq!(appends(rules, None).0, expected, "{rules}");
    }
}

#[test]
fn many_samples_do_not_wait() {
    let rules: Vec<String> =
        ["a", "b", "c", "d", "e"].map(|name| format!("{{record: {name}, expr: x}}")).into();
    let text = format!("groups: [{{name: g, rules: [{}]}}]", rules.join(", "));
    let mut group = groups_of("f", &text, &defaults()).remove(0);
    let mut memory =
        at(|_| (0..4000).map(|number| float(1.0, &[("n", number.to_string().as_str())])).collect());
    memory.reads = names;
    let report = group.evaluate(0, &mut memory, &options());
    assert_eq!((report.samples, memory.rows.len(), memory.appends), (20_000, 20_000, 3));
}

#[test]
fn each_rule_has_what_became_of_its_own_samples() {
    let (count, mut group, mut memory) =
        appends("{record: a, expr: x}, {record: b, expr: x}", None);
    assert_eq!((count, memory.rows.len()), (1, 2));
    // Of `b` there is a newer sample.
    let newer = NewValue::Float(2.0);
    let row = memory.rows.get_mut(&labels(&[("__name__", "b")])).expect("a series");
    row.insert(2 * MINUTE, newer);
    let report = group.evaluate(MINUTE, &mut memory, &options());
    let refused: Vec<usize> = report.rules.iter().map(|rule| rule.refused.out_of_order).collect();
    assert_eq!(refused, [0, 1]);
    let health: Vec<Health> = group.snapshot().rules.iter().map(|rule| rule.health).collect();
    assert_eq!(health, [Health::Ok, Health::Err]);

    let (_, group, _) = appends("{record: a, expr: x}, {record: b, expr: x}", Some("read only"));
    let errors = group.snapshot().rules.into_iter().map(|rule| rule.last_error);
    assert_eq!(errors.collect::<Vec<_>>(), vec![Some("read only".to_owned()); 2]);
}

/// All alerts of a rule share what templates may take, so that many alerts with long loops or long
/// texts fail the rule, which keeps the alerts that it has.
#[test]
fn templates_of_many_alerts_are_bounded_together() {
    const LOOP: &str =
        "{{ range $i, $_ := query \\\"many\\\" }}{{ range query \\\"many\\\" }}{{ end }}{{ end }}";
    const LONG: &str = "{{ range query \\\"many\\\" }}{{ printf \\\"%01000d\\\" 1 }}{{ end }}";
    for (text, within) in [(LOOP, "take too long"), (LONG, "texts of more than 1000000 bytes")] {
        let annotations = format!("annotations: {{a: \"{text}\"}}");
        let mut group = group_of(&format!("{{alert: A, expr: alerts, {annotations}}}"));
        let mut engine = Memory::new(|query, _| {
            let count = match query.expression {
                "many" => 200,
                _ if query.time_ms < 120_000 => 1,
                _ => 100,
            };
            let sample = |at: u32| float(1.0, &[("instance", &at.to_string())]);
            Ok(Answer::Vector((0..count).map(sample).collect()))
        });
        let templates = Limits { steps_max: 3_000_000, output_bytes_max: 1_000_000 };
        let options = Options { templates, ..options() };
        let first = group.evaluate(60_000, &mut engine, &options);
        assert_eq!(first.rules[0].result.as_ref().ok(), Some(&2), "{first:?}");
        let second = group.evaluate(120_000, &mut engine, &options);
        let error = second.rules[0].result.as_ref().expect_err("it fails").to_string();
        assert!(error.contains(within), "{error}");
        assert_eq!(alerts(&group).len(), 1, "the alert stays");
    }
}
