//! Layouts by which Go formats times.

use super::{MONTHS, Parts, Time, WEEKDAYS};
use std::fmt::Write as _;

impl Time {
    /// Formats by a layout of Go. Zones are those of UTC.
    pub fn format(self, layout: &str) -> String {
        let parts = self.parts();
        let mut out = String::with_capacity(layout.len() + 10);
        let mut rest = layout;
        while let Some(first) = rest.chars().next() {
            match self.push_element(rest, &parts, &mut out) {
                0 => {
                    out.push(first);
                    rest = &rest[first.len_utf8()..];
                }
                len => rest = &rest[len..],
            }
        }
        out
    }

    /// Appends the element with which a layout begins; returns its length, zero if there is none.
    fn push_element(self, layout: &str, parts: &Parts, out: &mut String) -> usize {
        let months = usize::from(parts.month - 1);
        let (month, weekday) = (MONTHS[months], WEEKDAYS[usize::from(self.weekday())]);
        let hour12 = (parts.hour + 11) % 12 + 1;
        // A short name is no element in a longer word, such as `Monthly`.
        let is_word =
            |len: usize| layout[len..].bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        for element in ELEMENTS {
            if !layout.starts_with(element) {
                continue;
            }
            let written = match *element {
                "January" => write!(out, "{month}"),
                "Jan" if !is_word(3) => write!(out, "{}", &month[..3]),
                "Monday" => write!(out, "{weekday}"),
                "Mon" if !is_word(3) => write!(out, "{}", &weekday[..3]),
                "Jan" | "Mon" => continue,
                "MST" => write!(out, "UTC"),
                "002" => write!(out, "{:03}", self.year_day()),
                "__2" => write!(out, "{:3}", self.year_day()),
                "01" => write!(out, "{:02}", parts.month),
                "02" => write!(out, "{:02}", parts.day),
                "03" => write!(out, "{hour12:02}"),
                "04" => write!(out, "{:02}", parts.minute),
                "05" => write!(out, "{:02}", parts.second),
                "06" => write!(out, "{:02}", parts.year.rem_euclid(100)),
                "15" => write!(out, "{:02}", parts.hour),
                "1" => write!(out, "{}", parts.month),
                "_2006" => write!(out, "_{}", year_text(parts.year)),
                "2006" => write!(out, "{}", year_text(parts.year)),
                "_2" => write!(out, "{:2}", parts.day),
                "2" => write!(out, "{}", parts.day),
                "3" => write!(out, "{hour12}"),
                "4" => write!(out, "{}", parts.minute),
                "5" => write!(out, "{}", parts.second),
                "PM" => write!(out, "{}", if parts.hour < 12 { "AM" } else { "PM" }),
                "pm" => write!(out, "{}", if parts.hour < 12 { "am" } else { "pm" }),
                zone if zone.starts_with('Z') => write!(out, "Z"),
                zone => write!(out, "+{}", zone[1..].replace(|c: char| c.is_ascii_digit(), "0")),
            };
            // Writing to a text does not fail.
            return if written.is_ok() { element.len() } else { 0 };
        }
        self.push_fraction(layout, out)
    }

    /// Appends a fraction such as `.000` or `.999`, of which the latter drops zeros at the end.
    fn push_fraction(self, layout: &str, out: &mut String) -> usize {
        let Some(digits) = layout.strip_prefix(['.', ',']) else { return 0 };
        let Some(digit @ ('0' | '9')) = digits.chars().next() else { return 0 };
        let len = digits.len() - digits.trim_start_matches(digit).len();
        if digits[len..].starts_with(|next: char| next.is_ascii_digit()) {
            return 0;
        }
        let mut fraction = format!("{:09}", self.nanos);
        fraction.truncate(len);
        if digit == '9' {
            fraction.truncate(fraction.trim_end_matches('0').len());
        } else {
            fraction.extend(std::iter::repeat_n('0', len.saturating_sub(9)));
        }
        if !fraction.is_empty() {
            out.push_str(&layout[..1]);
            out.push_str(&fraction);
        }
        len + 1
    }
}

/// Elements of layouts, of which longer ones stand before those with which they begin.
const ELEMENTS: &[&str] = &[
    "January",
    "Jan",
    "Monday",
    "Mon",
    "MST",
    "002",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "15",
    "1",
    "2006",
    "2",
    "_2006",
    "__2",
    "_2",
    "3",
    "4",
    "5",
    "PM",
    "pm",
    "-07:00:00",
    "-070000",
    "-07:00",
    "-0700",
    "-07",
    "Z07:00:00",
    "Z070000",
    "Z07:00",
    "Z0700",
    "Z07",
];

fn year_text(year: i64) -> String {
    if year < 0 { format!("-{:04}", -year) } else { format!("{year:04}") }
}
