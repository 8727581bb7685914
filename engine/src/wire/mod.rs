//! Encodes selected series for remote read, and native histograms both ways. Bodies of remote write
//! are decoded and encoded by `engine/remote-write`, which the host shares.
//!
//! Hand-written for speed and bounded memory; the schemas are in `proto/`. Compression, sockets
//! and HTTP are the host's.

mod chunked;
mod histogram;
mod plan;
mod sample_time;
mod samples;
mod series_exemplars;

pub use chunked::{
    ChunkedSeries, DEFAULT_FRAME_BYTES_MAX, put_chunked_series, put_streamed_frames,
    split_chunked_series,
};
pub use plan::{PlannedChunk, put_planned_series, split_planned_series};
pub use sample_time::SampleTimes;
pub use samples::{float_bytes_in, put_series_head, put_series_value, put_value, series_bytes};
pub use series_exemplars::{put_series_exemplars, split_series_exemplars};
pub use tidepool_remote_write::{
    BodyPosition, Consumed, Crc32c, EncodedSeries, Exemplar, ExemplarLabels, Fields, FrameOptions,
    SeriesMetadata, Value, WireError, WriteSink, decode_write_v1, decode_write_v2, float_bytes,
    message_field_bytes, put_exemplar_end, put_family_metadata, put_float, put_label,
    put_label_refs, put_message_field, put_series_metadata, put_symbol,
};

/// The rows of one time series of a request.
pub type SeriesData<'a> = tidepool_remote_write::SeriesData<'a, crate::model::Value>;

#[cfg(test)]
mod histogram_tests;
#[cfg(test)]
mod tests;
