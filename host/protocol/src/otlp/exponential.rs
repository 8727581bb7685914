//! Translates exponential histograms to native histograms.
//!
//! ```text
//! OTLP         bucket i of scale s:  (base^i, base^(i+1)]    base = 2^(2^-s), s up to 20
//! Prometheus   bucket i of schema s: (base^(i-1), base^i]    s from -4 to 8
//! ```
//!
//! A scale above 8 is reduced to 8: 2^(s-8) buckets are merged into one.

use super::proto::metrics::v1::ExponentialHistogramDataPoint;
use super::proto::metrics::v1::exponential_histogram_data_point::Buckets;
use super::{is_stale, millis};
use crate::prom::native::{BucketSpan, Histogram, count, zero_count};
use tidepool_model::STALE_NAN;

const SCHEMA_MIN: i32 = -4;
const SCHEMA_MAX: i32 = 8;

/// Half the width of the zero bucket. Upstream ignores a point's own threshold, too.
const ZERO_THRESHOLD: f64 = 1e-128;

/// Largest gap of empty buckets that is filled with zeros, because a new span costs more.
const GAP_FILLED_MAX: i64 = 2;

/// Faults of a data point that prevent a native histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExponentialError {
    #[error("the scale {0} is below {SCHEMA_MIN}, the coarsest that is stored")]
    TooCoarse(i32),
    #[error("a bucket's index does not fit 32 bits")]
    IndexTooLarge,
    #[error("a bucket holds more than 2^63 observations")]
    CountTooLarge,
}

pub fn translate(point: &ExponentialHistogramDataPoint) -> Result<Histogram, ExponentialError> {
    if point.scale < SCHEMA_MIN {
        return Err(ExponentialError::TooCoarse(point.scale));
    }
    let timestamp = millis(point.time_unix_nano);
    let schema = point.scale.min(SCHEMA_MAX);
    let empty = Histogram {
        schema,
        timestamp,
        zero_threshold: ZERO_THRESHOLD,
        zero_count: zero_count(0),
        ..Histogram::default()
    };
    if is_stale(point.flags) {
        // The NaN in the sum marks the histogram as stale; a stale point has no observations.
        return Ok(Histogram { sum: STALE_NAN, count: count(0), ..empty });
    }
    // A shift by 64 or more would overflow; after 63, only the sign of the index is left.
    let shift = point.scale.abs_diff(schema).min(63);
    let (positive_spans, positive_deltas) = layout(point.positive.as_ref(), shift)?;
    let (negative_spans, negative_deltas) = layout(point.negative.as_ref(), shift)?;
    Ok(Histogram {
        sum: point.sum.unwrap_or_default(),
        count: count(point.count),
        zero_count: zero_count(point.zero_count),
        positive_spans,
        positive_deltas,
        negative_spans,
        negative_deltas,
        ..empty
    })
}

type Layout = (Vec<BucketSpan>, Vec<i64>);

/// Returns spans, and the delta of each bucket to the previous one.
fn layout(buckets: Option<&Buckets>, shift: u32) -> Result<Layout, ExponentialError> {
    let mut spans: Vec<BucketSpan> = Vec::new();
    let mut deltas = Vec::new();
    // Count of the previous bucket, and the index after it.
    let (mut before, mut next) = (0, 0);
    for (index, count) in merged(buckets, shift)? {
        let gap = index - next;
        match spans.last_mut() {
            Some(span) if gap <= GAP_FILLED_MAX => {
                // Indices ascend, so the gap is not negative.
                span.length += gap as u32 + 1;
                for _ in 0..gap {
                    deltas.push(-before);
                    before = 0;
                }
            }
            _ => {
                let offset = i32::try_from(gap).map_err(|_| ExponentialError::IndexTooLarge)?;
                spans.push(BucketSpan { offset, length: 1 });
            }
        }
        deltas.push(count - before);
        (before, next) = (count, index + 1);
    }
    Ok((spans, deltas))
}

/// Returns Prometheus' indices and the counts of buckets that are not empty.
fn merged(buckets: Option<&Buckets>, shift: u32) -> Result<Vec<(i64, i64)>, ExponentialError> {
    let mut merged: Vec<(i64, i64)> = Vec::new();
    let Some(Buckets { offset, bucket_counts }) = buckets else { return Ok(merged) };
    for (index, count) in (i64::from(*offset)..).zip(bucket_counts).filter(|(_, n)| **n > 0) {
        // Rounds down, also below zero. Prometheus' indices are one larger (table above).
        let index = (index >> shift) + 1;
        if i32::try_from(index).is_err() {
            return Err(ExponentialError::IndexTooLarge);
        }
        let count = i64::try_from(*count).map_err(|_| ExponentialError::CountTooLarge)?;
        match merged.last_mut() {
            Some((last, sum)) if *last == index => {
                *sum = sum.checked_add(count).ok_or(ExponentialError::CountTooLarge)?;
            }
            _ => merged.push((index, count)),
        }
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn buckets(offset: i32, bucket_counts: &[u64]) -> Option<Buckets> {
        Some(Buckets { offset, bucket_counts: bucket_counts.to_vec() })
    }

    /// Index and count of the buckets that are not empty.
    fn spread((spans, deltas): &Layout) -> BTreeMap<i64, i64> {
        let mut found = BTreeMap::new();
        let (mut index, mut count, mut deltas) = (0, 0, deltas.iter());
        for span in spans {
            index += i64::from(span.offset);
            for delta in deltas.by_ref().take(span.length as usize) {
                count += delta;
                if count != 0 {
                    found.insert(index, count);
                }
                index += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        found
    }

    #[test]
    fn indices_are_one_more_and_small_gaps_are_filled() -> Result<(), ExponentialError> {
        let (spans, deltas) = layout(buckets(-2, &[0, 4, 0, 0, 3, 0, 0, 0, 5, 0]).as_ref(), 0)?;
        let spans: Vec<_> = spans.iter().map(|span| (span.offset, span.length)).collect();
        assert_eq!(spans, [(0, 4), (3, 1)]);
        assert_eq!(deltas, [4, -4, 0, 3, 2]);
        assert_eq!(layout(buckets(3, &[0, 0]).as_ref(), 0)?, Layout::default());
        assert_eq!(layout(None, 0)?, Layout::default());
        Ok(())
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
        let point = |scale, positive| ExponentialHistogramDataPoint {
            scale,
            positive,
            ..ExponentialHistogramDataPoint::default()
        };
        assert_eq!(translate(&point(-5, None)), Err(ExponentialError::TooCoarse(-5)));
        let far = translate(&point(0, buckets(i32::MAX, &[1])));
        assert_eq!(far, Err(ExponentialError::IndexTooLarge));
        let many = translate(&point(0, buckets(0, &[u64::MAX])));
        assert_eq!(many, Err(ExponentialError::CountTooLarge));
        assert!(translate(&point(i32::MAX, buckets(i32::MIN, &[1]))).is_ok());
    }

    proptest! {
        /// A reduced scale keeps each observation in the bucket that covers it.
        #[test]
        fn no_observation_changes_its_bucket(
            offset in -100i32..100,
            counts in prop::collection::vec(prop_oneof![Just(0u64), 0u64..5], 0..60),
            shift in 0u32..6,
        ) {
            let mut wanted = BTreeMap::new();
            for (i, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let index = (i64::from(offset) + i as i64).div_euclid(1 << shift) + 1;
                *wanted.entry(index).or_insert(0) += *count as i64;
            }
            let found = layout(buckets(offset, &counts).as_ref(), shift);
            prop_assert_eq!(found.map(|found| spread(&found)), Ok(wanted));
        }
    }
}
