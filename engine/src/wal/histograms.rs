//! Histogram samples, types 7 to 10, 12 and 13.
//!
//! ```text
//! ┌─────────┬─────────┬────────┬─────────────────────────────────────────────┐
//! │ 7 to 10 │ ref u64 │ ts i64 │ ( Δref varint │ Δts varint │ histogram )…    │
//! └─────────┴─────────┴────────┴─────────────────────────────────────────────┘
//! histogram  ┌─────────┬───────────────┬─────────────────┬────────────┬───────┬────────┐
//!            │ hint 1B │ schema varint │ zero threshold  │ zero count │ count │ sum 8B │ …
//!            └─────────┴───────────────┴─────────────────┴────────────┴───────┴────────┘
//!   then four lists and with custom buckets a fifth, each with its length as an uvarint before:
//!   positive spans, negative spans (offset varint, length uvarint), positive buckets, negative
//!   buckets, custom bounds
//!
//!              whole counts   fractions
//! type         7, custom 9    8, custom 10
//! counts       uvarint        8B
//! buckets      varint         8B
//! ```
//!
//! Types 12 (whole) and 13 (fractions), which upstream writes when it keeps start timestamps, are
//! read too; their heads are those of type 11 in `samples_v2.rs`.

use super::decode::{RecordError, split_be_u64};
use super::samples_v2::RowHeads;
use crate::codec::{put_uvarint, put_varint, split_uvarint, split_varint};
use crate::model::histogram::{BucketLayout, Count, NativeHistogram, ResetHint, Span};
use std::marker::PhantomData;
use std::rc::Rc;

/// Encoding of a kind of counts in records.
pub trait WalCount: Count {
    /// Type of records of exponential histograms.
    const KIND: u8;
    /// Type of records of histograms with custom buckets.
    const CUSTOM_KIND: u8;
    /// Smallest number of bytes that a bucket takes.
    const BUCKET_BYTES_MIN: usize;

    /// Appends a count of observations, or of the zero bucket.
    fn put_total(record: &mut Vec<u8>, total: Self);
    /// Appends the stored number of one bucket.
    fn put_bucket(record: &mut Vec<u8>, bucket: Self::Bucket);
    /// Takes a count of observations off the front.
    fn split_total(bytes: &[u8]) -> Option<(Self, &[u8])>;
    /// Takes the stored number of one bucket off the front.
    fn split_bucket(bytes: &[u8]) -> Option<(Self::Bucket, &[u8])>;
}

/// One histogram of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramRecord<C: Count> {
    /// Reference of the series in the log.
    pub series_ref: u64,
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The number of buckets matches the spans; nothing else is checked.
    pub histogram: NativeHistogram<C>,
}

/// Iterates over the histograms of a record; skips histograms with an unknown schema.
pub struct HistogramRecords<'a, C> {
    record: &'a [u8],
    rest: &'a [u8],
    heads: RowHeads,
    counts: PhantomData<C>,
}

/// Creates an empty record of exponential or custom histograms, relative to reference and time.
pub fn histograms_record<C: WalCount>(
    has_custom_buckets: bool,
    first_ref: u64,
    first_timestamp_ms: i64,
) -> Vec<u8> {
    let mut record = vec![if has_custom_buckets { C::CUSTOM_KIND } else { C::KIND }];
    record.extend_from_slice(&first_ref.to_be_bytes());
    record.extend_from_slice(&first_timestamp_ms.to_be_bytes());
    record
}

/// Adds a histogram to a record that [`histograms_record`] began with the same `first` values.
pub fn put_histogram<C: WalCount>(
    record: &mut Vec<u8>,
    first: (u64, i64),
    series_ref: u64,
    timestamp_ms: i64,
    histogram: &NativeHistogram<C>,
) {
    let layout = &histogram.layout;
    put_varint(record, series_ref.wrapping_sub(first.0) as i64);
    put_varint(record, timestamp_ms.wrapping_sub(first.1));
    record.push(histogram.reset_hint as u8);
    put_varint(record, i64::from(layout.schema));
    put_float(record, layout.zero_threshold);
    C::put_total(record, histogram.zero_count);
    C::put_total(record, histogram.count);
    put_float(record, histogram.sum);
    for spans in [&layout.positive_spans, &layout.negative_spans] {
        put_uvarint(record, spans.len() as u64);
        for span in spans {
            put_varint(record, i64::from(span.offset));
            put_uvarint(record, u64::from(span.length));
        }
    }
    for buckets in [&histogram.positive_buckets, &histogram.negative_buckets] {
        put_uvarint(record, buckets.len() as u64);
        for bucket in buckets {
            C::put_bucket(record, *bucket);
        }
    }
    if layout.has_custom_buckets() {
        put_uvarint(record, layout.custom_values.len() as u64);
        for bound in &layout.custom_values {
            put_float(record, *bound);
        }
    }
}

impl<'a, C: WalCount> HistogramRecords<'a, C> {
    /// Creates an iterator over `rest`, the end of `record`; `heads` decodes the start of each row.
    pub(super) fn new(record: &'a [u8], rest: &'a [u8], heads: RowHeads) -> Self {
        HistogramRecords { record, rest, heads, counts: PhantomData }
    }

    fn split_row(&mut self) -> Option<HistogramRecord<C>> {
        let ((series_ref, timestamp_ms), rest) = self.heads.split(self.rest)?;
        let (histogram, rest) = split_histogram(rest)?;
        self.rest = rest;
        Some(HistogramRecord { series_ref, timestamp_ms, histogram })
    }
}

impl<C: WalCount> Iterator for HistogramRecords<'_, C> {
    type Item = Result<HistogramRecord<C>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let before = self.rest;
            let Some(mut row) = self.split_row() else {
                return Some(Err(RecordError::at(self.record, &mut self.rest)));
            };
            if !row.histogram.layout.has_known_schema() {
                // Like Prometheus, skips only the unknown histograms of a newer version's record.
                continue;
            }
            let is_sound =
                row.histogram.check_shape().and_then(|()| row.histogram.limit_resolution());
            if is_sound.is_err() {
                // The error must report the offset at which the row begins.
                self.rest = before;
                return Some(Err(RecordError::at(self.record, &mut self.rest)));
            }
            return Some(Ok(row));
        }
        None
    }
}

fn split_histogram<C: WalCount>(bytes: &[u8]) -> Option<(NativeHistogram<C>, &[u8])> {
    let (hint, rest) = bytes.split_first()?;
    let (schema, rest) = split_varint(rest)?;
    let (zero_threshold, rest) = split_float(rest)?;
    let (zero_count, rest) = C::split_total(rest)?;
    let (count, rest) = C::split_total(rest)?;
    let (sum, rest) = split_float(rest)?;
    // A span takes two bytes at least.
    let (positive_spans, rest) = split_list(rest, 2, split_span)?;
    let (negative_spans, rest) = split_list(rest, 2, split_span)?;
    let (positive_buckets, rest) = split_list(rest, C::BUCKET_BYTES_MIN, C::split_bucket)?;
    let (negative_buckets, rest) = split_list(rest, C::BUCKET_BYTES_MIN, C::split_bucket)?;
    let mut layout = BucketLayout {
        schema: i32::try_from(schema).ok()?,
        zero_threshold,
        positive_spans: positive_spans.into(),
        negative_spans: negative_spans.into(),
        custom_values: Box::default(),
    };
    let mut rest = rest;
    if layout.has_custom_buckets() {
        let (custom_values, after) = split_list(rest, 8, split_float)?;
        layout.custom_values = custom_values.into();
        rest = after;
    }
    let histogram = NativeHistogram {
        layout: Rc::new(layout),
        reset_hint: ResetHint::from_number(u64::from(*hint)),
        count,
        zero_count,
        sum,
        positive_buckets,
        negative_buckets,
    };
    Some((histogram, rest))
}

/// Splits off a list after its length; `bytes_min` per item bounds the memory for a false length.
fn split_list<'a, T>(
    bytes: &'a [u8],
    bytes_min: usize,
    split: impl Fn(&'a [u8]) -> Option<(T, &'a [u8])>,
) -> Option<(Vec<T>, &'a [u8])> {
    let (len, mut rest) = split_uvarint(bytes)?;
    let len = usize::try_from(len).ok().filter(|len| *len <= rest.len() / bytes_min)?;
    let mut items = Vec::with_capacity(len);
    for _ in 0..len {
        let (item, after) = split(rest)?;
        items.push(item);
        rest = after;
    }
    Some((items, rest))
}

fn split_span(bytes: &[u8]) -> Option<(Span, &[u8])> {
    let (offset, rest) = split_varint(bytes)?;
    let (length, rest) = split_uvarint(rest)?;
    Some((Span { offset: offset.try_into().ok()?, length: length.try_into().ok()? }, rest))
}

fn split_float(bytes: &[u8]) -> Option<(f64, &[u8])> {
    let (bits, rest) = split_be_u64(bytes)?;
    Some((f64::from_bits(bits), rest))
}

fn put_float(record: &mut Vec<u8>, value: f64) {
    record.extend_from_slice(&value.to_bits().to_be_bytes());
}

impl WalCount for u64 {
    const KIND: u8 = 7;
    const CUSTOM_KIND: u8 = 9;
    const BUCKET_BYTES_MIN: usize = 1;

    fn put_total(record: &mut Vec<u8>, total: u64) {
        put_uvarint(record, total);
    }

    fn put_bucket(record: &mut Vec<u8>, bucket: i64) {
        put_varint(record, bucket);
    }

    fn split_total(bytes: &[u8]) -> Option<(u64, &[u8])> {
        split_uvarint(bytes)
    }

    fn split_bucket(bytes: &[u8]) -> Option<(i64, &[u8])> {
        split_varint(bytes)
    }
}

impl WalCount for f64 {
    const KIND: u8 = 8;
    const CUSTOM_KIND: u8 = 10;
    const BUCKET_BYTES_MIN: usize = 8;

    fn put_total(record: &mut Vec<u8>, total: f64) {
        put_float(record, total);
    }

    fn put_bucket(record: &mut Vec<u8>, bucket: f64) {
        put_float(record, bucket);
    }

    fn split_total(bytes: &[u8]) -> Option<(f64, &[u8])> {
        split_float(bytes)
    }

    fn split_bucket(bytes: &[u8]) -> Option<(f64, &[u8])> {
        split_float(bytes)
    }
}
