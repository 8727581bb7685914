//! Bodies as streams, for callers that send or forward bodies without buffering them.

use crate::ClientError;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// Body of a request that is streamed.
pub type StreamedBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Body of a response; fails at the deadline of the request.
pub struct AnswerBody {
    body: Incoming,
    /// Timer of the deadline, and the request's timeout for the error.
    deadline: Option<(Pin<Box<Sleep>>, Duration)>,
}

impl AnswerBody {
    pub(crate) fn new(body: Incoming, deadline: Option<(Pin<Box<Sleep>>, Duration)>) -> AnswerBody {
        AnswerBody { body, deadline }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        // Checked before the body, so that a server that always sends cannot escape the deadline.
        if let Some((sleep, timeout)) = &mut self.deadline
            && sleep.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(ClientError::Timeout(*timeout))));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_err(|error| ClientError::broken(&error))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
