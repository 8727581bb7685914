//! Native histograms of query results: their text for templates, and as the store takes them.

use std::fmt;
use std::sync::Arc;
use tidepool_model::buckets::{CUSTOM_BUCKETS_SCHEMA, upper_bound};
use tidepool_model::number::general;
use tidepool_protocol::prom::native::{BucketSpan, Count, Histogram, ResetHint, ZeroCount};
use tidepool_runtime::{BucketSpan as Span, CounterReset, NativeHistogram};

/// A histogram of a result; clones share it.
#[derive(Clone, Debug)]
pub struct SharedHistogram(pub Arc<NativeHistogram>);

/// Writes the text that templates see.
impl fmt::Display for SharedHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_text(&self.0, f)
    }
}

/// Returns the memory of a histogram, in bytes.
pub fn bytes(histogram: &NativeHistogram) -> usize {
    let NativeHistogram { positive_buckets, negative_buckets, custom_values, .. } = histogram;
    let floats = positive_buckets.len() + negative_buckets.len() + custom_values.len();
    let spans = histogram.positive_spans.len() + histogram.negative_spans.len();
    size_of::<NativeHistogram>() + (floats + spans) * size_of::<f64>()
}

/// Writes a histogram as upstream's `FloatHistogram.String` does: count, sum and the buckets that
/// are not empty, from the lowest on.
fn write_text(histogram: &NativeHistogram, text: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(text, "{{count:{}, sum:{}", general(histogram.count), general(histogram.sum))?;
    let NativeHistogram { schema, custom_values, zero_threshold, zero_count, .. } = histogram;
    let bound = |index: i64| upper_bound(index, *schema, custom_values);
    let negative = indexed(&histogram.negative_spans, &histogram.negative_buckets);
    for (index, count) in negative.collect::<Vec<_>>().into_iter().rev() {
        let (lower, upper) = (general(-bound(index)), general(-bound(index - 1)));
        write!(text, ", [{lower},{upper}):{}", general(count))?;
    }
    if *zero_count != 0.0 {
        let (lower, upper) = (general(-zero_threshold), general(*zero_threshold));
        write!(text, ", [{lower},{upper}]:{}", general(*zero_count))?;
    }
    for (index, count) in indexed(&histogram.positive_spans, &histogram.positive_buckets) {
        let (lower, upper) = (bound(index - 1), bound(index));
        // As upstream shows the first custom bucket, whose lower bound is -Inf.
        let begin = match *schema == CUSTOM_BUCKETS_SCHEMA && index == 0 {
            true => '[',
            false => '(',
        };
        write!(text, ", {begin}{},{}]:{}", general(lower), general(upper), general(count))?;
    }
    text.write_str("}")
}

/// Returns the buckets that are not empty, with their index.
fn indexed<'a>(spans: &'a [Span], counts: &'a [f64]) -> impl Iterator<Item = (i64, f64)> + 'a {
    let mut next = 0i64;
    let indexes = spans.iter().flat_map(move |span| {
        let first = next + i64::from(span.offset);
        next = first + i64::from(span.length);
        first..next
    });
    indexes.zip(counts.iter().copied()).filter(|(_, count)| *count != 0.0)
}

/// Converts a histogram to what a write request has.
pub fn of_result(histogram: &NativeHistogram, timestamp_ms: i64) -> Histogram {
    let spans = |spans: &[Span]| {
        spans.iter().map(|span| BucketSpan { offset: span.offset, length: span.length }).collect()
    };
    let hint = match histogram.counter_reset {
        CounterReset::Unknown => ResetHint::Unknown,
        CounterReset::Reset => ResetHint::Yes,
        CounterReset::NotReset => ResetHint::No,
        CounterReset::Gauge => ResetHint::Gauge,
    };
    Histogram {
        sum: histogram.sum,
        schema: histogram.schema,
        zero_threshold: histogram.zero_threshold,
        count: Some(Count::CountFloat(histogram.count)),
        zero_count: Some(ZeroCount::ZeroCountFloat(histogram.zero_count)),
        positive_spans: spans(&histogram.positive_spans),
        positive_counts: histogram.positive_buckets.clone(),
        negative_spans: spans(&histogram.negative_spans),
        negative_counts: histogram.negative_buckets.clone(),
        custom_values: histogram.custom_values.clone(),
        reset_hint: hint.into(),
        timestamp: timestamp_ms,
        ..Histogram::default()
    }
}
