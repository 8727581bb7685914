//! Native histograms as protobuf messages: `prometheus.Histogram` and
//! `io.prometheus.write.v2.Histogram`, which have the same fields.
//!
//! ```text
//! 1 or 2   count, whole (1) or a float (2), which determines the kind of the histogram
//! 3, 4, 5  sum, schema (zigzag), zero threshold      6 or 7   zero count, whole or a float
//! 8, 11    negative, positive spans: messages of offset 1 (zigzag) and length 2
//! 9, 12    negative, positive buckets of whole counts: differences (zigzag)
//! 10, 13   negative, positive buckets of fractional counts
//! 14, 15   reset hint, time in milliseconds          16       custom bounds
//! ```
//!
//! The start timestamp (17, in 2.0) is ignored. Lists of numbers are packed or not.

use super::{BodyPosition, Value as Field, WireError};
use crate::codec::{put_uvarint, split_uvarint, uvarint_bytes};
use crate::model::Value;
use crate::model::histogram::{BucketLayout, Count, NativeHistogram, ResetHint, Span};
use std::rc::Rc;
use tidepool_remote_write::HistogramMessage;

const LIST_CUT_SHORT: &str = "a list of numbers is cut short or holds a number too long";

#[derive(Default)]
struct Message {
    timestamp_ms: i64,
    reset_hint: ResetHint,
    layout: BucketLayout,
    sum: f64,
    count: Total,
    zero_count: Total,
    positive_spans: Vec<Span>,
    negative_spans: Vec<Span>,
    positive_deltas: Vec<i64>,
    negative_deltas: Vec<i64>,
    positive_counts: Vec<f64>,
    negative_counts: Vec<f64>,
    custom_values: Vec<f64>,
}

enum Total {
    Whole(u64),
    Fraction(f64),
}

impl Default for Total {
    fn default() -> Total {
        Total::Whole(0)
    }
}

impl<'r> HistogramMessage<'r> for Value {
    fn decode(place: &BodyPosition<'r>, message: &'r [u8]) -> Result<(i64, Value), WireError> {
        let mut read = Message::default();
        place.walk(message, |number, field| read.field(place, number, field))?;
        Ok((read.timestamp_ms, read.into_value()))
    }
}

impl Message {
    fn field<'r>(
        &mut self,
        place: &BodyPosition<'r>,
        number: u32,
        field: Field<'r>,
    ) -> Result<(), WireError> {
        match (number, field) {
            (1, Field::Varint(count)) => self.count = Total::Whole(count),
            (2, Field::Fixed64(bits)) => self.count = Total::Fraction(f64::from_bits(bits)),
            (3, Field::Fixed64(bits)) => self.sum = f64::from_bits(bits),
            (4, Field::Varint(folded)) => self.layout.schema = unfold_i32(folded),
            (5, Field::Fixed64(bits)) => self.layout.zero_threshold = f64::from_bits(bits),
            (6, Field::Varint(count)) => self.zero_count = Total::Whole(count),
            (7, Field::Fixed64(bits)) => self.zero_count = Total::Fraction(f64::from_bits(bits)),
            (8, Field::Bytes(span)) => self.negative_spans.push(decode_span(place, span)?),
            (9, list) => push_deltas(place, list, &mut self.negative_deltas)?,
            (10, list) => push_floats(place, list, &mut self.negative_counts)?,
            (11, Field::Bytes(span)) => self.positive_spans.push(decode_span(place, span)?),
            (12, list) => push_deltas(place, list, &mut self.positive_deltas)?,
            (13, list) => push_floats(place, list, &mut self.positive_counts)?,
            (14, Field::Varint(hint)) => self.reset_hint = ResetHint::from_number(hint),
            (15, Field::Varint(time)) => self.timestamp_ms = time as i64,
            (16, list) => push_floats(place, list, &mut self.custom_values)?,
            // Unknown fields are skipped, as protobuf demands.
            _ => {}
        }
        Ok(())
    }

    /// Makes a value of the kind of its count; fields of the other kind are ignored.
    fn into_value(self) -> Value {
        let layout = Rc::new(BucketLayout {
            positive_spans: self.positive_spans.into(),
            negative_spans: self.negative_spans.into(),
            custom_values: self.custom_values.into(),
            ..self.layout
        });
        let (reset_hint, sum) = (self.reset_hint, self.sum);
        match self.count {
            Total::Whole(count) => {
                let zero_count = match self.zero_count {
                    Total::Whole(count) => count,
                    Total::Fraction(_) => 0,
                };
                let (positive_buckets, negative_buckets) =
                    (self.positive_deltas, self.negative_deltas);
                Value::from(NativeHistogram {
                    layout,
                    reset_hint,
                    count,
                    zero_count,
                    sum,
                    positive_buckets,
                    negative_buckets,
                })
            }
            Total::Fraction(count) => {
                let zero_count = match self.zero_count {
                    Total::Whole(_) => 0.0,
                    Total::Fraction(count) => count,
                };
                let (positive_buckets, negative_buckets) =
                    (self.positive_counts, self.negative_counts);
                Value::from(NativeHistogram {
                    layout,
                    reset_hint,
                    count,
                    zero_count,
                    sum,
                    positive_buckets,
                    negative_buckets,
                })
            }
        }
    }
}

/// Decodes a zigzag number of 32 bits; as in protobuf, higher bits are dropped.
fn unfold_i32(folded: u64) -> i32 {
    let folded = folded as u32;
    ((folded >> 1) as i32) ^ -((folded & 1) as i32)
}

fn unfold_i64(folded: u64) -> i64 {
    ((folded >> 1) as i64) ^ -((folded & 1) as i64)
}

fn fold(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn decode_span<'r>(place: &BodyPosition<'r>, message: &'r [u8]) -> Result<Span, WireError> {
    let mut span = Span::default();
    place.walk(message, |number, field| {
        match (number, field) {
            (1, Field::Varint(folded)) => span.offset = unfold_i32(folded),
            // A uint32: as in protobuf, higher bits are dropped.
            (2, Field::Varint(length)) => span.length = length as u32,
            _ => {}
        }
        Ok(())
    })?;
    Ok(span)
}

fn push_deltas(
    place: &BodyPosition<'_>,
    list: Field<'_>,
    out: &mut Vec<i64>,
) -> Result<(), WireError> {
    match list {
        // A list that is not packed has a field for each number.
        Field::Varint(folded) => out.push(unfold_i64(folded)),
        Field::Bytes(packed) => {
            let mut rest = packed;
            while !rest.is_empty() {
                let Some((folded, after)) = split_uvarint(rest) else {
                    return Err(place.error(rest, LIST_CUT_SHORT));
                };
                out.push(unfold_i64(folded));
                rest = after;
            }
        }
        _ => {}
    }
    Ok(())
}

fn push_floats(
    place: &BodyPosition<'_>,
    list: Field<'_>,
    out: &mut Vec<f64>,
) -> Result<(), WireError> {
    match list {
        Field::Fixed64(bits) => out.push(f64::from_bits(bits)),
        Field::Bytes(packed) => {
            let (words, rest) = packed.as_chunks::<8>();
            if !rest.is_empty() {
                return Err(place.error(rest, LIST_CUT_SHORT));
            }
            out.extend(words.iter().map(|word| f64::from_le_bytes(*word)));
        }
        _ => {}
    }
    Ok(())
}

pub(super) trait WireCount: Count {
    /// Field numbers of count, zero count, negative and positive buckets.
    const FIELDS: [u32; 4];
    fn put_total(out: &mut Vec<u8>, field: u32, total: Self);
    fn put_buckets(out: &mut Vec<u8>, buckets: &[Self::Bucket]);
}

/// Appends a histogram as a field of a `prometheus.TimeSeries`.
pub(super) fn put_histogram<C: WireCount>(
    out: &mut Vec<u8>,
    timestamp_ms: i64,
    histogram: &NativeHistogram<C>,
) {
    put_histogram_field(out, 4, timestamp_ms, histogram);
}

pub(super) fn put_histogram_field<C: WireCount>(
    out: &mut Vec<u8>,
    field: u32,
    timestamp_ms: i64,
    histogram: &NativeHistogram<C>,
) {
    let mut message = Vec::with_capacity(256);
    put_content(&mut message, timestamp_ms, histogram);
    put_message(out, field, &message);
}

fn put_content<C: WireCount>(out: &mut Vec<u8>, timestamp_ms: i64, histogram: &NativeHistogram<C>) {
    let layout = &histogram.layout;
    let [count_field, zero_count_field, negative_field, positive_field] = C::FIELDS;
    C::put_total(out, count_field, histogram.count);
    put_float_field(out, 3, histogram.sum);
    // Encoded as a sint32, so that a negative schema does not need 64 bits.
    put_number_field(out, 4, u64::from(fold(i64::from(layout.schema)) as u32));
    put_float_field(out, 5, layout.zero_threshold);
    C::put_total(out, zero_count_field, histogram.zero_count);
    let sides = [
        (8, &layout.negative_spans, negative_field, &histogram.negative_buckets),
        (11, &layout.positive_spans, positive_field, &histogram.positive_buckets),
    ];
    for (spans_field, spans, buckets_field, buckets) in sides {
        for span in spans {
            let mut message = Vec::with_capacity(12);
            put_number_field(&mut message, 1, u64::from(fold(i64::from(span.offset)) as u32));
            put_number_field(&mut message, 2, u64::from(span.length));
            put_message(out, spans_field, &message);
        }
        // An empty list has no field.
        if !buckets.is_empty() {
            put_tag(out, buckets_field, 2);
            C::put_buckets(out, buckets);
        }
    }
    put_number_field(out, 14, histogram.reset_hint as u64);
    put_number_field(out, 15, timestamp_ms as u64);
    if !layout.custom_values.is_empty() {
        put_tag(out, 16, 2);
        f64::put_buckets(out, &layout.custom_values);
    }
}

fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    put_uvarint(out, u64::from(field << 3 | wire_type));
}

fn put_message(out: &mut Vec<u8>, field: u32, message: &[u8]) {
    put_tag(out, field, 2);
    put_uvarint(out, message.len() as u64);
    out.extend_from_slice(message);
}

/// Appends a float unless it is zero; a negative zero is kept, so that no bit is lost.
fn put_float_field(out: &mut Vec<u8>, field: u32, value: f64) {
    if value.to_bits() != 0 {
        put_tag(out, field, 1);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn put_number_field(out: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        put_tag(out, field, 0);
        put_uvarint(out, value);
    }
}

/// Totals are written even if they are zero: their fields determine the kind of histogram.
impl WireCount for u64 {
    const FIELDS: [u32; 4] = [1, 6, 9, 12];

    fn put_total(out: &mut Vec<u8>, field: u32, total: u64) {
        put_tag(out, field, 0);
        put_uvarint(out, total);
    }

    fn put_buckets(out: &mut Vec<u8>, buckets: &[i64]) {
        let bytes = buckets.iter().map(|bucket| uvarint_bytes(fold(*bucket))).sum::<usize>();
        put_uvarint(out, bytes as u64);
        buckets.iter().for_each(|bucket| put_uvarint(out, fold(*bucket)));
    }
}

impl WireCount for f64 {
    const FIELDS: [u32; 4] = [2, 7, 10, 13];

    fn put_total(out: &mut Vec<u8>, field: u32, total: f64) {
        put_tag(out, field, 1);
        out.extend_from_slice(&total.to_le_bytes());
    }

    fn put_buckets(out: &mut Vec<u8>, buckets: &[f64]) {
        put_uvarint(out, 8 * buckets.len() as u64);
        buckets.iter().for_each(|bucket| out.extend_from_slice(&bucket.to_le_bytes()));
    }
}
