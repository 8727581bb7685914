//! Quantiles and fractions of classic histograms, whose buckets are cumulative.

use std::cmp::Ordering;

use crate::annotations::Monotonicity;

/// Relative difference of counts below which the difference is a rounding error.
const SMALL_DELTA: f64 = 1e-12;

/// A cumulative bucket of a classic histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassicBucket {
    /// Upper bound, the value of its `le` label.
    pub upper: f64,
    /// Number of observations up to the bound.
    pub count: f64,
}

/// Returns the quantile, interpolated within its bucket. Sorts the buckets, merges buckets of equal
/// bounds, and raises counts to the counts of lower buckets. A quantile in the last bucket is the
/// lower bound of that bucket. The first bucket begins at zero; if its upper bound is not positive,
/// the quantile is this bound. The result is NaN without observations, with fewer than two buckets,
/// or without a bucket for infinity.
///
/// Also returns the counts that were raised, for an evaluation at `time_ms`.
pub fn bucket_quantile(
    q: f64,
    buckets: &mut Vec<ClassicBucket>,
    time_ms: i64,
) -> (f64, Option<Monotonicity>) {
    if q.is_nan() {
        return (f64::NAN, None);
    }
    if q < 0.0 {
        return (f64::NEG_INFINITY, None);
    }
    if q > 1.0 {
        return (f64::INFINITY, None);
    }
    if !sort(buckets) {
        return (f64::NAN, None);
    }
    // A rank is looked up by bisection, which needs counts that do not fall.
    let raised = raise(buckets, time_ms);
    let last = buckets.len() - 1;
    let observations = buckets[last].count;
    if last == 0 || observations == 0.0 {
        return (f64::NAN, raised);
    }
    let rank = q * observations;
    // A NaN count is below any rank, as in the comparison of Go's `sort.Search`.
    let is_below = |bucket: &ClassicBucket| {
        !matches!(bucket.count.partial_cmp(&rank), Some(Ordering::Greater | Ordering::Equal))
    };
    let place = buckets[..last].partition_point(is_below);
    let bucket = buckets[place];
    let quantile = if place == last {
        buckets[last - 1].upper
    } else if place == 0 && bucket.upper <= 0.0 {
        bucket.upper
    } else {
        let below = match place {
            0 => ClassicBucket { upper: 0.0, count: 0.0 },
            place => buckets[place - 1],
        };
        let share = (rank - below.count) / (bucket.count - below.count);
        below.upper + (bucket.upper - below.upper) * share
    };
    (quantile, raised)
}

/// Returns the fraction of observations between two values, interpolated within buckets. The
/// buckets are sorted and merged as by [`bucket_quantile`].
pub fn bucket_fraction(lower: f64, upper: f64, buckets: &mut Vec<ClassicBucket>) -> f64 {
    if !sort(buckets) {
        return f64::NAN;
    }
    let count = buckets[buckets.len() - 1].count;
    if count == 0.0 || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    (rank(upper, buckets, count) - rank(lower, buckets, count)) / count
}

/// Returns the number of observations below a value.
fn rank(value: f64, buckets: &[ClassicBucket], count: f64) -> f64 {
    let mut below = 0.0;
    // Upstream starts the first bucket at zero, unless its upper bound is not positive.
    let mut lower = if buckets[0].upper <= 0.0 { f64::NEG_INFINITY } else { 0.0 };
    let mut rank = None;
    for bucket in buckets {
        if lower >= value {
            rank = Some(below);
        } else if bucket.upper > value {
            rank = Some(match lower {
                // Without a lower bound there is nothing to interpolate between.
                f64::NEG_INFINITY => bucket.count,
                _ => below + (bucket.count - below) * (value - lower) / (bucket.upper - lower),
            });
        }
        if rank.is_some() {
            break;
        }
        below = bucket.count;
        lower = bucket.upper;
    }
    match rank {
        // Counts may be inconsistent: they are not made monotonic here.
        Some(rank) if rank > count => count,
        Some(rank) => rank,
        None => count,
    }
}

/// Sorts buckets and merges buckets of equal bounds; false without a bucket for infinity.
fn sort(buckets: &mut Vec<ClassicBucket>) -> bool {
    // The sort is stable, so counts of equal bounds are added in the order of their series.
    buckets.sort_by(|a, b| a.upper.total_cmp(&b.upper));
    if buckets.last().is_none_or(|last| last.upper != f64::INFINITY) {
        return false;
    }
    buckets.dedup_by(|bucket, before| {
        let is_equal = bucket.upper == before.upper;
        if is_equal {
            before.count += bucket.count;
        }
        is_equal
    });
    true
}

fn raise(buckets: &mut [ClassicBucket], time_ms: i64) -> Option<Monotonicity> {
    let mut raised: Option<Monotonicity> = None;
    let mut before = buckets[0].count;
    for bucket in &mut buckets[1..] {
        let count = bucket.count;
        if is_almost(before, count) {
            // Rounding differs between scrapes and sums, so it is corrected without an annotation.
            bucket.count = before;
        } else if count < before {
            bucket.count = before;
            let raised = raised.get_or_insert(Monotonicity {
                first_ms: time_ms,
                last_ms: time_ms,
                min_bucket: f64::INFINITY,
                max_bucket: f64::NEG_INFINITY,
                max_diff: 0.0,
                samples: 1,
            });
            raised.min_bucket = raised.min_bucket.min(bucket.upper);
            raised.max_bucket = raised.max_bucket.max(bucket.upper);
            raised.max_diff = raised.max_diff.max(before - count);
        } else {
            before = count;
        }
    }
    raised
}

/// Returns whether two counts differ by rounding only, as upstream's `util/almost`.
fn is_almost(a: f64, b: f64) -> bool {
    if a == b || a.is_nan() && b.is_nan() {
        return true;
    }
    let (sum, difference) = (a.abs() + b.abs(), (a - b).abs());
    // A relative difference is meaningless next to zero.
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < SMALL_DELTA * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < SMALL_DELTA
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(buckets: &[(f64, f64)]) -> Vec<ClassicBucket> {
        buckets
            .iter()
            .map(|(upper, count)| ClassicBucket { upper: *upper, count: *count })
            .collect()
    }

    #[test]
    fn quantiles_are_those_of_upstream() {
        // Consistent buckets from upstream's `TestBucketQuantile_ForcedMonotonicity`.
        let inf = f64::INFINITY;
        let simple = [(10.0, 10.0), (15.0, 15.0), (20.0, 15.0), (30.0, 15.0), (inf, 15.0)];
        for (q, expected) in
            [(1.0, 15.0), (0.99, 14.85), (0.9, 13.5), (0.5, 7.5), (-0.1, -inf), (1.1, inf)]
        {
            let (quantile, raised) = bucket_quantile(q, &mut buckets(&simple), 0);
            assert!((quantile - expected).abs() < 1e-12 || quantile == expected, "{q}: {quantile}");
            assert_eq!(raised, None);
        }
    }

    #[test]
    fn lower_counts_are_raised() {
        let inf = f64::INFINITY;
        let falling = [(inf, 10.0), (30.0, 15.0), (20.0, 12.0), (15.0, 14.0), (10.0, 10.0)];
        let (_, raised) = bucket_quantile(0.5, &mut buckets(&falling), 7);
        let expected = Monotonicity {
            first_ms: 7,
            last_ms: 7,
            min_bucket: 20.0,
            max_bucket: inf,
            max_diff: 5.0,
            samples: 1,
        };
        assert_eq!(raised, Some(expected));
    }

    #[test]
    fn roundings_are_no_decrease() {
        let inf = f64::INFINITY;
        let nearly = [(1.0, 5.000000000000002), (2.0, 5.0), (inf, 5.0)];
        let (quantile, raised) = bucket_quantile(1.0, &mut buckets(&nearly), 0);
        assert_eq!((quantile, raised), (1.0, None));
    }

    #[test]
    fn without_a_bucket_for_infinity_there_is_no_quantile() {
        let (quantile, _) = bucket_quantile(0.5, &mut buckets(&[(1.0, 1.0), (2.0, 2.0)]), 0);
        assert!(quantile.is_nan());
        assert!(bucket_fraction(0.0, 1.0, &mut Vec::new()).is_nan());
    }

    #[test]
    fn fractions_are_interpolated() {
        let inf = f64::INFINITY;
        let all = [(0.1, 2.0), (0.2, 6.0), (inf, 8.0)];
        for (lower, upper, expected) in
            [(-inf, inf, 1.0), (0.0, 0.1, 0.25), (0.05, 0.15, 0.375), (0.2, 9.0, 0.0)]
        {
            let fraction = bucket_fraction(lower, upper, &mut buckets(&all));
            assert!((fraction - expected).abs() < 1e-12, "{lower} {upper}: {fraction}");
        }
    }
}
