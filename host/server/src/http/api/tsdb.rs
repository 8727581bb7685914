//! `GET /api/v1/status/tsdb`: cardinality of the head, in Prometheus' form. `GET
//! /api/v1/status/tsdb/blocks`: the blocks.

use super::envelope::{ApiError, success};
use super::pages::{CONTENT_TYPE_JSON, put_text};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::{Reply, full};
use hyper::StatusCode;
use serde_json::{Value, json};
use tidepool_runtime::Ranked;
use tidepool_store::ListedBlock;

/// Number of items in a list by default, and at most (`ITEMS_MAX`), as in upstream.
const ITEMS_DEFAULT: u32 = 10;
const ITEMS_MAX: u32 = 10_000;

/// Returns the largest items of each list. `seriesCountByLabelName` is our addition.
pub async fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let items_max = items_max(parameters.first("limit")).map_err(ApiError::BadData)?;
    let store = &context.store;
    let figures = store.figures().await?;
    let cardinality = store.cardinality(items_max).await?;
    let head_stats = json!({
        "numSeries": figures.head_series,
        "numLabelPairs": cardinality.label_pairs,
        "chunkCount": figures.head_chunks,
        "minTime": figures.head_min_time_ms,
        "maxTime": figures.head_max_time_ms,
    });
    let mut body = format!("{{\"status\":\"success\",\"data\":{{\"headStats\":{head_stats}").into();
    put_list(&mut body, "seriesCountByMetricName", &cardinality.metrics_by_series);
    put_list(&mut body, "labelValueCountByLabelName", &cardinality.names_by_values);
    put_list(&mut body, "memoryInBytesByLabelName", &cardinality.names_by_value_bytes);
    put_list(&mut body, "seriesCountByLabelValuePair", &cardinality.pairs_by_series);
    put_list(&mut body, "seriesCountByLabelName", &cardinality.names_by_series);
    body.extend_from_slice(b"}}");
    Ok(full(StatusCode::OK, CONTENT_TYPE_JSON, body))
}

/// Returns the blocks, oldest first. `size` and `error` are our additions.
pub async fn blocks(context: &Context) -> Result<Reply, ApiError> {
    let mut blocks: Vec<Value> =
        context.store.listed_blocks().await?.into_iter().map(block).collect();
    blocks.sort_by_key(|block| block["minTime"].as_i64());
    Ok(success(json!({ "blocks": blocks })))
}

/// Converts a block's `meta.json`. If it is unreadable, the fields that clients need are added.
fn block(ListedBlock { id, bytes, meta, damage }: ListedBlock) -> Value {
    let unread = |error| json!({ "minTime": 0, "maxTime": 0, "version": 0, "error": error });
    let mut block = meta.unwrap_or_else(unread);
    // The store identifies a block by its directory, whatever `meta.json` states.
    block["ulid"] = json!(id);
    block["size"] = json!(bytes);
    if let Some(damage) = damage
        && block.get("error").is_none()
    {
        block["error"] = json!(damage);
    }
    block
}

/// Appends a list as a field. JSON values are avoided, as they would copy long texts.
fn put_list(body: &mut Vec<u8>, field: &str, items: &[Ranked]) {
    body.extend_from_slice(format!(",\"{field}\":[").as_bytes());
    for (index, Ranked { name, number }) in items.iter().enumerate() {
        body.extend_from_slice(if index == 0 { b"{\"name\":" } else { b",{\"name\":" });
        put_text(body, name);
        body.extend_from_slice(format!(",\"value\":{number}}}").as_bytes());
    }
    body.push(b']');
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
