//! Dates of the Gregorian calendar in UTC.

const DAY_SECONDS: u64 = 86_400;

/// Days from the earliest date that Go's clock knows to 1970. Go counts seconds from that date as
/// unsigned 64-bit numbers, so earlier times wrap around.
const DAYS_TO_EPOCH: u64 = 106_751_991_073_400;

/// A time of day at a UTC date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The astronomical year: 0 is the year before 1.
    pub year: i64,
    /// Month of the year, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Day of the week, 0 for Sunday.
    pub weekday: u8,
    /// Day of the year, 1 to 366.
    pub day_of_year: u16,
    /// Hour of the day, 0 to 23.
    pub hour: u8,
    /// Minute of the hour, 0 to 59.
    pub minute: u8,
    /// Second of the minute, 0 to 59.
    pub second: u8,
}

impl Date {
    /// Returns the date of a time in seconds since the epoch.
    pub fn of_seconds(seconds: i64) -> Date {
        let seconds = (seconds as u64).wrapping_add(DAYS_TO_EPOCH * DAY_SECONDS);
        let days = (seconds / DAY_SECONDS) as i64 - DAYS_TO_EPOCH as i64;
        let second_of_day = (seconds % DAY_SECONDS) as u32;
        // Years begin with March here, so that the leap day is the last day of a year.
        let since_march = days + 719_468;
        // 146,097 days are 400 years, after which the calendar repeats.
        let era = since_march.div_euclid(146_097);
        let day_of_era = since_march.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Any five months from March or August on have 153 days.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + i64::from(month < 3);
        // Offset from a day counted from March to a day counted from January.
        let before = if month < 3 { -305 } else { 60 + i64::from(is_leap(year)) };
        Date {
            year,
            month: month as u8,
            day: day as u8,
            // The epoch was a Thursday.
            weekday: (days + 4).rem_euclid(7) as u8,
            day_of_year: (day_of_year + before) as u16,
            hour: (second_of_day / 3600) as u8,
            minute: (second_of_day / 60 % 60) as u8,
            second: (second_of_day % 60) as u8,
        }
    }

    /// Returns the date of a value in seconds, without its fraction. NaN and values outside of
    /// `i64` return the date of `i64::MIN`, as Go's conversion does.
    pub fn of_value(value: f64) -> Date {
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        // 2^63 itself is excluded, because it does not fit `i64`, while -2^63 does.
        match (-LIMIT..LIMIT).contains(&value) {
            true => Date::of_seconds(value as i64),
            false => Date::of_seconds(i64::MIN),
        }
    }

    /// Returns the number of days of the month, 28 to 31.
    pub fn days_in_month(&self) -> u8 {
        match self.month {
            2 => 28 + u8::from(is_leap(self.year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Formats a time in seconds since the epoch as RFC 3339.
pub fn rfc3339(seconds: i64) -> String {
    let date = Date::of_seconds(seconds);
    let sign = if date.year < 0 { "-" } else { "" };
    format!(
        "{sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        date.year.unsigned_abs(),
        date.month,
        date.day,
        date.hour,
        date.minute,
        date.second
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_go() {
        // Year, month, day, weekday, day of the year, hour, minute, days of the month, by Go 1.26.
        for (value, fields, text) in [
            (f64::NAN, [292277026596, 12, 4, 0, 339, 15, 30, 31], "292277026596-12-04T15:30:08Z"),
            (-1e30, [292277026596, 12, 4, 0, 339, 15, 30, 31], "292277026596-12-04T15:30:08Z"),
            (-1.0, [1969, 12, 31, 3, 365, 23, 59, 31], "1969-12-31T23:59:59Z"),
            (0.0, [1970, 1, 1, 4, 1, 0, 0, 31], "1970-01-01T00:00:00Z"),
            (951782400.0, [2000, 2, 29, 2, 60, 0, 0, 29], "2000-02-29T00:00:00Z"),
            (4107542400.0, [2100, 3, 1, 1, 60, 0, 0, 31], "2100-03-01T00:00:00Z"),
            (-62135596800.0, [1, 1, 1, 1, 1, 0, 0, 31], "0001-01-01T00:00:00Z"),
            (-99999999999999.0, [-3166904, 2, 24, 1, 55, 14, 13, 29], "-3166904-02-24T14:13:21Z"),
            (253402300800.0, [10000, 1, 1, 6, 1, 0, 0, 31], "10000-01-01T00:00:00Z"),
            (9e18, [285198648531, 4, 21, 6, 111, 16, 0, 30], "285198648531-04-21T16:00:00Z"),
            (-9.2e18, [-291536392293, 5, 3, 2, 123, 12, 26, 31], "-291536392293-05-03T12:26:40Z"),
        ] {
            let date = Date::of_value(value);
            let found = [
                date.year,
                date.month.into(),
                date.day.into(),
                date.weekday.into(),
                date.day_of_year.into(),
                date.hour.into(),
                date.minute.into(),
                date.days_in_month().into(),
            ];
            assert_eq!(found, fields, "{value}");
            let seconds = if value.abs() < 1e19 { value as i64 } else { i64::MIN };
            let seconds = if value.is_nan() { i64::MIN } else { seconds };
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
