//! Request bodies, read within limits of size, memory and time.

use super::aside;
use super::context::Context;
use super::reply::{Reply, error, retry_later, text};
use crate::http::request::{Request, RequestBody};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::header::{CONTENT_ENCODING, HeaderValue};
use tidepool_protocol::prom::{BodyError, decompress, decompressed_len};
use tidepool_store::{Body as StoredBody, BodyRoom};
use tidepool_turns::{Gunzip, GunzipError, Pace};

/// Initial capacity of a body's buffer.
const BUFFER_BYTES_MIN: usize = 4 * 1024;

/// Maximum size of a read request, compressed and decompressed, whatever the flags allow. The
/// longest list of selectors is far shorter, and two bytes can become fifty in a parsed matcher.
const READ_BYTES_MAX: usize = 1 << 20;

/// Size from which bodies are decompressed on another thread; below, it takes under a millisecond.
const ASIDE_BYTES_MIN: usize = 256 * 1024;

/// Maximum size of a body, and its origin for the error message.
#[derive(Clone, Copy)]
pub struct Bound {
    bytes: usize,
    /// Flag or rule that set the limit.
    set_by: &'static str,
}

impl Bound {
    /// Limit of requests that write.
    pub fn of_writes(context: &Context) -> Bound {
        Bound { bytes: context.http.request_bytes_max, set_by: "--max-request-size" }
    }

    /// Limit of requests that only read.
    pub fn of_reads(context: &Context) -> Bound {
        // A node with a lower limit for writes uses it for reads as well.
        let of_writes = Bound::of_writes(context);
        match of_writes.bytes < READ_BYTES_MAX {
            true => of_writes,
            false => Bound { bytes: READ_BYTES_MAX, set_by: "fixed for requests that read" },
        }
    }
}

/// A body in memory, with its memory reservation.
pub struct BufferedBody {
    pub bytes: StoredBody,
    /// Reservation, which is released together with the bytes.
    pub room: BodyRoom,
}

/// Reads a body in Snappy's block format. Both sizes are checked before memory is allocated.
pub async fn read_snappy(
    context: &Context,
    body: RequestBody,
    bound: Bound,
) -> Result<BufferedBody, Reply> {
    let BufferedBody { bytes: compressed, room: arrived } = collect(context, body, bound).await?;
    let refused = |error| refused(error, bound);
    // Snappy states the length first, so a decompression bomb is refused before decompression.
    let bytes = decompressed_len(&compressed, bound.bytes).map_err(refused)?;
    let room = context.bodies.whole(bytes).await.map_err(|full| error(&full))?;
    let mut whole = context.bodies.buffer(bytes);
    let decompressed = aside::run_if(bytes > ASIDE_BYTES_MIN, move || {
        // The thread owns both reservations, since it works on even if the client disconnects.
        let arrived = BufferedBody { bytes: compressed, room: arrived };
        let written = decompress(&arrived.bytes, &mut whole)?;
        whole.truncate(written);
        Ok(BufferedBody { bytes: whole, room })
    });
    decompressed.await.map_err(|failed| error(&failed))?.map_err(refused)
}

/// Reads a sender's body, which may be compressed with gzip. Both sizes are limited.
pub async fn read_plain_or_gzip(
    context: &Context,
    request: Request,
) -> Result<BufferedBody, Reply> {
    read_plain(context, request).await.map_err(for_sender)
}

async fn read_plain(context: &Context, request: Request) -> Result<BufferedBody, Reply> {
    let bound = Bound::of_writes(context);
    let (head, body) = request.into_parts();
    let encoding = head.headers.get(CONTENT_ENCODING).map_or(&b""[..], HeaderValue::as_bytes);
    let encoding = encoding.trim_ascii().to_ascii_lowercase();
    match encoding.as_slice() {
        b"" | b"identity" => collect(context, body, bound).await,
        b"gzip" | b"x-gzip" => {
            let compressed = collect(context, body, bound).await?;
            gunzip(context, &compressed.bytes, bound).await
        }
        other => {
            let other = String::from_utf8_lossy(other);
            let message =
                format!("content encoding {other:?} is not supported; use gzip or none\n");
            Err(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
        }
    }
}

/// Decompresses gzip and reserves memory as the data grows: gzip's size field cannot be trusted.
async fn gunzip(context: &Context, compressed: &[u8], bound: Bound) -> Result<BufferedBody, Reply> {
    let Bound { bytes: bytes_max, set_by } = bound;
    let broken = |error: GunzipError| {
        text(StatusCode::BAD_REQUEST, format!("the body is not in gzip's format: {error}\n"))
    };
    let mut room = context.bodies.whole(BUFFER_BYTES_MIN).await.map_err(|full| error(&full))?;
    let mut bytes = Vec::with_capacity(BUFFER_BYTES_MIN);
    let (mut gunzip, mut pace, mut rest) = (Gunzip::idle(), Pace::begin(), compressed);
    while let Some(piece) = gunzip.next(&mut rest).map_err(broken)? {
        let needed = bytes.len() + piece.len();
        if needed > bytes_max {
            let message =
                format!("the body has more than {bytes_max} bytes decompressed ({set_by})\n");
            return Err(text(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        if needed > bytes.capacity() {
            // Doubled, so that the copies cost linear time, but never above the limit.
            let capacity = (bytes.capacity() * 2).max(needed).min(bytes_max);
            room.grow_to(capacity).await.map_err(|full| error(&full))?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(piece);
        // Lets other tasks of the network thread run between pieces.
        pace.step().await;
    }
    gunzip.finish().map_err(broken)?;
    gunzip.reuse();
    Ok(BufferedBody { bytes: bytes.into(), room })
}

fn refused(error: BodyError, bound: Bound) -> Reply {
    let status = match error {
        BodyError::TooLarge { .. } => {
            let message = format!("{error} ({})\n", bound.set_by);
            return text(StatusCode::PAYLOAD_TOO_LARGE, message);
        }
        BodyError::NotSnappy(_)
        | BodyError::Implausible { .. }
        | BodyError::NotProtobuf(_)
        | BodyError::Malformed(_) => StatusCode::BAD_REQUEST,
    };
    text(status, format!("{error}\n"))
}

/// Makes the refusal of a slow body retryable, since a retry may be faster.
pub fn for_sender(mut reply: Reply) -> Reply {
    if reply.status() == StatusCode::REQUEST_TIMEOUT {
        *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    retry_later(reply)
}

/// Reads a body within the request timeout.
pub async fn collect(
    context: &Context,
    body: RequestBody,
    bound: Bound,
) -> Result<BufferedBody, Reply> {
    let limit = context.http.limits.request_timeout;
    match tokio::time::timeout(limit, read(context, body, bound)).await {
        Ok(held) => held,
        Err(_) => {
            let message = format!(
                "the body was not received within {} ms (--request-timeout)\n",
                limit.as_millis()
            );
            Err(text(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

/// Reads a body into one buffer. Memory is reserved for received bytes only, whatever length is
/// announced. Bytes are copied, because a client could send them one by one.
async fn read(
    context: &Context,
    mut body: RequestBody,
    bound: Bound,
) -> Result<BufferedBody, Reply> {
    let Bound { bytes: bytes_max, set_by } = bound;
    let too_large = || {
        let message = format!("the body is larger than {bytes_max} bytes ({set_by})\n");
        text(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    // A body whose announced length exceeds the limit is refused without being read.
    let announced = body.size_hint().upper();
    if announced.is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(too_large());
    }
    // The buffer never grows beyond the announced length.
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
    Ok(BufferedBody { bytes: bytes.into(), room })
}
