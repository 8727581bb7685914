//! Request bodies, read within bounds of size, memory and time.

use super::reply::{Reply, error, text};
use super::server::Context;
use crate::prom::{BodyError, decompress, decompressed_len};
use crate::store::BodyRoom;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};

/// Bytes that a body's buffer has at first.
const BUFFER_BYTES_MIN: usize = 4 * 1024;

/// Bytes in memory and the room they take there.
pub struct Held {
    /// The body.
    pub bytes: Vec<u8>,
    /// To be kept as long as the bytes.
    pub room: BodyRoom,
}

/// Reads a Snappy-compressed body of at most `bytes_max`; both its sizes are bounded before
/// anything is allocated.
pub async fn read_snappy(
    context: &Context,
    body: Incoming,
    bytes_max: usize,
) -> Result<Held, Reply> {
    let compressed = collect(context, body, bytes_max).await?;
    let bytes = decompressed_len(&compressed.bytes, bytes_max).map_err(refused)?;
    let room = context.bodies.whole(bytes).await.map_err(|full| error(&full))?;
    let bytes = decompress(&compressed.bytes, bytes).map_err(refused)?;
    Ok(Held { bytes, room })
}

fn refused(error: BodyError) -> Reply {
    let status = match error {
        BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::NotSnappy(_) | BodyError::Implausible { .. } | BodyError::NotProtobuf(_) => {
            StatusCode::BAD_REQUEST
        }
    };
    text(status, format!("{error}\n"))
}

/// Reads a body of at most `bytes_max`.
pub async fn collect(context: &Context, body: Incoming, bytes_max: usize) -> Result<Held, Reply> {
    let limit = context.http.limits.request_timeout;
    match tokio::time::timeout(limit, read(context, body, bytes_max)).await {
        Ok(held) => held,
        Err(_) => {
            let message = format!(
                "the body did not come within {} ms (--request-timeout)\n",
                limit.as_millis()
            );
            Err(text(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

/// Takes room for what has come, whatever the client says will come. The pieces are copied into
/// one buffer: kept as they are, a client could send them one byte each.
async fn read(context: &Context, mut body: Incoming, bytes_max: usize) -> Result<Held, Reply> {
    let too_large = || {
        let message = format!("the body is larger than {bytes_max} bytes (--max-request-size)\n");
        text(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let announced = body.size_hint().upper();
    if announced.is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(too_large());
    }
    // The last growth of the buffer stops where the body will end.
    let end = announced.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(bytes_max);
    let mut bytes = Vec::new();
    let mut room = context.bodies.arriving();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|broken| {
            text(StatusCode::BAD_REQUEST, format!("the body broke off: {broken}\n"))
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        let needed = bytes.len() + piece.len();
        if needed > bytes_max {
            return Err(too_large());
        }
        if needed > bytes.capacity() {
            let capacity = (bytes.capacity() * 2).max(BUFFER_BYTES_MIN).min(end).max(needed);
            room.grow_to(capacity).await.map_err(|full| error(&full))?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Held { bytes, room })
}
