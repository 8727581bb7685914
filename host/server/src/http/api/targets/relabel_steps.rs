//! `GET /api/v1/targets/relabel_steps`: the labels after each relabel rule of a job.

use super::unknown_pool;
use crate::http::api::envelope::{ApiError, success};
use crate::http::api::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use serde_json::{Value, json};
use std::slice;
use tidepool_relabel::{Action, Rule, RuleSpec, relabel};
use tidepool_scrape::target::LabelMap;

/// Returns the labels after each rule. They are empty from the rule on that drops the target.
pub fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let (pool, labels) = (parameters.required("scrapePool")?, parameters.required("labels")?);
    let mut labels: LabelMap = serde_json::from_str(labels)
        .map_err(|error| ApiError::BadData(format!("error parsing labels: {error}")))?;
    labels.retain(|_, value| !value.is_empty());
    let job = context.scraping.job(pool).ok_or_else(|| unknown_pool(pool))?;
    let mut is_kept = true;
    let mut steps = Vec::new();
    for spec in &job.relabel {
        if is_kept {
            let rule = Rule::new(spec.clone());
            let mut rule = rule.map_err(|error| ApiError::Internal(error.to_string()))?;
            is_kept = apply(&mut rule, spec, &mut labels);
        }
        let output = if is_kept { labels.clone() } else { LabelMap::new() };
        steps.push(json!({ "rule": rule_of(spec), "output": output, "keep": is_kept }));
    }
    Ok(success(json!({ "steps": steps })))
}

/// Applies a rule; returns whether the labels are kept. Only filter rules drop an empty set here.
fn apply(rule: &mut Rule, spec: &RuleSpec, labels: &mut LabelMap) -> bool {
    use Action::{Drop, DropEqual, Keep, KeepEqual};
    let decides = matches!(spec.action, Keep | Drop | KeepEqual | DropEqual);
    let rule = slice::from_mut(rule);
    if decides && labels.is_empty() {
        // `relabel` drops empty sets, so a label is added that the rule does not read.
        let other = format!("{}{}_", spec.source_labels.concat(), spec.target_label);
        return relabel(rule, &mut LabelMap::from([(other, "x".to_owned())]));
    }
    relabel(rule, labels) || !decides
}

/// Converts a rule to upstream's JSON, in which most empty fields are omitted.
fn rule_of(spec: &RuleSpec) -> Value {
    let mut rule = json!({
        "separator": spec.separator,
        "replacement": spec.replacement,
        "action": spec.action.name(),
    });
    let mut put = |name: &str, value: Value, is_empty: bool| {
        if !is_empty {
            rule[name] = value;
        }
    };
    put("source_labels", json!(spec.source_labels), spec.source_labels.is_empty());
    put("regex", json!(spec.regex), false);
    put("modulus", json!(spec.modulus), spec.modulus == 0);
    put("target_label", json!(spec.target_label), spec.target_label.is_empty());
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream: `targetRelabelSteps`, which asks each rule whether it keeps the labels.
    #[test]
    fn a_set_without_labels_is_dropped_by_a_rule_only() {
        let spec = |action, source: &str, regex: &str, target: &str| RuleSpec {
            source_labels: vec![source.to_owned()],
            regex: regex.to_owned(),
            target_label: target.to_owned(),
            ..RuleSpec::new(action)
        };
        let compared = |action| RuleSpec {
            source_labels: vec!["a".into()],
            target_label: "b".into(),
            ..RuleSpec::new(action)
        };
        let a = [("a".to_owned(), "1".to_owned())];
        let removed = RuleSpec { regex: "a".into(), ..RuleSpec::new(Action::LabelDrop) };
        for (spec, given, expected) in [
            (spec(Action::Drop, "a", "x", ""), &a[..0], (true, 0)),
            (spec(Action::Drop, "a", "", ""), &a[..0], (false, 0)),
            (spec(Action::Keep, "a", "x", ""), &a[..0], (false, 0)),
            (spec(Action::Keep, "a", "x?", ""), &a[..0], (true, 0)),
            (compared(Action::KeepEqual), &a[..0], (true, 0)),
            (compared(Action::DropEqual), &a[..0], (false, 0)),
            (compared(Action::DropEqual), &a, (true, 1)),
            (spec(Action::Replace, "a", "x", "b"), &a[..0], (true, 0)),
            (spec(Action::Replace, "a", "(1)", "b"), &a, (true, 2)),
            (removed, &a, (true, 0)),
        ] {
            let mut labels: LabelMap = given.iter().cloned().collect();
            let mut rule = Rule::new(spec.clone()).expect("a rule");
            let is_kept = apply(&mut rule, &spec, &mut labels);
            assert_eq!((is_kept, labels.len()), expected, "{spec:?} {given:?}");
        }
    }
}
