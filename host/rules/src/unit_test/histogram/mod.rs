//! A native histogram of a unit test, and its text.

mod arithmetic;

pub use arithmetic::CombineError;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use tidepool_model::buckets::CUSTOM_BUCKETS_SCHEMA;
use tidepool_model::number::general;

/// Maximum number of buckets in the text of a side, empty ones between others included.
const SHOWN_BUCKETS_MAX: i64 = 100_000;

/// Counts of buckets by their index.
pub type Buckets = BTreeMap<i32, f64>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    pub reset_hint: ResetHint,
    pub schema: i32,
    pub zero_threshold: f64,
    pub zero_count: f64,
    pub count: f64,
    pub sum: f64,
    pub positive: Buckets,
    /// By absolute value.
    pub negative: Buckets,
    /// Upper bounds of custom buckets without infinity, ascending.
    pub custom_values: Vec<f64>,
}

/// Whether a counter was reset before a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetHint {
    #[default]
    Unknown,
    Reset,
    NotReset,
    Gauge,
}

impl ResetHint {
    pub fn name(self) -> &'static str {
        match self {
            ResetHint::Unknown => "unknown",
            ResetHint::Reset => "reset",
            ResetHint::NotReset => "not_reset",
            ResetHint::Gauge => "gauge",
        }
    }

    pub fn of_name(name: &str) -> Option<ResetHint> {
        let hints = [ResetHint::Unknown, ResetHint::Reset, ResetHint::NotReset, ResetHint::Gauge];
        hints.into_iter().find(|hint| hint.name().eq_ignore_ascii_case(name))
    }
}

impl Histogram {
    pub fn has_custom_buckets(&self) -> bool {
        self.schema == CUSTOM_BUCKETS_SCHEMA
    }
}

/// Writes the notation of unit tests, in which a histogram has one text.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        // Writing to a text does not fail.
        if self.schema != 0 {
            let _ = write!(text, " schema:{}", self.schema);
        }
        let numbers = [
            ("count", self.count),
            ("sum", self.sum),
            ("z_bucket", self.zero_count),
            ("z_bucket_w", self.zero_threshold),
        ];
        for (name, number) in numbers.into_iter().filter(|(_, number)| *number != 0.0) {
            let _ = write!(text, " {name}:{}", general(number));
        }
        if self.has_custom_buckets() {
            let _ = write!(text, " custom_values:{}", list(self.custom_values.iter().copied()));
        }
        if self.reset_hint != ResetHint::Unknown {
            let _ = write!(text, " counter_reset_hint:{}", self.reset_hint.name());
        }
        side("buckets", "offset", &self.positive, &mut text);
        side("n_buckets", "n_offset", &self.negative, &mut text);
        write!(f, "{{{{{}}}}}", text.trim_start())
    }
}

/// Writes the counts from the first to the last bucket that is not empty.
fn side(name: &str, offset_name: &str, buckets: &Buckets, text: &mut String) {
    let filled = || buckets.iter().filter(|(_, count)| **count != 0.0).map(|(index, _)| *index);
    let (Some(first), Some(last)) = (filled().next(), filled().next_back()) else { return };
    if first != 0 {
        let _ = write!(text, " {offset_name}:{first}");
    }
    if i64::from(last) - i64::from(first) >= SHOWN_BUCKETS_MAX {
        let filled = buckets.iter().filter(|(_, count)| **count != 0.0);
        let counts = filled.map(|(index, count)| format!("{index}={}", general(*count)));
        let _ = write!(text, " {name}:[{}]", counts.collect::<Vec<_>>().join(" "));
        return;
    }
    let counts = (first..=last).map(|index| buckets.get(&index).copied().unwrap_or(0.0));
    let _ = write!(text, " {name}:{}", list(counts));
}

fn list(numbers: impl Iterator<Item = f64>) -> String {
    let texts: Vec<String> = numbers.map(general).collect();
    format!("[{}]", texts.join(" "))
}
