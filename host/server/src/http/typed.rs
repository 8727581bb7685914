//! A connection whose request targets are encoded on their way to the parser: see
//! [`super::target`]. What needs no change is read to where the parser wants it and looked at
//! there.

use super::target::Requests;
use bytes::{Buf, Bytes, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A longer head goes on as it is, to be refused for its length.
const HEAD_BYTES_MAX: usize = super::target::HEAD_BYTES_MAX + 1;

/// Bytes that are read at a time while the rest of a head is waited for.
const PIECE_BYTES: usize = 4 * 1024;

/// The stream.
pub struct Typed<S> {
    stream: S,
    requests: Requests,
    /// To be read next.
    ready: Bytes,
    /// Came, and was not looked at yet; or a part of a head.
    held: BytesMut,
    /// Bytes that must be there before it is worth while to look again.
    held_bytes_min: usize,
}

impl<S> Typed<S> {
    /// From the first byte of a connection.
    pub fn new(stream: S) -> Typed<S> {
        Typed {
            stream,
            requests: Requests::new(),
            ready: Bytes::new(),
            held: BytesMut::new(),
            held_bytes_min: 0,
        }
    }

    /// What it reads from and writes to.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Makes something of what is held, or sees that it needs more.
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
            // A head that comes byte by byte is not looked at for each of them.
            self.held_bytes_min = 2 * self.held.len();
            return;
        }
        self.held_bytes_min = 0;
    }

    fn give_up(&mut self) {
        self.requests.lose();
        self.ready = self.held.split().freeze();
    }

    /// Keeps the next bytes of a head until it is whole.
    fn buffer_head(&mut self, piece: &[u8]) {
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
                let before = buffer.filled().len();
                ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
                let came = &buffer.filled()[before..];
                let passed = this.requests.pass(came);
                this.held.extend_from_slice(&came[passed..]);
                this.held_bytes_min = 0;
                let has_ended = came.is_empty();
                buffer.set_filled(before + passed);
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
                // No rest will come: the parser says what that means.
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
