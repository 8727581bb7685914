//! PromQL: `/api/v1/query`, `query_range`, `format_query` and `parse_query`.
//!
//! The engine writes the response during evaluation, so memory use here does not grow with it.
//! Source: `web/api/v1/api.go` in prometheus/prometheus.

mod answer;
mod negotiation;
mod stats;

pub use negotiation::preferred;

use super::envelope::{ApiError, success, success_of_json};
use super::pages::{Shape, stream};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use tidepool_protocol::prom::query::QUERY_CONTENT_TYPE;
use tidepool_query::Expression;
use tidepool_store::StoreError;

use answer::Answer;
use hyper::header::{HeaderValue, VARY};
use serde_json::Value;
use stats::Stats;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::{QueryTimes, ResultFormat};

/// Maximum number of points per series in a range query, as in upstream.
const POINTS_MAX: i64 = 11_000;

pub async fn instant(
    context: &Context,
    parameters: &Parameters,
    format: ResultFormat,
) -> Result<Reply, ApiError> {
    let time_ms = parameters.time("time", system_now_ms())?;
    answer(context, parameters, format, QueryTimes::Instant(time_ms)).await
}

pub async fn range(
    context: &Context,
    parameters: &Parameters,
    format: ResultFormat,
) -> Result<Reply, ApiError> {
    let (start_ms, end_ms) = (parameters.some_time("start")?, parameters.some_time("end")?);
    if end_ms < start_ms {
        let why = "end timestamp must not be before start time";
        return Err(ApiError::parameter("end", why));
    }
    let step_ms = parameters.duration_ms("step")?;
    if step_ms <= 0 {
        let why = "zero or negative query resolution step widths are not accepted. Try a positive \
                   integer";
        return Err(ApiError::parameter("step", why));
    }
    if end_ms.saturating_sub(start_ms) / step_ms > POINTS_MAX {
        return Err(ApiError::BadData(
            "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query \
             resolution (?step=XX)"
                .to_owned(),
        ));
    }
    answer(context, parameters, format, QueryTimes::Range { start_ms, end_ms, step_ms }).await
}

/// Returns the expression in Prometheus' layout.
pub async fn format(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let text = parameters.first("query").to_owned();
    let formatted = context.queries.format_query(text).await.map_err(of_query)?;
    Ok(success(Value::String(formatted)))
}

/// Returns the syntax tree of the expression.
pub async fn parse(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let text = parameters.first("query").to_owned();
    let tree = context.queries.parse_query(text).await.map_err(of_query)?;
    Ok(success_of_json(&tree))
}

/// Reports an error in the expression as an error of the parameter `query`.
pub fn of_query(error: StoreError) -> ApiError {
    match error {
        StoreError::Expression(text) => ApiError::parameter("query", text),
        other => other.into(),
    }
}

async fn answer(
    context: &Context,
    parameters: &Parameters,
    format: ResultFormat,
    times: QueryTimes,
) -> Result<Reply, ApiError> {
    let timeout = match parameters.first("timeout") {
        "" => None,
        _ => Some(parameters.positive_duration("timeout")?),
    };
    let lookback = match parameters.first("lookback_delta") {
        "" => None,
        _ => Some(parameters.positive_duration("lookback_delta")?),
    };
    let stats = parameters.first("stats");
    let expression = Expression {
        text: parameters.first("query").to_owned(),
        times,
        format,
        lookback,
        series_max: parameters.limit()?,
        timeout,
        per_step: stats::is_per_step(stats),
        is_fresh: !matches!(parameters.first("nocache"), "" | "0" | "false"),
    };
    let warning = stats::warning(stats);
    let stats = (!stats.is_empty()).then(|| Stats::new(times));
    let parts = context.queries.query(expression).await?;
    let shape = match format {
        ResultFormat::Json => Shape::Fields,
        ResultFormat::Protobuf => Shape::Message(QUERY_CONTENT_TYPE),
    };
    let answer = Answer { parts, format, stats, warning };
    let mut reply = stream(shape, answer).await.map_err(of_query)?;
    // Keeps caches from returning a protobuf response to a client that expects JSON.
    reply.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    Ok(reply)
}
