//! Write-ahead-log records: what the head writes down, and how it is read back.
//!
//! Upstream's record encoding (prometheus/prometheus, `tsdb/docs/format/wal.md`). Framing into
//! pages, checksums, compression and segments are the host's.
//!
//! ```text
//! series   ┌─────────┬───────────────────────────────────────────────────────────┐
//!          │ type 1  │ ( ref u64 │ n uvarint │ ( len, name │ len, value ) × n )…   │
//!          └─────────┴───────────────────────────────────────────────────────────┘
//! samples  ┌─────────┬─────────┬────────┬────────────────────────────────────────┐
//!          │ type 2  │ ref u64 │ ts i64 │ ( Δref varint │ Δts varint │ value 8B )… │
//!          └─────────┴─────────┴────────┴────────────────────────────────────────┘
//! ```
//!
//! Fixed-width numbers are big-endian. The differences of samples are to the record's first
//! reference and time, not to the sample before; the first sample is repeated with differences 0.

mod decode;
mod encode;

pub use decode::{Record, RecordError, SampleRecords, SeriesRecord, SeriesRecords, decode};
pub use encode::{put_samples, put_series, samples_record, series_record};

const SERIES: u8 = 1;
const SAMPLES: u8 = 2;

/// Record kinds of upstream that this version does not replay: tombstones, exemplars, mmap
/// markers, metadata, and the four kinds of histogram samples.
const KNOWN_OTHERS: std::ops::RangeInclusive<u8> = 3..=10;

#[cfg(test)]
mod tests;
