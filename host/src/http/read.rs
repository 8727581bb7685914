//! `POST /api/v1/read`: remote read, both kinds.
//!
//! A streamed answer holds one part at a time, and ends with the connection's reset if something
//! fails on the way: its status is long gone, and text would be read as a frame.

use super::body::read_snappy;
use super::reply::{self, Reply, text};
use super::server::Context;
use crate::prom::read::{
    ReadPlan, ResponseKind, SAMPLES_CONTENT_TYPE, STREAMED_CONTENT_TYPE, plan, put_query_result,
};
use crate::store::{ReadPart, StoreError};
use crate::wasm::{Error, FrameFormat, Limit, PoolShare};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, ready};
use std::time::Instant;
use tokio::sync::mpsc::Receiver;

/// Largest request, compressed as well as decompressed. The longest list of values is far shorter,
/// and two bytes of a request can make fifty of a matcher.
const READ_BYTES_MAX: usize = 1 << 20;

/// Bytes of a whole answer that are sent at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// An answer on its way.
struct Answer {
    parts: Receiver<Result<ReadPart, StoreError>>,
    /// Queries whose end has not come yet.
    queries_left: usize,
}

impl Answer {
    /// The next part; `None` once all queries are answered.
    fn poll_part(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<ReadPart, StoreError>>> {
        let part = ready!(self.parts.poll_recv(context));
        if let Some(Ok(ReadPart::EndOfQuery)) = &part {
            self.queries_left -= 1;
        }
        Poll::Ready(match part {
            // The read gave up, on a slow client or because the store stops.
            None if self.queries_left > 0 => Some(Err(StoreError::Stopped)),
            part => part,
        })
    }
}

/// Answers a read.
pub async fn answer(context: &Context, request: Request<Incoming>) -> Reply {
    context.counters.read_requests.fetch_add(1, Relaxed);
    let reply = read(context, request).await;
    if !reply.status().is_success() {
        context.counters.read_requests_failed.fetch_add(1, Relaxed);
    }
    reply
}

async fn read(context: &Context, request: Request<Incoming>) -> Reply {
    let bytes_max = context.http.request_bytes_max.min(READ_BYTES_MAX);
    let held = match read_snappy(context, request.into_body(), bytes_max).await {
        Ok(held) => held,
        Err(reply) => return reply,
    };
    let ReadPlan { kind, queries } = match plan(&held.bytes) {
        Ok(plan) => plan,
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    drop(held);
    let (format, samples_max) = match kind {
        ResponseKind::Samples => (FrameFormat::Samples, context.http.read_samples_max),
        ResponseKind::StreamedXorChunks => (FrameFormat::StreamedChunks, 0),
    };
    let frame_bytes_max = context.http.read_frame_bytes_max;
    let query_count = queries.len();
    let parts = match context.store.read(queries, format, frame_bytes_max, samples_max).await {
        Ok(parts) => parts,
        Err(error) => return reply::error(&error),
    };
    let parts = Answer { parts, queries_left: query_count };
    let answered = match kind {
        ResponseKind::Samples => samples(context, parts).await,
        ResponseKind::StreamedXorChunks => streamed(parts).await,
    };
    answered.unwrap_or_else(|error| reply::error(&error))
}

/// One message, held whole, within the limits.
async fn samples(context: &Context, mut answer: Answer) -> Result<Reply, StoreError> {
    let bytes_max = context.http.read_response_bytes_max;
    let mut response = Vec::new();
    let mut result = Vec::new();
    let mut memory = context.store.read_memory().share();
    while let Some(part) = poll_fn(|context| answer.poll_part(context)).await {
        match part? {
            ReadPart::Frames(frames) => result.extend_from_slice(&frames),
            ReadPart::EndOfQuery => {
                put_query_result(&mut response, &result);
                result.clear();
            }
        }
        if !memory.grow_to(response.len() + result.len()) {
            return Err(short_of_memory(&memory));
        }
        if response.len() + result.len() > bytes_max {
            let what = "bytes of a SAMPLES answer (--read-response-limit)".to_owned();
            let limit = Limit { what, max: bytes_max as u64 };
            return Err(StoreError::Refused(Error::LimitExceeded(limit)));
        }
    }
    drop(result);
    if !memory.grow_to(response.len() + snap::raw::max_compress_len(response.len())) {
        return Err(short_of_memory(&memory));
    }
    let compressed = snap::raw::Encoder::new().compress_vec(&response);
    let compressed = compressed.map_err(|error| {
        StoreError::Runtime(format!("the answer could not be compressed: {error}"))
    })?;
    let held = HeldAnswer { bytes: compressed, _memory: memory };
    let deadline = Instant::now() + context.http.read_timeout;
    let body = WholeBody { rest: Bytes::from_owner(held), deadline };
    let mut reply = Response::new(body.boxed());
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(SAMPLES_CONTENT_TYPE));
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("snappy"));
    Ok(reply)
}

/// An answer that is at hand as a whole, until it is sent.
struct HeldAnswer {
    bytes: Vec<u8>,
    _memory: PoolShare,
}

impl AsRef<[u8]> for HeldAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn short_of_memory(share: &PoolShare) -> StoreError {
    let bytes_max = share.pool().bytes_max();
    StoreError::ShortOfMemory(format!("all reads together may take {bytes_max} bytes"))
}

/// A whole answer's body, given in pieces, so that it ends when its client has taken it.
struct WholeBody {
    rest: Bytes,
    deadline: Instant,
}

impl Body for WholeBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if Instant::now() > self.deadline {
            return Poll::Ready(Some(Err(StoreError::Stopped)));
        }
        let bytes = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Frames as they come. What fails before the first of them still gets a proper status.
async fn streamed(mut answer: Answer) -> Result<Reply, StoreError> {
    let first = poll_fn(|context| poll_frames(&mut answer, context)).await.transpose()?;
    let mut reply = Response::new(FrameBody { first, answer }.boxed());
    let content_type = HeaderValue::from_static(STREAMED_CONTENT_TYPE);
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(reply)
}

/// A streamed answer's body. Dropped by a client that leaves, it ends the read.
struct FrameBody {
    first: Option<Bytes>,
    answer: Answer,
}

impl Body for FrameBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let frames = match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => poll_frames(&mut self.answer, context),
        };
        frames.map(|frames| frames.map(|frames| frames.map(Frame::data)))
    }
}

fn poll_frames(
    answer: &mut Answer,
    context: &mut std::task::Context<'_>,
) -> Poll<Option<Result<Bytes, StoreError>>> {
    loop {
        match ready!(answer.poll_part(context)) {
            Some(Ok(ReadPart::Frames(frames))) => return Poll::Ready(Some(Ok(frames))),
            Some(Ok(ReadPart::EndOfQuery)) => {}
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
    }
}
