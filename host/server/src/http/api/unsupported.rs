//! Endpoints of Prometheus features that tidepool does not have. They return empty lists, so that
//! clients that ask for rules and alerts work.

use super::envelope::{ApiError, success};
use super::parameters::Parameters;
use crate::http::reply::Reply;
use serde_json::json;

pub fn rules(parameters: &Parameters) -> Result<Reply, ApiError> {
    match parameters.first("type") {
        "" | "alert" | "record" => {}
        other => {
            return Err(ApiError::parameter("type", format!("not supported value {other:?}")));
        }
    }
    // Checked although unused, so that an invalid request fails as in upstream.
    parameters.flag("exclude_alerts")?;
    parameters.matcher_sets()?;
    Ok(success(json!({ "groups": [] })))
}

pub fn alerts() -> Reply {
    success(json!({ "alerts": [] }))
}

pub fn alertmanagers() -> Reply {
    success(json!({ "activeAlertmanagers": [], "droppedAlertmanagers": [] }))
}
