//! Floats as Go's `%g` prints them: the fewest digits that read back as the same number, with an
//! exponent where it is below -4 or above 5.

use std::fmt::Write as _;

/// From this power of ten on, numbers are written with an exponent.
const EXPONENT_MAX: i32 = 6;

/// Below this power of ten, numbers are written with an exponent.
const EXPONENT_MIN: i32 = -4;

/// Appends a float.
pub fn put_float(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
        return;
    }
    // Rust's own exponent form has the same digits: `-1.25e-7`.
    let start = out.len();
    // Writing to a string does not fail, here and below.
    let _ = write!(out, "{value:e}");
    let scientific = out.split_off(start);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (EXPONENT_MIN..EXPONENT_MAX).contains(&exponent) {
        let _ = write!(out, "{value}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: f64) -> String {
        let mut out = String::new();
        put_float(&mut out, value);
        out
    }

    #[test]
    fn floats_look_as_go_prints_them() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (123456.0, "123456"),
            (1e6, "1e+06"),
            (1_700_000_000_123.0, "1.700000000123e+12"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e300, "1.5e+300"),
            (5e-324, "5e-324"),
            (-2.5e-7, "-2.5e-07"),
            (1e100, "1e+100"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let read: f64 = text(value).parse().map_err(|_| TestCaseError::fail(text(value)))?;
            prop_assert!(read.to_bits() == bits || (read.is_nan() && value.is_nan()));
        }
    }
}
