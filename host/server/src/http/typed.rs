//! A connection that encodes request targets before the parser reads them (see [`super::target`]).
//! Bytes that need no change are read directly into the parser's buffer and inspected there.

use super::target::Requests;
use bytes::{Buf, Bytes, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A longer head passes unchanged, and is then refused by the parser.
const HEAD_BYTES_MAX: usize = super::target::HEAD_BYTES_MAX + 1;

/// Size of a read while the head is incomplete.
const PIECE_BYTES: usize = 4 * 1024;

pub struct Typed<S> {
    stream: S,
    requests: Requests,
    /// Inspected bytes, which the next reads return.
    ready: Bytes,
    /// Bytes that are not inspected yet, or belong to an incomplete head.
    held: BytesMut,
    /// Number of held bytes from which the next inspection is worth its cost.
    held_bytes_min: usize,
}

impl<S> Typed<S> {
    pub fn new(stream: S) -> Typed<S> {
        Typed {
            stream,
            requests: Requests::new(),
            ready: Bytes::new(),
            held: BytesMut::new(),
            held_bytes_min: 0,
        }
    }

    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Inspects the held bytes, or raises the number needed for the next inspection.
    fn look(&mut self) {
        let passed = self.requests.pass(&self.held);
        if passed > 0 {
            self.ready = self.held.split_to(passed).freeze();
        } else if let Some((bytes, encoded)) = self.requests.encoded(&self.held) {
            self.held.advance(bytes);
            self.ready = encoded.into();
        } else if self.held.len() >= HEAD_BYTES_MAX {
            self.give_up();
        } else {
            // Doubled, so that the cost stays linear for a head that arrives byte by byte.
            self.held_bytes_min = 2 * self.held.len();
            return;
        }
        self.held_bytes_min = 0;
    }

    fn give_up(&mut self) {
        // The parser must see these bytes as well; it decides how to respond.
        self.requests.lose();
        self.ready = self.held.split().freeze();
    }

    /// Adds bytes of a head, and checks whether it is complete.
    fn buffer_head(&mut self, piece: &[u8]) {
        // The end of a head may be split between two pieces.
        let before = self.held.len().saturating_sub(2);
        self.held.extend_from_slice(piece);
        let has_end = |bytes: &[u8]| bytes.starts_with(b"\n\r\n") || bytes.starts_with(b"\n\n");
        if (before..self.held.len()).any(|at| has_end(&self.held[at..])) {
            self.held_bytes_min = 0;
        }
    }

    fn needs_more(&self) -> bool {
        self.held.len() < self.held_bytes_min.min(HEAD_BYTES_MAX)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Typed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.ready.is_empty() {
                let bytes = this.ready.len().min(buffer.remaining());
                buffer.put_slice(&this.ready.split_to(bytes));
                return Poll::Ready(Ok(()));
            }
            if this.held.is_empty() {
                // Bytes are read directly into the parser's buffer, so that bodies are not copied.
                let before = buffer.filled().len();
                ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
                let came = &buffer.filled()[before..];
                let passed = this.requests.pass(came);
                this.held.extend_from_slice(&came[passed..]);
                this.held_bytes_min = 0;
                let has_ended = came.is_empty();
                // Bytes that did not pass are held until the rest of their head arrives.
                buffer.set_filled(before + passed);
                // An empty read is the end of the stream, which the parser must see.
                if passed > 0 || has_ended {
                    return Poll::Ready(Ok(()));
                }
            }
            if !this.needs_more() {
                this.look();
                continue;
            }
            let mut piece = [0; PIECE_BYTES];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut piece))?;
            this.buffer_head(piece.filled());
            if piece.filled().is_empty() {
                // No more bytes will arrive; the parser decides about the incomplete head.
                this.give_up();
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Typed<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
