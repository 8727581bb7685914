//! A connection for the pool: bytes, and a record of those that came.

use hyper_util::client::legacy::connect::{Connected, Connection};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tidepool_turns::ReadTurns;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum size of one read, which may hold as many interim responses as fit.
const READ_BYTES_MAX: usize = 64 * 1024;

/// A stream of bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Record of the answers and the first bytes of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    has_answered: AtomicBool,
    beginning: OnceLock<Vec<u8>>,
}

/// Number of first bytes that are kept.
const BEGINNING_BYTES_MAX: usize = 80;

/// A connection. Its reader lets others have their turn: hyper reads on after interim responses,
/// however many a server sends.
pub(crate) struct Socket {
    stream: Box<dyn Stream>,
    turns: ReadTurns,
    is_http2: bool,
    is_proxied: bool,
    received: Received,
}

impl Received {
    /// Records that an answer has come.
    pub fn set_answered(&self) {
        self.0.has_answered.store(true, Relaxed);
    }

    /// Returns whether an answer has come before.
    pub fn has_answered(&self) -> bool {
        self.0.has_answered.load(Relaxed)
    }

    /// Returns the beginning of the first line, if it is not one of HTTP/1.
    pub fn foreign_line(&self) -> Option<String> {
        let beginning = self.0.beginning.get().filter(|bytes| !bytes.starts_with(b"HTTP/1."))?;
        let line = beginning.split(|byte| matches!(byte, b'\r' | b'\n')).next()?;
        Some(String::from_utf8_lossy(line).into_owned())
    }

    fn begin(&self, bytes: &[u8]) {
        self.0.beginning.get_or_init(|| bytes[..bytes.len().min(BEGINNING_BYTES_MAX)].to_vec());
    }
}

impl Socket {
    /// Creates a connection. With `is_proxied`, requests name the whole URL for the proxy.
    pub fn new(stream: Box<dyn Stream>, is_http2: bool, is_proxied: bool) -> Socket {
        let (turns, received) = (ReadTurns::default(), Received::default());
        Socket { stream, turns, is_http2, is_proxied, received }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // A server that sends without end must not hold the thread.
        if self.turns.is_over(context) {
            return Poll::Pending;
        }
        let room = buffer.remaining().min(READ_BYTES_MAX);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        let read = Pin::new(&mut self.stream).poll_read(context, &mut part);
        let bytes = part.filled().len();
        // HTTP/2 is known from the handshake, and begins with no line.
        if bytes > 0 && !self.is_http2 {
            self.received.begin(part.filled());
        }
        buffer.advance(bytes);
        // A read that waits lets others have their turn anyway.
        if read.is_pending() {
            self.turns.end();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_proxied).extra(self.received.clone());
        if self.is_http2 { connected.negotiated_h2() } else { connected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use std::time::{Duration, Instant};
    use tokio::io::{join, repeat, sink};

    /// The story of a target that sent `100 Continue` without end: it held the thread of all
    /// targets, so that others were scraped seconds late.
    #[test]
    fn a_stream_that_never_pauses_lets_others_have_their_turn() {
        let mut stream = Socket::new(Box::new(join(repeat(b'x'), sink())), false, false);
        let mut context = Context::from_waker(Waker::noop());
        let mut space = vec![0; 1 << 20];
        for _ in 0..2 {
            let began = Instant::now();
            loop {
                let mut buffer = ReadBuf::new(&mut space);
                if Pin::new(&mut stream).poll_read(&mut context, &mut buffer).is_pending() {
                    break;
                }
                assert!((1..=READ_BYTES_MAX).contains(&buffer.filled().len()));
                assert!(began.elapsed() < Duration::from_secs(60), "it never pauses");
            }
        }
    }
}
