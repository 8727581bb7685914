//! Times on the command line, which are sent to a server in promtool's format.

use jiff::Timestamp;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_model::number::plain;
use tidepool_protocol::prom::time::parse_time;

/// Default range of `series` and `labels` before and after the current time: 9999 hours.
const REACH_SECONDS: i64 = 9999 * 3600;

/// A time with a resolution of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    seconds: i64,
    /// Nanoseconds after `seconds`, from 0 to 999,999,999.
    nanos: i64,
}

impl Time {
    pub fn now() -> Time {
        let now_ms = system_now_ms();
        Time { seconds: now_ms.div_euclid(1000), nanos: now_ms.rem_euclid(1000) * 1_000_000 }
    }

    fn of(time: Timestamp) -> Time {
        Time { seconds: time.as_second(), nanos: i64::from(time.subsec_nanosecond()) }.normalized()
    }

    /// Parses a number of seconds since the epoch, or a time in RFC 3339.
    pub fn parse(text: &str) -> Result<Time, String> {
        let wrong = || format!("cannot parse {text:?} to a valid timestamp");
        match text.parse::<f64>() {
            // The limit is far above any year of RFC 3339, and small enough for exact arithmetic.
            Ok(seconds) if seconds.is_finite() && seconds.abs() < 1e15 => {
                let nanos = (seconds.fract() * 1e9) as i64;
                Ok(Time { seconds: seconds.trunc() as i64, nanos }.normalized())
            }
            Ok(_) => Err(wrong()),
            Err(_) => text.parse().map(Time::of).map_err(|_| wrong()),
        }
    }

    fn normalized(self) -> Time {
        let seconds = self.seconds.saturating_add(self.nanos.div_euclid(1_000_000_000));
        Time { seconds, nanos: self.nanos.rem_euclid(1_000_000_000) }
    }

    pub fn plus_seconds(self, seconds: i64) -> Time {
        Time { seconds: self.seconds.saturating_add(seconds), ..self }
    }

    /// Returns the seconds from `other` to this time, negative if it is later.
    pub fn seconds_since(self, other: Time) -> f64 {
        (self.seconds - other.seconds) as f64 + (self.nanos - other.nanos) as f64 / 1e9
    }

    /// Returns the parameter of a request: seconds since the epoch.
    pub fn parameter(self) -> String {
        plain(self.seconds as f64 + self.nanos as f64 / 1e9)
    }

    /// Returns milliseconds since the epoch, rounded as a server rounds the parameter.
    pub fn as_ms(self) -> i64 {
        parse_time(&self.parameter()).unwrap_or_default()
    }
}

/// Returns the time range in which series and labels are looked up.
pub fn span(start: Option<&str>, end: Option<&str>) -> Result<(Time, Time), String> {
    let now = Time::now();
    let of = |text: Option<&str>, name: &str, default_seconds: i64| match text {
        None => Ok(now.plus_seconds(default_seconds)),
        Some(text) => Time::parse(text).map_err(|why| format!("error parsing {name} time: {why}")),
    };
    Ok((of(start, "start", -REACH_SECONDS)?, of(end, "end", REACH_SECONDS)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_to_a_server_as_promtool_sends_them() {
        for (text, parameter, ms) in [
            ("1700000000", "1700000000", 1_700_000_000_000),
            ("1700000000.5", "1700000000.5", 1_700_000_000_500),
            ("-1.5", "-1.5", -1500),
            ("1e9", "1000000000", 1_000_000_000_000),
            ("2023-11-14T22:13:20Z", "1700000000", 1_700_000_000_000),
            ("2023-11-15T00:13:20.25+02:00", "1700000000.25", 1_700_000_000_250),
        ] {
            let time = Time::parse(text);
            assert_eq!(time.clone().map(Time::parameter), Ok(parameter.to_owned()), "{text}");
            assert_eq!(time.map(Time::as_ms), Ok(ms), "{text}");
        }
        for wrong in ["", "now", "NaN", "inf", "2023-11-14", "1e300"] {
            let why = format!("cannot parse {wrong:?} to a valid timestamp");
            assert_eq!(Time::parse(wrong), Err(why));
        }
    }

    #[test]
    fn spans_reach_far_by_themselves() {
        let Ok((start, end)) = span(None, None) else { panic!("there is no span") };
        assert_eq!(end.seconds_since(start), 2.0 * 9999.0 * 3600.0);
        let why = "error parsing end time: cannot parse \"x\" to a valid timestamp";
        assert_eq!(span(Some("1"), Some("x")), Err(why.to_owned()));
    }
}
