//! Texts and durations in the format of Go's `encoding/json` and `time`, which promtool uses.

use std::fmt::Write as _;

/// Nanoseconds per unit of a duration. Days, weeks and years are Prometheus' units, not Go's.
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

/// Escapes JSON for HTML, as Go does by default. The characters occur only in JSON strings.
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

/// Parses a duration such as `1h30m`, `-1.5s` or `1d` into nanoseconds; for clap.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not a duration such as 500ms, 15s or 1h30m");
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    // As in Go, zero is the only number without a unit.
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

/// Formats nanoseconds like Go's `time.Duration`: `1h0m0s`, `1.5s`, `500ms`.
pub fn duration_text(nanos: i64) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let part = |unit_nanos: u64| plain_decimal(nanos, unit_nanos);
    let text = match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", part(1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", part(1_000_000)),
        // Like Go, prints all smaller units after the largest unit.
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

/// Formats a number of units, with a fraction if there is one.
fn plain_decimal(nanos: u64, unit_nanos: u64) -> String {
    let digits = unit_nanos.ilog10() as usize;
    let text = format!("{}.{:0digits$}", nanos / unit_nanos, nanos % unit_nanos);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Go's `encoding/json`.
    #[test]
    fn texts_are_gos() {
        assert_eq!(
            escaped_json("\"<a>&\u{2028}\u{e9}\""),
            "\"\\u003ca\\u003e\\u0026\\u2028\u{e9}\""
        );
    }

    /// Expected values are from Go's `time.ParseDuration` and `Duration.String`.
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
            // Prometheus' addition, which Go lacks.
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
