//! `/api/v1/admin/tsdb/{delete_series,clean_tombstones,snapshot}`: deletion and copies of stored
//! data, as in Prometheus. Disabled by default, since any client that reaches the port could delete
//! everything.

use super::envelope::{ApiError, success};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::{Reply, text};
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use serde_json::json;
use tidepool_runtime::Damage;

pub async fn delete_series(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let selectors = parameters.some_matcher_sets()?;
    let deletion = context.store.delete(selectors, parameters.range()?).await?;
    done_but_for("deleted", &deletion.bad)
}

/// Rewrites blocks without their deleted samples.
pub async fn clean_tombstones(context: &Context) -> Result<Reply, ApiError> {
    done_but_for("cleaned", &context.store.clean_tombstones().await?)
}

pub async fn snapshot(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let skip_head = parameters.flag("skip_head")?;
    let name = context.store.snapshot(!skip_head).await?;
    Ok(success(json!({ "name": name })))
}

// A partial success is reported as a failure, or the caller would believe all data deleted.
fn done_but_for(what: &str, left_out: &[Damage]) -> Result<Reply, ApiError> {
    if left_out.is_empty() {
        let mut reply = text(StatusCode::NO_CONTENT, "");
        reply.headers_mut().remove(CONTENT_TYPE);
        return Ok(reply);
    }
    let reasons: Vec<&str> = left_out.iter().map(|bad| bad.reason.as_str()).collect();
    let error = format!("{what}, but not in every block: {}", reasons.join("; "));
    tracing::warn!(error, "admin request was only partly done");
    Err(ApiError::Internal(error))
}
