//! `GET /api/v1/targets/relabel_steps`: what each relabel rule of a job makes of labels.

use crate::http::api::envelope::{ApiError, success};
use crate::http::api::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use serde_json::{Value, json};
use std::slice;
use tidepool_relabel::{Rule, RuleSpec, relabel};
use tidepool_scrape::target::LabelMap;

/// Answers with the labels behind each rule. Behind the one that drops them there are none.
pub fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let bad = |what: String| ApiError::BadData(what);
    let given = |name: &str| match parameters.first(name) {
        "" => Err(bad(format!("no {name} parameter provided"))),
        value => Ok(value),
    };
    let (pool, labels) = (given("scrapePool")?, given("labels")?);
    let mut labels: LabelMap = serde_json::from_str(labels)
        .map_err(|error| bad(format!("error parsing labels: {error}")))?;
    labels.retain(|_, value| !value.is_empty());
    let job = context.scraping.job(pool);
    let job = job.ok_or_else(|| {
        bad(format!("error retrieving scrape config: unknown scrape pool {pool:?}"))
    })?;
    let mut is_kept = true;
    let mut steps = Vec::new();
    for spec in &job.relabel {
        if is_kept {
            let rule = Rule::new(spec.clone());
            let mut rule = rule.map_err(|error| ApiError::Internal(error.to_string()))?;
            is_kept = relabel(slice::from_mut(&mut rule), &mut labels);
        }
        let output = if is_kept { labels.clone() } else { LabelMap::new() };
        steps.push(json!({ "rule": rule_of(spec), "output": output, "keep": is_kept }));
    }
    Ok(success(json!({ "steps": steps })))
}

/// A rule as upstream's JSON has it: without what is empty, but for two keys.
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
