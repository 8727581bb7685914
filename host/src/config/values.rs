//! Durations and sizes as flags and files have them.

use crate::store::DiskShare;
use std::time::Duration;

/// Shortest span of a block that the engine takes.
const BLOCK_DURATION_MIN: Duration = Duration::from_secs(1);

/// Most reads that may run at a time; each has an engine instance of its own.
const CONCURRENCY_MAX: usize = 10_000;

/// Up to here a floating-point number tells all whole ones apart.
const COUNT_EXACT_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// Size of a page of the log.
const PAGE_BYTES: u64 = 32 << 10;

/// Longest time between two syncs of the log that may be asked for.
const SYNC_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// A duration as Prometheus writes them: `500ms`, `15s`, `1h30m`, `2d`, `1w`, `1y`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match duration_or_zero(text)? {
        Duration::ZERO => Err(format!("{text:?} is no time; some is needed, such as 15s")),
        duration => Ok(duration),
    }
}

/// A duration that may be nothing: `0`, or of any unit.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
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
    if text == "0" {
        return Ok(Duration::ZERO);
    }
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
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(total_ms)) }
}

/// The span of a block, which is a second at least.
pub(super) fn block_duration(text: &str) -> Result<Duration, String> {
    let span = duration(text)?;
    match span >= BLOCK_DURATION_MIN {
        true => Ok(span),
        false => Err("a block spans 1s at least".to_owned()),
    }
}

/// A size of log segments, which consist of pages.
pub(super) fn segment_size(text: &str) -> Result<u64, String> {
    let size = bytes(text)?;
    match size > 0 && size.is_multiple_of(PAGE_BYTES) {
        true => Ok(size),
        false => Err("a multiple of 32KiB is wanted".to_owned()),
    }
}

/// A number of things, also as upstream's own help writes it: `5e7`.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no number such as 50000000 or 5e7");
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let number: f64 = text.parse().map_err(|_| wrong())?;
    let is_count = number.fract() == 0.0 && (0.0..=COUNT_EXACT_MAX).contains(&number);
    if is_count { Ok(number as u64) } else { Err(wrong()) }
}

/// How many reads may run at a time.
pub(super) fn concurrency(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=CONCURRENCY_MAX).contains(&number) => Ok(number),
        _ => Err(format!("a number from 1 to {CONCURRENCY_MAX} is wanted")),
    }
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
        "PB" | "PIB" => 50,
        "EB" | "EIB" => 60,
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
        for wrong in ["", "MB", "1XB", "1.5MB", "99999999999999999TB", "16EB"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn intervals_and_parts_of_a_disk_have_bounds() {
        assert_eq!(sync_interval("1h"), Ok(Duration::from_secs(3600)));
        assert!(sync_interval("61m").is_err_and(|error| error.contains("1h")));
        assert!(block_duration("1s").is_ok() && block_duration("999ms").is_err());
        assert!(segment_size("64KiB").is_ok());
        for wrong in ["0", "1", "33KiB"] {
            assert!(segment_size(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!((concurrency("1"), concurrency("10000")), (Ok(1), Ok(10_000)));
        assert_eq!((count("5e7"), count("0")), (Ok(50_000_000), Ok(0)));
        for wrong in ["", "-1", "1.5", "1e17", "NaN", "inf", "many"] {
            assert!(count(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["0", "-1", "10001", "18446744073709551615", "many"] {
            assert!(concurrency(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(disk_share("80%"), Ok(DiskShare::Percent(80.0)));
        assert_eq!(disk_share("0.5%"), Ok(DiskShare::Percent(0.5)));
        assert_eq!(disk_share("64MB"), Ok(DiskShare::Bytes(64 << 20)));
        for wrong in ["", "%", "0%", "101%", "-1%", "NaN%", "5 %", "5.5"] {
            assert!(disk_share(wrong).is_err(), "{wrong:?}");
        }
    }
}
