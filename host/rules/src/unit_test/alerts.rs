//! Compares the firing alerts of a name with those that a test expects.

use super::diff::{Value, diff};
use super::shown::{indented, labels_text};
use super::{AlertTest, ExpectedAlert};
use crate::alert::State;
use crate::file::Labels;
use crate::group::Group;
use crate::labels::ALERT_NAME;
use std::fmt::Write as _;
use tidepool_settings::duration::duration_text;

/// Indent of alerts in the text of a failure.
const INDENT: &str = "            ";

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Alert {
    labels: Labels,
    annotations: Labels,
}

/// Returns the text of the failure if other alerts fire than are expected.
pub fn failure(
    test_name: &str,
    test: &AlertTest,
    groups: &[Group],
    with_diff: bool,
) -> Option<String> {
    let mut got = firing(groups, &test.alert);
    let mut expected: Vec<Alert> =
        test.expected.iter().map(|alert| of_expected(alert, &test.alert)).collect();
    got.sort();
    expected.sort();
    if got == expected {
        return None;
    }
    let mut text = String::new();
    // Writing to a text does not fail.
    if !test_name.is_empty() {
        let _ = writeln!(text, "    name: {test_name},");
    }
    let time = duration_text(test.eval_time);
    let _ = writeln!(text, "    alertname: {}, time: {time}, ", test.alert);
    let _ = match with_diff {
        true => write!(text, "        diff: {}", indented(&difference(expected, got), INDENT)),
        false => {
            let shown = |alerts: &[Alert]| indented(&list_text(alerts), INDENT);
            write!(text, "        exp:{}, \n        got:{}", shown(&expected), shown(&got))
        }
    };
    Some(text)
}

fn firing(groups: &[Group], name: &str) -> Vec<Alert> {
    let rules = groups.iter().flat_map(Group::alerting_rules).filter(|rule| rule.name == name);
    let alerts = rules.flat_map(|rule| rule.alerts());
    let firing = alerts.filter(|alert| alert.state == State::Firing);
    firing
        .map(|alert| Alert {
            labels: alert.labels.to_map(),
            annotations: (*alert.annotations).clone(),
        })
        .collect()
}

fn of_expected(alert: &ExpectedAlert, name: &str) -> Alert {
    let ExpectedAlert { mut labels, annotations } = alert.clone();
    labels.insert(ALERT_NAME.to_owned(), name.to_owned());
    Alert { labels, annotations }
}

fn list_text(alerts: &[Alert]) -> String {
    if alerts.is_empty() {
        return "[]".to_owned();
    }
    let mut text = String::from("[");
    for (number, Alert { labels, annotations }) in alerts.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let (labels, annotations) = (labels_text(labels), labels_text(annotations));
        let _ = write!(text, "{comma}\n{number}:\n  Labels:{labels}\n  Annotations:{annotations}");
    }
    text.push_str("\n]");
    text
}

fn difference(mut expected: Vec<Alert>, mut got: Vec<Alert>) -> String {
    // As upstream, so that both have a first alert.
    for alerts in [&mut expected, &mut got] {
        if alerts.is_empty() {
            alerts.push(Alert::default());
        }
    }
    let texts = |labels: &Labels| {
        let text = |(name, value): (&String, &String)| (name.clone(), Value::Text(value.clone()));
        Value::Map(labels.iter().map(text).collect())
    };
    let alert = |alert: &Alert| {
        let parts = [("Annotations", &alert.annotations), ("Labels", &alert.labels)];
        Value::Map(parts.into_iter().map(|(key, labels)| (key.to_owned(), texts(labels))).collect())
    };
    let value = |alerts: &[Alert]| Value::List(alerts.iter().map(alert).collect());
    diff(&value(&expected), &value(&got))
}
