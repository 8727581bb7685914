//! Form of all API responses, and the table from errors to error types and status codes.
//!
//! ```text
//! {"status":"success","data":…}    with "warnings":[…] if the data is incomplete
//! {"status":"error","errorType":"bad_data","error":"…"}
//! ```

use super::pages::CONTENT_TYPE_JSON;
use crate::http::reply::{self, Reason, Reply, retry_later, status_of};
use hyper::StatusCode;
use serde_json::{Value, json};
use tidepool_runtime::Error;
use tidepool_store::StoreError;

/// Warning of a response that was cut off at a limit.
pub const TRUNCATED: &str = "results truncated due to limit";

/// Builds a success response without warnings.
pub fn success(data: Value) -> Reply {
    reply::json(StatusCode::OK, &json!({ "status": "success", "data": data }))
}

/// Same as `success`, for data that is already JSON text.
pub fn success_of_json(data: &str) -> Reply {
    let body = format!("{{\"status\":\"success\",\"data\":{data}}}");
    reply::full(StatusCode::OK, CONTENT_TYPE_JSON, body)
}

/// Error of an API call, by `errorType`.
#[derive(Debug)]
pub enum ApiError {
    BadData(String),
    /// The request is valid but cannot be executed.
    Execution(String),
    /// The deadline of the call expired.
    Timeout(String),
    /// The server is overloaded or stopping; a retry may succeed.
    Unavailable(String),
    /// The server failed to execute the request.
    Internal(String),
    Off(&'static str),
    /// The body exceeds the limit of requests.
    TooLarge(String),
    /// The body could not be read.
    Body(Box<Reply>),
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        let (status, text) = (status_of(&error), error.to_string());
        match (error, status) {
            (StoreError::Deadline | StoreError::QueryTimeout(_), _) => ApiError::Timeout(text),
            (StoreError::Refused(Error::LimitExceeded(_)), _) => ApiError::Execution(text),
            (_, StatusCode::UNPROCESSABLE_ENTITY) => ApiError::Execution(text),
            (_, StatusCode::BAD_REQUEST) => ApiError::BadData(text),
            (_, StatusCode::SERVICE_UNAVAILABLE) => ApiError::Unavailable(text),
            _ => ApiError::Internal(text),
        }
    }
}

impl ApiError {
    /// A parameter whose value is invalid.
    pub fn parameter(name: &str, reason: impl std::fmt::Display) -> ApiError {
        ApiError::BadData(format!("invalid parameter {name:?}: {reason}"))
    }

    /// Converts a failure to read a body.
    pub fn body(reply: Reply) -> ApiError {
        match (reply.status(), reply.extensions().get::<Reason>()) {
            (StatusCode::PAYLOAD_TOO_LARGE, Some(reason)) => ApiError::TooLarge(reason.text(true)),
            _ => ApiError::Body(Box::new(reply)),
        }
    }

    pub fn into_reply(self) -> Reply {
        let (status, kind, error) = match self {
            ApiError::Body(reply) => return *reply,
            ApiError::BadData(error) => (StatusCode::BAD_REQUEST, "bad_data", error),
            ApiError::TooLarge(error) => (StatusCode::PAYLOAD_TOO_LARGE, "bad_data", error),
            ApiError::Execution(error) => (StatusCode::UNPROCESSABLE_ENTITY, "execution", error),
            ApiError::Timeout(error) => (StatusCode::SERVICE_UNAVAILABLE, "timeout", error),
            ApiError::Unavailable(error) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", error),
            ApiError::Internal(error) => (StatusCode::INTERNAL_SERVER_ERROR, "internal", error),
            // Upstream's status for disabled admin APIs.
            ApiError::Off(error) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "unavailable", error.to_owned())
            }
        };
        let body = json!({ "status": "error", "errorType": kind, "error": error });
        let mut reply = reply::json(status, &body);
        // The log shows the error's text without the JSON around it.
        reply.extensions_mut().insert(Reason::new(error));
        retry_later(reply)
    }
}
