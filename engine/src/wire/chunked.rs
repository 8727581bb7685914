//! Selected series to bytes: streamed frames, and the form in which one instance hands series to
//! another.
//!
//! The payload of a streamed frame is a `prometheus.ChunkedReadResponse` (remote read 1.0,
//! STREAMED_XOR_CHUNKS): `chunked_series` 1, of which there is one, and `query_index` 2.
//! A series whose chunks exceed the frame's bound continues in further frames, labels repeated.

use super::{Fields, Value, WireError};
use crate::chunk::{Chunk, Encoding};
use crate::codec::{crc32c, put_uvarint, split_uvarint, uvarint_bytes};
use crate::model::Labels;
use tidepool_remote_write::{put_frame_head, seal_frames};

/// Size at which a streamed frame is closed, in bytes: upstream's default.
pub const DEFAULT_FRAME_BYTES_MAX: u32 = 1024 * 1024;

const CHUNKED_SERIES: &str = "prometheus.ChunkedSeries";

/// A series as one instance hands it to another.
#[derive(Debug)]
pub struct ChunkedSeries {
    /// Its labels.
    pub labels: Labels,
    /// Its chunks in time order.
    pub chunks: Vec<Chunk>,
}

/// How streamed frames are written.
#[derive(Clone, Copy, Debug)]
pub struct FrameOptions {
    /// Number of the query in its request.
    pub query_index: u32,
    /// Size at which a frame is closed.
    pub bytes_max: usize,
    /// Whether frames get their checksums; zeros stand there otherwise.
    pub is_sealed: bool,
}

/// Appends a series as one or more streamed frames.
pub fn put_streamed_frames(
    out: &mut Vec<u8>,
    options: FrameOptions,
    labels: &Labels,
    chunks: &[Chunk],
) {
    let mut rest = chunks;
    while !rest.is_empty() {
        let mut bytes = labels.packed().len();
        let mut count = 0;
        while count < rest.len() && (count == 0 || bytes < options.bytes_max) {
            bytes += chunk_message_bytes(&rest[count]);
            count += 1;
        }
        let (now, later) = rest.split_at(count);
        put_frame(out, options, labels, now);
        rest = later;
    }
}

fn put_frame(out: &mut Vec<u8>, options: FrameOptions, labels: &Labels, chunks: &[Chunk]) {
    let FrameOptions { query_index, is_sealed, .. } = options;
    let series_bytes = chunked_series_bytes(labels, chunks);
    let index_bytes = if query_index == 0 { 0 } else { 1 + uvarint_bytes(u64::from(query_index)) };
    let payload_bytes = 1 + uvarint_bytes(series_bytes as u64) + series_bytes + index_bytes;
    out.reserve(payload_bytes + 16);
    let frame_at = out.len();
    put_frame_head(out, payload_bytes);
    out.push(0x0a);
    put_uvarint(out, series_bytes as u64);
    put_series_content(out, labels, chunks);
    if query_index != 0 {
        out.push(0x10);
        put_uvarint(out, u64::from(query_index));
    }
    if is_sealed {
        let sealed = seal_frames(&mut out[frame_at..], crc32c);
        debug_assert_eq!(sealed, Ok(()));
    }
}

/// Appends a series as a length-delimited `prometheus.ChunkedSeries`.
pub fn put_chunked_series(out: &mut Vec<u8>, labels: &Labels, chunks: &[Chunk]) {
    put_uvarint(out, chunked_series_bytes(labels, chunks) as u64);
    put_series_content(out, labels, chunks);
}

/// Takes a length-delimited `prometheus.ChunkedSeries` off the front.
pub fn split_chunked_series(bytes: &[u8]) -> Result<(ChunkedSeries, &[u8]), WireError> {
    let error = |reason| WireError { message: CHUNKED_SERIES, offset: 0, reason };
    let message = split_uvarint(bytes)
        .and_then(|(len, rest)| rest.split_at_checked(usize::try_from(len).ok()?));
    let (message, rest) = message.ok_or_else(|| error("the message is cut short"))?;
    let mut chunks = Vec::new();
    // Labels come first, as they are packed.
    let mut labels_end = 0;
    let mut fields = Fields::new(message);
    while let Some(field) = fields.next() {
        match field {
            Ok((1, Value::Bytes(_))) if chunks.is_empty() => {
                labels_end = message.len() - fields.rest().len();
            }
            Ok((2, Value::Bytes(chunk))) => chunks.push(decode_chunk(chunk).map_err(error)?),
            Ok(_) => return Err(error("an unexpected field")),
            Err(malformed) => return Err(error(malformed.what)),
        }
    }
    let labels = message.get(..labels_end).and_then(Labels::from_packed);
    let labels = labels.ok_or_else(|| error("the labels are not a valid label set"))?;
    Ok((ChunkedSeries { labels, chunks }, rest))
}

fn chunked_series_bytes(labels: &Labels, chunks: &[Chunk]) -> usize {
    let chunk_bytes = |chunk| {
        let bytes = chunk_message_bytes(chunk);
        1 + uvarint_bytes(bytes as u64) + bytes
    };
    labels.packed().len() + chunks.iter().map(chunk_bytes).sum::<usize>()
}

fn put_series_content(out: &mut Vec<u8>, labels: &Labels, chunks: &[Chunk]) {
    out.extend_from_slice(labels.packed());
    for chunk in chunks {
        out.push(0x12);
        put_uvarint(out, chunk_message_bytes(chunk) as u64);
        for (tag, time_ms) in [(0x08, chunk.min_time_ms), (0x10, chunk.max_time_ms)] {
            if time_ms != 0 {
                out.push(tag);
                put_uvarint(out, time_ms as u64);
            }
        }
        out.push(0x18);
        out.push(chunk.encoding as u8);
        out.push(0x22);
        put_uvarint(out, chunk.data.len() as u64);
        out.extend_from_slice(&chunk.data);
    }
}

fn chunk_message_bytes(chunk: &Chunk) -> usize {
    let time_bytes = |time: i64| if time == 0 { 0 } else { 1 + uvarint_bytes(time as u64) };
    let data = chunk.data.len();
    time_bytes(chunk.min_time_ms)
        + time_bytes(chunk.max_time_ms)
        + 3
        + uvarint_bytes(data as u64)
        + data
}

fn decode_chunk(message: &[u8]) -> Result<Chunk, &'static str> {
    let (mut min_time_ms, mut max_time_ms, mut kind, mut data) = (0, 0, 0, &[][..]);
    for field in Fields::new(message) {
        match field.map_err(|malformed| malformed.what)? {
            (1, Value::Varint(time)) => min_time_ms = time as i64,
            (2, Value::Varint(time)) => max_time_ms = time as i64,
            (3, Value::Varint(number)) => kind = number,
            (4, Value::Bytes(bytes)) => data = bytes,
            _ => {}
        }
    }
    let encoding = u8::try_from(kind).ok().and_then(Encoding::try_from_u8);
    let encoding = encoding.ok_or("a chunk has an unknown encoding")?;
    Ok(Chunk { encoding, min_time_ms, max_time_ms, data: data.into() })
}
