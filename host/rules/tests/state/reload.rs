//! What a new configuration keeps: upstream's cases of `CopyState`, `Update` and markers.

use crate::engine::{
    MINUTE, Memory, alerts, at, defaults, float, groups_of, labels, options, rule,
};
use std::sync::Arc;
use tidepool_rules::alert::State;
use tidepool_rules::engine::Answer;
use tidepool_rules::group::{Group, reload};
use tidepool_rules::labels::LabelSet;

/// A group whose rules are taken for restored.
fn group(rules: &str) -> Group {
    let text = format!("groups: [{{name: g, rules: [{rules}]}}]");
    let mut group = groups_of("f", &text, &defaults()).remove(0);
    group.skip_restore();
    group
}

/// Answers an expression with one sample that has it as a label; `none` with nothing.
fn echo() -> Memory {
    Memory::new(|query, _| match query.expression {
        "none" => Ok(Answer::Vector(vec![])),
        expression => Ok(Answer::Vector(vec![float(1.0, &[("from", expression)])])),
    })
}

fn record(labels: &str, from: &str) -> LabelSet {
    let own = labels.split_once('=').unwrap_or(("", ""));
    LabelSet::new([("__name__", "rule3"), own, ("from", from)])
}

/// Number of markers of a series.
fn markers(memory: &Memory, series: &LabelSet) -> usize {
    memory.floats(series).iter().filter(|(_, value)| value.is_none()).count()
}

#[test]
fn rules_are_found_again_by_name_and_labels() {
    let mut old = group(
        "{alert: alert, expr: x}, \
         {record: rule3, expr: a, labels: {l1: v1}}, {record: rule3, expr: b, labels: {l1: v2}}, \
         {record: rule3, expr: c, labels: {l1: v3}}, {alert: alert2, expr: x, labels: {l2: v1}}",
    );
    let mut memory = echo();
    old.evaluate(0, &mut memory, &options());
    let mut new = group(
        "{record: rule3, expr: none, labels: {l1: v0}}, \
         {record: rule3, expr: none, labels: {l1: v1}}, {record: rule3, expr: b, labels: {l1: v2}}, \
         {alert: alert, expr: x, for: 1m}, {alert: alert2, expr: x, labels: {l2: v0}}, \
         {alert: alert2, expr: x, labels: {l2: v1}}, {record: rule4, expr: d}",
    );
    let before = old.snapshot();
    new.carry_over(old);
    let after = new.snapshot();
    assert_eq!(after.last_evaluation_ms, before.last_evaluation_ms);
    assert_eq!(after.last_slot_ms, Some(0));
    assert_eq!(new.alert_count(), 2);
    new.evaluate(MINUTE, &mut memory, &options());
    // One that lost its series, one that goes on, and one that is gone.
    let found = [("l1=v1", "a"), ("l1=v2", "b"), ("l1=v3", "c")]
        .map(|(own, from)| markers(&memory, &record(own, from)));
    assert_eq!(found, [1, 0, 1]);
    let state = |name: &str, l2: &str| {
        labels(&[
            ("__name__", "ALERTS"),
            ("alertname", name),
            ("alertstate", "firing"),
            ("from", "x"),
            ("l2", l2),
        ])
    };
    assert_eq!(memory.floats(&state("alert", "")), [(0, Some(1.0)), (MINUTE, Some(1.0))]);
    assert_eq!(memory.floats(&state("alert2", "v1")), [(0, Some(1.0)), (MINUTE, Some(1.0))]);
    assert_eq!(memory.floats(&state("alert2", "v0")), [(MINUTE, Some(1.0))]);
}

#[test]
fn of_equal_rules_the_first_takes_over_from_the_first() {
    let two = "{record: rule3, expr: a}, {record: rule3, expr: b}";
    let mut old = group(two);
    let mut memory = echo();
    old.evaluate(0, &mut memory, &options());
    let mut new = group("{record: rule3, expr: b}");
    new.carry_over(old);
    // The series `b` is gone with the second rule, and goes on in the first one.
    new.evaluate(MINUTE, &mut memory, &options());
    assert_eq!(markers(&memory, &record("", "a")), 1);
    assert_eq!(memory.floats(&record("", "b")), [(0, Some(1.0)), (MINUTE, Some(1.0))]);
}

#[test]
fn a_removed_rule_ends_its_series_at_the_next_slot() {
    let mut old = group("{record: rule3, expr: a}");
    let mut memory = echo();
    old.evaluate(0, &mut memory, &options());
    let mut new = group("");
    new.carry_over(old);
    memory.broken = Some("read only".into());
    assert!(new.evaluate(MINUTE, &mut memory, &options()).markers.is_some());
    memory.broken = None;
    assert!(new.evaluate(2 * MINUTE, &mut memory, &options()).markers.is_none());
    new.evaluate(3 * MINUTE, &mut memory, &options());
    let expected = [(0, Some(1.0)), (2 * MINUTE, None)];
    assert_eq!(memory.floats(&record("", "a")), expected);
}

#[test]
fn a_raised_for_makes_an_alert_wait_again() {
    let mut memory = echo();
    let mut current = group("{alert: A, expr: x, for: 15s}");
    current.evaluate(0, &mut memory, &options());
    current.evaluate(MINUTE, &mut memory, &options());
    assert_eq!(alerts(&current)[0].state, State::Firing);
    let mut raised = group("{alert: A, expr: x, for: 5m}");
    raised.carry_over(current);
    let mut found = Vec::new();
    for minute in 2..6 {
        raised.evaluate(minute * MINUTE, &mut memory, &options());
        let alert = alerts(&raised).remove(0);
        found.push((alert.state, alert.fired_at_ms));
    }
    let (pending, firing) = ((State::Pending, None), (State::Firing, Some(5 * MINUTE)));
    assert_eq!(found, [pending, pending, pending, firing]);
}

#[test]
fn a_group_goes_on_unless_it_changed() {
    let text = |limit: &str, interval: &str, offset: &str, expr: &str| {
        format!(
            "groups: [{{name: g, limit: {limit}, interval: {interval}, query_offset: {offset}, \
             rules: [{{record: r, expr: {expr}}}]}}]"
        )
    };
    let make = |text: &str| groups_of("f", text, &defaults());
    let base = text("0", "1m", "0s", "a");
    for (changed, goes_on) in [
        (base.clone(), true),
        (text("1", "1m", "0s", "a"), false),
        (text("0", "2m", "0s", "a"), false),
        (text("0", "1m", "1m", "a"), false),
        (text("0", "1m", "0s", "b"), false),
    ] {
        let mut memory = echo();
        let mut old = make(&base);
        old[0].evaluate(0, &mut memory, &options());
        let reloaded = reload(old, make(&changed));
        // A new rule has no health yet.
        assert_eq!(rule(&reloaded.groups[0]).last_evaluation_ms.is_some(), goes_on, "{changed}");
        assert_eq!(reloaded.groups[0].last_slot_ms(), Some(0));
        assert_eq!(reloaded.removed, []);
    }
    let mut other = defaults();
    other.external_labels = Arc::new([("a".to_owned(), "b".to_owned())].into());
    assert!(!make(&base)[0].is_same(&groups_of("f", &base, &other)[0]));
}

/// A rule file with one rule.
fn file(path: &str) -> Vec<Group> {
    let text = format!("groups: [{{name: {path}, rules: [{{record: test_2, expr: vector(2)}}]}}]");
    groups_of(path, &text, &defaults())
}

#[test]
fn a_removed_group_gets_markers_unless_another_goes_on() {
    let series = labels(&[("__name__", "test_2")]);
    for (goes_on, expected) in [(false, 1), (true, 0)] {
        let mut memory = at(|_| vec![float(2.0, &[])]);
        let mut old = file("rules2");
        old[0].evaluate(0, &mut memory, &options());
        let removed_ms = 30_000;
        let mut reloaded = reload(old, if goes_on { file("rules1") } else { vec![] });
        let removed = reloaded.removed.remove(0);
        assert_eq!((removed.due_ms(removed_ms), &removed.series), (150_000, &vec![series.clone()]));
        for group in &mut reloaded.groups {
            group.evaluate(MINUTE, &mut memory, &options());
        }
        removed.write_markers(removed_ms, &mut memory).expect("a good engine");
        assert_eq!(markers(&memory, &series), expected);
    }
}

#[test]
fn a_rule_that_is_not_restored_stays_so_in_a_reload() {
    let make = |expr: &str| {
        let text = format!("groups: [{{name: g, rules: [{{alert: A, expr: {expr}}}]}}]");
        groups_of("f", &text, &defaults())
    };
    let mut memory = echo();
    let mut old = make("x");
    old[0].evaluate(0, &mut memory, &options());
    let mut reloaded = reload(old, make("y"));
    reloaded.groups[0].evaluate(MINUTE, &mut memory, &options());
    assert_eq!(memory.rows.len(), 0);
    assert_eq!(reloaded.groups[0].restore_requests().len(), 1);
    reloaded.groups[0].skip_restore();
    reloaded.groups[0].evaluate(2 * MINUTE, &mut memory, &options());
    assert_eq!(memory.rows.len(), 2);
    assert_eq!(reloaded.groups[0].restore_requests(), []);
}

#[test]
fn alerts_of_equal_rules_keep_their_order() {
    let two = "{alert: A, expr: x, for: 1m}, {alert: A, expr: y}";
    let mut memory = echo();
    let mut old = group(two);
    old.evaluate(0, &mut memory, &options());
    let mut new = group(two);
    new.carry_over(old);
    let report = new.evaluate(MINUTE, &mut memory, &options());
    let changes = report.rules.iter().map(|rule| rule.transitions.len());
    assert_eq!(changes.collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn series_wait_for_markers_through_several_reloads() {
    let mut memory = echo();
    let mut current = group("{record: rule3, expr: a}");
    current.evaluate(0, &mut memory, &options());
    for rules in ["", "{record: other, expr: b}"] {
        let mut next = group(rules);
        next.carry_over(current);
        current = next;
    }
    let series = record("", "a");
    let removed = {
        let mut memory = echo();
        let mut other = group("{record: rule3, expr: a}");
        other.evaluate(0, &mut memory, &options());
        let mut next = group("");
        next.carry_over(other);
        next.remove()
    };
    assert_eq!(removed.series, std::slice::from_ref(&series));
    current.evaluate(MINUTE, &mut memory, &options());
    assert_eq!(markers(&memory, &series), 1);
}

#[test]
fn a_shorter_interval_is_no_jump_of_the_clock() {
    let make = |interval: &str| {
        let text =
            format!("groups: [{{name: g, interval: {interval}, rules: [{{alert: A, expr: x}}]}}]");
        groups_of("f", &text, &defaults()).remove(0)
    };
    let mut memory = echo();
    let mut old = make("5m");
    old.evaluate(0, &mut memory, &options());
    let mut new = make("1s");
    new.carry_over(old);
    let held = [5 * MINUTE, 5 * MINUTE + 1000, 10 * MINUTE]
        .map(|slot_ms| new.evaluate(slot_ms, &mut memory, &options()).is_held);
    assert_eq!(held, [false, false, true]);
}
