//! `GET /api/v1/metadata`: metadata of metric families, as sent by clients, in Prometheus' form.

use super::envelope::ApiError;
use super::lookups::{LookupStream, Row};
use super::pages::{Shape, put_text, stream};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use tidepool_runtime::FamilyMetadata;

/// Names of `prometheus.MetricMetadata.MetricType`, by number.
const TYPES: [&str; 8] =
    ["unknown", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset"];

/// Returns the requested families. Each has one entry, so `limit_per_metric` is only validated.
pub async fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    // As in upstream, a negative limit means no limit, and zero allows no entry.
    let limit = parameters.number("limit")?.and_then(|limit| usize::try_from(limit).ok());
    parameters.number("limit_per_metric")?;
    let metric = Some(parameters.first("metric")).filter(|metric| !metric.is_empty());
    let found = context.store.metadata(metric.map(str::to_owned), limit.unwrap_or(usize::MAX))?;
    Ok(stream(Shape::Map, LookupStream { parts: found, window: None }).await?)
}

impl Row for FamilyMetadata {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_family(self, bytes);
    }
}

fn put_family(said: &FamilyMetadata, bytes: &mut Vec<u8>) {
    let FamilyMetadata { family, metric_type, help, unit } = said;
    let kind = TYPES.get(*metric_type as usize).unwrap_or(&TYPES[0]);
    put_text(bytes, family);
    for (before, text) in [(":[{\"type\":", *kind), (",\"help\":", help), (",\"unit\":", unit)] {
        bytes.extend_from_slice(before.as_bytes());
        put_text(bytes, text);
    }
    bytes.extend_from_slice(b"}]");
}
