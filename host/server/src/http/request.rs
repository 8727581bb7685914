//! Requests, and the remaining bytes of their bodies.
//!
//! HTTP/2 closes the stream at the end of the response. If the client is still sending, curl 7.88
//! then reports an error instead of the response. Therefore the rest of a small body is read before
//! the response is sent.

use super::answered::ComingBody;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// A request as passed to its handler.
pub type Request = hyper::Request<RequestBody>;

/// Maximum number of bytes read only to be discarded: the initial window of a stream.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// Maximum delay of a response while these bytes are read.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(1);

/// A request body. When it is dropped, its unread rest is stored in `unread`.
pub struct RequestBody {
    body: Option<Incoming>,
    unread: Option<Unread>,
    coming: ComingBody,
}

/// The unread rest of a body, if any.
#[derive(Clone, Default)]
pub struct Unread(Arc<Mutex<Option<Incoming>>>);

impl RequestBody {
    /// Wraps a body; `unread` receives its rest, and `coming` tracks its arrival.
    pub fn new(body: Incoming, unread: Option<Unread>, coming: ComingBody) -> RequestBody {
        RequestBody { body: Some(body), unread, coming }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        match &frame {
            Poll::Pending => this.coming.wait(),
            Poll::Ready(Some(Ok(frame))) => {
                this.coming.take(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(None | Some(Err(_))) => this.coming.end(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        // The rest of the body does not matter, so a client that sends it slowly keeps its slot.
        self.coming.end();
        let Some(Unread(unread)) = &self.unread else { return };
        // Reading an empty rest would only delay the response.
        if !self.is_end_stream() {
            *unread.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
        }
    }
}

impl Unread {
    /// Reads the rest if it is small and arrives soon.
    pub async fn read(self) {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut body) = body else { return };
        let rest = async {
            let mut bytes = 0;
            while let Some(Ok(frame)) = http_body_util::BodyExt::frame(&mut body).await {
                bytes += frame.data_ref().map_or(0, Bytes::len);
                if bytes > UNREAD_BYTES_MAX {
                    return;
                }
            }
        };
        // If the client takes longer, the response is sent without waiting for the rest.
        let _ = timeout(UNREAD_TIMEOUT, rest).await;
    }
}
