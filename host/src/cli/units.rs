//! Times, durations and sizes in the format of upstream's tools.

/// Formats a duration as Go does: `2h0m0s`, `1m30.5s`, `500ms`, `0s`.
pub fn duration(milliseconds: i64) -> String {
    let sign = if milliseconds < 0 { "-" } else { "" };
    let total_ms = milliseconds.unsigned_abs();
    if total_ms == 0 {
        return "0s".to_owned();
    }
    if total_ms < 1000 {
        return format!("{sign}{total_ms}ms");
    }
    let (seconds, ms) = (total_ms / 1000, total_ms % 1000);
    let fraction = match ms {
        0 => String::new(),
        _ => format!(".{ms:03}").trim_end_matches('0').to_owned(),
    };
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (h, m) {
        (0, 0) => format!("{sign}{s}{fraction}s"),
        (0, _) => format!("{sign}{m}m{s}{fraction}s"),
        _ => format!("{sign}{h}h{m}m{s}{fraction}s"),
    }
}

/// Formats a time as Go does: `2023-11-14 22:13:20 +0000 UTC`.
pub fn time(timestamp_ms: i64) -> String {
    // Truncated towards zero, as in upstream.
    let seconds = timestamp_ms / 1000;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} +0000 UTC")
}

/// Formats a size as the sum of its binary units: `1KiB512B`, `0B`.
pub fn bytes(size: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if size == 0 {
        return "0B".to_owned();
    }
    let parts = UNITS.iter().enumerate().rev().map(|(power, unit)| {
        let part = size >> (10 * power) & 1023;
        if part == 0 { String::new() } else { format!("{part}{unit}") }
    });
    parts.collect()
}

/// Returns the date in the Gregorian calendar of a day since the epoch. Internally, years begin in
/// March, so that a leap day is the last day of a year; 400 years have 146097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_look_as_upstream_prints_them() {
        for (ms, text) in [
            (0, "0s"),
            (500, "500ms"),
            (7_200_000, "2h0m0s"),
            (7_199_999, "1h59m59.999s"),
            (90_500, "1m30.5s"),
            (-1500, "-1.5s"),
        ] {
            assert_eq!(duration(ms), text);
        }
        for (ms, text) in [
            (0, "1970-01-01 00:00:00 +0000 UTC"),
            (1_700_000_000_999, "2023-11-14 22:13:20 +0000 UTC"),
            (1_709_164_800_000, "2024-02-29 00:00:00 +0000 UTC"),
            (-86_400_000, "1969-12-31 00:00:00 +0000 UTC"),
        ] {
            assert_eq!(time(ms), text);
        }
        for (size, text) in [(0, "0B"), (1536, "1KiB512B"), (1 << 30, "1GiB"), (1023, "1023B")] {
            assert_eq!(bytes(size), text);
        }
    }
}
