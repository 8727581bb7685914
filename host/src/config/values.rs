//! Durations and sizes as flags and files have them.

use crate::store::DiskShare;
use std::time::Duration;

/// Longest time between two syncs of the log that may be asked for.
const SYNC_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// A duration as Prometheus writes them: `500ms`, `15s`, `1h30m`, `2d`, `1w`, `1y`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 7] = [
        ("ms", 1),
        ("s", 1000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("y", 31_536_000_000),
    ];
    let wrong = || format!("{text:?} is no duration such as 500ms, 15s, 1h30m or 2d");
    let mut rest = text;
    let mut total_ms = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_ms));
        total_ms = part.and_then(|part| total_ms.checked_add(part)).ok_or_else(wrong)?;
        rest = after;
    }
    if total_ms == 0 { Err(wrong()) } else { Ok(Duration::from_millis(total_ms)) }
}

/// How often the log is synced. What is longer costs more than a wrong unit should.
pub(super) fn sync_interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    match interval <= SYNC_INTERVAL_MAX {
        true => Ok(interval),
        false => Err("a power cut may cost what was not synced: no more than 1h is allowed".into()),
    }
}

/// A size, or a part of the disk such as `5%`.
pub(super) fn disk_share(text: &str) -> Result<DiskShare, String> {
    let Some(percent) = text.strip_suffix('%') else { return bytes(text).map(DiskShare::Bytes) };
    match percent.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(DiskShare::Percent(percent)),
        _ => Err(format!("{text:?} is no part of a disk between 0% and 100%")),
    }
}

/// A duration that may be nothing.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0s" || text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

/// A size as Prometheus writes them (`32MB` means 32 × 1024²), or with the binary units' names.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size such as 65536, 512KB, 32MiB or 3GB");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "KB" | "KIB" => 10,
        "MB" | "MIB" => 20,
        "GB" | "GIB" => 30,
        "TB" | "TIB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_read_as_prometheus_writes_them() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "5", "h", "5 s", "0s", "-1s", "99999999999999999999y"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(bytes("32MB"), Ok(32 << 20));
        assert_eq!(bytes("128KiB"), Ok(128 << 10));
        for wrong in ["", "MB", "1XB", "1.5MB", "99999999999999999TB"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn intervals_and_parts_of_a_disk_have_bounds() {
        assert_eq!(sync_interval("1h"), Ok(Duration::from_secs(3600)));
        assert!(sync_interval("61m").is_err_and(|error| error.contains("1h")));
        assert_eq!(disk_share("80%"), Ok(DiskShare::Percent(80.0)));
        assert_eq!(disk_share("0.5%"), Ok(DiskShare::Percent(0.5)));
        assert_eq!(disk_share("64MB"), Ok(DiskShare::Bytes(64 << 20)));
        for wrong in ["", "%", "0%", "101%", "-1%", "NaN%", "5 %", "5.5"] {
            assert!(disk_share(wrong).is_err(), "{wrong:?}");
        }
    }
}
