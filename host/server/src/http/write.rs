//! `POST /api/v1/write`: remote write 1.0 and 2.0.
//!
//! The order of checks is part of the protocol: unsupported types and encodings are refused before
//! the body is read.

use super::body::{Bound, for_sender, read_snappy};
use super::context::Context;
use super::reply::{self, Reply, retry_later, text};
use crate::http::request::Request;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use std::sync::atomic::Ordering::Relaxed;
use tidepool_protocol::prom::write::{WRITTEN_HEADERS, may_clear, negotiate, refusal_text};
use tidepool_runtime::{RemoteWriteVersion, WriteOutcome};

pub async fn answer(context: &Context, request: Request) -> Reply {
    context.counters.write_requests.fetch_add(1, Relaxed);
    let reply = write(context, request).await;
    if !reply.status().is_success() {
        context.counters.write_requests_failed.fetch_add(1, Relaxed);
    }
    reply
}

async fn write(context: &Context, request: Request) -> Reply {
    let version = match negotiate(request.headers()) {
        Ok(version) => version,
        Err(error) => return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("{error}\n")),
    };
    let bound = Bound::of_writes(context);
    let held = match read_snappy(context, request.into_body(), bound).await {
        Ok(held) => held,
        // A slow body gets 503, because a sender drops its samples after a 4xx.
        Err(reply) => return with_written(for_sender(reply), version, None),
    };
    match context.intake().append(version, held.bytes, held.room).await {
        Ok(outcome) => with_written(outcome_reply(&outcome), version, Some(&outcome)),
        Err(error) => with_written(reply::error(&error), version, None),
    }
}

fn outcome_reply(outcome: &WriteOutcome) -> Reply {
    let status = match outcome.refused {
        0 => StatusCode::NO_CONTENT,
        // Some rows may be accepted later. Sending stored rows again does no harm.
        _ if may_clear(outcome) => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::BAD_REQUEST,
    };
    if outcome.refused == 0 {
        let mut reply = text(status, "");
        reply.headers_mut().remove(CONTENT_TYPE);
        return reply;
    }
    tracing::debug!(refused = outcome.refused, first = ?outcome.refusals.first(), "rows refused");
    retry_later(text(status, refusal_text(outcome)))
}

/// Adds the counts of written rows, which 2.0 requires on success and failure. 1.0 has none.
fn with_written(
    mut reply: Reply,
    version: RemoteWriteVersion,
    outcome: Option<&WriteOutcome>,
) -> Reply {
    if version == RemoteWriteVersion::V2 {
        // On an error, nothing of the batch was stored.
        let written = outcome.map_or([0; 3], |outcome| {
            [outcome.samples_written, outcome.histograms_written, outcome.exemplars_written]
        });
        for (name, count) in WRITTEN_HEADERS.into_iter().zip(written) {
            reply.headers_mut().insert(name, HeaderValue::from(count));
        }
    }
    reply
}
