//! Remote-write requests: decodes bodies into series without copying, and encodes series as bodies.
//! Also the frames of a streamed remote read, and the stored chunks in these frames. The engine
//! stores and forwards series with this crate; the host encodes series of other protocols, shows
//! requests to plugins, and copies chunks from files into frames.
//!
//! Hand-written for speed and bounded memory; the schemas are in `proto/`. Users of the crate
//! define the type of native histograms. Compression, sockets and HTTP are the host's.
//!
//! Reading order: [`Fields`] iterates over a message; [`decode_write_v1`] and [`decode_write_v2`]
//! pass the content of a body to a [`WriteSink`]; `request` writes bodies part by part; `frames`
//! has the layout of remote read's frames, `stored_chunk` the layout of a chunk in a block.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod body_position;
mod bytes;
mod exemplar;
mod fields;
mod frames;
mod request;
mod sample;
mod series_parts;
mod stored_chunk;
mod varint;
mod write;

pub use body_position::BodyPosition;
pub use bytes::{bytes_equal, hash_bytes, hash_word};
pub use exemplar::{Exemplar, ExemplarLabels};
pub use fields::{Fields, Malformed, Value};
pub use frames::{Crc32c, FrameOptions, FrameWriter, seal_frames};
pub use request::{
    LABELS, SAMPLES, SeriesMetadata, message_field_bytes, put_exemplar_end, put_family_metadata,
    put_label, put_label_refs, put_message_field, put_series_metadata, put_symbol, v1, v2,
};
pub use sample::{Sample, float_bytes, put_float};
pub use stored_chunk::{
    BadChunk, CHUNK_BYTES_MAX, CHUNK_HEAD_BYTES_MAX, checked_chunk, checked_ends, chunk_extent,
    known_chunk,
};
pub use varint::{put_uvarint, split_uvarint, uvarint_bytes, uvarint_of_six};
pub use write::{
    Consumed, EncodedSeries, HistogramMessage, SeriesData, WriteSink, decode_write_v1,
    decode_write_v2,
};

/// A protobuf message that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} does not decode at byte {offset}: {reason}")]
pub struct WireError {
    pub message: &'static str,
    /// Offset of the fault in the body, in bytes.
    pub offset: usize,
    pub reason: &'static str,
}
