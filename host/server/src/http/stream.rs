//! The byte stream of a connection. Detects clients that stop sending or reading.
//!
//! - [`PhaseCell`] publishes the phase of the connection, on which timeouts depend.
//! - A connection whose client reads nothing of a response for a while is closed.
//! - The reader yields to other tasks: hyper reads on as long as HTTP/2 frames arrive, even if
//!   these contain no request.
//! - After the last response, further bytes of the client are discarded for a second. Unread bytes
//!   would make the system reset the connection, and a client that is still sending would never
//!   see the response that explains the refusal.

use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tidepool_turns::ReadTurns;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

/// Bytes that a client must read within `patience`, or all pending bytes if there are fewer.
const PROGRESS_BYTES: usize = 64 * 1024;

/// Bytes of a body per [second](super::connection) with which a connection keeps its slot.
pub const BODY_PROGRESS_BYTES: usize = 64 * 1024;

/// Time for which bytes after the last response are discarded.
const LINGER: Duration = Duration::from_secs(1);

/// Connection preface of an HTTP/2 client (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Size of the buffer for discarded bytes.
const SCRATCH_BYTES: usize = 16 * 1024;

/// Phase of a connection, regarding its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Idle,
    /// A part of a request head has arrived.
    Head,
    /// At least one request is in progress.
    Working,
    /// All requests wait for bytes of their bodies. Restarts after each [`BODY_PROGRESS_BYTES`].
    Body,
    /// The end of a response is being sent.
    Answered,
}

#[derive(Clone, Copy, Debug)]
pub struct Current {
    pub phase: Phase,
    pub since: Instant,
}

impl Current {
    fn begin(phase: Phase) -> Current {
        Current { phase, since: Instant::now() }
    }
}

/// The phase of a connection; clones share it.
#[derive(Clone)]
pub struct PhaseCell(Arc<watch::Sender<Current>>);

impl PhaseCell {
    pub fn new() -> PhaseCell {
        PhaseCell(Arc::new(watch::Sender::new(Current::begin(Phase::Idle))))
    }

    pub fn set(&self, phase: Phase) {
        self.0.send_replace(Current::begin(phase));
    }

    /// Enters `to` if the connection is in `from`.
    pub fn advance(&self, from: Phase, to: Phase) {
        // Listeners wake up only on a change, because this is called with each read.
        self.0.send_if_modified(|current| {
            let is_there = current.phase == from;
            if is_there {
                *current = Current::begin(to);
            }
            is_there
        });
    }

    /// Returns whether no request is in progress and no response is being sent.
    fn is_before_request(&self) -> bool {
        matches!(self.0.borrow().phase, Phase::Idle | Phase::Head)
    }

    /// Returns a receiver of all later phases.
    pub fn listen(&self) -> watch::Receiver<Current> {
        self.0.subscribe()
    }
}

pub struct Watched<S> {
    stream: S,
    phase: PhaseCell,
    turns: ReadTurns,
    /// Bytes that were read ahead, and are returned by the next reads.
    unread: Bytes,
    /// Whether bytes start a request. In HTTP/2 they may be frames of any kind.
    announces_requests: bool,
    patience: Duration,
    /// Timer that runs while the client does not read pending bytes.
    stall: Option<Pin<Box<Sleep>>>,
    /// Bytes that the client has read since `stall` was started.
    taken: usize,
    /// Timer that runs after the last response.
    linger: Option<Pin<Box<Sleep>>>,
    /// Whether bytes that are written without a request in progress are held back.
    keeps_back: bool,
    /// Status of the response that was held back.
    refusal: Option<u16>,
}

impl<S> Watched<S> {
    /// Wraps a stream, and disconnects a client that reads nothing for `patience`.
    pub fn new(stream: S, phase: PhaseCell, patience: Duration) -> Watched<S> {
        Watched {
            stream,
            phase,
            turns: ReadTurns::default(),
            unread: Bytes::new(),
            announces_requests: true,
            patience,
            stall: None,
            taken: 0,
            linger: None,
            keeps_back: false,
            refusal: None,
        }
    }

    /// From now on holds back the parser's bare statuses: writes without a request in progress.
    pub fn keep_back_refusals(&mut self) {
        self.keeps_back = true;
    }

    /// Returns the status of a response that was held back. Later writes are not held back.
    pub fn take_refusal(&mut self) -> Option<u16> {
        self.keeps_back = false;
        self.refusal.take()
    }

    /// Returns whether a response is held back, and remembers its status.
    fn keeps_back(&mut self, answer: &[u8]) -> bool {
        let is_refusal = self.keeps_back && self.phase.is_before_request();
        // Only the first write has the status line; later writes are dropped as well.
        if is_refusal && self.refusal.is_none() {
            // `HTTP/1.1 400 …`
            let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
            self.refusal = Some(status.and_then(|digits| digits.parse().ok()).unwrap_or(400));
        }
        is_refusal
    }

    /// Fails a pending write if the client has read too little for `patience`.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        // A partial write does not stop the timer: one byte at a time is no progress.
        if written.is_ready() {
            return written;
        }
        let patience = self.patience;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no answer")))
    }

    fn note_taken(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(bytes)), Some(stall)) = (written, &mut self.stall) {
            self.taken += bytes;
            // The timer restarts only after enough bytes; until then bytes are added up.
            if self.taken >= PROGRESS_BYTES {
                self.taken = 0;
                stall.as_mut().reset(Instant::now() + self.patience);
            }
        }
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Reads just enough to detect HTTP/2. Later reads return these bytes again.
    pub async fn speaks_http2(&mut self) -> io::Result<bool> {
        let mut seen = Vec::with_capacity(HTTP2_PREFACE.len());
        // Stops at the first difference: an HTTP/1.1 request may be shorter than the preface.
        while seen.len() < HTTP2_PREFACE.len() && HTTP2_PREFACE.starts_with(&seen) {
            let wanted = (HTTP2_PREFACE.len() - seen.len()) as u64;
            if (&mut *self).take(wanted).read_buf(&mut seen).await? == 0 {
                break;
            }
        }
        let is_http2 = seen == HTTP2_PREFACE;
        self.unread = seen.into();
        if is_http2 {
            self.announces_requests = false;
            // Set back to idle: the preface looked like the start of a request head.
            self.phase.set(Phase::Idle);
        }
        Ok(is_http2)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // The inner stream is not read yet, since its bytes follow these.
        if !this.unread.is_empty() {
            let bytes = this.unread.len().min(buffer.remaining());
            buffer.put_slice(&this.unread.split_to(bytes));
            return Poll::Ready(Ok(()));
        }
        if this.turns.is_over(context) {
            // The task has already been woken, and continues after other tasks.
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if read.is_pending() {
            this.turns.end();
        }
        // A close by the client does not start a request.
        if this.announces_requests && buffer.filled().len() > before {
            this.phase.advance(Phase::Idle, Phase::Head);
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.keeps_back(bytes) {
            // Reported as written: hyper must see its response succeed to end the connection.
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.note_taken(&written);
        this.judge(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.keeps_back(slices.first().map_or(&[], |slice| slice)) {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.note_taken(&written);
        this.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when nothing is left to write, and so at the end of a response.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        ready!(this.judge(context, flushed))?;
        this.stall = None;
        this.taken = 0;
        this.phase.advance(Phase::Answered, Phase::Idle);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // hyper shuts down after its refusal, but the explanation must still be written.
        if this.refusal.is_some() {
            return Poll::Ready(Ok(()));
        }
        if this.linger.is_none() {
            let shut = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.judge(context, shut))?;
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut scratch = [0; SCRATCH_BYTES];
        // The loop ends with the timer, however much the client sends.
        while linger.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                // The client has closed its side, or is disconnected.
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::io::{join, repeat, sink};

    /// HTTP/2 frames that request nothing made hyper read on: four clients delayed all by 36 ms.
    #[test]
    fn a_client_that_never_pauses_lets_others_have_their_turn() {
        let stream = join(repeat(b'x'), sink());
        let mut stream = Watched::new(stream, PhaseCell::new(), Duration::from_secs(60));
        let mut context = Context::from_waker(Waker::noop());
        let mut space = vec![0; 4096];
        for _ in 0..2 {
            let began = std::time::Instant::now();
            loop {
                let mut buffer = ReadBuf::new(&mut space);
                if Pin::new(&mut stream).poll_read(&mut context, &mut buffer).is_pending() {
                    break;
                }
                assert!(began.elapsed() < Duration::from_secs(60), "it never pauses");
            }
        }
    }
}
