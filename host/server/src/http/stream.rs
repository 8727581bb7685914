//! A connection's bytes, watched for clients that stop sending or reading.
//!
//! - Where the connection is between two requests, which [`PhaseCell`] tells others.
//! - The connection of a client that reads nothing of its answer for a while is closed.
//! - Its reader lets others have their turn: hyper reads on as long as frames of HTTP/2 come that
//!   ask for nothing.
//! - After the last answer the rest of what the client sends is thrown away for a moment. If it
//!   were left unread, the system would reset the connection, and the client, still busy sending,
//!   would never see the answer that says why its request was refused.

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

/// As much a client has to take in each period of patience, or all there is.
const PROGRESS_BYTES: usize = 64 * 1024;

/// As much has to come of a body in each [second](super::connection) for its connection to keep its
/// place when others need it.
pub const BODY_PROGRESS_BYTES: usize = 64 * 1024;

/// How long what comes after the last answer is thrown away.
const LINGER: Duration = Duration::from_secs(1);

/// What a client that speaks HTTP/2 says first (RFC 9113 section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes that are thrown away at a time.
const SCRATCH_BYTES: usize = 16 * 1024;

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Between two requests.
    Idle,
    /// A request has begun to come.
    Head,
    /// A request is being worked on.
    Working,
    /// All requests wait for more of their bodies; begins again with each
    /// [`BODY_PROGRESS_BYTES`].
    Body,
    /// The last of an answer is on its way.
    Answered,
}

/// A phase, and when it began.
#[derive(Clone, Copy, Debug)]
pub struct Current {
    /// Where the connection is.
    pub phase: Phase,
    /// Since when.
    pub since: Instant,
}

impl Current {
    fn begin(phase: Phase) -> Current {
        Current { phase, since: Instant::now() }
    }
}

/// Holds a connection's phase; clones share it.
#[derive(Clone)]
pub struct PhaseCell(Arc<watch::Sender<Current>>);

impl PhaseCell {
    /// Of a connection that is new.
    pub fn new() -> PhaseCell {
        PhaseCell(Arc::new(watch::Sender::new(Current::begin(Phase::Idle))))
    }

    /// Enters a phase.
    pub fn set(&self, phase: Phase) {
        self.0.send_replace(Current::begin(phase));
    }

    /// Enters a phase if the connection is in another one.
    pub fn advance(&self, from: Phase, to: Phase) {
        self.0.send_if_modified(|current| {
            let is_there = current.phase == from;
            if is_there {
                *current = Current::begin(to);
            }
            is_there
        });
    }

    /// Whether no request is worked on, nor its answer on its way.
    fn is_before_request(&self) -> bool {
        matches!(self.0.borrow().phase, Phase::Idle | Phase::Head)
    }

    /// Hears of every phase from now on.
    pub fn listen(&self) -> watch::Receiver<Current> {
        self.0.subscribe()
    }
}

/// The stream.
pub struct Watched<S> {
    stream: S,
    phase: PhaseCell,
    turns: ReadTurns,
    /// Bytes that were looked at and are to be read again.
    unread: Bytes,
    /// Whether bytes mean that a request comes. In HTTP/2 they may say anything.
    announces_requests: bool,
    patience: Duration,
    /// Runs while the client does not take what is ready for it.
    stall: Option<Pin<Box<Sleep>>>,
    /// Bytes taken since then.
    taken: usize,
    /// Runs once all is said.
    linger: Option<Pin<Box<Sleep>>>,
    /// Whether what is said while no request is worked on is kept back.
    keeps_back: bool,
    /// The status of what was kept back.
    refusal: Option<u16>,
}

impl<S> Watched<S> {
    /// Cuts the client off when it takes nothing for as long as `patience` says.
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

    /// From now on what is written to a client of HTTP/1.1 that has no request worked on is kept
    /// back: such answers are the parser's own, to what it takes for no request, and say nothing
    /// but a status.
    pub fn keep_back_refusals(&mut self) {
        self.keeps_back = true;
    }

    /// The status of an answer that was kept back, if there was one; from now on everything goes
    /// out.
    pub fn take_refusal(&mut self) -> Option<u16> {
        self.keeps_back = false;
        self.refusal.take()
    }

    /// Whether an answer is to be kept back.
    fn keeps_back(&mut self, answer: &[u8]) -> bool {
        let is_refusal = self.keeps_back && self.phase.is_before_request();
        if is_refusal && self.refusal.is_none() {
            // `HTTP/1.1 400 …`
            let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
            self.refusal = Some(status.and_then(|digits| digits.parse().ok()).unwrap_or(400));
        }
        is_refusal
    }

    /// Lets a write that waits fail once it has waited too long.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
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
            if self.taken >= PROGRESS_BYTES {
                self.taken = 0;
                stall.as_mut().reset(Instant::now() + self.patience);
            }
        }
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Waits for as much as tells HTTP/2 from its elder. Nothing is lost.
    pub async fn speaks_http2(&mut self) -> io::Result<bool> {
        let mut seen = Vec::with_capacity(HTTP2_PREFACE.len());
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
        if !this.unread.is_empty() {
            let bytes = this.unread.len().min(buffer.remaining());
            buffer.put_slice(&this.unread.split_to(bytes));
            return Poll::Ready(Ok(()));
        }
        if this.turns.is_over(context) {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if read.is_pending() {
            this.turns.end();
        }
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

    /// Called when nothing is left to write, which is when an answer has ended.
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
        if this.refusal.is_some() {
            // There is still something to say.
            return Poll::Ready(Ok(()));
        }
        if this.linger.is_none() {
            let shut = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.judge(context, shut))?;
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut scratch = [0; SCRATCH_BYTES];
        while linger.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                // The client has closed its side, or is gone.
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

    /// Frames of HTTP/2 that ask for nothing came without end, and hyper read on: four connections
    /// held all others up for 36 ms at a time.
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
