//! One connection from its first byte to its last.
//!
//! A connection that is between requests, or has sent a part of a request's head, may be closed at
//! any time: after a while anyway, and after a second when others wait for its place. A request that is
//! being worked on is never cut off from here; its body and its answer have limits of their own.

use super::reply::Body;
use super::routes;
use super::server::{Context, HttpCounters};
use super::stream::{Phase, PhaseCell, Watched};
use crate::config::ClientLimits;
use crate::shutdown::Shutdown;
use crate::store::StoreError;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// Most header fields of a request.
const HEADERS_MAX: usize = 100;

/// Longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Size of a connection's buffers, in bytes: one for what comes, one for what goes.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// How long a connection keeps its place whoever waits for it: a client that is busy needs no more
/// to send its next request.
const GRACE: Duration = Duration::from_secs(1);

/// How long a client may take to agree on keys.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the last word to a slow client may take.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// What a client is told that began a request and did not go on.
const SLOW_HEAD: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Why a connection was closed that its client would have kept.
#[derive(Clone, Copy)]
enum Overdue {
    Idle,
    SlowHead,
    CrowdedOut,
}

/// Serves a new connection to its end.
pub(super) async fn serve(context: Arc<Context>, stream: TcpStream, shutdown: Shutdown) {
    let counters = &context.counters;
    counters.connections_open.fetch_add(1, Relaxed);
    // Answers are small and awaited; a failure to say so costs only delay.
    let _ = stream.set_nodelay(true);
    match context.access.tls() {
        None => serve_requests(&context, stream, shutdown).await,
        Some(acceptor) => {
            let limit = HANDSHAKE_TIMEOUT.min(context.http.limits.request_timeout);
            let handshake = timeout(limit, acceptor.accept(stream));
            let secured = tokio::select! {
                secured = handshake => secured.unwrap_or_else(|late| Err(late.into())),
                () = crowd_out(&context.crowded) => Err(io::ErrorKind::WouldBlock.into()),
            };
            match secured {
                Ok(stream) => serve_requests(&context, stream, shutdown).await,
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be made secure");
                    count(&counters.connections_insecure);
                }
            }
        }
    }
    counters.connections_open.fetch_sub(1, Relaxed);
}

async fn serve_requests<S>(context: &Arc<Context>, stream: S, mut shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let phase = PhaseCell::new();
    let stream = Watched::new(stream, phase.clone(), context.http.limits.send_timeout);
    let overdue = overdue(phase.listen(), context.http.limits, &context.crowded);
    let mut overdue = std::pin::pin!(overdue);
    let service = service_fn(|request| {
        phase.set(Phase::Working);
        let (context, phase) = (Arc::clone(context), phase.clone());
        async move {
            let reply = routes::handle(&context, request).await;
            Ok::<_, Infallible>(reply.map(|body| AnswerBody { body, phase }))
        }
    });
    let mut builder = Builder::new();
    builder.max_headers(HEADERS_MAX).max_header_size(HEAD_BYTES_MAX);
    builder.max_buf_size(BUFFER_BYTES_MAX).header_read_timeout(None);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut stops = false;
    let reason = loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    note_end(&context.counters, &error);
                }
                return;
            }
            () = shutdown.wait(), if !stops => {
                stops = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            reason = &mut overdue => break reason,
        }
    };
    count(match reason {
        Overdue::Idle => &context.counters.connections_idle,
        Overdue::CrowdedOut => &context.counters.connections_crowded_out,
        Overdue::SlowHead => &context.counters.connections_slow_head,
    });
    if let Overdue::SlowHead = reason {
        let mut stream = connection.into_parts().io.into_inner();
        let farewell = async {
            stream.write_all(SLOW_HEAD).await?;
            stream.shutdown().await
        };
        // A client that does not hear it is cut off all the same.
        let _ = timeout(FAREWELL_TIMEOUT, farewell).await;
    }
}

/// Waits until a connection need not be kept any longer. Those that wait the longest are the first
/// to go when others need their places.
async fn overdue(
    mut phase: watch::Receiver<Phase>,
    limits: ClientLimits,
    crowded: &Notify,
) -> Overdue {
    loop {
        let is_free = |phase: &Phase| matches!(phase, Phase::Idle | Phase::Head);
        let Ok(current) = phase.wait_for(is_free).await.map(|phase| *phase) else {
            // The connection is gone.
            return std::future::pending().await;
        };
        let (limit, reason) = match current {
            Phase::Idle => (limits.idle_timeout, Overdue::Idle),
            _ => (limits.request_timeout, Overdue::SlowHead),
        };
        tokio::select! {
            _ = phase.wait_for(|phase| *phase != current) => {}
            () = sleep(limit) => return reason,
            () = crowd_out(crowded) => return Overdue::CrowdedOut,
        }
    }
}

async fn crowd_out(crowded: &Notify) {
    sleep(GRACE).await;
    crowded.notified().await;
}

/// A connection that breaks is the client's affair; the next one is independent.
fn note_end(counters: &HttpCounters, error: &hyper::Error) {
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

/// An answer's body, which tells when nothing of it is left.
struct AnswerBody {
    body: Body,
    phase: PhaseCell,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        Pin::new(&mut self.body).poll_frame(context)
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
        self.phase.set(Phase::Answered);
    }
}
