//! A connection for the pool, which records the first received bytes.

use hyper_util::client::legacy::connect::{Connected, Connection};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tidepool_turns::ReadTurns;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of bytes per read, because a read may contain many interim responses.
const READ_BYTES_MAX: usize = 64 * 1024;

/// A stream of bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Record of a connection: whether it has delivered a response, and its first bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    has_answered: AtomicBool,
    beginning: OnceLock<Vec<u8>>,
}

/// Number of first bytes that are recorded.
const BEGINNING_BYTES_MAX: usize = 80;

/// A connection. Reading yields to other tasks regularly, because hyper continues to read as long
/// as a server sends interim responses.
pub(crate) struct Socket {
    stream: Box<dyn Stream>,
    turns: ReadTurns,
    is_http2: bool,
    is_proxied: bool,
    received: Received,
}

impl Received {
    /// Records that a response was received.
    pub fn set_answered(&self) {
        self.0.has_answered.store(true, Relaxed);
    }

    /// Returns whether a response was received before.
    pub fn has_answered(&self) -> bool {
        self.0.has_answered.load(Relaxed)
    }

    /// Returns the beginning of the first line, if it is not an HTTP/1 status line.
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
    /// Creates a connection. With `is_proxied`, requests contain the whole URL for the proxy.
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
        // A server that sends endlessly must not block the thread.
        if self.turns.is_over(context) {
            return Poll::Pending;
        }
        let room = buffer.remaining().min(READ_BYTES_MAX);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        let read = Pin::new(&mut self.stream).poll_read(context, &mut part);
        let bytes = part.filled().len();
        // HTTP/2 is known from the handshake, and has no first line.
        if bytes > 0 && !self.is_http2 {
            self.received.begin(part.filled());
        }
        buffer.advance(bytes);
        // A pending read lets other tasks run anyway.
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
