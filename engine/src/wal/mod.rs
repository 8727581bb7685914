//! Write-ahead-log records: their encoding and decoding.
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
//! All differences (Δ) of samples are to the reference and time at the beginning of the record,
//! which are those of the first sample; the first sample has differences of 0.
//!
//! Other types: `rare_records.rs` for tombstones, exemplars, markers and metadata (3 to 6),
//! `histograms.rs` (7 to 10), `samples_v2.rs` with start timestamps (11 to 13), `own_records.rs`
//! (200 and 202) and `columns/` (201 and 203) for types that only tidepool has.

pub mod columns;
mod decode;
mod encode;
mod histograms;
mod own_records;
mod rare_records;
mod samples_v2;

pub use columns::{ColumnError, ColumnReader, ColumnRecord, ColumnWriter};
pub use decode::{
    LabelPairs, Record, RecordError, SampleRecords, SeriesRecord, SeriesRecords, decode,
};
pub use encode::{put_samples, put_series, samples_record, series_record};
pub use histograms::{
    HistogramRecord, HistogramRecords, WalCount, histograms_record, put_histogram,
};
pub use own_records::{deletions_applied_record, retired_record};
pub use rare_records::{
    ExemplarRecord, ExemplarRecords, MetadataRecord, MmapMarkerRecord, Rows, TombstoneRecord,
    exemplars_record, metadata_record, mmap_markers_record, put_exemplar, put_metadata,
    tombstones_record,
};
pub use samples_v2::SampleV2Records;

const SERIES: u8 = 1;
const SAMPLES: u8 = 2;
const TOMBSTONES: u8 = 3;
const EXEMPLARS: u8 = 4;
const MMAP_MARKERS: u8 = 5;
const METADATA: u8 = 6;
const SAMPLES_V2: u8 = 11;
const HISTOGRAMS_V2: u8 = 12;
const FLOAT_HISTOGRAMS_V2: u8 = 13;
const DELETIONS_APPLIED: u8 = 200;
const COLUMNS_201: u8 = 201;
const RETIRED: u8 = 202;
const COLUMNS: u8 = 203;

#[cfg(test)]
mod histogram_tests;
#[cfg(test)]
mod tests;
