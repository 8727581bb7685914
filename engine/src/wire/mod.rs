//! Remote-write bodies to rows without copying, and selected series to remote-read bytes.
//!
//! Hand-written for speed and bounded memory; the schemas are in `proto/`. Compression, sockets
//! and HTTP are the host's.

mod chunked;
mod exemplar;
mod fields;
mod histogram;
mod request;
mod sample_time;
mod samples;
mod series_exemplars;
mod series_parts;
mod write;

pub use chunked::{
    ChunkedSeries, DEFAULT_FRAME_BYTES_MAX, FrameOptions, put_chunked_series, put_streamed_frames,
    split_chunked_series,
};
pub use exemplar::{Exemplar, ExemplarLabels};
pub use fields::{Field, Fields, Value};
pub use request::{
    SeriesMetadata, message_field_bytes, put_exemplar_end, put_family_metadata, put_label,
    put_label_refs, put_message_field, put_series_metadata, put_series_value, put_symbol,
};
pub use sample_time::SampleTimes;
pub use samples::{
    float_bytes, float_bytes_in, put_float, put_series_head, put_value, series_bytes,
};
pub use series_exemplars::{put_series_exemplars, split_series_exemplars};
pub use write::{EncodedSeries, SeriesData, Taken, WriteSink, decode_write_v1, decode_write_v2};

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

#[cfg(test)]
mod histogram_tests;
#[cfg(test)]
mod tests;
