//! Durations as `model.ParseDuration` of prometheus/common reads them.

use super::Cause;
use super::error::quoted;
use std::time::Duration;
use tidepool_settings::duration::duration_or_zero;

/// Units in the order in which a duration has them.
const UNITS: [&str; 7] = ["y", "w", "d", "h", "m", "s", "ms"];

/// Upstream counts nanoseconds with 63 bits.
const NANOSECONDS_MAX: u128 = i64::MAX as u128;

/// Parses a duration that may be zero. Its units get smaller.
pub(super) fn parse(text: &str) -> Result<Duration, Cause> {
    let wrong = || Cause::Duration(quoted(text));
    let duration = duration_or_zero(text).map_err(|_| wrong())?;
    let words = text.split(|c: char| c.is_ascii_digit()).filter(|word| !word.is_empty());
    let ranks = words.map(|word| UNITS.iter().position(|unit| *unit == word));
    if !ranks.is_sorted_by(|one, next| one < next) {
        return Err(wrong());
    }
    match duration.as_nanos() > NANOSECONDS_MAX {
        true => Err(Cause::LongDuration),
        false => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream: `TestParseDuration` and `TestParseBadDuration` in prometheus/common.
    #[test]
    fn they_are_upstreams() {
        for (text, seconds) in [
            ("0", 0),
            ("0w", 0),
            ("0s", 0),
            ("3s", 3),
            ("5m", 300),
            ("1h", 3600),
            ("4d", 345_600),
            ("4d1h", 349_200),
            ("14d", 1_209_600),
            ("3w", 1_814_400),
            ("3w2d1h", 1_990_800),
            ("10y", 315_360_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("324ms"), Ok(Duration::from_millis(324)));
        for text in [
            "1",
            "1y1m1d",
            "-1w",
            "1.5d",
            "d",
            "294y",
            "200y10400w",
            "107675d",
            "2584200h",
            "",
            "1m1m",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
