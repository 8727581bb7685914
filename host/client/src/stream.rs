//! A connection as the pool takes it: bytes, and what is known of it.

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Whether an answer has come by a connection before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Used(Arc<AtomicBool>);

/// A connection.
pub(crate) struct Socket {
    stream: TokioIo<Box<dyn Stream>>,
    is_http2: bool,
    is_proxied: bool,
    used: Used,
}

impl Used {
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Socket {
    /// One by which HTTP/2 is spoken or not. If it leads to a proxy that passes requests on, these
    /// have to name the whole URL.
    pub fn new(stream: Box<dyn Stream>, is_http2: bool, is_proxied: bool) -> Socket {
        Socket { stream: TokioIo::new(stream), is_http2, is_proxied, used: Used::default() }
    }
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_proxied).extra(self.used.clone());
        if self.is_http2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Socket {
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
