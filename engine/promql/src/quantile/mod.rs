//! Quantiles of values, of classic buckets and of native histograms.
//!
//! Source: prometheus/prometheus, `promql/quantile.go`.

mod classic;
mod native;

pub use classic::{ClassicBucket, bucket_fraction, bucket_quantile};
pub use native::{Skew, histogram_fraction, histogram_quantile};

use std::cmp::Ordering;

/// Returns the quantile of `values`, which are reordered; NaN counts as the lowest value. The
/// result is interpolated, NaN without values, and infinite for `q` outside of 0 to 1.
pub fn of_values(q: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    let rank = q * (values.len() - 1) as f64;
    let weight = rank - rank.floor();
    let place = rank.floor() as usize;
    // Selection is linear; a sort would order values that the quantile does not depend on.
    let (_, lower, above) = values.select_nth_unstable_by(place, lowest_first);
    let lower = *lower;
    // The values above are unordered; the lowest of them has the next rank.
    let upper = above.iter().copied().min_by(lowest_first).unwrap_or(lower);
    lower * (1.0 - weight) + upper * weight
}

/// Compares in ascending order; NaN comes first.
fn lowest_first(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        for (q, expected) in [
            (0.0, 0.0),
            (0.25, 1.0),
            (0.5, 2.0),
            (0.625, 2.5),
            (0.8, 3.2),
            (1.0, 4.0),
            (-1.0, f64::NEG_INFINITY),
            (1.1, f64::INFINITY),
        ] {
            assert_eq!(of_values(q, &mut [3.0, 0.0, 4.0, 1.0, 2.0]), expected);
        }
        assert!(of_values(f64::NAN, &mut [1.0]).is_nan());
        assert!(of_values(0.5, &mut []).is_nan());
    }

    #[test]
    fn what_is_no_number_is_lowest() {
        assert!(of_values(0.0, &mut [3.0, f64::NAN, 1.0]).is_nan());
        assert_eq!(of_values(0.5, &mut [3.0, f64::NAN, 1.0]), 1.0);
        assert_eq!(of_values(1.0, &mut [3.0, f64::NAN, 1.0]), 3.0);
    }
}
