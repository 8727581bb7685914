//! Serves a connection from its first to its last byte.
//!
//! A connection between two requests, or with an incomplete request head, may be closed at any
//! time: after a timeout, or after a second if other connections wait for a slot. If none can be
//! closed, one with a slow request body is closed. A request in progress is never aborted here; its
//! body and its response have their own limits.

use super::answered::{AccessLine, AnswerBody, Timer, Unanswered};
use super::config::ClientLimits;
use super::context::{Context, Crowded};
use super::counters::HttpCounters;
use super::request::{RequestBody, Unread};
use super::routes;
use super::stream::{BODY_PROGRESS_BYTES, Current, Phase, PhaseCell, Watched};
use super::target::{HEAD_BYTES_MAX, HEADERS_MAX};
use super::typed::Typed;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidepool_lifecycle::shutdown::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::Instrument as _;

/// Size of a connection's read buffer and of its write buffer, in bytes.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of concurrent requests on an HTTP/2 connection; the client delays further
/// requests. RFC 9113, section 6.5.2, recommends at least 100.
const HTTP2_STREAMS_MAX: u32 = 100;

/// Time for which a connection keeps its slot in any case. A busy client sends again within it.
const GRACE: Duration = Duration::from_secs(1);

/// Timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of the last response before a connection is closed.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Reason for closing a connection that its client would have kept.
#[derive(Clone, Copy)]
enum Overdue {
    Idle,
    SlowHead,
    CrowdedOut,
    SlowBody,
}

impl Overdue {
    fn count(self, counters: &HttpCounters) {
        count(match self {
            Overdue::Idle => &counters.connections_idle,
            Overdue::CrowdedOut => &counters.connections_crowded_out,
            Overdue::SlowHead => &counters.connections_slow_head,
            Overdue::SlowBody => &counters.connections_slow_body,
        });
    }
}

/// Serves a new connection to its end.
pub(super) async fn serve(context: &Context, stream: TcpStream, shutdown: Shutdown) {
    let counters = &context.counters;
    counters.connections_open.fetch_add(1, Relaxed);
    // Responses are small and awaited. A failure to set the option costs only delay.
    let _ = stream.set_nodelay(true);
    let client = stream.peer_addr().ok();
    match context.access.tls() {
        None => serve_requests(context, client, stream, shutdown).await,
        Some(acceptor) => {
            // The handshake precedes the first request head, and gets no more time than a head.
            let limit = HANDSHAKE_TIMEOUT.min(context.http.limits.request_timeout);
            let handshake = timeout(limit, handshake(context, acceptor, stream));
            let secured = tokio::select! {
                secured = handshake => secured.unwrap_or_else(|elapsed| Err(elapsed.into())),
                // A client that does not finish the handshake must not keep others waiting.
                () = crowd_out(Instant::now(), &context.crowded.idle) => {
                    Err(io::ErrorKind::WouldBlock.into())
                }
            };
            match secured {
                Ok(stream) => serve_requests(context, client, stream, shutdown).await,
                Err(error) => {
                    tracing::debug!(%error, "TLS handshake failed");
                    count(&counters.connections_insecure);
                }
            }
        }
    }
    counters.connections_open.fetch_sub(1, Relaxed);
}

/// Runs the TLS handshake. Plain HTTP is answered with an explanation, as by Go's servers.
async fn handshake(
    context: &Context,
    acceptor: TlsAcceptor,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0; 5];
    // Only peeked, so that the acceptor still reads the whole handshake.
    let bytes = stream.peek(&mut first).await?;
    // Like Go, compares five bytes, the length of a TLS record header. They arrive in one piece.
    if [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"].contains(&&first) && bytes == first.len()
    {
        let stream = Watched::new(stream, PhaseCell::new(), context.http.limits.send_timeout);
        let why = "Client sent an HTTP request to an HTTPS server.";
        say(stream, StatusCode::BAD_REQUEST, why).await;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not speak TLS"));
    }
    acceptor.accept(stream).await
}

async fn serve_requests<S>(
    context: &Context,
    client: Option<SocketAddr>,
    stream: S,
    mut shutdown: Shutdown,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let phase = PhaseCell::new();
    let mut stream = Watched::new(stream, phase.clone(), context.http.limits.send_timeout);
    // One watch over detection and requests, so that a client cannot restart its timeout.
    let overdue = overdue(phase.listen(), context.http.limits, &context.crowded);
    let mut overdue = std::pin::pin!(overdue);
    let is_http2 = tokio::select! {
        is_http2 = stream.speaks_http2() => is_http2,
        () = shutdown.wait() => return,
        reason = &mut overdue => return close(context, stream, reason).await,
    };
    let is_http2 = match is_http2 {
        // If HTTP/2 is disabled, the parser of HTTP/1.1 refuses the preface.
        Ok(is_http2) => is_http2 && context.access.allows_http2(),
        Err(error) => return tracing::debug!(%error, "a connection ended early"),
    };
    let unanswered = Unanswered::new(phase);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (pending, coming) = (unanswered.begin(), unanswered.watch_body());
        // Each request uses the newest configuration, even on a connection that was opened before.
        let context = context.now();
        async move {
            // Not needed in HTTP/1.1: the stream discards the rest after the last response.
            let unread = is_http2.then(Unread::default);
            let mut request = request.map(|body| RequestBody::new(body, unread.clone(), coming));
            let stripped = context.http.external.strip(request.uri());
            let stripped =
                stripped.map(|uri| uri.into_iter().for_each(|uri| *request.uri_mut() = uri));
            if let Some(uri) = routes::without_more_slashes(&context, request.uri()) {
                *request.uri_mut() = uri;
            }
            let asked = context.requests.begin(&request, client);
            let is_logged = context.http.access_log;
            let line = is_logged.then(|| AccessLine::new(&request, asked.id(), client));
            let handler = routes::handler_of(&context, request.uri().path());
            let timer = Timer::start(handler, Arc::clone(&context.durations));
            let answer = async {
                let mut reply = match stripped {
                    Ok(()) => routes::handle(&context, handler, request).await,
                    // The path is outside of the prefix.
                    Err(reply) => *reply,
                };
                // Added to every response, including refusals, as exporter-toolkit does.
                context.access.add_headers(reply.headers_mut());
                context.requests.note(&asked, handler, &reply);
                // Done before the response, whose end closes the stream (see `request`).
                if let Some(unread) = unread {
                    unread.read().await;
                }
                reply
            };
            let reply = answer.instrument(asked.span()).await;
            let status = reply.status();
            let body = |body| {
                let body = AnswerBody::new(body, status, pending, timer, line);
                if is_http2 { body.watched() } else { body }
            };
            Ok::<_, Infallible>(reply.map(body))
        }
    });
    let mut stops = false;
    if is_http2 {
        let mut connection = http2_builder().serve_connection(TokioIo::new(stream), service);
        // The socket cannot show this: the client may read other streams, but not this response.
        let stall = unanswered.stall(context.http.limits.send_timeout);
        let mut stall = std::pin::pin!(stall);
        loop {
            tokio::select! {
                ended = &mut connection => return note_end(&context.counters, ended),
                () = &mut stall => {
                    // No last response: a client that reads nothing would not read it.
                    tracing::debug!("closed a connection because its client read no response data");
                    return count(&context.counters.connections_slow_reader);
                }
                () = shutdown.wait(), if !stops => {
                    stops = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
                reason = &mut overdue => {
                    reason.count(&context.counters);
                    Pin::new(&mut connection).graceful_shutdown();
                    // No request is in progress; the client only needs to be told of the end.
                    let _ = timeout(FAREWELL_TIMEOUT, connection).await;
                    return;
                }
            }
        }
    }
    // hyper's own refusals are bare status codes; `refuse` sends an explanation instead.
    stream.keep_back_refusals();
    let stream = TokioIo::new(Typed::new(stream));
    let mut connection = http1_builder().serve_connection(stream, service);
    loop {
        tokio::select! {
            ended = &mut connection => {
                // The stream is taken back from hyper, which writes nothing after a refusal.
                let stream = connection.into_parts().io.into_inner().into_inner();
                refuse(stream, ended.as_ref().err()).await;
                return note_end(&context.counters, ended);
            }
            () = shutdown.wait(), if !stops => {
                stops = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            reason = &mut overdue => {
                // No request is in progress in this phase, except one with a slow body.
                let stream = connection.into_parts().io.into_inner().into_inner();
                return close(context, stream, reason).await;
            }
        }
    }
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.max_headers(HEADERS_MAX).max_header_size(HEAD_BYTES_MAX);
    // `overdue` applies the timeouts, which differ for idle connections and incomplete heads.
    builder.max_buf_size(BUFFER_BYTES_MAX).header_read_timeout(None);
    builder
}

/// Limits unread and unsent bytes of a connection to the same sizes as in HTTP/1.1.
fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.max_concurrent_streams(HTTP2_STREAMS_MAX).max_header_list_size(HEAD_BYTES_MAX as u32);
    builder.initial_stream_window_size(BUFFER_BYTES_MAX as u32);
    // Twice the window of a stream, so that one slow body does not stop all others.
    builder.initial_connection_window_size(2 * BUFFER_BYTES_MAX as u32);
    builder.max_send_buf_size(BUFFER_BYTES_MAX);
    builder
}

/// Closes an HTTP/1.1 connection whose timeout has expired or whose slot is needed.
async fn close<S>(context: &Context, mut stream: Watched<S>, reason: Overdue)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    reason.count(&context.counters);
    stream.take_refusal();
    match reason {
        Overdue::SlowHead => {
            let limit = context.http.limits.request_timeout.as_millis();
            let why = format!(
                "the request's head was not received within {limit} ms (--request-timeout)"
            );
            say(stream, StatusCode::REQUEST_TIMEOUT, &why).await;
        }
        // 503, because a sender drops its samples after a 4xx.
        Overdue::SlowBody => {
            let why = format!(
                "the request's body comes slower than {BODY_PROGRESS_BYTES} bytes a second, and \
                 others need the connection (--max-connections)"
            );
            say(stream, StatusCode::SERVICE_UNAVAILABLE, &why).await;
        }
        Overdue::Idle | Overdue::CrowdedOut => {}
    }
}

/// Sends an explanation of a refusal by the parser.
async fn refuse<S>(mut stream: Watched<S>, error: Option<&hyper::Error>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(status) = stream.take_refusal() else { return };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let why = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => format!(
            "the request's head is larger than {HEAD_BYTES_MAX} bytes or has more than \
             {HEADERS_MAX} fields"
        ),
        _ => match error {
            Some(error) => format!("this is no request of HTTP/1.1 or HTTP/1.0: {error}"),
            None => "this is no request of HTTP/1.1 or HTTP/1.0".to_owned(),
        },
    };
    say(stream, status, &why).await;
}

/// Writes a last response on an HTTP/1.1 connection without a request in progress.
async fn say<S>(mut stream: Watched<S>, status: StatusCode, why: &str)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (reason, bytes) = (status.canonical_reason().unwrap_or_default(), why.len() + 1);
    let retry = match status {
        StatusCode::SERVICE_UNAVAILABLE => "retry-after: 1\r\n",
        _ => "",
    };
    let answer = format!(
        "HTTP/1.1 {} {reason}\r\nconnection: close\r\n{retry}\
         content-type: text/plain; charset=utf-8\r\ncontent-length: {bytes}\r\n\r\n{why}\n",
        status.as_str()
    );
    let farewell = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    // A client that does not read the response is disconnected anyway.
    let _ = timeout(FAREWELL_TIMEOUT, farewell).await;
}

/// Waits until the connection may be closed. Among several such connections, the one that has
/// waited longest is closed first.
///
/// A phase is first checked after a while, and its end is awaited only after that: following each
/// phase of a busy client would need timers and wakeups with each request.
async fn overdue(
    mut phase: watch::Receiver<Current>,
    limits: ClientLimits,
    crowded: &Crowded,
) -> Overdue {
    let brief = GRACE.min(limits.idle_timeout).min(limits.request_timeout);
    loop {
        let current = *phase.borrow_and_update();
        if current.since.elapsed() < brief {
            sleep_until(current.since + brief).await;
            continue;
        }
        // Idle connections and incomplete heads have a deadline here. Work has none.
        let (limit, reason) = match current.phase {
            Phase::Idle => (limits.idle_timeout, Overdue::Idle),
            Phase::Head => (limits.request_timeout, Overdue::SlowHead),
            Phase::Body => {
                tokio::select! {
                    () = end_of(&mut phase) => continue,
                    () = crowd_out(current.since, &crowded.slow) => return Overdue::SlowBody,
                }
            }
            // A client that does not read its response is handled by `Watched`.
            Phase::Working | Phase::Answered => {
                end_of(&mut phase).await;
                continue;
            }
        };
        tokio::select! {
            () = end_of(&mut phase) => {}
            () = sleep_until(current.since + limit) => return reason,
            () = crowd_out(current.since, &crowded.idle) => return Overdue::CrowdedOut,
        }
    }
}

async fn end_of(phase: &mut watch::Receiver<Current>) {
    if phase.changed().await.is_err() {
        // The sender is dropped only when the connection ends, and this future with it.
        std::future::pending().await
    }
}

/// Waits until others need the connection's slot, but at least for the grace period.
async fn crowd_out(since: Instant, crowded: &Notify) {
    sleep_until(since + GRACE).await;
    crowded.notified().await;
}

/// Counts the cause of a broken connection. Logged at debug level, since clients may disconnect.
fn note_end(counters: &HttpCounters, ended: Result<(), hyper::Error>) {
    let Err(error) = ended else { return };
    tracing::debug!(%error, "a connection ended early");
    let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    if error.is_parse() {
        count(&counters.connections_malformed);
    } else if cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut) {
        count(&counters.connections_slow_reader);
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
