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

/// Variance, with the observations of a bucket in its middle: the arithmetic one of custom buckets,
/// zero in the zero bucket, else the geometric one.
fn variance(histogram: &Histogram) -> f64 {
    let mean = histogram.sum / histogram.count;
    let (mut variance, mut lost) = (0.0, 0.0);
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
