//! `/api/v1/query`, `query_range`, `format_query` and `parse_query`: PromQL.
//!
//! The engine writes the answer as it evaluates; memory does not grow with it here. Source:
//! `web/api/v1/api.go` in prometheus/prometheus.

use super::envelope::{ApiError, success, success_of_json};
use super::pages::{Page, Progress, Rows, Shape, stream};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use crate::store::{Expression, QueryPart, StoreError, system_now_ms};
use crate::wasm::{Annotation, QueryStats, QueryTimes, ResultFormat};
use serde_json::{Value, json};
use std::task::{Poll, ready};
use std::time::Instant;
use tokio::sync::mpsc::Receiver;

/// Most points of a series in a range query. Upstream's.
const POINTS_MAX: i64 = 11_000;

/// Evaluates at one time.
pub async fn instant(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let time_ms = parameters.time("time", system_now_ms())?;
    answer(context, parameters, QueryTimes::Instant(time_ms)).await
}

/// Evaluates at every step of a range.
pub async fn range(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
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
    if (end_ms - start_ms) / step_ms > POINTS_MAX {
        return Err(ApiError::BadData(
            "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query \
             resolution (?step=XX)"
                .to_owned(),
        ));
    }
    answer(context, parameters, QueryTimes::Range { start_ms, end_ms, step_ms }).await
}

/// Gives the expression in Prometheus' layout.
pub async fn format(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let text = parameters.first("query").to_owned();
    let formatted = context.store.format_query(text).await.map_err(of_query)?;
    Ok(success(Value::String(formatted)))
}

/// Gives the tree of the expression.
pub async fn parse(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let text = parameters.first("query").to_owned();
    let tree = context.store.parse_query(text).await.map_err(of_query)?;
    Ok(success_of_json(&tree))
}

/// What is wrong with the parameter `query`.
pub fn of_query(error: StoreError) -> ApiError {
    match error {
        StoreError::Expression(text) => ApiError::parameter("query", text),
        other => other.into(),
    }
}

async fn answer(
    context: &Context,
    parameters: &Parameters,
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
    let has_stats = !parameters.first("stats").is_empty();
    let expression = Expression {
        text: parameters.first("query").to_owned(),
        times,
        format: ResultFormat::Json,
        lookback,
        series_max: parameters.limit()?,
        timeout,
    };
    let begun = Instant::now();
    let parts = context.store.query(expression).await?;
    stream(Shape::Fields, Answer { parts, has_stats, begun }).await.map_err(of_query)
}

/// An answer on its way.
struct Answer {
    parts: Receiver<Result<QueryPart, StoreError>>,
    has_stats: bool,
    begun: Instant,
}

impl Rows for Answer {
    fn poll_rows(
        &mut self,
        context: &mut std::task::Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        Poll::Ready(match ready!(self.parts.poll_recv(context)) {
            Some(Ok(QueryPart::Bytes(bytes))) => {
                page.more_of_row().extend_from_slice(&bytes);
                Ok(Progress::More)
            }
            Some(Ok(QueryPart::End { annotations, stats })) => {
                self.put_end(page.more_of_row(), annotations, &stats);
                Ok(Progress::End { is_truncated: false })
            }
            Some(Err(error)) => Err(error),
            // The read gave up, on a slow client or because the store stops.
            None => Err(StoreError::Stopped),
        })
    }
}

impl Answer {
    /// Ends `data`, and says what was remarked.
    fn put_end(&self, bytes: &mut Vec<u8>, annotations: Vec<Annotation>, stats: &QueryStats) {
        if self.has_stats {
            let seconds = self.begun.elapsed().as_secs_f64();
            let stats = json!({
                "timings": { "execTotalTime": seconds },
                "samples": {
                    "totalQueryableSamples": stats.samples,
                    "peakSamples": stats.samples_peak,
                },
            });
            bytes.extend_from_slice(format!(",\"stats\":{stats}").as_bytes());
        }
        bytes.push(b'}');
        let (warnings, infos): (Vec<_>, Vec<_>) =
            annotations.into_iter().partition(|annotation| annotation.is_warning);
        for (name, remarks) in [("warnings", warnings), ("infos", infos)] {
            if !remarks.is_empty() {
                let texts = remarks.into_iter().map(|remark| Value::String(remark.text));
                let texts = Value::Array(texts.collect());
                bytes.extend_from_slice(format!(",\"{name}\":{texts}").as_bytes());
            }
        }
    }
}
