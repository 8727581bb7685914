//! Values of alerts as upstream's API writes them.

/// Writes the shortest digits with an exponent of two digits at least, as Go's format `e`.
pub fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return tidepool_model::number::general(value);
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expectations: Go's `strconv.FormatFloat(value, 'e', -1, 64)`.
    #[test]
    fn values_are_written_as_go_does() {
        for (value, text) in [
            (0.0, "0e+00"),
            (1.0, "1e+00"),
            (-12.5, "-1.25e+01"),
            (1e100, "1e+100"),
            (0.1, "1e-01"),
            (1234567.0, "1.234567e+06"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(scientific(value), text);
        }
    }
}
