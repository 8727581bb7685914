//! Answers, and the one table from errors to status codes.
//!
//! 4xx makes a sender drop its request: it is never for what time or free space will cure.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use tidepool_runtime::Error;
use tidepool_store::StoreError;

/// A body, whole or streamed. An error in it resets the connection.
pub type Body = BoxBody<Bytes, StoreError>;

/// An answer.
pub type Reply = Response<Body>;

/// Why a request is refused or failed, for the log.
#[derive(Clone, Debug)]
pub struct Reason(Bytes);

impl Reason {
    /// The text of the answer.
    pub fn new(text: impl Into<Bytes>) -> Reason {
        Reason(text.into())
    }

    /// Its first line. What the client asked for may be quoted in it, behind a colon or a quotation
    /// mark: `with_quotes` says whether that may be shown.
    pub fn text(&self, with_quotes: bool) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let line = text.lines().next().unwrap_or_default();
        let end = if with_quotes { None } else { line.find([':', '"', '{', '`']) };
        line[..end.unwrap_or(line.len())].trim_end().to_owned()
    }
}

/// Seconds after which a sender may try again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// An answer in plain text.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    let text = text.into();
    let reason = (status.is_client_error() || status.is_server_error()).then(|| text.clone());
    let mut reply = full(status, HeaderValue::from_static("text/plain; charset=utf-8"), text);
    if let Some(reason) = reason {
        reply.extensions_mut().insert(Reason(reason));
    }
    reply
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
    retry_later(text(status_of(error), format!("{error}\n")))
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
            Error::NotOpen
            | Error::Busy
            | Error::ShortOfMemory(_)
            | Error::SeriesDropped
            | Error::HeadLost(_)
            | Error::Storage(_) => StatusCode::SERVICE_UNAVAILABLE,
        },
        StoreError::TooMuchSelected(_) | StoreError::Expression(_) => StatusCode::BAD_REQUEST,
        StoreError::NotReady
        | StoreError::NotReplayed(_)
        | StoreError::Overloaded
        | StoreError::DiskFull { .. }
        | StoreError::Stopped
        | StoreError::Crashed(_)
        | StoreError::HeadRestarted
        | StoreError::HeadCrashed(_)
        | StoreError::DeletedWhileRead
        | StoreError::SeriesGone
        | StoreError::ShortOfMemory(_)
        | StoreError::CompactorMemory { .. }
        | StoreError::Deadline
        | StoreError::QueryTimeout(_)
        | StoreError::TooManyQueries { .. }
        | StoreError::Cancelled
        | StoreError::HeadDeadline
        | StoreError::NotDurable(_)
        | StoreError::Plugin { .. }
        | StoreError::PluginLoading { .. }
        | StoreError::Disk(_) => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::NeedsTooMuchMemory | StoreError::Evaluation(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        StoreError::Runtime(_) | StoreError::Limits(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_can_be_cut_before_what_they_quote() {
        let reason = Reason::new("invalid parameter \"start\": \"soon\" is not a time\nmore");
        assert_eq!(reason.text(true), "invalid parameter \"start\": \"soon\" is not a time");
        assert_eq!(reason.text(false), "invalid parameter");
        assert_eq!(Reason::new("").text(false), "");
    }
}
