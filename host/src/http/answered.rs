//! The end of a request: when nothing of its answer is left, its connection may be free again, and
//! the log may get a line.

use super::durations::Durations;
use super::reply::Body;
use super::routes::Handler;
use super::stream::{Phase, PhaseCell};
use crate::store::StoreError;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::USER_AGENT;
use hyper::{Method, Request, StatusCode, Version};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Longest part of a path or a client's name that is logged, in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// The requests of one connection that are not answered yet; clones count the same.
#[derive(Clone)]
pub struct Unanswered {
    count: Arc<AtomicUsize>,
    phase: PhaseCell,
}

impl Unanswered {
    /// None yet.
    pub fn new(phase: PhaseCell) -> Unanswered {
        Unanswered { count: Arc::default(), phase }
    }

    /// One has come. It counts until what this gives is dropped.
    pub fn begin(&self) -> PendingRequest {
        self.count.fetch_add(1, Relaxed);
        self.phase.set(Phase::Working);
        PendingRequest { of: self.clone() }
    }
}

/// One request that is not answered yet.
pub struct PendingRequest {
    of: Unanswered,
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.of.count.fetch_sub(1, Relaxed) == 1 {
            self.of.phase.set(Phase::Answered);
        }
    }
}

/// A line of the log about one request.
pub struct AccessLine {
    client: Option<SocketAddr>,
    method: Method,
    path: String,
    version: Version,
    user_agent: String,
}

impl AccessLine {
    /// Remembers a request that has just come.
    pub fn new(request: &Request<Incoming>, client: Option<SocketAddr>) -> AccessLine {
        let user_agent = request.headers().get(USER_AGENT);
        let path = request.uri().path_and_query().map_or("", |path| path.as_str());
        AccessLine {
            client,
            method: request.method().clone(),
            path: cut(path.as_bytes()),
            version: request.version(),
            user_agent: user_agent.map_or_else(String::new, |value| cut(value.as_bytes())),
        }
    }

    fn write(&self, status: StatusCode, bytes: u64, took: Duration, is_whole: bool) {
        tracing::info!(
            target: "tidepool_host::access_log",
            client = self.client.map(tracing::field::display),
            method = %self.method,
            path = self.path,
            version = ?self.version,
            status = status.as_u16(),
            bytes,
            seconds = took.as_secs_f64(),
            user_agent = self.user_agent,
            "{}", if is_whole { "answered" } else { "cut short" }
        );
    }
}

fn cut(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(TEXT_BYTES_MAX)]).into_owned()
}

/// Measures a request from now on.
pub struct Timer {
    started: Instant,
    handler: Handler,
    durations: Arc<Durations>,
}

impl Timer {
    /// Begins.
    pub fn start(handler: Handler, durations: Arc<Durations>) -> Timer {
        Timer { started: Instant::now(), handler, durations }
    }
}

/// An answer's body, which tells when nothing of it is left.
pub struct AnswerBody {
    body: Body,
    status: StatusCode,
    bytes: u64,
    timer: Timer,
    line: Option<AccessLine>,
    _request: PendingRequest,
}

impl AnswerBody {
    /// The body of the answer to a request.
    pub fn new(
        body: Body,
        status: StatusCode,
        request: PendingRequest,
        timer: Timer,
        line: Option<AccessLine>,
    ) -> AnswerBody {
        AnswerBody { body, status, bytes: 0, timer, line, _request: request }
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        let Timer { started, handler, durations } = &self.timer;
        let took = started.elapsed();
        durations.add(*handler, self.status, took);
        if let Some(line) = &self.line {
            let is_whole = line.method == Method::HEAD || self.body.is_end_stream();
            line.write(self.status, self.bytes, took, is_whole);
        }
    }
}
