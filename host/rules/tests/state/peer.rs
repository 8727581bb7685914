//! Scripts against upstream's `rules`, whose results `cases/rules.tsv` holds.

use crate::engine::{Memory, defaults, float, groups_of, options};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;
use tidepool_rules::engine::{Answer, NewValue, Reads};
use tidepool_rules::file::Labels;
use tidepool_rules::group::{AlertSnapshot, Group, KindSnapshot};
use tidepool_rules::labels::LabelSet;

/// Beginning of the scripts, seconds.
const BASE_S: i64 = 1_700_000_000;

/// What the two queries answer.
type Answers = Rc<RefCell<(String, String)>>;

fn memory(answers: Answers) -> Memory {
    Memory::new(move |query, _| {
        let answers = answers.borrow();
        let answer = if query.expression == "r_query" { &answers.0 } else { &answers.1 };
        if answer == "!" {
            return Err("query failed".into());
        }
        let samples = answer.split(',').filter_map(|item| item.split_once('='));
        let samples = samples.map(|(key, value)| {
            float(value.parse().expect("a float"), &[("__name__", "m"), ("k", key)])
        });
        Ok(Answer::Vector(samples.collect()))
    })
}

fn group(fields: &[&str]) -> Group {
    let labels = match fields[5] {
        "plain" => "{team: x}",
        "empty" => "{k: ''}",
        _ => {
            "{size: '{{ if gt $value 5.0 }}high{{ else }}low{{ end }}', \
             rare: '{{ if gt $value 8.0 }}yes{{ end }}'}"
        }
    };
    let [for_s, keep_s, limit, offset_s] = [fields[1], fields[2], fields[3], fields[4]];
    let text = format!(
        "groups: [{{name: g, interval: 15s, limit: {limit}, query_offset: {offset_s}s, rules: [\
         {{record: r, expr: r_query, labels: {{x: '1'}}}}, \
         {{alert: A, expr: a_query, for: {for_s}s, keep_firing_for: {keep_s}s, labels: {labels}, \
         annotations: {{v: '{{{{ $value }}}} of {{{{ $labels.k }}}}'}}}}]}}]",
    );
    let mut group = groups_of("f", &text, &defaults()).remove(0);
    group.skip_restore();
    group
}

fn list(mut items: Vec<String>) -> String {
    items.sort();
    if items.is_empty() { "-".into() } else { items.join(" ") }
}

fn name<'a>(metric: &str, labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = metric.to_owned();
    for (name, value) in labels.filter(|(name, _)| !["__name__", "alertname"].contains(name)) {
        let _ = write!(text, ",{name}={}", value.replace(' ', "_"));
    }
    text
}

fn since(time_ms: Option<i64>) -> String {
    time_ms.map_or("-".into(), |time_ms| (time_ms / 1000 - BASE_S).to_string())
}

fn alert(alert: &AlertSnapshot) -> String {
    let annotations: &Labels = &alert.annotations;
    let annotations = annotations.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fields = [
        name("", alert.labels.iter()),
        alert.state.name().into(),
        since(Some(alert.active_at_ms)),
        since(alert.fired_at_ms),
        since(alert.keep_firing_since_ms),
        since(alert.resolved_at_ms),
        alert.value.to_string(),
        name("", annotations),
    ];
    fields.join("|")
}

fn samples(memory: &Memory, time_ms: i64) -> String {
    let at = |(series, row): (&LabelSet, &std::collections::BTreeMap<i64, NewValue<_>>)| {
        let metric = series.get("__name__").to_owned();
        let value = match row.get(&time_ms)? {
            NewValue::Stale => "stale".into(),
            NewValue::Float(value) if metric == "ALERTS_FOR_STATE" => {
                (*value as i64 - BASE_S).to_string()
            }
            NewValue::Float(value) => value.to_string(),
            NewValue::Histogram(_) => unreachable!("scripts have none"),
        };
        Some(format!("{}|{value}", name(&metric, series.iter())))
    };
    list(memory.rows.iter().filter_map(at).collect())
}

fn result(group: &mut Group, memory: &mut Memory, slot_ms: i64) -> String {
    group.evaluate(slot_ms, memory, &options());
    let snapshot = group.snapshot();
    let [recording, alerting] = &snapshot.rules[..] else { panic!("two rules") };
    let KindSnapshot::Alerting { alerts, .. } = &alerting.kind else { panic!("an alerting rule") };
    let error = |error: &Option<String>| error.clone().unwrap_or("-".into());
    let fields = [
        error(&recording.last_error),
        error(&alerting.last_error),
        list(alerts.iter().map(alert).collect()),
        samples(memory, slot_ms - group.query_offset_ms()),
    ];
    fields.join("\t")
}

fn compare(table: &str, reads: fn(&str) -> Reads) {
    let answers = Answers::default();
    let mut memory = memory(answers.clone());
    memory.reads = reads;
    let mut current = group(&["group", "0", "0", "0", "0", "plain"]);
    let (mut slots, mut failures) = (0, Vec::new());
    let mut script = 0;
    let mut is_failed = false;
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[0] {
            "group" => {
                (script, is_failed) = (script + 1, false);
                memory.rows.clear();
                current = group(&fields);
            }
            "reload" => {
                let from = std::mem::replace(&mut current, group(&fields));
                current.carry_over(from);
            }
            _ => {
                slots += 1;
                *answers.borrow_mut() = (fields[2].into(), fields[3].into());
                let time_s: i64 = fields[1].parse().expect("seconds");
                let found = result(&mut current, &mut memory, (BASE_S + time_s) * 1000);
                let expected = fields[4..].join("\t");
                // What follows a difference differs because of it.
                if found != expected && !is_failed {
                    is_failed = true;
                    let place = format!("script {script} at {time_s}");
                    failures.push(format!("{place}\n  ours {found}\n  Go   {expected}"));
                }
            }
        }
    }
    assert!(slots > 1000, "{slots} slots");
    assert!(failures.is_empty(), "{} of {script}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn scripts_have_the_results_of_upstream() {
    compare(include_str!("../cases/rules.tsv"), |_| Reads::Anything);
}

/// The queries of the scripts read nothing that is stored.
#[test]
fn samples_that_are_stored_together_are_the_same() {
    compare(include_str!("../cases/rules.tsv"), |_| Reads::Names(BTreeSet::new()));
}

/// Compares with a longer table, whose path the variable names: `tests/peers/rules` makes it.
#[test]
fn a_table_of_the_environment_has_the_results_of_upstream() {
    if let Some(path) = std::env::var_os("TIDEPOOL_RULES_TABLE") {
        compare(&std::fs::read_to_string(path).expect("a table"), |_| Reads::Anything);
    }
}
