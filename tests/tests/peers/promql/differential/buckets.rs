//! JSON form of a whole histogram, computed from the definition of its schema and not by the
//! engine's code. Source: `docs/specs/native_histograms.md` of prometheus/docs.

use tidepool_tests::histogram::CUSTOM_SCHEMA;
use tidepool_tests::proto::prometheus::histogram::{Count, ZeroCount};
use tidepool_tests::proto::prometheus::{BucketSpan, Histogram};

/// JSON's numbers for the bounds that a bucket includes.
const UPPER: f64 = 0.0;
const LOWER: f64 = 1.0;
const BOTH: f64 = 3.0;

/// Returns the numbers of a histogram in the order of the keys in JSON: four of each bucket that is
/// not empty, the count, the sum.
pub fn as_in_json(message: &Histogram) -> Vec<f64> {
    let mut numbers = Vec::new();
    let mut push = |bucket: [f64; 4]| {
        if bucket[3] != 0.0 {
            numbers.extend(bucket);
        }
    };
    let is_custom = message.schema == CUSTOM_SCHEMA;
    // Buckets end at the zero bucket's bound.
    let zero = message.zero_threshold;
    let mut negative = buckets(&message.negative_spans, &message.negative_counts);
    negative.reverse();
    for (index, count) in negative {
        let [lower, upper] = [index - 1, index].map(|index| bound(message.schema, index));
        push([LOWER, -upper, -lower.max(zero), count]);
    }
    let zero_count = match message.zero_count {
        Some(ZeroCount::ZeroCountFloat(count)) => count,
        Some(ZeroCount::ZeroCountInt(_)) => panic!("whole counts in an answer"),
        None => 0.0,
    };
    // Upstream shows no zero bucket with a negative count.
    push([BOTH, -zero, zero, zero_count.max(0.0)]);
    for (index, count) in buckets(&message.positive_spans, &message.positive_counts) {
        let bound = |index: i64| match is_custom {
            false => bound(message.schema, index),
            true if index < 0 => f64::NEG_INFINITY,
            true => message.custom_values.get(index as usize).copied().unwrap_or(f64::INFINITY),
        };
        let ends = if is_custom && index == 0 { BOTH } else { UPPER };
        let lower = if is_custom { bound(index - 1) } else { bound(index - 1).max(zero) };
        push([ends, lower, bound(index), count]);
    }
    let count = match message.count {
        Some(Count::CountFloat(count)) => count,
        Some(Count::CountInt(_)) => panic!("whole counts in an answer"),
        None => 0.0,
    };
    numbers.extend([count, message.sum]);
    numbers
}

/// Returns the index of each bucket and its count.
fn buckets(spans: &[BucketSpan], counts: &[f64]) -> Vec<(i64, f64)> {
    let mut next = 0;
    let mut indexes = Vec::new();
    for span in spans {
        next += i64::from(span.offset);
        indexes.extend(next..next + i64::from(span.length));
        next += i64::from(span.length);
    }
    assert_eq!(indexes.len(), counts.len(), "buckets of spans");
    indexes.into_iter().zip(counts.iter().copied()).collect()
}

/// Returns the upper bound of a bucket: two to the power of its index by the resolution. The last
/// bucket of finite numbers ends at the largest one, since its bound is not finite.
fn bound(schema: i32, index: i64) -> f64 {
    match (index as f64 * f64::from(-schema).exp2()).exp2() {
        bound if bound.is_infinite() => {
            match ((index - 1) as f64 * f64::from(-schema).exp2()) < 1024.0 {
                true => f64::MAX,
                false => f64::INFINITY,
            }
        }
        bound => bound,
    }
}
