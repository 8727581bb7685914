//! Parses times in request parameters: seconds since the epoch, or RFC 3339.

use jiff::civil::DateTime;

/// Prometheus' earliest time in milliseconds; `TIME_MIN` is its text form.
pub const TIME_MIN_MS: i64 = (i64::MIN / 1000 + 62_135_596_801) * 1000;
const TIME_MIN: &str = "-292273086-05-16T16:47:06Z";

/// Prometheus' latest time in milliseconds; `TIME_MAX` is its text form.
pub const TIME_MAX_MS: i64 = (i64::MAX / 1000 - 62_135_596_801) * 1000 + 999;
const TIME_MAX: &str = "292277025-08-18T07:12:54.999999999Z";

/// Parses a time to milliseconds since the epoch, limited to the range of Prometheus.
pub fn parse_time(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        // Whole seconds and fraction separately, so that large numbers keep their milliseconds.
        let fraction_ms = (seconds.fract() * 1000.0).round();
        let whole_ms = (seconds.trunc() as i64).saturating_mul(1000);
        let time_ms = whole_ms.saturating_add(fraction_ms as i64);
        return seconds.is_finite().then(|| time_ms.clamp(TIME_MIN_MS, TIME_MAX_MS));
    }
    match text {
        TIME_MIN => Some(TIME_MIN_MS),
        TIME_MAX => Some(TIME_MAX_MS),
        _ => {
            let Ok(time) = text.parse::<jiff::Timestamp>() else { return last_day(text) };
            i64::try_from(time.as_nanosecond().div_euclid(1_000_000)).ok()
        }
    }
}

/// Parses times on the last days of the year 9999, which mean no end. `jiff::Timestamp` ends before
/// the last day, so that each timestamp has a date in every time zone.
fn last_day(text: &str) -> Option<i64> {
    let utc = text.strip_suffix('Z').filter(|text| text.starts_with("9999-12-3"))?;
    let time = utc.parse::<DateTime>().ok().filter(|_| utc.contains('T'))?;
    i64::try_from(time.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_prometheus_reads_them() {
        for (text, expected) in [
            ("0", 0),
            ("1700000000.123", 1_700_000_000_123),
            ("1700000000.9996", 1_700_000_001_000),
            ("-1.5", -1500),
            ("1e9", 1_000_000_000_000),
            ("1e300", TIME_MAX_MS),
            ("-1e300", TIME_MIN_MS),
            ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
            ("2023-11-15T00:13:20.1239+02:00", 1_700_000_000_123),
            ("1969-12-31T23:59:59.9995Z", -1),
            // By Go's time package.
            ("9999-12-31T23:59:59Z", 253_402_300_799_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
            (TIME_MIN, TIME_MIN_MS),
            (TIME_MAX, TIME_MAX_MS),
        ] {
            assert_eq!(parse_time(text), Some(expected), "{text}");
        }
        for wrong in
            ["", "now", "NaN", "inf", "2023-11-14", "2023-13-14T22:13:20Z", "9999-12-31Z", "5m"]
        {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }
}
