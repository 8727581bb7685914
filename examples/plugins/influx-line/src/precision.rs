//! Time unit of a request, from its query string.

/// Conversion of a time unit to milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Number of units in a millisecond.
    Finer(i64),
    /// Number of milliseconds in a unit.
    Coarser(i64),
}

impl Precision {
    /// Returns a time in milliseconds, rounded down; `None` on overflow.
    pub fn milliseconds(self, time: i64) -> Option<i64> {
        match self {
            Precision::Finer(units) => Some(time.div_euclid(units)),
            Precision::Coarser(milliseconds) => time.checked_mul(milliseconds),
        }
    }
}

/// Reads the unit of a query string; nanoseconds if it names none.
pub fn precision(query: &str) -> Result<Precision, String> {
    let named = query.split('&').find_map(|pair| pair.strip_prefix("precision="));
    match named.unwrap_or("ns") {
        "" | "n" | "ns" => Ok(Precision::Finer(1_000_000)),
        "u" | "us" | "%C2%B5" | "µ" => Ok(Precision::Finer(1_000)),
        "ms" => Ok(Precision::Finer(1)),
        "s" => Ok(Precision::Coarser(1_000)),
        "m" => Ok(Precision::Coarser(60_000)),
        "h" => Ok(Precision::Coarser(3_600_000)),
        other => Err(format!("unknown precision {other:?}; expected ns, us, ms, s, m or h")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_become_milliseconds() {
        for (query, time, expected) in [
            ("db=a", 1_700_000_000_123_456_789, Some(1_700_000_000_123)),
            ("precision=ns", -1, Some(-1)),
            ("db=a&precision=us", 1_500, Some(1)),
            ("precision=ms&org=b", 7, Some(7)),
            ("precision=s", 7, Some(7_000)),
            ("precision=h", i64::MAX, None),
        ] {
            let found = precision(query).map(|precision| precision.milliseconds(time));
            assert_eq!(found, Ok(expected), "{query}");
        }
        assert!(precision("precision=fortnight").is_err());
    }
}
