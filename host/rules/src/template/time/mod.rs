//! Times in UTC and durations, as Go's `time` computes and formats them.

mod layout;

const SECOND_NANOS: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
/// Seconds from the year 1, from which Go counts, to the epoch.
const ZERO_SECONDS: i64 = -62_135_596_800;

pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Since the epoch, rounded down.
    pub seconds: i64,
    /// Below a second.
    pub nanos: u32,
}

/// A day of the calendar, and the time of it.
pub struct Parts {
    pub year: i64,
    pub month: u8,
    pub day: u8,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

impl Time {
    pub fn from_millis(millis: i64) -> Time {
        let nanos = (millis.rem_euclid(1000) * 1_000_000) as u32;
        Time { seconds: millis.div_euclid(1000), nanos }
    }

    fn from_nanos(nanos: i128) -> Time {
        let second = i128::from(SECOND_NANOS);
        let limit = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Time { seconds: limit(nanos.div_euclid(second)), nanos: nanos.rem_euclid(second) as u32 }
    }

    /// Nanoseconds since the epoch, which may need more than 64 bits.
    pub fn nanos_since_epoch(self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND_NANOS) + i128::from(self.nanos)
    }

    pub fn plus(self, nanos: i64) -> Time {
        Time::from_nanos(self.nanos_since_epoch() + i128::from(nanos))
    }

    /// Nanoseconds from another time, at most what a duration holds.
    pub fn since(self, earlier: Time) -> i64 {
        let nanos = self.nanos_since_epoch() - earlier.nanos_since_epoch();
        nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Rounds down to a multiple of a duration since the year 1.
    pub fn truncated(self, nanos: i64) -> Time {
        match nanos {
            ..=0 => self,
            _ => Time::from_nanos(self.nanos_since_epoch() - self.rest(nanos)),
        }
    }

    /// Rounds to the nearest multiple of a duration since the year 1, and up from the middle.
    pub fn rounded(self, nanos: i64) -> Time {
        if nanos <= 0 {
            return self;
        }
        let (rest, all) = (self.rest(nanos), self.nanos_since_epoch());
        let is_below = rest * 2 < i128::from(nanos);
        Time::from_nanos(if is_below { all - rest } else { all - rest + i128::from(nanos) })
    }

    fn rest(self, nanos: i64) -> i128 {
        let zero = i128::from(ZERO_SECONDS) * i128::from(SECOND_NANOS);
        (self.nanos_since_epoch() - zero).rem_euclid(nanos.into())
    }

    /// Adds to the date; days and months beyond their ends carry over.
    pub fn plus_date(self, years: i64, months: i64, days: i64) -> Time {
        // Far beyond what the calendar's arithmetic here needs to be exact for.
        const MAX: i64 = 100_000_000;
        let limit = |value: i64| value.clamp(-MAX, MAX);
        let parts = self.parts();
        let month = i64::from(parts.month) - 1 + limit(months);
        let year = parts.year + limit(years) + month.div_euclid(12);
        let first = days_of(year, month.rem_euclid(12) + 1, 1);
        let day = first + i64::from(parts.day) - 1 + limit(days);
        let seconds = day * DAY_SECONDS + self.seconds.rem_euclid(DAY_SECONDS);
        Time { seconds, nanos: self.nanos }
    }

    pub fn is_zero(self) -> bool {
        self.seconds == ZERO_SECONDS && self.nanos == 0
    }

    pub fn year(self) -> i64 {
        self.parts().year
    }

    pub fn month(self) -> u8 {
        self.parts().month
    }

    pub fn day(self) -> u8 {
        self.parts().day
    }

    pub fn hour(self) -> i64 {
        self.parts().hour
    }

    pub fn minute(self) -> i64 {
        self.parts().minute
    }

    pub fn second(self) -> i64 {
        self.parts().second
    }

    /// Days since Sunday.
    pub fn weekday(self) -> u8 {
        // The epoch is a Thursday.
        (self.seconds.div_euclid(DAY_SECONDS) + 4).rem_euclid(7) as u8
    }

    /// Day of the year, from 1.
    pub fn year_day(self) -> i64 {
        self.seconds.div_euclid(DAY_SECONDS) - days_of(self.year(), 1, 1) + 1
    }

    fn parts(self) -> Parts {
        let (days, rest) =
            (self.seconds.div_euclid(DAY_SECONDS), self.seconds.rem_euclid(DAY_SECONDS));
        let (year, month, day) = date_of(days);
        Parts { year, month, day, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60 }
    }
}

/// Days since the epoch of a date in the proleptic Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the day of a leap year is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_of(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month as u8, day as u8)
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

/// Formats nanoseconds as Go prints a duration: `1h0m0s`, `1.5s`, `500ms`.
pub fn duration_text(nanos: i64) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let part = |nanos: u64, digits: usize| {
        let unit = 10u64.pow(digits as u32);
        let text = format!("{}.{:0digits$}", nanos / unit, nanos % unit);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let text = match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", part(nanos, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", part(nanos, 6)),
        _ => {
            let minutes = nanos / 60_000_000_000;
            let seconds = part(nanos % 60_000_000_000, 9);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Go's `time`.
    #[test]
    fn times_format_as_in_go() {
        let time = Time { seconds: 1_353_755_652, nanos: 7_000_000 };
        for (layout, expected) in [
            ("Mon Jan _2 15:04:05.000 2006", "Sat Nov 24 11:14:12.007 2012"),
            ("Monday, 02-January-06 3:4:5 pm", "Saturday, 24-November-12 11:14:12 am"),
            ("2006-01-02T15:04:05.999999999Z07:00", "2012-11-24T11:14:12.007Z"),
            ("20060102 -0700 -07:00 MST", "20121124 +0000 +00:00 UTC"),
            ("Monthly Jane 002 __2 .00 .9x", "Monthly Jane 329 329 .00 x"),
        ] {
            assert_eq!(time.format(layout), expected, "{layout}");
        }
        assert_eq!(Time::from_millis(-1).to_string(), "1969-12-31 23:59:59.999 +0000 UTC");
        assert_eq!(time.plus_date(0, 3, 7).to_string(), "2013-03-03 11:14:12.007 +0000 UTC");
        assert_eq!(Time::from_millis(951_782_400_000).year_day(), 60);
    }

    #[test]
    fn durations_print_as_in_go() {
        for (nanos, expected) in [
            (0, "0s"),
            (1_500, "1.5µs"),
            (-90_000_000_000, "-1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(duration_text(nanos), expected);
        }
    }
}
