//! What the store tells of the alerts of the last run.
//!
//! The last samples of a series within a time are those of an instant selector with that lookback
//! delta; a series that ended has none. `timestamp` tells their times.

use crate::engine::StoreEngine;
use std::collections::HashMap;
use tidepool_rules::alert::{RestoreOptions, RestoreRequest, StoredSample};
use tidepool_rules::engine::{Engine as _, Origin, Query, Value};
use tidepool_rules::group::Group;
use tidepool_rules::labels::{LabelSet, METRIC_NAME};

const FOR_STATE: &str = "ALERTS_FOR_STATE";

const ALERTS: &str = "ALERTS";

/// Brings the alerts of a group back at its first slot. A rule whose series cannot be queried
/// starts without.
pub fn restore(
    group: &mut Group,
    requests: &[RestoreRequest],
    engine: &StoreEngine<'_>,
    now_ms: i64,
    options: &RestoreOptions,
) {
    for request in requests {
        let selector = selector(&request.matchers);
        let read = |name| samples(engine, group, name, &selector, now_ms);
        match read(FOR_STATE).and_then(|for_state| Ok((for_state, read(ALERTS)?))) {
            Ok((for_state, alerts)) => {
                group.restore(request, &for_state, &alerts, now_ms, options);
            }
            Err(error) => {
                let (file, name) = (group.file(), group.name());
                tracing::warn!(file, group = name, error, "could not restore the state of alerts");
            }
        }
    }
    group.skip_restore();
}

/// Returns the last samples of the series of a name.
fn samples(
    engine: &StoreEngine<'_>,
    group: &Group,
    name: &str,
    selector: &str,
    time_ms: i64,
) -> Result<Vec<StoredSample>, String> {
    let origin = Origin { file: group.file(), group: group.name(), rule: "", is_alert: true };
    let floats = |expression: &str| -> Result<Vec<(LabelSet, f64)>, String> {
        let answer = engine.query(&Query { expression, time_ms, origin })?;
        let samples = answer.into_vector().map_err(|error| error.to_string())?;
        let float = |value| match value {
            Value::Float(value) => Some(value),
            Value::Histogram(_) => None,
        };
        Ok(samples
            .into_iter()
            .filter_map(|sample| Some((sample.labels.without(METRIC_NAME), float(sample.value)?)))
            .collect())
    };
    let values = floats(&format!("{name}{selector}"))?;
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let times: HashMap<LabelSet, f64> =
        floats(&format!("timestamp({name}{selector})"))?.into_iter().collect();
    let sample = |(labels, value): (LabelSet, f64)| {
        let seconds = times.get(&labels)?;
        let series = labels.with([(METRIC_NAME, name)]);
        Some(StoredSample { series, time_ms: (seconds * 1000.0).round() as i64, value })
    };
    Ok(values.into_iter().filter_map(sample).collect())
}

/// Writes matchers as a selector of PromQL without its name. Names may be any text.
fn selector(matchers: &[(String, String)]) -> String {
    let quoted = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{text}\"")
    };
    let pairs: Vec<String> = matchers
        .iter()
        .map(|(name, value)| format!("{}={}", quoted(name), quoted(value)))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_quote_what_ends_a_text() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let matchers = [pair("alertname", "a \"b\"\\"), pair("an ä", "x\ny")];
        assert_eq!(selector(&matchers), r#"{"alertname"="a \"b\"\\","an ä"="x\ny"}"#);
    }
}
