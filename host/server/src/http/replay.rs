//! The progress of the replay of the logs: `GET /api/v1/status/walreplay`, and what `/-/ready` says
//! before the store is.

use super::api;
use super::context::Context;
use super::reply::{Reply, text};
use hyper::StatusCode;
use serde_json::json;
use tidepool_store::ReplayState;

/// Answers as Prometheus does, and with the state that its documentation adds; beyond that, why
/// the log was not replayed.
pub fn status(context: &Context) -> Reply {
    let status = context.store.replay_status();
    let (min, max) = (status.figures.segment_min, status.figures.segment_max);
    let current = status.figures.segment_current;
    let state = status.state.name();
    let mut said = json!({ "min": min, "max": max, "current": current, "state": state });
    if let Some(shortage) = context.store.shortage() {
        said["error"] = shortage.to_string().into();
    }
    api::success(said)
}

/// Whether the store is ready, and if not, how far it is.
pub fn ready(context: &Context) -> Reply {
    let status = context.store.replay_status();
    let found = status.figures;
    let answer = match status.state {
        ReplayState::Done => return text(StatusCode::OK, "tidepool is ready.\n"),
        // Blocks are served.
        ReplayState::Skipped => {
            return text(StatusCode::OK, "tidepool is ready, but its log is not replayed.\n");
        }
        ReplayState::Waiting => "The store is starting.\n".to_owned(),
        ReplayState::InProgress => {
            let segment = (found.segments_done + 1).min(found.segments_total);
            let (segments, percent) = (found.segments_total, found.percent());
            format!("The log is being replayed: segment {segment} of {segments}, {percent} %.\n")
        }
    };
    text(StatusCode::SERVICE_UNAVAILABLE, answer)
}
