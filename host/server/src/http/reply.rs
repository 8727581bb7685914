//! Responses, and the table from errors of the store to status codes.
//!
//! A sender drops its samples after a 4xx, so errors that may pass are never a 4xx.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use tidepool_runtime::Error;
use tidepool_store::StoreError;

/// A complete or streamed body. An error in the body resets the connection.
pub type Body = BoxBody<Bytes, StoreError>;

pub type Reply = Response<Body>;

/// Reason of a refusal or failure, for the log.
#[derive(Clone, Debug)]
pub struct Reason(Bytes);

impl Reason {
    pub fn new(text: impl Into<Bytes>) -> Reason {
        Reason(text.into())
    }

    /// Returns the first line. Without `with_quotes`, cuts it where a quotation may start.
    pub fn text(&self, with_quotes: bool) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let line = text.lines().next().unwrap_or_default();
        let end = if with_quotes { None } else { line.find([':', '"', '{', '`']) };
        line[..end.unwrap_or(line.len())].trim_end().to_owned()
    }
}

/// Seconds after which a sender may retry.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// Builds a response in plain text.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    let text = text.into();
    // Kept for the log, which cannot read the body.
    let reason = (status.is_client_error() || status.is_server_error()).then(|| text.clone());
    let mut reply = full(status, HeaderValue::from_static("text/plain; charset=utf-8"), text);
    if let Some(reason) = reason {
        reply.extensions_mut().insert(Reason(reason));
    }
    reply
}

pub fn json(status: StatusCode, body: &serde_json::Value) -> Reply {
    full(status, HeaderValue::from_static("application/json"), body.to_string())
}

/// Builds a response whose body is complete.
pub fn full(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed();
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

/// Builds the response to an error of the store.
pub fn error(error: &StoreError) -> Reply {
    retry_later(text(status_of(error), format!("{error}\n")))
}

/// Adds `Retry-After` to 503 and 429.
pub fn retry_later(mut reply: Reply) -> Reply {
    if matches!(reply.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        reply.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    reply
}

/// Status code of an error of the store.
pub fn status_of(error: &StoreError) -> StatusCode {
    match error {
        StoreError::Refused(refused) => match refused {
            Error::Invalid(_) | Error::Malformed(_) | Error::LimitExceeded(_) => {
                StatusCode::BAD_REQUEST
            }
            // Our own faults: a retry may fail as well, but the sender must keep its data.
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
        // As in Prometheus for evaluation errors: a retry would give the same result.
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
