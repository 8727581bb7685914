//! The end of a request: the connection may become idle, and the access log may get a line.

use super::durations::Durations;
use super::handler::Handler;
use super::reply::Body;
use super::stream::{BODY_PROGRESS_BYTES, Phase, PhaseCell};
use crate::http::request::Request;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::USER_AGENT;
use hyper::{Method, StatusCode, Version};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tidepool_store::StoreError;
use tokio::time::sleep;

/// Maximum length of a logged path or client name, in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// Maximum size of a piece in HTTP/2. Progress shows only in the demand for the next piece.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Unanswered requests of a connection; clones share the count.
#[derive(Clone)]
pub struct Unanswered {
    count: Arc<AtomicUsize>,
    /// The unanswered requests that are waiting for bytes of their bodies.
    waiting: Arc<AtomicUsize>,
    phase: PhaseCell,
    answers: Arc<Mutex<Answers>>,
}

#[derive(Default)]
struct Answers {
    /// Time at which the client last accepted a part of each response, by the response's number.
    taken: HashMap<u64, Instant>,
    last_number: u64,
}

impl Unanswered {
    pub fn new(phase: PhaseCell) -> Unanswered {
        let (count, waiting) = Default::default();
        Unanswered { count, waiting, phase, answers: Arc::default() }
    }

    /// Waits until a client has accepted no part of a response for `limit`. In HTTP/2, such a
    /// client may still read all other frames.
    pub async fn stall(&self, limit: Duration) {
        loop {
            // The response that has waited longest decides: no other response can expire earlier.
            let oldest = self.answers().taken.values().min().copied();
            let waited = oldest.map_or(Duration::ZERO, |taken| taken.elapsed());
            match limit.checked_sub(waited) {
                None | Some(Duration::ZERO) => return,
                // The oldest response may make progress meanwhile, so it is then looked up again.
                Some(left) => sleep(left).await,
            }
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new request until the returned value is dropped.
    pub fn begin(&self) -> PendingRequest {
        self.count.fetch_add(1, Relaxed);
        self.phase.set(Phase::Working);
        PendingRequest { of: self.clone(), answer: None }
    }

    /// Returns a tracker for the arrival of a request body.
    pub fn watch_body(&self) -> ComingBody {
        ComingBody { of: self.clone(), is_waited_for: false, bytes: 0 }
    }

    /// Enters [`Phase::Body`] if all requests wait for their bodies.
    fn note_waiting(&self) {
        let waiting = self.waiting.load(Relaxed);
        if waiting > 0 && waiting == self.count.load(Relaxed) {
            self.phase.set(Phase::Body);
        }
    }
}

/// Arrival of a request body.
pub struct ComingBody {
    of: Unanswered,
    is_waited_for: bool,
    /// Bytes received since the last progress.
    bytes: usize,
}

impl ComingBody {
    /// Records that no bytes are available.
    pub fn wait(&mut self) {
        // Recorded once: hyper may poll a body many times before bytes arrive.
        if !self.is_waited_for {
            self.is_waited_for = true;
            self.of.waiting.fetch_add(1, Relaxed);
            self.of.note_waiting();
        }
    }

    /// Records the arrival of bytes.
    pub fn take(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.is_waited_for && self.bytes >= BODY_PROGRESS_BYTES {
            self.bytes = 0;
            // Entering the phase again restarts its timeout.
            self.of.note_waiting();
        }
    }

    /// Records the end of the body, or that the rest is not wanted.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_waited_for) {
            self.of.waiting.fetch_sub(1, Relaxed);
            self.of.phase.advance(Phase::Body, Phase::Working);
        }
    }
}

/// A request whose response is not completely sent.
pub struct PendingRequest {
    of: Unanswered,
    /// Number of the response; `None` unless the client's progress is tracked.
    answer: Option<u64>,
}

impl PendingRequest {
    /// Records that the client accepted a part of the response, or that the first part is ready.
    fn is_taken(&mut self) {
        let mut answers = self.of.answers();
        let number = self.answer.unwrap_or(answers.last_number + 1);
        answers.last_number = answers.last_number.max(number);
        answers.taken.insert(number, Instant::now());
        drop(answers);
        self.answer = Some(number);
    }

    /// Records that no bytes of the response are ready.
    fn waits_for_us(&self) {
        // Time in which the server computes does not count towards the client's timeout.
        if let Some(answer) = self.answer {
            self.of.answers().taken.remove(&answer);
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.waits_for_us();
        // Only the last of several open requests (HTTP/2) ends the phase.
        if self.of.count.fetch_sub(1, Relaxed) == 1 {
            self.of.phase.set(Phase::Answered);
        } else {
            self.of.note_waiting();
        }
    }
}

/// A line of the access log, created with the request and written when the response ends.
pub struct AccessLine {
    request_id: u64,
    client: Option<SocketAddr>,
    method: Method,
    path: String,
    version: Version,
    user_agent: String,
}

impl AccessLine {
    /// Copies the fields of a new request.
    pub fn new(request: &Request, request_id: u64, client: Option<SocketAddr>) -> AccessLine {
        let user_agent = request.headers().get(USER_AGENT);
        let path = request.uri().path_and_query().map_or("", |path| path.as_str());
        AccessLine {
            request_id,
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
            request_id = self.request_id,
            "{}", if is_whole { "answered" } else { "cut short" }
        );
    }
}

/// Converts bytes from a client to text, cut to the maximum length in the log.
pub fn cut(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(TEXT_BYTES_MAX)]).into_owned()
}

/// Measures the duration of a request.
pub struct Timer {
    started: Instant,
    handler: Handler,
    durations: Arc<Durations>,
}

impl Timer {
    pub fn start(handler: Handler, durations: Arc<Durations>) -> Timer {
        Timer { started: Instant::now(), handler, durations }
    }
}

/// The body of a response. When it is dropped, the end of the response is recorded.
pub struct AnswerBody {
    body: Body,
    status: StatusCode,
    bytes: u64,
    timer: Timer,
    line: Option<AccessLine>,
    request: PendingRequest,
    /// Whether the client's progress is tracked, as in HTTP/2.
    is_watched: bool,
    /// Part of a large frame that is not sent yet.
    rest: Bytes,
}

impl AnswerBody {
    /// Wraps the body of a response.
    pub fn new(
        body: Body,
        status: StatusCode,
        request: PendingRequest,
        timer: Timer,
        line: Option<AccessLine>,
    ) -> AnswerBody {
        let (is_watched, rest) = (false, Bytes::new());
        AnswerBody { body, status, bytes: 0, timer, line, request, is_watched, rest }
    }

    /// Tracks the client's progress, which [`Unanswered::stall`] needs.
    pub fn watched(mut self) -> AnswerBody {
        self.is_watched = true;
        self.request.is_taken();
        self
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let frame = match self.rest.is_empty() {
            true => Pin::new(&mut self.body).poll_frame(context),
            false => Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest))))),
        };
        if self.is_watched {
            match &frame {
                // hyper polls for the next frame only when the flow control window has room.
                Poll::Ready(_) => self.request.is_taken(),
                Poll::Pending => self.request.waits_for_us(),
            }
        }
        let frame = ready!(frame);
        let frame = frame.map(|frame| {
            let mut data = match frame?.into_data() {
                Ok(data) => data,
                Err(other) => return Ok(other),
            };
            if self.is_watched && data.len() > PIECE_BYTES_MAX {
                self.rest = data.split_off(PIECE_BYTES_MAX);
            }
            self.bytes += data.len() as u64;
            Ok(Frame::data(data))
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        // The upper bound is set first, because it must never be below the lower bound.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        // A body is dropped at its end, and also when the connection breaks.
        let Timer { started, handler, durations } = &self.timer;
        let took = started.elapsed();
        durations.add(handler.number(), self.status, took);
        if let Some(line) = &self.line {
            // The body of a HEAD response is never sent, so it counts as whole.
            let is_whole = line.method == Method::HEAD || self.is_end_stream();
            line.write(self.status, self.bytes, took, is_whole);
        }
    }
}
