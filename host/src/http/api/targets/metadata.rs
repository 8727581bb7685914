//! `GET /api/v1/targets/metadata`: what targets say of their metric families.

use crate::http::api::envelope::{ApiError, TRUNCATED};
use crate::http::api::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::{self, Reply};
use crate::prom::selector::parse_selector;
use crate::wasm::{MatchOp, Matcher};
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tidepool_relabel::Pattern;
use tidepool_scrape::store::FamilyMetadata;
use tidepool_scrape::target::Target;

/// Most entries of an answer; a warning says when there are more.
const ENTRIES_MAX: usize = 100_000;

/// Answers as upstream does: entries of each target whose labels match.
pub fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let limit = parameters.number("limit")?.and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.unwrap_or(usize::MAX);
    let conditions = conditions(parameters.first("match_target"))?;
    let metric = parameters.first("metric");
    let mut entries = Vec::new();
    let mut is_cut_off = false;
    for target in context.scraping.targets(None).values().flat_map(|listed| listed.active.iter()) {
        // Upstream looks at its limit between targets only.
        if entries.len() >= limit {
            break;
        }
        let labels: BTreeMap<String, String> = target.public_labels().into_iter().collect();
        if !conditions.iter().all(|condition| condition.holds(&labels)) {
            continue;
        }
        for found in families(target, metric) {
            if entries.len() == ENTRIES_MAX {
                is_cut_off = true;
                break;
            }
            entries.push(entry(&labels, &found, metric.is_empty()));
        }
    }
    let mut answer = json!({ "status": "success", "data": entries });
    if is_cut_off {
        answer["warnings"] = json!([TRUNCATED]);
    }
    Ok(reply::json(StatusCode::OK, &answer))
}

fn families(target: &Target, metric: &str) -> Vec<FamilyMetadata> {
    match metric {
        "" => target.metadata(),
        metric => target.with_families(|families| families.get(metric)).into_iter().collect(),
    }
}

fn entry(labels: &BTreeMap<String, String>, found: &FamilyMetadata, is_named: bool) -> Value {
    let mut entry = json!({
        "target": labels,
        "type": found.kind.as_str(),
        "help": found.help,
        "unit": found.unit,
    });
    if is_named {
        entry["metric"] = json!(found.family);
    }
    entry
}

/// A matcher, ready for use.
enum Condition {
    Text(Matcher),
    Pattern(Matcher, Pattern),
}

fn conditions(selector: &str) -> Result<Vec<Condition>, ApiError> {
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |why: String| ApiError::parameter("match_target", why);
    let matchers = parse_selector(selector).map_err(|error| wrong(error.to_string()))?;
    let condition = |matcher: Matcher| match matcher.op {
        MatchOp::Equal | MatchOp::NotEqual => Ok(Condition::Text(matcher)),
        MatchOp::Regex | MatchOp::NotRegex => {
            let pattern = Pattern::new(&matcher.value).map_err(wrong)?;
            Ok(Condition::Pattern(matcher, pattern))
        }
    };
    matchers.into_iter().map(condition).collect()
}

impl Condition {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let of = |matcher: &Matcher| labels.get(&matcher.name).map_or("", String::as_str);
        match self {
            Condition::Text(matcher) => {
                (of(matcher) == matcher.value) == (matcher.op == MatchOp::Equal)
            }
            Condition::Pattern(matcher, pattern) => {
                pattern.is_match(of(matcher)) == (matcher.op == MatchOp::Regex)
            }
        }
    }
}
