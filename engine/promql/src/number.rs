//! Numbers as text, as upstream writes them.
//!
//! Source: Go, `strconv.FormatFloat`.

/// Shortest text that reads back as the same number, without exponent: how values of samples and
/// labels are written (Go's `'f', -1`).
pub fn plain(value: f64) -> String {
    match special(value) {
        Some(text) => text.to_string(),
        None => format!("{value}"),
    }
}

/// Shortest text that reads back as the same number; with an exponent below 1e-4 and from 1e6 (Go's
/// `%g` and `%v`).
pub fn general(value: f64) -> String {
    match special(value) {
        Some(text) => text.to_string(),
        None if value == 0.0 => plain(value),
        None => by_exponent(value, &format!("{value:e}"), -4, 6),
    }
}

/// At most so many significant digits, without trailing zeros (Go's `%.2g`).
pub fn general_rounded(value: f64, digits: usize) -> String {
    if let Some(text) = special(value) {
        return text.to_string();
    }
    let rounded = format!("{value:.*e}", digits.max(1) - 1);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    let text = format!("{mantissa}e{exponent}");
    let value = text.parse().unwrap_or(value);
    by_exponent(value, &text, -4, digits.max(1) as i32)
}

/// Appends a value of JSON's answers, without quotes: an exponent below 1e-6 and from 1e21.
pub fn push_json(value: f64, out: &mut Vec<u8>) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_integer = value.abs() < EXACT && value as i64 as f64 == value;
    if is_integer && value.to_bits() != (-0.0f64).to_bits() {
        return push_integer(value as i64, out);
    }
    let text = match special(value) {
        Some(text) => return out.extend_from_slice(text.as_bytes()),
        None if value == 0.0 => plain(value),
        None if (1e-6..1e21).contains(&value.abs()) => format!("{value}"),
        None => by_exponent(value, &format!("{value:e}"), -6, 21),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends a time in milliseconds as seconds, with three decimals or none.
pub fn push_seconds(time_ms: i64, out: &mut Vec<u8>) {
    if time_ms < 0 {
        out.push(b'-');
    }
    let time_ms = time_ms.unsigned_abs();
    push_digits(time_ms / 1000, 1, out);
    if !time_ms.is_multiple_of(1000) {
        out.push(b'.');
        push_digits(time_ms % 1000, 3, out);
    }
}

fn push_integer(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    push_digits(value.unsigned_abs(), 1, out);
}

fn push_digits(mut value: u64, at_least: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while value > 0 || digits.len() - start < at_least {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        value if value.is_nan() => Some("NaN"),
        _ => None,
    }
}

/// `scientific` if the exponent is below `low` or at least `high`, else the plain form. Go writes at
/// least two digits of an exponent, and its sign.
fn by_exponent(value: f64, scientific: &str, low: i32, high: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < low || exponent >= high {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_go() {
        // From `fmt.Printf` and `strconv.FormatFloat`: `%g`, `'f', -1`, `%.2g`.
        for (value, as_general, as_plain, as_rounded) in [
            (0.0, "0", "0", "0"),
            (-0.0, "-0", "-0", "-0"),
            (100000.0, "100000", "100000", "1e+05"),
            (1234567.0, "1.234567e+06", "1234567", "1.2e+06"),
            (1e20, "1e+20", "100000000000000000000", "1e+20"),
            (0.0001, "0.0001", "0.0001", "0.0001"),
            (0.00001, "1e-05", "0.00001", "1e-05"),
            (0.00012345, "0.00012345", "0.00012345", "0.00012"),
            (9.5e-7, "9.5e-07", "0.00000095", "9.5e-07"),
            (2.5e300, "2.5e+300", &format!("25{}", "0".repeat(299)), "2.5e+300"),
            (123.456, "123.456", "123.456", "1.2e+02"),
            (99.9, "99.9", "99.9", "1e+02"),
            (1.05, "1.05", "1.05", "1.1"),
            (20.0, "20", "20", "20"),
            (f64::INFINITY, "+Inf", "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf", "-Inf"),
            (f64::NAN, "NaN", "NaN", "NaN"),
        ] {
            assert_eq!(general(value), as_general);
            assert_eq!(plain(value), as_plain);
            assert_eq!(general_rounded(value, 2), as_rounded);
        }
    }

    #[test]
    fn json_takes_an_exponent_at_the_ends() {
        // From Go's `jsonutil.MarshalFloat`.
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e22, "-1.5e+22"),
            (0.000001, "0.000001"),
            (0.0000009, "9e-07"),
            (1e-10, "1e-10"),
            (1e-300, "1e-300"),
            (-12.0, "-12"),
            (1234567890.5, "1234567890.5"),
            (f64::NAN, "NaN"),
        ] {
            let mut out = Vec::new();
            push_json(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
