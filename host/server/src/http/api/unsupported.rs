//! Endpoints of Prometheus features that tidepool does not have. They return empty lists, so that
//! clients that ask for them work.

use super::envelope::success;
use crate::http::reply::Reply;
use serde_json::json;

pub fn alertmanagers() -> Reply {
    success(json!({ "activeAlertmanagers": [], "droppedAlertmanagers": [] }))
}
