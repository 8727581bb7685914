//! Native histograms as remote write carries them.

pub use super::proto::histogram::{Count, ResetHint, ZeroCount};
pub use super::proto::{BucketSpan, Histogram};
use tidepool_exposition::{Counts, NativeHistogram, Span};

pub fn count(observations: u64) -> Option<Count> {
    Some(Count::CountInt(observations))
}

pub fn zero_count(observations: u64) -> Option<ZeroCount> {
    Some(ZeroCount::ZeroCountInt(observations))
}

/// Converts a histogram of an exposition for remote write.
pub fn of_exposition(histogram: &NativeHistogram, timestamp_ms: i64) -> Histogram {
    let spans = |spans: &[Span]| {
        let span = |span: &Span| BucketSpan { offset: span.offset, length: span.length };
        spans.iter().map(span).collect()
    };
    // An exposition does not show whether the counter was reset.
    let hint = if histogram.is_gauge { ResetHint::Gauge } else { ResetHint::Unknown };
    let base = Histogram {
        sum: histogram.sum,
        schema: histogram.schema,
        zero_threshold: histogram.zero_threshold,
        positive_spans: spans(&histogram.positive_spans),
        negative_spans: spans(&histogram.negative_spans),
        custom_values: histogram.custom_values.clone(),
        reset_hint: hint.into(),
        timestamp: timestamp_ms,
        ..Histogram::default()
    };
    match &histogram.counts {
        Counts::Integer { count, zero_count, positive, negative } => Histogram {
            count: Some(Count::CountInt(*count)),
            zero_count: Some(ZeroCount::ZeroCountInt(*zero_count)),
            positive_deltas: positive.clone(),
            negative_deltas: negative.clone(),
            ..base
        },
        Counts::Float { count, zero_count, positive, negative } => Histogram {
            count: Some(Count::CountFloat(*count)),
            zero_count: Some(ZeroCount::ZeroCountFloat(*zero_count)),
            positive_counts: positive.clone(),
            negative_counts: negative.clone(),
            ..base
        },
    }
}
