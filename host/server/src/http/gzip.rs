//! Compression of responses with gzip, frame by frame and with bounded memory.

use super::reply::{Body, Reply};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, GetAll, HeaderValue, VARY};
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tidepool_store::StoreError;

/// Minimum size of a compressed response, in bytes.
const BYTES_MIN: u64 = 1024;

/// Returns whether a client accepts gzip (RFC 9110, section 12.5.3).
pub fn is_taken(accepted: GetAll<'_, HeaderValue>) -> bool {
    let lists = accepted.iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map(str::parse::<f32>);
        // A weight of zero refuses gzip. A weight that cannot be parsed is treated the same.
        is_gzip && !matches!(weight, Some(Ok(0.0) | Err(_)))
    })
}

/// Compresses a response unless it is short.
pub fn compress(mut reply: Reply) -> Reply {
    let size = reply.body().size_hint();
    if size.upper().is_some_and(|bytes| bytes < BYTES_MIN) {
        return reply;
    }
    let headers = reply.headers_mut();
    // The compressed length is unknown until the end.
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from(ACCEPT_ENCODING));
    reply.map(|inner| {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        GzipBody { inner, encoder: Some(encoder) }.boxed()
    })
}

/// A body compressed frame by frame.
struct GzipBody {
    inner: Body,
    /// `None` after the end was written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl GzipBody {
    fn encoded(&mut self, piece: Option<Bytes>) -> io::Result<Option<Bytes>> {
        let Some(mut encoder) = self.encoder.take() else { return Ok(None) };
        let Some(piece) = piece else { return Ok(Some(encoder.finish()?.into())) };
        encoder.write_all(&piece)?;
        // Flushed, so that results that arrive slowly are sent without waiting for further results.
        encoder.flush()?;
        let bytes = std::mem::take(encoder.get_mut());
        self.encoder = Some(encoder);
        Ok(Some(bytes.into()))
    }
}

impl HttpBody for GzipBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let piece = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
            Some(Ok(frame)) => frame.into_data().ok(),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => None,
        };
        let encoded = self.encoded(piece).map_err(|error| {
            StoreError::Runtime(format!("the answer could not be compressed: {error}"))
        });
        Poll::Ready(encoded.transpose().map(|encoded| encoded.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderMap, InvalidHeaderValue};

    #[test]
    fn clients_say_whether_they_take_gzip() -> Result<(), InvalidHeaderValue> {
        for (value, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("br", false),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
            ("", false),
        ] {
            let headers: HeaderMap =
                [(ACCEPT_ENCODING, HeaderValue::from_str(value)?)].into_iter().collect();
            assert_eq!(is_taken(headers.get_all(ACCEPT_ENCODING)), expected, "{value:?}");
        }
        Ok(())
    }
}
