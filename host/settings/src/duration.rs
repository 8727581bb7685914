//! Durations and sizes as Prometheus writes them: printing and parsing.

use crate::yaml;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};
use std::time::Duration;

/// Prints a duration with the largest units that fit: `1d12h`, `15d`, `2h`, `0s`. Years and weeks
/// are used only if the rest is a multiple, as in upstream (`model.Duration` in prometheus/common).
pub fn duration_text(duration: Duration) -> String {
    const UNITS: [(&str, u128, bool); 7] = [
        ("y", 31_536_000_000, true),
        ("w", 604_800_000, true),
        ("d", 86_400_000, false),
        ("h", 3_600_000, false),
        ("m", 60_000, false),
        ("s", 1000, false),
        ("ms", 1, false),
    ];
    let mut rest_ms = duration.as_millis();
    if rest_ms == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, unit_ms, is_whole) in UNITS {
        let count = rest_ms / unit_ms;
        if count > 0 && (!is_whole || rest_ms.is_multiple_of(unit_ms)) {
            text += &format!("{count}{unit}");
            rest_ms %= unit_ms;
        }
    }
    text
}

/// Prints a size in the largest unit that divides it: `128MiB`.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    // Zero is a multiple of every unit, but is printed as `0B`.
    let fits = |(_, shift): &&(&str, u32)| bytes > 0 && bytes.trailing_zeros() >= *shift;
    match UNITS.iter().find(fits) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

/// Parses a positive duration as Prometheus writes it: `500ms`, `15s`, `1h30m`, `2d`, `1w`, `1y`.
pub fn duration(text: &str) -> Result<Duration, String> {
    match duration_or_zero(text)? {
        Duration::ZERO => {
            Err(format!("{text:?} is zero: a positive duration such as 15s is required"))
        }
        duration => Ok(duration),
    }
}

/// Parses a duration that may be zero: `0`, or zero of any unit.
pub fn duration_or_zero(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 7] = [
        ("ms", 1),
        ("s", 1000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("y", 31_536_000_000),
    ];
    let wrong = || format!("{text:?} is not a duration such as 500ms, 15s, 1h30m or 2d");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total_ms = 0u64;
    while !rest.is_empty() {
        // Every number needs a unit and every unit a number, as in upstream.
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        // Compared as a whole, since `m` is also the beginning of `ms`.
        let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_ms));
        total_ms = part.and_then(|part| total_ms.checked_add(part)).ok_or_else(wrong)?;
        rest = after;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(total_ms)) }
}

/// Parses a size as Prometheus writes it: `32MB` means 32 × 1024², as does `32MiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size such as 65536, 512KB, 32MiB or 3GB");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "KB" | "KIB" => 10,
        "MB" | "MIB" => 20,
        "GB" | "GIB" => 30,
        "TB" | "TIB" => 40,
        "PB" | "PIB" => 50,
        "EB" | "EIB" => 60,
        _ => return Err(wrong()),
    };
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(1 << shift).ok_or_else(wrong);
    }
    // Without a unit the number counts bytes, and a fraction of a byte is a mistake.
    if shift == 0 {
        return Err(wrong());
    }
    // A number with a fraction, as in `1.5GB`, which promtool accepts.
    let number = number.parse::<f64>().map_err(|_| wrong())? * (1_u64 << shift) as f64;
    // Floats represent every whole number below this bound exactly.
    if number < (1_u64 << 53) as f64 { Ok(number as u64) } else { Err(wrong()) }
}

pub fn read_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    yaml::parsed(deserializer, duration)
}

/// [`duration_or_zero`] for `#[serde(deserialize_with)]`; a key without a value means zero.
pub fn read_duration_or_zero<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map_or(Ok(Duration::ZERO), |text| duration_or_zero(&text)).map_err(D::Error::custom)
}

pub fn read_duration_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| duration(&text)).transpose().map_err(D::Error::custom)
}

pub fn read_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    yaml::parsed(deserializer, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_printed_as_prometheus_prints_them() {
        for (seconds, expected) in [
            (0, "0s"),
            (7200, "2h"),
            (129_600, "1d12h"),
            (15 * 86400, "15d"),
            (14 * 86400, "2w"),
            (365 * 86400, "1y"),
            (90, "1m30s"),
        ] {
            assert_eq!(duration_text(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(duration_text(Duration::from_millis(1500)), "1s500ms");
        assert_eq!(size_text(128 << 20), "128MiB");
        assert_eq!((size_text(0), size_text(1025)), ("0B".to_owned(), "1025B".to_owned()));
    }

    #[test]
    fn durations_and_sizes_read_as_prometheus_writes_them() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "5", "h", "5 s", "0s", "-1s", "99999999999999999999y"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
        for (text, seconds) in [("0", 0), ("0s", 0), ("0d", 0), ("15d", 1_296_000), ("1w", 604_800)]
        {
            assert_eq!(duration_or_zero(text), Ok(Duration::from_secs(seconds)), "{text:?}");
        }
        for wrong in ["", "00", "0x", "-0s"] {
            assert!(duration_or_zero(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(bytes("32MB"), Ok(32 << 20));
        assert_eq!(
            (bytes("512MB"), bytes("1PB"), bytes("15EB")),
            (Ok(512 << 20), Ok(1 << 50), Ok(15 << 60))
        );
        assert_eq!(bytes("128KiB"), Ok(128 << 10));
        // promtool takes fractions.
        assert_eq!((bytes("1.5GB"), bytes("0.5KB")), (Ok(3 << 29), Ok(512)));
        for wrong in ["", "MB", "1XB", "1.5.5MB", ".", "5.5", "99999999999999999TB", "16EB"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }
}
