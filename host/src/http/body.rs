//! Request bodies, read within bounds.

use super::reply::{Reply, text};
use crate::prom::{BodyError, decompress};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::StatusCode;
use hyper::body::Incoming;

/// Reads a Snappy-compressed body; both its sizes are bounded before anything is allocated.
pub async fn read_snappy(body: Incoming, bytes_max: usize) -> Result<Vec<u8>, Reply> {
    let compressed = collect(body, bytes_max).await?;
    decompress(&compressed, bytes_max).map_err(|error| {
        let status = match error {
            BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::NotSnappy(_) | BodyError::NotProtobuf(_) => StatusCode::BAD_REQUEST,
        };
        text(status, format!("{error}\n"))
    })
}

/// Reads a body within a bound.
pub async fn collect(body: Incoming, bytes_max: usize) -> Result<Bytes, Reply> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message =
                format!("the body is larger than {bytes_max} bytes (--max-request-size)\n");
            Err(text(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Err(error) => Err(text(StatusCode::BAD_REQUEST, format!("the body broke off: {error}\n"))),
    }
}
