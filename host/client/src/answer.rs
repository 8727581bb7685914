//! A response, whose body is read with a size limit and the request's deadline.

use crate::ClientError;
use crate::upload::AnswerBody;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode, Version};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub version: Version,
    pub headers: HeaderMap,
    /// URL of the server that responded, after all redirects.
    pub url: Url,
    body: Incoming,
    deadline: Option<Deadline>,
    bytes_max: u64,
    /// Number of bytes that the body may still have.
    bytes_left: u64,
    is_too_large: bool,
}

/// Time at which an exchange must end, and the timeout from which it was computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    timeout: Duration,
}

impl Deadline {
    /// Returns a deadline from now; `None` if the time is out of the clock's range.
    pub fn after(timeout: Duration) -> Option<Deadline> {
        Instant::now().checked_add(timeout).map(|at| Deadline { at, timeout })
    }

    /// Waits for a future until the deadline.
    pub async fn wait<T>(
        deadline: Option<Deadline>,
        waited_for: impl Future<Output = T>,
    ) -> Result<T, ClientError> {
        match deadline {
            None => Ok(waited_for.await),
            Some(Deadline { at, timeout }) => {
                timeout_at(at, waited_for).await.map_err(|_| ClientError::Timeout(timeout))
            }
        }
    }
}

impl Answer {
    pub(crate) fn new(
        answer: Response<Incoming>,
        url: Url,
        deadline: Option<Deadline>,
        bytes_max: u64,
    ) -> Answer {
        let (parts, body) = answer.into_parts();
        let (status, version, headers) = (parts.status, parts.version, parts.headers);
        Answer {
            status,
            version,
            headers,
            url,
            body,
            deadline,
            bytes_max,
            bytes_left: bytes_max,
            is_too_large: false,
        }
    }

    /// Returns the next bytes of the body; `None` at its end. A body beyond the request's limit
    /// returns all bytes within the limit, and then [`ClientError::TooLarge`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            if self.is_too_large {
                return Err(ClientError::TooLarge { bytes_max: self.bytes_max });
            }
            let Some(frame) = Deadline::wait(self.deadline, self.body.frame()).await? else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| ClientError::broken(&error))?;
            // Trailers are not part of the body.
            let Ok(mut data) = frame.into_data() else { continue };
            let allowed = usize::try_from(self.bytes_left).unwrap_or(usize::MAX);
            self.is_too_large = data.len() > allowed;
            data.truncate(allowed);
            self.bytes_left -= data.len() as u64;
            // Without data, the next iteration returns the end or the error.
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }

    /// Returns the rest of the body as a stream without a size limit.
    pub fn into_body(self) -> AnswerBody {
        let deadline = self
            .deadline
            .map(|Deadline { at, timeout }| (Box::pin(tokio::time::sleep_until(at)), timeout));
        AnswerBody::new(self.body, deadline)
    }

    /// Returns the rest of the body as a whole.
    pub async fn bytes(mut self) -> Result<Bytes, ClientError> {
        // Most bodies arrive in one piece, which is returned without a copy.
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(more) = self.chunk().await? {
            all.extend_from_slice(&more);
        }
        Ok(all.freeze())
    }
}
