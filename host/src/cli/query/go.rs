//! Numbers, texts and durations as Go's `strconv`, `fmt`, `encoding/json` and `time` write and read
//! them: what promtool prints is made of these.

use std::fmt::Write as _;

/// Nanoseconds of the units of a duration. Days, weeks and years are Prometheus'; Go has none of them.
const UNITS: [(&str, f64); 10] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
    ("w", 604_800e9),
    ("y", 31_536_000e9),
];

/// What no digits stand for.
fn special(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

/// The shortest text that reads as the same number, without an exponent.
pub fn plain(value: f64) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let text = value.to_string();
    match text.split_once('.') {
        Some((_, decimals)) => even(format!("{value:.*}", decimals.len()), &text, value),
        None => text,
    }
}

/// With so many digits behind the point.
pub fn fixed(value: f64, digits: usize) -> String {
    special(value).map_or_else(|| format!("{value:.digits$}"), str::to_owned)
}

/// The shortest text that reads as the same number; with an exponent below 0.0001, and from a million.
pub fn general(value: f64) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let text = shortest(value);
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.parse::<i32>() {
        Ok(exponent) if (-4..6).contains(&exponent) => value.to_string(),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        Err(_) => text,
    }
}

/// The fewest digits that read as the same number, with an exponent.
fn shortest(value: f64) -> String {
    let text = format!("{value:e}");
    let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    even(format!("{value:.*e}", digits.saturating_sub(1)), &text, value)
}

/// Of two texts of the same length that are equally near, Go takes the one that ends with an even
/// digit: so does rounding to as many digits.
fn even(rounded: String, shortest: &str, value: f64) -> String {
    if rounded.parse() == Ok(value) { rounded } else { shortest.to_owned() }
}

/// Appends the text in double quotes.
pub fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        // Writing to a string cannot fail.
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            ' '..='~' => out.push(letter),
            '\0'..='\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(letter));
            }
            _ if is_printable(letter) => out.push(letter),
            '\u{80}'..='\u{ffff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            _ => {
                let _ = write!(out, "\\U{:08x}", u32::from(letter));
            }
        }
    }
    out.push('"');
}

/// Whether a letter can be seen. The library tells by how it escapes; the letter before it is there
/// for marks, which are escaped only where nothing carries them.
fn is_printable(letter: char) -> bool {
    ['a', letter].iter().collect::<String>().escape_debug().count() == 2
}

/// JSON as Go writes it for a page of HTML, which is its default. These letters stand in texts only.
pub fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            _ => out.push(letter),
        }
    }
    out
}

/// A duration such as `1h30m`, `-1.5s` or `1d`, in nanoseconds. For use as clap's parser.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not a duration such as 500ms, 15s or 1h30m");
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned == "0" {
        return Ok(0);
    }
    let (mut rest, mut total) = (unsigned, 0.0);
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = rest.find(|c| !is_number(c)).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(end);
        let (unit, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        total += number.parse::<f64>().map_err(|_| wrong())? * unit;
        rest = after;
    }
    match unsigned.is_empty() || total >= i64::MAX as f64 {
        true => Err(wrong()),
        false => Ok(if is_negative { -(total.round() as i64) } else { total.round() as i64 }),
    }
}

/// A duration of nanoseconds as Go prints it: `1h0m0s`, `1.5s`, `500ms`.
pub fn duration_text(nanos: i64) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let part = |unit_nanos: u64| plain_decimal(nanos, unit_nanos);
    let text = match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", part(1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", part(1_000_000)),
        _ => {
            let minutes = nanos / 60_000_000_000;
            let seconds = plain_decimal(nanos % 60_000_000_000, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// A number of units, with a fraction if there is one.
fn plain_decimal(nanos: u64, unit_nanos: u64) -> String {
    let digits = unit_nanos.ilog10() as usize;
    let text = format!("{}.{:0digits$}", nanos / unit_nanos, nanos % unit_nanos);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Go's `strconv.FormatFloat(v, 'f', -1, 64)`, `fmt.Sprintf("%g", v)` and `%f`.
    #[test]
    fn numbers_are_gos() {
        for (value, as_plain, as_general, as_fixed) in [
            (0.0, "0", "0", "0.000000"),
            (-0.0, "-0", "-0", "-0.000000"),
            (1.5, "1.5", "1.5", "1.500000"),
            (123_456.0, "123456", "123456", "123456.000000"),
            (1e6, "1000000", "1e+06", "1000000.000000"),
            (1_234_567.5, "1234567.5", "1.2345675e+06", "1234567.500000"),
            (0.0001, "0.0001", "0.0001", "0.000100"),
            (0.00001, "0.00001", "1e-05", "0.000010"),
            (2f64.powi(-25), "0.000000029802322387695312", "2.9802322387695312e-08", "0.000000"),
            (1e21, "1000000000000000000000", "1e+21", "1000000000000000000000.000000"),
            (f64::NAN, "NaN", "NaN", "NaN"),
            (f64::INFINITY, "+Inf", "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf", "-Inf"),
        ] {
            assert_eq!(plain(value), as_plain);
            assert_eq!(general(value), as_general);
            assert_eq!(fixed(value, 6), as_fixed);
        }
        assert_eq!(plain(1e-7), "0.0000001");
        assert_eq!(fixed(2.0 / 3.0, 3), "0.667");
    }

    /// By Go's `strconv.Quote` and `encoding/json`.
    #[test]
    fn texts_are_gos() {
        let mut quoted = String::new();
        push_quoted("a\"b\\\n\u{1}\u{7f}\u{a0}\u{e9}e\u{301}\u{e0001}", &mut quoted);
        assert_eq!(quoted, "\"a\\\"b\\\\\\n\\x01\\x7f\\u00a0\u{e9}e\u{301}\\U000e0001\"");
        assert_eq!(
            escaped_json("\"<a>&\u{2028}\u{e9}\""),
            "\"\\u003ca\\u003e\\u0026\\u2028\u{e9}\""
        );
    }

    /// By Go's `time.ParseDuration` and `Duration.String`.
    #[test]
    fn durations_are_gos() {
        for (text, nanos, printed) in [
            ("1h", 3_600_000_000_000, "1h0m0s"),
            ("90s", 90_000_000_000, "1m30s"),
            ("1.5s", 1_500_000_000, "1.5s"),
            ("1h0.5m", 3_630_000_000_000, "1h0m30s"),
            ("500ms", 500_000_000, "500ms"),
            ("1500us", 1_500_000, "1.5ms"),
            ("1500ns", 1500, "1.5\u{b5}s"),
            ("7ns", 7, "7ns"),
            ("-15s", -15_000_000_000, "-15s"),
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            ("+1m0.000000001s", 60_000_000_001, "1m0.000000001s"),
            // Not Go's, but Prometheus'.
            ("1d", 86_400_000_000_000, "24h0m0s"),
        ] {
            assert_eq!(parse_duration(text), Ok(nanos), "{text}");
            assert_eq!(duration_text(nanos), printed, "{text}");
        }
        for wrong in ["", "-", "1", "h", "1 s", "1x", "1..5s", ".s", "1e3s", "300000000000000y"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
