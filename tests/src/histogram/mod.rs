//! Native histograms in the tests' own representation.
//!
//! A histogram has many encodings: spans split or joined, empty buckets listed or left out.
//! [`Canonical`] is independent of the encoding, so that two answers, or an answer and the sent
//! data, can be compared. [`generate`] makes series of every kind, [`wire`] the messages that carry
//! them, [`chunk`] decodes the chunks of a streamed answer.

pub mod chunk;
pub mod generate;
pub mod stored;
pub mod wire;

use crate::proto::prometheus::histogram::{Count, ResetHint, ZeroCount};
use crate::proto::prometheus::{BucketSpan, Histogram};
use crate::series::{Labels, STALE_MARKER_BITS};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// The schema of explicit bounds.
pub const CUSTOM_SCHEMA: i32 = -53;
/// The finest schema that the store keeps.
pub const FINEST_SCHEMA: i32 = 8;
/// Maximum number of differences that [`assert_same_values`] lists.
const DIFFERENCES_MAX: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Float,
    /// A histogram of whole counts.
    #[default]
    Whole,
    /// A histogram of fractional counts.
    Fractions,
}

/// A value of any kind; floats by their bits.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// Bits of a float, so that NaN equals itself.
    Float(u64),
    /// A stale marker, with the kind of value that carries it.
    Stale(Kind),
    Histogram(Box<Canonical>),
}

/// A histogram independent of its spans. Whole counts are numbers, fractional ones the bits of
/// floats.
#[derive(Clone, PartialEq, Eq)]
pub struct Canonical {
    /// Histogram or Fractions, the kind of its counts.
    pub kind: Kind,
    /// Whether the histogram is marked as a gauge.
    pub is_gauge: bool,
    /// Resolution of the buckets (schema).
    pub schema: i32,
    /// Bits of the zero bucket's width.
    pub zero_threshold: u64,
    /// Count of the zero bucket.
    pub zero_count: u64,
    /// Count of all observations together.
    pub count: u64,
    /// Bits of the sum of observations.
    pub sum: u64,
    /// Index and count of buckets that are not empty.
    pub positive: Vec<(i64, u64)>,
    /// The same for buckets below zero.
    pub negative: Vec<(i64, u64)>,
    /// Bits of the explicit upper bounds.
    pub custom_values: Vec<u64>,
}

/// A value as an answer has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    pub value: Value,
    /// The answer's hint about a counter reset before this value.
    pub hint: ResetHint,
}

/// A series with values of any kind, ascending in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSeries {
    pub labels: Labels,
    pub points: Vec<Point>,
}

impl Value {
    /// Converts a float, which may be a stale marker.
    pub fn of_float(value: f64) -> Value {
        match value.to_bits() {
            STALE_MARKER_BITS => Value::Stale(Kind::Float),
            bits => Value::Float(bits),
        }
    }

    /// Converts a message, at the resolution it has.
    ///
    /// # Panics
    /// If its spans and buckets differ in number.
    pub fn of_message(message: &Histogram) -> Value {
        let (kind, count) = match message.count {
            Some(Count::CountFloat(count)) => (Kind::Fractions, count.to_bits()),
            Some(Count::CountInt(count)) => (Kind::Whole, count),
            None => (Kind::Whole, 0),
        };
        if message.sum.to_bits() == STALE_MARKER_BITS {
            return Value::Stale(kind);
        }
        let zero_count = match message.zero_count {
            Some(ZeroCount::ZeroCountFloat(count)) => count.to_bits(),
            Some(ZeroCount::ZeroCountInt(count)) => count,
            None => 0,
        };
        let side = |spans: &[BucketSpan], deltas: &[i64], counts: &[f64]| match kind {
            Kind::Fractions => buckets(spans, counts.iter().map(|count| count.to_bits())),
            _ => buckets(spans, running(deltas)),
        };
        let Histogram { positive_spans, positive_deltas, positive_counts, .. } = message;
        let Histogram { negative_spans, negative_deltas, negative_counts, .. } = message;
        Value::Histogram(Box::new(Canonical {
            kind,
            is_gauge: message.reset_hint() == ResetHint::Gauge,
            schema: message.schema,
            zero_threshold: message.zero_threshold.to_bits(),
            zero_count,
            count,
            sum: message.sum.to_bits(),
            positive: side(positive_spans, positive_deltas, positive_counts),
            negative: side(negative_spans, negative_deltas, negative_counts),
            custom_values: message.custom_values.iter().map(|bound| bound.to_bits()).collect(),
        }))
    }

    /// Reduces the value to the finest resolution that is stored.
    pub fn at_stored_resolution(self) -> Value {
        match self {
            Value::Histogram(mut histogram) if histogram.schema > FINEST_SCHEMA => {
                let steps = (histogram.schema - FINEST_SCHEMA) as u32;
                let kind = histogram.kind;
                histogram.schema = FINEST_SCHEMA;
                for side in [&mut histogram.positive, &mut histogram.negative] {
                    *side = joined(kind, side, steps);
                }
                Value::Histogram(histogram)
            }
            value => value,
        }
    }

    /// Returns the value with stale markers of one kind only.
    fn without_kind_of_end(&self) -> Value {
        match self {
            Value::Stale(_) => Value::Stale(Kind::Float),
            value => value.clone(),
        }
    }
}

impl Canonical {
    /// Returns whether the counter must have been reset between `before` and this value.
    pub fn is_reset_after(&self, before: &Canonical) -> bool {
        let less = |before: u64, after: u64| match self.kind {
            Kind::Fractions => f64::from_bits(after) < f64::from_bits(before),
            _ => after < before,
        };
        let shrinks = |before: &[(i64, u64)], after: &[(i64, u64)]| {
            let after: BTreeMap<i64, u64> = after.iter().copied().collect();
            before.iter().any(|(i, count)| less(*count, after.get(i).copied().unwrap_or(0)))
        };
        less(before.count, self.count)
            || less(before.zero_count, self.zero_count)
            || shrinks(&before.positive, &self.positive)
            || shrinks(&before.negative, &self.negative)
    }

    /// Returns whether both have buckets of the same bounds.
    pub fn same_bounds(&self, other: &Canonical) -> bool {
        self.kind == other.kind
            && self.schema == other.schema
            && self.zero_threshold == other.zero_threshold
            && self.custom_values == other.custom_values
    }
}

/// Returns absolute counts from differences.
fn running(deltas: &[i64]) -> impl Iterator<Item = u64> {
    deltas.iter().scan(0i64, |count, delta| {
        *count = count.wrapping_add(*delta);
        Some(*count as u64)
    })
}

/// Returns index and count of buckets that are not empty.
fn buckets(spans: &[BucketSpan], counts: impl Iterator<Item = u64>) -> Vec<(i64, u64)> {
    let mut counts = counts;
    let mut list = Vec::new();
    let mut index = 0i64;
    for span in spans {
        index += i64::from(span.offset);
        for _ in 0..span.length {
            let count = counts.next().expect("a bucket for each place in a span");
            if count != 0 {
                list.push((index, count));
            }
            index += 1;
        }
    }
    assert_eq!(counts.next(), None, "a place in a span for each bucket");
    list
}

/// Joins buckets to a schema that is coarser by this number of steps. A bucket's index is that of
/// its upper bound, so that 1 and 2 join.
fn joined(kind: Kind, buckets: &[(i64, u64)], steps: u32) -> Vec<(i64, u64)> {
    let mut list: Vec<(i64, u64)> = Vec::new();
    for (index, count) in buckets {
        let wide = (index - 1).div_euclid(1i64 << steps) + 1;
        match list.last_mut().filter(|(last, _)| *last == wide) {
            Some((_, sum)) if kind == Kind::Fractions => {
                *sum = (f64::from_bits(*sum) + f64::from_bits(*count)).to_bits();
            }
            Some((_, sum)) => *sum += count,
            None => list.push((wide, *count)),
        }
    }
    list
}

/// Panics with the first differences if the two hold different values. The kind of a stale marker
/// depends on the value stored before it, and does not count. A series may come in parts.
#[track_caller]
pub fn assert_same_values(what: &str, wanted: &[ValueSeries], got: &[ValueSeries]) {
    assert_values_between(what, wanted, wanted, got);
}

/// As [`assert_same_values`], for a store that may have lost values: it has at least the values of
/// `least`, and otherwise only values of `most`.
#[track_caller]
pub fn assert_values_between(
    what: &str,
    least: &[ValueSeries],
    most: &[ValueSeries],
    got: &[ValueSeries],
) {
    let (least, most, got) = (by_time(least), by_time(most), by_time(got));
    let mut text = String::new();
    let mut count = 0;
    let keys: std::collections::BTreeSet<_> = least.keys().chain(got.keys()).collect();
    for key in keys {
        let wanted = least.get(key).or_else(|| most.get(key));
        let got = got.get(key);
        if wanted != got {
            count += 1;
            if count <= DIFFERENCES_MAX {
                let (labels, timestamp_ms) = key;
                // Writing to a string does not fail.
                let _ = write!(
                    text,
                    "\n  {labels} at {timestamp_ms}:\n    wanted {wanted:?}\n    got    {got:?}"
                );
            }
        }
    }
    assert!(count == 0, "{what}: {} wanted, {} came, {count} differ{text}", least.len(), got.len());
}

type ByTime<'a> = BTreeMap<(&'a Labels, i64), Vec<Value>>;

fn by_time(series: &[ValueSeries]) -> ByTime<'_> {
    let mut values = ByTime::new();
    for ValueSeries { labels, points } in series {
        for point in points {
            let all = values.entry((labels, point.timestamp_ms)).or_default();
            all.push(point.value.without_kind_of_end());
        }
    }
    values
}

/// Panics if an answer says that a counter was not reset although it was, or has a hint for a value
/// that follows no histogram.
#[track_caller]
pub fn assert_hints_hold(what: &str, series: &[ValueSeries]) {
    for ValueSeries { labels, points } in series {
        for (before, point) in std::iter::once(None).chain(points.iter().map(Some)).zip(points) {
            let claims = point.hint == ResetHint::No;
            let Value::Histogram(after) = &point.value else {
                assert!(!claims, "{what}: {labels}: {point:?}");
                continue;
            };
            assert_ne!(point.hint, ResetHint::Yes, "{what}: {labels}: no reader expects this");
            let Some(before) = before.filter(|_| claims) else { continue };
            let holds = match &before.value {
                Value::Histogram(before) => {
                    after.same_bounds(before) && !after.is_reset_after(before)
                }
                _ => false,
            };
            assert!(holds, "{what}: {labels}: no reset between\n  {before:?} and\n  {point:?}");
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Float(bits) => write!(f, "{} ({bits:#x})", f64::from_bits(*bits)),
            Value::Stale(kind) => write!(f, "end ({kind:?})"),
            Value::Histogram(histogram) => write!(f, "{histogram:?}"),
        }
    }
}

impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |bits: u64| match self.kind {
            Kind::Fractions => f64::from_bits(bits).to_string(),
            _ => bits.to_string(),
        };
        let side = |buckets: &[(i64, u64)]| {
            let list: Vec<_> =
                buckets.iter().map(|(i, count)| format!("{i}:{}", number(*count))).collect();
            list.join(" ")
        };
        let Canonical { kind, is_gauge, schema, zero_threshold, sum, .. } = self;
        write!(
            f,
            "{kind:?} gauge={is_gauge} schema={schema} zero={}@{} count={} sum={}({sum:#x}) +[{}] \
             -[{}]",
            number(self.zero_count),
            f64::from_bits(*zero_threshold),
            number(self.count),
            f64::from_bits(*sum),
            side(&self.positive),
            side(&self.negative),
        )?;
        match self.custom_values.as_slice() {
            [] => Ok(()),
            bounds => {
                let bounds: Vec<f64> = bounds.iter().map(|bits| f64::from_bits(*bits)).collect();
                write!(f, " bounds={bounds:?}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(spans: &[(i32, u32)], deltas: &[i64]) -> Histogram {
        let span = |&(offset, length)| BucketSpan { offset, length };
        Histogram {
            count: Some(Count::CountInt(6)),
            zero_count: Some(ZeroCount::ZeroCountInt(0)),
            schema: 10,
            positive_spans: spans.iter().map(span).collect(),
            positive_deltas: deltas.to_vec(),
            ..Histogram::default()
        }
    }

    #[test]
    fn spans_do_not_matter() {
        let plain = Value::of_message(&message(&[(-1, 1), (2, 1)], &[2, 2]));
        let wordy =
            message(&[(-2, 1), (0, 1), (0, 0), (1, 1), (0, 2), (9, 1)], &[0, 2, -2, 4, -4, 0]);
        assert_eq!(Value::of_message(&wordy), plain);
        let Value::Histogram(coarse) = plain.at_stored_resolution() else { panic!("a histogram") };
        assert_eq!((coarse.schema, coarse.positive), (8, vec![(0, 2), (1, 4)]));
    }

    #[test]
    #[should_panic(expected = "no reset between")]
    fn a_wrong_claim_is_noticed() {
        let point = |timestamp_ms, deltas: &[i64]| Point {
            timestamp_ms,
            value: Value::of_message(&message(&[(0, 2)], deltas)),
            hint: ResetHint::No,
        };
        let points = vec![point(1, &[3, 0]), point(2, &[2, 2])];
        assert_hints_hold("here", &[ValueSeries { labels: Labels::default(), points }]);
    }
}
