//! `GET` and `POST /api/v1/query_exemplars`: exemplars of the series that a selector selects.
//!
//! Prometheus takes any expression and looks at the selectors in it. Here it is one selector,
//! since nothing here reads PromQL.

use super::envelope::ApiError;
use super::number::{put_seconds, put_value};
use super::pages::{AtHand, Shape, labels_bytes, put_labels, stream};
use super::parameters::{Parameters, selector};
use crate::http::reply::Reply;
use crate::http::server::Context;
use crate::wasm::{Exemplar, Lookup, Matcher, SeriesExemplars, TimeRange};

/// Answers with exemplars, by series.
pub async fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let range = parameters.range()?;
    if range.end_ms < range.start_ms {
        let why = "end timestamp must not be before start timestamp";
        return Err(ApiError::BadData(why.to_owned()));
    }
    let query = parameters.first("query");
    let matchers = selector("query", query).map_err(|error| match error {
        ApiError::BadData(why) => ApiError::BadData(format!(
            "{why}; tidepool evaluates no PromQL, so this must be one series selector such as \
             up{{job=\"x\"}}"
        )),
        other => other,
    })?;
    try_matchers(context, &matchers).await?;
    let found = context.store.exemplars(vec![matchers], range).await?;
    let rows = AtHand::new(context, found, series_bytes, put_series)?;
    Ok(stream(Shape::List, rows).await?)
}

/// Looks up nothing with the matchers, in an instance of its own: what does not compile, or not in
/// good time, ends there, where it holds up no writes.
async fn try_matchers(context: &Context, matchers: &[Matcher]) -> Result<(), ApiError> {
    let nothing = TimeRange { start_ms: 1, end_ms: 0 };
    let lookup = Lookup { matcher_sets: vec![matchers.to_vec()], range: nothing, limit: 1 };
    let mut parts = context.store.label_names(lookup).await?;
    while let Some(part) = parts.recv().await {
        part?;
    }
    Ok(())
}

fn series_bytes(series: &SeriesExemplars) -> usize {
    let exemplars = series.exemplars.iter();
    let bytes = |exemplar: &Exemplar| size_of::<Exemplar>() + labels_bytes(&exemplar.labels);
    size_of::<SeriesExemplars>()
        + labels_bytes(&series.labels)
        + exemplars.map(bytes).sum::<usize>()
}

fn put_series(series: &SeriesExemplars, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(b"{\"seriesLabels\":");
    put_labels(bytes, &series.labels);
    bytes.extend_from_slice(b",\"exemplars\":[");
    for (index, exemplar) in series.exemplars.iter().enumerate() {
        bytes.extend_from_slice(if index == 0 { b"{\"labels\":" } else { b",{\"labels\":" });
        put_labels(bytes, &exemplar.labels);
        bytes.extend_from_slice(b",\"value\":");
        put_value(bytes, exemplar.value);
        bytes.extend_from_slice(b",\"timestamp\":");
        put_seconds(bytes, exemplar.timestamp_ms);
        bytes.push(b'}');
    }
    bytes.extend_from_slice(b"]}");
}
