//! `GET /api/v1/metadata`: what senders said of metric families, as Prometheus shows it.

use super::reply::{self, Reply};
use super::server::Context;
use crate::wasm::FamilyMetadata;
use hyper::StatusCode;
use serde_json::{Map, Value, json};

/// Names of `prometheus.MetricMetadata.MetricType`, by number.
const TYPES: [&str; 8] =
    ["unknown", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset"];

/// Answers with all families.
pub async fn answer(context: &Context) -> Reply {
    let families = match context.store.metadata().await {
        Ok(families) => families,
        Err(error) => return reply::error(&error),
    };
    let data: Map<String, Value> = families.into_iter().map(entry).collect();
    reply::json(StatusCode::OK, &json!({ "status": "success", "data": data }))
}

fn entry(family: FamilyMetadata) -> (String, Value) {
    let FamilyMetadata { family, metric_type, help, unit } = family;
    let kind = TYPES.get(metric_type as usize).unwrap_or(&TYPES[0]);
    (family, json!([{ "type": kind, "help": help, "unit": unit }]))
}
