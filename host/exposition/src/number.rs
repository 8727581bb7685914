//! Parses and formats values and timestamps.

use std::borrow::Cow;

/// Bits of the NaN that upstream stores for every NaN in an exposition.
const ORDINARY_NAN_BITS: u64 = 0x7ff8_0000_0000_0001;

/// Parses a value: a finite number, or the name of an infinity or of NaN.
pub fn parse_value(text: &str) -> Option<f64> {
    // Most values are small integers, which need no general parser.
    if let Some(whole) = small_integer(text) {
        return Some(whole as f64);
    }
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::from_bits(ORDINARY_NAN_BITS));
    }
    let value: f64 = text.parse().ok()?;
    // `1e999` parses as infinity, but only the names of infinity are accepted.
    let is_named = !text.bytes().any(|byte| byte.is_ascii_digit());
    (value.is_finite() || (value.is_infinite() && is_named)).then_some(value)
}

/// Parses up to 15 digits, whose value a float holds exactly.
fn small_integer(text: &str) -> Option<u64> {
    if text.is_empty() || text.len() > 15 {
        return None;
    }
    let mut whole = 0;
    for byte in text.bytes() {
        // Bytes below `0` wrap to large numbers, so that one comparison is enough.
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        whole = whole * 10 + u64::from(digit);
    }
    Some(whole)
}

/// Parses milliseconds without a sign, as the classic format writes timestamps.
pub fn parse_digits(text: &str) -> Option<i64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

/// Parses seconds, as OpenMetrics writes timestamps, to milliseconds. Further digits are dropped; a
/// time out of range becomes the nearest valid time.
pub fn parse_seconds(text: &str) -> Option<i64> {
    exact_seconds(text).or_else(|| {
        let seconds = parse_value(text)?;
        // The cast saturates at both ends of the range.
        seconds.is_finite().then_some((seconds * 1000.0) as i64)
    })
}

/// Parses seconds in plain digits exactly, without a float's rounding.
fn exact_seconds(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (seconds, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !all_digits(seconds) || !all_digits(fraction) {
        return None;
    }
    let digit = |place: usize| i64::from(fraction.as_bytes().get(place).map_or(0, |b| b - b'0'));
    let ms = digit(0) * 100 + digit(1) * 10 + digit(2);
    // After an overflow, the caller converts through a float, which saturates.
    seconds.parse::<i64>().ok()?.checked_mul(sign * 1000)?.checked_add(sign * ms)
}

/// Formats a bound or quantile as OpenMetrics writes it, with a point or an exponent: `1` as `1.0`.
/// Text that is not a number is returned unchanged.
///
/// Source: `normalizeFloatsInLabelValues` in `model/textparse` and `FormatOpenMetricsFloat` in
/// `model/labels` of prometheus/prometheus.
pub fn bound_text<'a>(text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let text = text.into();
    match parse_value(&text) {
        Some(bound) => Cow::Owned(float_text(bound)),
        None => text,
    }
}

/// Formats a number as OpenMetrics writes it.
pub fn float_text(bound: f64) -> String {
    if bound.is_nan() {
        return "NaN".into();
    }
    if bound.is_infinite() {
        return if bound > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    // Turns -0 into 0.
    let bound = bound + 0.0;
    let scientific = format!("{bound:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        // Go's shortest `%g` uses an exponent outside of this range.
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{bound:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_written_as_upstream_writes_them() {
        for (text, wanted) in [
            ("1", "1.0"),
            ("0", "0.0"),
            ("-0", "0.0"),
            ("0.50", "0.5"),
            ("1e5", "100000.0"),
            ("1000000", "1e+06"),
            ("1.25e21", "1.25e+21"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("-1", "-1.0"),
            ("inf", "+Inf"),
            ("x", "x"),
            ("1e999", "1e999"),
        ] {
            assert_eq!(bound_text(text), wanted, "{text}");
        }
    }

    #[test]
    fn values_and_times() {
        for (text, value) in [
            ("1", 1.0),
            ("+1e3", 1e3),
            (".5", 0.5),
            ("+Inf", f64::INFINITY),
            ("-inf", -f64::INFINITY),
        ] {
            assert_eq!(parse_value(text), Some(value), "{text}");
        }
        assert_eq!(parse_value("-0").map(f64::to_bits), Some((-0.0f64).to_bits()));
        assert_eq!(parse_value("NaN").map(f64::to_bits), Some(ORDINARY_NAN_BITS));
        for text in ["", "1e400", "0x1", "1_0", "+NaN", "1 ", "x"] {
            assert_eq!(parse_value(text), None, "{text:?}");
        }
        for (text, ms) in [
            ("1700000000.123", 1_700_000_000_123),
            ("-1.5", -1500),
            ("1.0019", 1001),
            ("1.7e9", 1_700_000_000_000),
            ("0", 0),
            ("9007199254740.993", 9_007_199_254_740_993),
        ] {
            assert_eq!(parse_seconds(text), Some(ms), "{text}");
        }
        for (text, ms) in [("1e300", i64::MAX), ("-99999999999999999999", i64::MIN)] {
            assert_eq!(parse_seconds(text), Some(ms), "{text}");
        }
        for text in ["", ".", "NaN", "Inf", "1e400", "x"] {
            assert_eq!(parse_seconds(text), None, "{text:?}");
        }
    }
}
