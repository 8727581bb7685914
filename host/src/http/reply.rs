//! Answers, and the one table from errors to status codes.
//!
//! 4xx makes a sender drop its request: it is never for what time or free space will cure.

use crate::store::StoreError;
use crate::wasm::Error;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

/// A body, whole or streamed. An error in it resets the connection.
pub type Body = BoxBody<Bytes, StoreError>;

/// An answer.
pub type Reply = Response<Body>;

/// Seconds after which a sender may try again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// An answer in plain text.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    full(status, HeaderValue::from_static("text/plain; charset=utf-8"), text)
}

/// An answer in JSON.
pub fn json(status: StatusCode, body: &serde_json::Value) -> Reply {
    full(status, HeaderValue::from_static("application/json"), body.to_string())
}

/// An answer that is at hand as a whole.
pub fn full(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed();
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

/// The answer that an error deserves.
pub fn error(error: &StoreError) -> Reply {
    let status = status_of(error);
    if status.is_server_error() {
        tracing::warn!(%error, status = status.as_u16(), "a request failed");
    }
    retry_later(text(status, format!("{error}\n")))
}

/// Adds `Retry-After` where it makes sense.
pub fn retry_later(mut reply: Reply) -> Reply {
    if matches!(reply.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        reply.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    reply
}

/// The status code that an error deserves.
pub fn status_of(error: &StoreError) -> StatusCode {
    match error {
        StoreError::Refused(refused) => match refused {
            Error::Invalid(_) | Error::Malformed(_) | Error::LimitExceeded(_) => {
                StatusCode::BAD_REQUEST
            }
            Error::Corrupt(_) | Error::WrongRole(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Error::NotOpen | Error::Busy | Error::ShortOfMemory(_) | Error::Storage(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        },
        StoreError::TooMuchSelected(_) => StatusCode::BAD_REQUEST,
        StoreError::NotReady
        | StoreError::Overloaded
        | StoreError::DiskFull { .. }
        | StoreError::Stopped
        | StoreError::Crashed(_)
        | StoreError::ShortOfMemory(_)
        | StoreError::CompactorMemory { .. }
        | StoreError::Deadline
        | StoreError::HeadDeadline
        | StoreError::NotDurable(_)
        | StoreError::Plugin { .. }
        | StoreError::PluginLoading { .. }
        | StoreError::Disk(_) => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::NeedsTooMuchMemory => StatusCode::UNPROCESSABLE_ENTITY,
        StoreError::Runtime(_) | StoreError::Limits(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
