//! Progress of the WAL replay: `GET /api/v1/status/walreplay`, and `/-/ready` before the store is
//! ready.

use super::api;
use super::context::Context;
use super::reply::{Reply, text};
use hyper::StatusCode;
use serde_json::json;
use tidepool_store::ReplayState;

/// Returns Prometheus' fields, and `state` with the reason if the log was not replayed.
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

/// Returns that the store is ready, or else the progress of the replay.
pub fn ready(context: &Context) -> Reply {
    let status = context.store.replay_status();
    let found = status.figures;
    let answer = match status.state {
        ReplayState::Done => return text(StatusCode::OK, "tidepool is ready.\n"),
        // Blocks can be queried although the head is empty.
        ReplayState::Skipped => {
            return text(StatusCode::OK, "tidepool is ready, but its log is not replayed.\n");
        }
        ReplayState::Waiting => "The store is starting.\n".to_owned(),
        ReplayState::InProgress => {
            // Number of the current segment, limited to the last after all are done.
            let segment = (found.segments_done + 1).min(found.segments_total);
            let (segments, percent) = (found.segments_total, found.percent());
            format!("The log is being replayed: segment {segment} of {segments}, {percent} %.\n")
        }
    };
    text(StatusCode::SERVICE_UNAVAILABLE, answer)
}
