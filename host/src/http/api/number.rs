//! Values and times as Prometheus writes them in JSON: values are texts, times are seconds.

/// Between these, numbers are written without an exponent (`util/jsonutil` in prometheus/prometheus).
const PLAIN_MIN: f64 = 1e-6;
const PLAIN_MAX: f64 = 1e21;

/// Writes a value.
pub fn put_value(bytes: &mut Vec<u8>, value: f64) {
    let text = match value.abs() {
        _ if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY if value > 0.0 => "+Inf".to_owned(),
        f64::INFINITY => "-Inf".to_owned(),
        0.0 | PLAIN_MIN..PLAIN_MAX => value.to_string(),
        _ => with_exponent(value),
    };
    bytes.push(b'"');
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(b'"');
}

/// With a sign and two digits at least in the exponent.
fn with_exponent(value: f64) -> String {
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

/// Writes a time.
pub fn put_seconds(bytes: &mut Vec<u8>, time_ms: i64) {
    let (seconds, ms) = (time_ms.unsigned_abs() / 1000, time_ms.unsigned_abs() % 1000);
    let sign = if time_ms < 0 { "-" } else { "" };
    let text = match ms {
        0 => format!("{sign}{seconds}"),
        ms => format!("{sign}{seconds}.{ms:03}"),
    };
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_prometheus_writes_them() {
        for (value, expected) in [
            (0.0, "\"0\""),
            (-0.0, "\"-0\""),
            (6.0, "\"6\""),
            (-1.5, "\"-1.5\""),
            (1e-6, "\"0.000001\""),
            (9.9e-7, "\"9.9e-07\""),
            (1e20, "\"100000000000000000000\""),
            (1e21, "\"1e+21\""),
            (-1.25e300, "\"-1.25e+300\""),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"+Inf\""),
            (f64::NEG_INFINITY, "\"-Inf\""),
        ] {
            let mut bytes = Vec::new();
            put_value(&mut bytes, value);
            assert_eq!(bytes, expected.as_bytes(), "{value}");
        }
    }

    #[test]
    fn times_are_seconds_with_a_fraction_if_they_have_one() {
        for (time_ms, expected) in
            [(0, "0"), (1_600_096_945_479, "1600096945.479"), (70, "0.070"), (-1500, "-1.500")]
        {
            let mut bytes = Vec::new();
            put_seconds(&mut bytes, time_ms);
            assert_eq!(bytes, expected.as_bytes(), "{time_ms}");
        }
    }
}
