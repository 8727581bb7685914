//! What Prometheus has and tidepool has not: rules and alerts are empty lists, so that
//! clients that ask for them go on.

use super::envelope::{ApiError, success};
use super::parameters::Parameters;
use crate::http::reply::Reply;
use serde_json::json;

/// `GET /api/v1/rules`
pub fn rules(parameters: &Parameters) -> Result<Reply, ApiError> {
    match parameters.first("type") {
        "" | "alert" | "record" => {}
        other => {
            return Err(ApiError::parameter("type", format!("not supported value {other:?}")));
        }
    }
    parameters.flag("exclude_alerts")?;
    parameters.matcher_sets()?;
    Ok(success(json!({ "groups": [] })))
}

/// `GET /api/v1/alerts`
pub fn alerts() -> Reply {
    success(json!({ "alerts": [] }))
}

/// `GET /api/v1/alertmanagers`
pub fn alertmanagers() -> Reply {
    success(json!({ "activeAlertmanagers": [], "droppedAlertmanagers": [] }))
}
