//! `GET /api/v1/status/tsdb`: what the head's series are made of, as Prometheus shows it.

use super::envelope::{ApiError, success};
use super::parameters::Parameters;
use crate::http::reply::Reply;
use crate::http::server::Context;
use crate::wasm::Ranked;
use serde_json::{Value, json};

/// Items of a list without a `limit`, and the most that it may ask for: upstream's.
const ITEMS_DEFAULT: u32 = 10;
const ITEMS_MAX: u32 = 10_000;

/// Answers with the largest of everything. `seriesCountByLabelName` is not upstream's.
pub async fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let items_max = items_max(parameters.first("limit")).map_err(ApiError::BadData)?;
    let store = &context.store;
    let figures = store.figures().await?;
    let cardinality = store.cardinality(items_max).await?;
    Ok(success(json!({
        "headStats": {
            "numSeries": figures.head_series,
            "numLabelPairs": cardinality.label_pairs,
            "chunkCount": figures.head_chunks,
            "minTime": figures.head_min_time_ms,
            "maxTime": figures.head_max_time_ms,
        },
        "seriesCountByMetricName": list(cardinality.metrics_by_series),
        "labelValueCountByLabelName": list(cardinality.names_by_values),
        "memoryInBytesByLabelName": list(cardinality.names_by_value_bytes),
        "seriesCountByLabelValuePair": list(cardinality.pairs_by_series),
        "seriesCountByLabelName": list(cardinality.names_by_series),
    })))
}

fn items_max(limit: &str) -> Result<u32, String> {
    if limit.is_empty() {
        return Ok(ITEMS_DEFAULT);
    }
    match limit.parse::<u32>() {
        Ok(limit) if (1..=ITEMS_MAX).contains(&limit) => Ok(limit),
        _ => Err(format!("limit must be a number from 1 to {ITEMS_MAX}, not {limit:?}")),
    }
}

fn list(ranked: Vec<Ranked>) -> Value {
    let item = |Ranked { name, number }: Ranked| json!({ "name": name, "value": number });
    ranked.into_iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_within_bounds() {
        assert_eq!(items_max(""), Ok(10));
        assert_eq!(items_max("3"), Ok(3));
        for wrong in ["0", "-1", "x", "10001"] {
            assert!(items_max(wrong).is_err(), "{wrong}");
        }
    }
}
