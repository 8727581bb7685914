//! Remote-write requests: bodies to series without copying, and series to bodies; the frames of a
//! streamed remote read, and the stored chunks that they are made of. The engine stores and
//! forwards by it; the host writes what other protocols bring, shows requests to plugins, and
//! copies chunks from files into frames.
//!
//! Hand-written for speed and bounded memory; the schemas are in `proto/`. What a native histogram
//! is, its users know. Compression, sockets and HTTP are the host's.
//!
//! Reading order: [`Fields`] walks over a message; [`decode_write_v1`] and [`decode_write_v2`] give
//! what a body holds to a [`WriteSink`]; `request` writes bodies part by part; `frames` has the
//! layout of remote read's frames, `stored_chunk` that of a chunk in a block.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod bytes;
mod exemplar;
mod fields;
mod frames;
mod place;
mod request;
mod sample;
mod series_parts;
mod stored_chunk;
mod varint;
mod write;

pub use bytes::{bytes_equal, hash_bytes, hash_word};
pub use exemplar::{Exemplar, ExemplarLabels};
pub use fields::{Fields, Malformed, Value};
pub use frames::{Crc32c, FrameOptions, FrameWriter, seal_frames};
pub use place::Place;
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
    EncodedSeries, HistogramMessage, SeriesData, Taken, WriteSink, decode_write_v1, decode_write_v2,
};

/// A protobuf message that does not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} does not decode at byte {offset}: {reason}")]
pub struct WireError {
    /// The message's name.
    pub message: &'static str,
    /// Where in the body, in bytes.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}
