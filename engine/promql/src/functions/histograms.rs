//! Functions of one native histogram.

use super::{Body, Dropped, Entry};
use crate::kahan;
use crate::model::Histogram;

pub(super) const TABLE: &[Entry] = &[
    of_histogram("histogram_avg", |histogram| histogram.sum / histogram.count),
    of_histogram("histogram_count", |histogram| histogram.count),
    of_histogram("histogram_stddev", |histogram| variance(histogram).sqrt()),
    of_histogram("histogram_stdvar", variance),
    of_histogram("histogram_sum", |histogram| histogram.sum),
];

const fn of_histogram(name: &'static str, body: fn(&Histogram) -> f64) -> Entry {
    Entry { name, body: Body::Histogram(body), dropped: Dropped::Name }
}

/// Returns the variance. Observations are taken to be in the middle of their bucket: the arithmetic
/// mean of custom bounds, zero in the zero bucket, else the geometric mean of the bounds.
fn variance(histogram: &Histogram) -> f64 {
    let mean = histogram.sum / histogram.count;
    let (mut variance, mut lost) = (0.0, 0.0);
    // An empty bucket without a bound would add 0 × ∞, which is NaN.
    for bucket in histogram.buckets().filter(|bucket| bucket.count != 0.0) {
        let middle = if histogram.has_custom_buckets() {
            (bucket.upper + bucket.lower) / 2.0
        } else if bucket.lower <= 0.0 && bucket.upper >= 0.0 {
            0.0
        } else {
            let middle = (bucket.upper * bucket.lower).sqrt();
            if bucket.upper < 0.0 { -middle } else { middle }
        };
        let delta = middle - mean;
        kahan::add(bucket.count * delta * delta, &mut variance, &mut lost);
    }
    (variance + lost) / histogram.count
}
