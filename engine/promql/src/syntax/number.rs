//! Numbers and durations as literals write them.

use super::quote::quoted;
use std::fmt::Write as _;

/// Units of durations in milliseconds, the largest first.
const UNITS: [(&str, u64); 7] = [
    ("y", 365 * 24 * 3600 * 1000),
    ("w", 7 * 24 * 3600 * 1000),
    ("d", 24 * 3600 * 1000),
    ("h", 3600 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];

/// Longest duration in milliseconds: Go's durations are 63 bits of nanoseconds.
const DURATION_MS_MAX: u64 = i64::MAX as u64 / 1_000_000;

/// Parses a duration such as `1h30m` to milliseconds; the error is upstream's text.
pub fn duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("not a valid duration string: {}", quoted(text));
    match text {
        "0" => return Ok(0),
        "" => return Err("empty duration string".into()),
        _ => {}
    }
    let (mut rest, mut sum, mut units) = (text, 0u64, &UNITS[..]);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(invalid)?;
        let count: u64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let letters = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let unit = &rest[..letters];
        rest = &rest[letters..];
        // Unknown units have an error of their own; known units in the wrong order are invalid.
        if !UNITS.iter().any(|(name, _)| *name == unit) {
            return Err(format!("unknown unit {} in duration {}", quoted(unit), quoted(text)));
        }
        let place = units.iter().position(|(name, _)| *name == unit).ok_or_else(invalid)?;
        sum = (count.checked_mul(units[place].1))
            .and_then(|ms| sum.checked_add(ms))
            .filter(|ms| *ms <= DURATION_MS_MAX)
            .ok_or("duration out of range")?;
        // Only smaller units may follow, so each unit occurs once.
        units = &units[place + 1..];
    }
    Ok(sum as i64)
}

/// Appends a duration in milliseconds. Years and weeks are written only if nothing remains.
pub fn push_duration(ms: i64, out: &mut String) {
    if ms == 0 {
        return out.push_str("0s");
    }
    if ms < 0 {
        out.push('-');
    }
    let mut left = ms.unsigned_abs();
    for (name, unit) in UNITS {
        let is_whole = left.is_multiple_of(unit) || !matches!(name, "y" | "w");
        if is_whole && left >= unit {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}{name}", left / unit);
            left %= unit;
        }
    }
}

/// Parses a number as Go does; the error is upstream's text.
pub fn number(text: &str) -> Result<f64, String> {
    let wrong = |reason| {
        format!("error parsing number: strconv.ParseFloat: parsing {}: {reason}", quoted(text))
    };
    // Upstream tries integers first, which have prefixes and underscores that floats lack.
    if let Some(number) = integer(text) {
        return Ok(number as f64);
    }
    if text.contains('_') || text.starts_with("0x") || text.starts_with("0X") {
        return Err(wrong("invalid syntax"));
    }
    match text.parse::<f64>() {
        // Words such as `inf` are infinite by intention, so only digits are out of range.
        Ok(number) if number.is_infinite() && text.starts_with(|l: char| l.is_ascii_digit()) => {
            Err(wrong("value out of range"))
        }
        Ok(number) => Ok(number),
        Err(_) => Err(wrong("invalid syntax")),
    }
}

/// Parses 63-bit integers: decimal, octal (`0`), hexadecimal (`0x`); underscores separate digits.
fn integer(text: &str) -> Option<i64> {
    let (digits, base) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    // An underscore may follow the prefix directly, as in `0x_1`.
    let has_prefix = base != 10;
    let lone = |part: &str| part.is_empty();
    let mut parts = digits.split('_');
    let first = parts.next()?;
    if (lone(first) && !(has_prefix && digits.len() > 1)) || parts.any(lone) {
        return None;
    }
    match digits.contains('_') {
        true => i64::from_str_radix(&digits.replace('_', ""), base).ok(),
        false => i64::from_str_radix(digits, base).ok(),
    }
}
