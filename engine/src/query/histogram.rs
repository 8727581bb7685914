//! Converts native histograms to those of the query language.

use crate::model::histogram::{Count, NativeHistogram, ResetHint, Side, Span};
use tidepool_promql::model::{CounterReset, Histogram, Span as QuerySpan};

pub(super) fn to_histogram<C: Count + ToFloat>(histogram: &NativeHistogram<C>) -> Histogram {
    let layout = &histogram.layout;
    Histogram {
        positive_spans: to_spans(&layout.positive_spans),
        positive_buckets: to_buckets(histogram, Side::Positive),
        negative_spans: to_spans(&layout.negative_spans),
        negative_buckets: to_buckets(histogram, Side::Negative),
        custom_values: layout.custom_values.to_vec(),
        ..count_and_sum(histogram)
    }
}

/// Returns the histogram without its buckets, except the zero bucket.
pub(super) fn count_and_sum<C: Count + ToFloat>(histogram: &NativeHistogram<C>) -> Histogram {
    let counter_reset = match histogram.reset_hint {
        ResetHint::Unknown => CounterReset::Unknown,
        ResetHint::Reset => CounterReset::Reset,
        ResetHint::NotReset => CounterReset::NotReset,
        ResetHint::Gauge => CounterReset::Gauge,
    };
    Histogram {
        counter_reset,
        schema: histogram.layout.schema,
        zero_threshold: histogram.layout.zero_threshold,
        zero_count: histogram.zero_count.to_float(),
        count: histogram.count.to_float(),
        sum: histogram.sum,
        ..Histogram::default()
    }
}

fn to_spans(spans: &[Span]) -> Vec<QuerySpan> {
    spans.iter().map(|&Span { offset, length }| QuerySpan { offset, length }).collect()
}

fn to_buckets<C: Count>(histogram: &NativeHistogram<C>, side: Side) -> Vec<f64> {
    let (_, kept) = histogram.side(side);
    // Whole counts are stored as differences; PromQL has absolute counts.
    C::running(kept.iter().copied()).map(<C as Count>::to_float).collect()
}

pub(super) trait ToFloat {
    fn to_float(self) -> f64;
}

impl ToFloat for u64 {
    fn to_float(self) -> f64 {
        self as f64
    }
}

impl ToFloat for f64 {
    fn to_float(self) -> f64 {
        self
    }
}
