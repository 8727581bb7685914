//! `GET /api/v1/status/tsdb`: what the head's series are made of, as Prometheus shows it.

use super::reply::{self, Reply};
use super::server::Context;
use crate::wasm::Ranked;
use hyper::StatusCode;
use serde_json::{Value, json};

/// Items of a list without a `limit`, and the most that it may ask for: upstream's.
const ITEMS_DEFAULT: u32 = 10;
const ITEMS_MAX: u32 = 10_000;

/// Answers with the largest of everything. `seriesCountByLabelName` is not upstream's.
pub async fn tsdb(context: &Context, query: Option<&str>) -> Reply {
    let items_max = match items_max(query) {
        Ok(items_max) => items_max,
        Err(why) => {
            let body = json!({ "status": "error", "errorType": "bad_data", "error": why });
            return reply::json(StatusCode::BAD_REQUEST, &body);
        }
    };
    let store = &context.store;
    let found = match (store.figures().await, store.cardinality(items_max).await) {
        (Ok(figures), Ok(cardinality)) => (figures, cardinality),
        (Err(error), _) | (_, Err(error)) => return reply::error(&error),
    };
    let (figures, cardinality) = found;
    let body = json!({
        "status": "success",
        "data": {
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
        },
    });
    reply::json(StatusCode::OK, &body)
}

fn items_max(query: Option<&str>) -> Result<u32, String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, limit)) = pairs.find(|(name, _)| name == "limit") else {
        return Ok(ITEMS_DEFAULT);
    };
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
        assert_eq!(items_max(None), Ok(10));
        assert_eq!(items_max(Some("limit=3")), Ok(3));
        for wrong in ["limit=0", "limit=-1", "limit=x", "limit=10001", "limit="] {
            assert!(items_max(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
