//! Logarithms that agree with Go's to the last digit.

use std::f64::consts::LN_2;

/// Returns the binary logarithm as Go does: the logarithm of the fraction in [0.5, 1) plus the
/// exponent. Near one, Rust's logarithm is more exact, but differs from Prometheus.
pub fn log2(value: f64) -> f64 {
    // The exponent field of zero, subnormal, infinite and NaN is not a binary exponent.
    if !(f64::MIN_POSITIVE..=f64::MAX).contains(&value) {
        return value.log2();
    }
    const FRACTION_BITS: u64 = (1 << 52) - 1;
    // The fraction starts at a half, not at one, so the bias is 1022 instead of 1023.
    let exponent = (value.to_bits() >> 52) as i32 - 1022;
    let fraction = f64::from_bits(value.to_bits() & FRACTION_BITS | 0.5f64.to_bits());
    // Go returns powers of two exactly, without the product that rounds.
    match fraction == 0.5 {
        true => f64::from(exponent - 1),
        false => fraction.ln() * (1.0 / LN_2) + f64::from(exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::log2;

    #[test]
    fn logarithms_are_those_of_go() {
        // From `math.Log2` of Go 1.26.
        for (value, expected) in [
            (1.0, 0.0),
            (8.0, 3.0),
            (0.75, -0.41503749927884376),
            (1.0027112750502025, 0.003906250000000111),
            (1.000000001, 1.4426951855384118e-9),
            (5e-324, -1074.0),
            (f64::INFINITY, f64::INFINITY),
            (0.0, f64::NEG_INFINITY),
        ] {
            assert_eq!(log2(value), expected, "{value}");
        }
        assert!(log2(-1.0).is_nan() && log2(f64::NAN).is_nan());
    }
}
