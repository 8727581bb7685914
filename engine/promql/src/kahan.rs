//! Sums with Neumaier's compensation of rounding errors.

use crate::model::FloatPoint;

/// Adds `value` to a sum. The rounding error goes into the compensation, which the caller adds once
/// at the end; the compensation is dropped when the sum becomes infinite.
#[inline]
pub fn add(value: f64, sum: &mut f64, compensation: &mut f64) {
    let total = *sum + value;
    // The error of an infinite sum would be NaN and hide the infinity.
    if total.is_infinite() {
        *compensation = 0.0;
    } else if sum.abs() >= value.abs() {
        *compensation += (*sum - total) + value;
    } else {
        *compensation += (value - total) + *sum;
    }
    *sum = total;
}

/// Returns the sum and its compensation; `None` if either becomes infinite or NaN. The error of
/// each addition is computed without a branch on the larger term, and equals that of [`add`].
pub fn finite_sum(floats: &[FloatPoint]) -> Option<(f64, f64)> {
    let (mut sum, mut compensation) = (0.0, 0.0);
    for point in floats {
        let total = sum + point.value;
        let added = total - sum;
        // Knuth's two-sum: no branch, so that the loop can be pipelined.
        compensation += (sum - (total - added)) + (point.value - added);
        sum = total;
    }
    (sum.is_finite() && compensation.is_finite()).then_some((sum, compensation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_ways_lose_the_same(
            values in prop::collection::vec((-1e3..1e3f64, -30..30i32), 0..60),
        ) {
            let value = |(value, exponent): (f64, i32)| value * 2f64.powi(exponent);
            let floats: Vec<_> = values
                .into_iter()
                .map(|pair| FloatPoint { time_ms: 0, value: value(pair) })
                .collect();
            let mut expected = (0.0, 0.0);
            for point in &floats {
                add(point.value, &mut expected.0, &mut expected.1);
            }
            prop_assert_eq!(finite_sum(&floats), Some(expected));
        }
    }

    #[test]
    fn small_terms_survive_large_ones() {
        let (mut sum, mut compensation) = (0.0, 0.0);
        for value in [1.0, 1e100, 1.0, -1e100] {
            add(value, &mut sum, &mut compensation);
        }
        assert_eq!(sum + compensation, 2.0);
    }

    #[test]
    fn infinity_stays() {
        let (mut sum, mut compensation) = (0.0, 0.0);
        for value in [1e308, 1e308, 1.0] {
            add(value, &mut sum, &mut compensation);
        }
        assert_eq!((sum, compensation), (f64::INFINITY, 0.0));
    }
}
