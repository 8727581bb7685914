//! The end of a request: when nothing of its answer is left, its connection may be free again, and
//! the log may get a line.

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

/// Longest part of a path or a client's name that is logged, in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// Longest piece of an answer that is handed over at a time where what a client takes of it shows
/// only in the next piece being asked for.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// The requests of one connection that are not answered yet; clones count the same.
#[derive(Clone)]
pub struct Unanswered {
    count: Arc<AtomicUsize>,
    /// Those of them whose bodies have not come yet, and were waited for.
    waiting: Arc<AtomicUsize>,
    phase: PhaseCell,
    answers: Arc<Mutex<Answers>>,
}

/// Answers on their way.
#[derive(Default)]
struct Answers {
    /// When something of each was taken last.
    taken: HashMap<u64, Instant>,
    last_number: u64,
}

impl Unanswered {
    /// None yet.
    pub fn new(phase: PhaseCell) -> Unanswered {
        let (count, waiting) = Default::default();
        Unanswered { count, waiting, phase, answers: Arc::default() }
    }

    /// Waits until a client has taken nothing of an answer for so long. In HTTP/2 it can do so and
    /// still take all that the connection has to say otherwise.
    pub async fn stall(&self, limit: Duration) {
        loop {
            let oldest = self.answers().taken.values().min().copied();
            let waited = oldest.map_or(Duration::ZERO, |taken| taken.elapsed());
            match limit.checked_sub(waited) {
                None | Some(Duration::ZERO) => return,
                Some(left) => sleep(left).await,
            }
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One has come. It counts until what this returns is dropped.
    pub fn begin(&self) -> PendingRequest {
        self.count.fetch_add(1, Relaxed);
        self.phase.set(Phase::Working);
        PendingRequest { of: self.clone(), answer: None }
    }

    /// Watches how a body comes.
    pub fn watch_body(&self) -> ComingBody {
        ComingBody { of: self.clone(), is_waited_for: false, bytes: 0 }
    }

    /// Enters [`Phase::Body`] if there is nothing to do but to wait for bodies.
    fn note_waiting(&self) {
        let waiting = self.waiting.load(Relaxed);
        if waiting > 0 && waiting == self.count.load(Relaxed) {
            self.phase.set(Phase::Body);
        }
    }
}

/// The body of a request, as far as its client has sent it.
pub struct ComingBody {
    of: Unanswered,
    is_waited_for: bool,
    /// What came since it last made progress.
    bytes: usize,
}

impl ComingBody {
    /// Nothing of it is there.
    pub fn wait(&mut self) {
        if !self.is_waited_for {
            self.is_waited_for = true;
            self.of.waiting.fetch_add(1, Relaxed);
            self.of.note_waiting();
        }
    }

    /// So many bytes came.
    pub fn take(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.is_waited_for && self.bytes >= BODY_PROGRESS_BYTES {
            self.bytes = 0;
            self.of.note_waiting();
        }
    }

    /// It is whole, or nobody wants the rest.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_waited_for) {
            self.of.waiting.fetch_sub(1, Relaxed);
            self.of.phase.advance(Phase::Body, Phase::Working);
        }
    }
}

/// One request that is not answered yet.
pub struct PendingRequest {
    of: Unanswered,
    /// The number of its answer, once that is on its way.
    answer: Option<u64>,
}

impl PendingRequest {
    /// Something of its answer is taken, and more may follow; or the first of it could be.
    fn is_taken(&mut self) {
        let mut answers = self.of.answers();
        let number = self.answer.unwrap_or(answers.last_number + 1);
        answers.last_number = answers.last_number.max(number);
        answers.taken.insert(number, Instant::now());
        drop(answers);
        self.answer = Some(number);
    }

    /// Nothing of its answer is there to be taken.
    fn waits_for_us(&self) {
        if let Some(answer) = self.answer {
            self.of.answers().taken.remove(&answer);
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.waits_for_us();
        if self.of.count.fetch_sub(1, Relaxed) == 1 {
            self.of.phase.set(Phase::Answered);
        } else {
            self.of.note_waiting();
        }
    }
}

/// A line of the log about one request.
pub struct AccessLine {
    request_id: u64,
    client: Option<SocketAddr>,
    method: Method,
    path: String,
    version: Version,
    user_agent: String,
}

impl AccessLine {
    /// Remembers a request that has just come.
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

/// A text of a client's, no longer than a log line should have it.
pub fn cut(text: &[u8]) -> String {
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
    request: PendingRequest,
    /// Whether it goes out in pieces whose taking is watched.
    is_watched: bool,
    /// What is left of a long piece.
    rest: Bytes,
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
        let (is_watched, rest) = (false, Bytes::new());
        AnswerBody { body, status, bytes: 0, timer, line, request, is_watched, rest }
    }

    /// With its taking watched, as [`Unanswered::stall`] needs it.
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
        // The upper bound first: it is never below the lower one.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        let Timer { started, handler, durations } = &self.timer;
        let took = started.elapsed();
        durations.add(handler.number(), self.status, took);
        if let Some(line) = &self.line {
            let is_whole = line.method == Method::HEAD || self.is_end_stream();
            line.write(self.status, self.bytes, took, is_whole);
        }
    }
}
