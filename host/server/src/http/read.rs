//! `POST /api/v1/read`: remote read, with SAMPLES or STREAMED_XOR_CHUNKS responses.
//!
//! One part of a response is in memory at a time. An error after the first bytes resets the
//! connection: the status is already sent, and an error text would look like response data.

use super::body::{Bound, read_snappy};
use super::context::Context;
use super::reply::{self, Reply, text};
use crate::http::request::Request;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, ready};
use tidepool_protocol::prom::read::{
    ReadFormat, ReadLimits, ReadPlan, SAMPLES_CONTENT_TYPE, STREAMED_CONTENT_TYPE, plan,
};
use tidepool_runtime::Label;
use tidepool_store::{ReadPart, SMALL_BYTES_MAX, StoreError};
use tokio::sync::mpsc::Receiver;

/// The parts of a response, as they arrive from the store.
struct Answer {
    parts: Receiver<Result<ReadPart, StoreError>>,
    has_ended: bool,
}

impl Answer {
    /// Returns the next bytes; `None` at the end.
    fn poll_bytes(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Bytes, StoreError>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        Poll::Ready(match ready!(self.parts.poll_recv(context)) {
            Some(Ok(ReadPart::Bytes(bytes))) => Some(Ok(bytes)),
            Some(Ok(ReadPart::End)) => {
                self.has_ended = true;
                None
            }
            Some(Err(error)) => Some(Err(error)),
            // The read was ended because the client is slow or the store is stopping.
            None => Some(Err(StoreError::Stopped)),
        })
    }
}

pub async fn answer(context: &Context, request: Request) -> Reply {
    context.counters.read_requests.fetch_add(1, Relaxed);
    let reply = read(context, request).await;
    if !reply.status().is_success() {
        context.counters.read_requests_failed.fetch_add(1, Relaxed);
    }
    reply
}

async fn read(context: &Context, request: Request) -> Reply {
    let bound = Bound::of_reads(context);
    let held = match read_snappy(context, request.into_body(), bound).await {
        Ok(held) => held,
        Err(reply) => return reply,
    };
    let external = &context.http.external_labels;
    let limits = ReadLimits {
        frame_bytes_max: context.http.read_frame_bytes_max,
        samples_max: context.http.read_samples_max,
        bytes_max: context.http.read_response_bytes_max,
    };
    let ReadPlan { format, queries } = match plan(&held.bytes, external, limits) {
        Ok(plan) => plan,
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    // The request is decoded; its memory is released before the response is sent.
    drop(held);
    let label = |(name, value): (&str, &str)| Label { name: name.into(), value: value.into() };
    let external_labels = external.iter().map(label).collect();
    match context.store.read(queries, format, external_labels).await {
        Ok(parts) => body(format, Answer { parts, has_ended: false }).await,
        Err(error) => Err(error),
    }
    .unwrap_or_else(|error| reply::error(&error))
}

/// Builds a response. An error before the first part is sent as an error response, and so is an
/// error after a small first part. A small response has a length.
async fn body(format: ReadFormat, mut answer: Answer) -> Result<Reply, StoreError> {
    let first = poll_fn(|context| answer.poll_bytes(context)).await.transpose()?;
    let mut ahead = VecDeque::from_iter(first);
    if ahead.iter().all(|first| first.len() <= SMALL_BYTES_MAX) {
        ahead.extend(poll_fn(|context| answer.poll_bytes(context)).await.transpose()?);
    }
    let body = match (answer.has_ended, ahead.len()) {
        (true, 0 | 1) => {
            let whole = Full::new(ahead.pop_front().unwrap_or_default());
            whole.map_err(|never| match never {}).boxed()
        }
        _ => AnswerBody { ahead, answer }.boxed(),
    };
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    if format.is_message() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(SAMPLES_CONTENT_TYPE));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("snappy"));
    } else {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(STREAMED_CONTENT_TYPE));
    }
    Ok(reply)
}

/// Body of a response. If the client disconnects, the body is dropped, which ends the read.
struct AnswerBody {
    /// Parts read before the response was started.
    ahead: VecDeque<Bytes>,
    answer: Answer,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let bytes = match self.ahead.pop_front() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.answer.poll_bytes(context),
        };
        bytes.map(|bytes| bytes.map(|bytes| bytes.map(Frame::data)))
    }
}
