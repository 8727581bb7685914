//! Seeded series of histograms, encoded in all the ways that senders may use.
//!
//! A series has a [`Family`], the kind of its histograms; events such as resets, other bounds and
//! stale markers are random. Counts are kept as whole numbers; fractional counts are eighths, which
//! add up without error.

use super::{CUSTOM_SCHEMA, Value};
use crate::proto::prometheus::histogram::{Count, ResetHint, ZeroCount};
use crate::proto::prometheus::{BucketSpan, Histogram};
use crate::series::{Labels, ORDINARY_NAN_BITS, Random, STALE_MARKER_BITS};
use std::collections::BTreeMap;

/// Zero thresholds: none, that of client libraries, powers of two at both ends of the range that a
/// chunk encodes in one byte, and others.
const ZERO_THRESHOLDS: [f64; 6] =
    [0.0, f64::from_bits(0x37f0_0000_0000_0000), 0.001, 1024.0, 2048.0, 0.3];

/// Kind of a series' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Exponential buckets that only grow, except for resets.
    Counter {
        /// Whether counts are eighths instead of whole numbers.
        fractions: bool,
    },
    /// Exponential buckets whose counts go up and down.
    Gauge {
        /// Whether counts are eighths instead of whole numbers.
        fractions: bool,
    },
    Custom {
        /// Whether counts are eighths instead of whole numbers.
        fractions: bool,
    },
    /// A resolution finer than the store keeps, which it reduces.
    Fine {
        /// Whether counts are eighths instead of whole numbers.
        fractions: bool,
    },
    /// All kinds including floats, one after the other.
    Mixed,
}

pub const FAMILIES: [Family; 9] = [
    Family::Counter { fractions: false },
    Family::Counter { fractions: true },
    Family::Gauge { fractions: false },
    Family::Gauge { fractions: true },
    Family::Custom { fractions: false },
    Family::Custom { fractions: true },
    Family::Fine { fractions: false },
    Family::Fine { fractions: true },
    Family::Mixed,
];

/// Size and seed of the data.
#[derive(Clone, Copy, Debug)]
pub struct HistogramShape {
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of series; families take turns.
    pub series: usize,
    pub scrapes: usize,
    /// Time of the first scrape.
    pub start_ms: i64,
    pub interval_ms: i64,
}

/// A value in the form in which it is sent.
#[derive(Clone, Debug)]
pub enum SentValue {
    Float(f64),
    /// A histogram whose time is not set.
    Histogram(Box<Histogram>),
}

/// A series in the form in which it is sent, ascending in time.
#[derive(Clone, Debug)]
pub struct SentSeries {
    pub labels: Labels,
    pub family: Family,
    /// Times in milliseconds with their values.
    pub values: Vec<(i64, SentValue)>,
}

impl SentValue {
    /// Returns the value that an answer must have.
    pub fn canonical(&self) -> Value {
        match self {
            SentValue::Float(value) => Value::of_float(*value),
            SentValue::Histogram(message) => Value::of_message(message).at_stored_resolution(),
        }
    }
}

/// Makes the series that the shape describes.
pub fn generate(shape: HistogramShape) -> Vec<SentSeries> {
    (0..shape.series).map(|number| series(&shape, number)).collect()
}

fn series(shape: &HistogramShape, number: usize) -> SentSeries {
    let family = FAMILIES[number % FAMILIES.len()];
    let mut random = Random::new(shape.seed, number as u64);
    let labels = Labels::from_pairs([
        ("__name__", format!("latency_{}", name(family))),
        ("instance", format!("node-{number:04}")),
        ("job", "histograms".to_string()),
    ]);
    let mut source = Source::new(family, &mut random);
    let mut values = Vec::with_capacity(shape.scrapes);
    for scrape in 0..shape.scrapes as i64 {
        if family == Family::Mixed && random.one_in(20) {
            source = Source::new(random.pick(&FAMILIES), &mut random);
        }
        if random.one_in(60) {
            continue;
        }
        let jitter_ms = random.below(shape.interval_ms.clamp(2, 40) as u64 / 2) as i64;
        let timestamp_ms = shape.start_ms + scrape * shape.interval_ms + jitter_ms;
        values.push((timestamp_ms, source.next(&mut random)));
    }
    SentSeries { labels, family, values }
}

fn name(family: Family) -> &'static str {
    match family {
        Family::Counter { fractions: false } => "counter",
        Family::Counter { fractions: true } => "counter_fractions",
        Family::Gauge { fractions: false } => "gauge",
        Family::Gauge { fractions: true } => "gauge_fractions",
        Family::Custom { fractions: false } => "custom",
        Family::Custom { fractions: true } => "custom_fractions",
        Family::Fine { fractions: false } => "fine",
        Family::Fine { fractions: true } => "fine_fractions",
        Family::Mixed => "mixed",
    }
}

/// Makes a series as of a busy service: counters of schema 3 with some forty adjacent buckets,
/// without gaps from value to value.
pub fn steady(labels: &Labels, shape: HistogramShape, number: usize) -> SentSeries {
    let mut random = Random::new(shape.seed, number as u64);
    let family = Family::Counter { fractions: false };
    let mut source = Source::new(family, &mut random);
    (source.schema, source.zero_threshold) = (3, ZERO_THRESHOLDS[1]);
    // All buckets exist from the beginning.
    source.positive = (0..STEADY_BUCKETS).map(|index| (index - STEADY_BUCKETS / 2, 1)).collect();
    let mut values = Vec::with_capacity(shape.scrapes);
    for scrape in 0..shape.scrapes as i64 {
        for _ in 0..20 + random.below(60) {
            // A sum of four random numbers is distributed like a bell.
            let part = || random.below(STEADY_BUCKETS as u64 / 4 + 1) as i64;
            let at = std::iter::repeat_with(part).take(4).sum::<i64>();
            let index = at.min(STEADY_BUCKETS - 1) - STEADY_BUCKETS / 2;
            *source.positive.entry(index).or_default() += 1;
            source.sum += 2f64.powf(index as f64 / 8.0);
        }
        let message = source.message_in_few_spans();
        let timestamp_ms = shape.start_ms + scrape * shape.interval_ms;
        values.push((timestamp_ms, SentValue::Histogram(Box::new(message))));
    }
    SentSeries { labels: labels.clone(), family, values }
}

/// Number of buckets of [`steady`] series.
const STEADY_BUCKETS: i64 = 40;

/// State of a series from value to value.
struct Source {
    family: Family,
    schema: i32,
    zero_threshold: f64,
    custom_values: Vec<f64>,
    /// Bucket index around which observations fall.
    centre: i64,
    positive: BTreeMap<i64, u64>,
    negative: BTreeMap<i64, u64>,
    zero_count: u64,
    /// Number of observations that are NaN, which fall into no bucket.
    nans: u64,
    sum: f64,
}

impl Source {
    fn new(family: Family, random: &mut Random) -> Source {
        let mut source = Source {
            family,
            schema: 0,
            zero_threshold: random.pick(&ZERO_THRESHOLDS),
            custom_values: Vec::new(),
            centre: 0,
            positive: BTreeMap::new(),
            negative: BTreeMap::new(),
            zero_count: 0,
            nans: 0,
            sum: 0.0,
        };
        source.choose_bounds(random);
        source
    }

    fn is_custom(&self) -> bool {
        matches!(self.family, Family::Custom { .. })
    }

    fn is_gauge(&self) -> bool {
        matches!(self.family, Family::Gauge { .. })
    }

    /// Chooses another schema, or other explicit bounds, and drops all counts with the old ones.
    fn choose_bounds(&mut self, random: &mut Random) {
        self.clear();
        match self.family {
            Family::Custom { .. } => {
                self.schema = CUSTOM_SCHEMA;
                self.zero_threshold = 0.0;
                let step = random.pick(&[0.005, 0.1, 1.0, 1.0 / 3.0, 50_000.0]);
                let from = random.below(5) as f64 - 2.0;
                let number = random.below(12);
                self.custom_values = (0..number).map(|i| (from + i as f64) * step).collect();
            }
            Family::Fine { .. } => self.schema = 9 + random.below(44) as i32,
            _ => self.schema = random.below(13) as i32 - 4,
        }
        self.centre = random.below(60) as i64 - 30;
    }

    fn clear(&mut self) {
        self.positive.clear();
        self.negative.clear();
        (self.zero_count, self.nans, self.sum) = (0, 0, 0.0);
    }

    fn next(&mut self, random: &mut Random) -> SentValue {
        if random.one_in(50) {
            let stale = f64::from_bits(STALE_MARKER_BITS);
            return match random.one_in(2) {
                true => SentValue::Float(stale),
                false => SentValue::Histogram(Box::new(Histogram {
                    sum: stale,
                    count: Some(self.count(0)),
                    ..Histogram::default()
                })),
            };
        }
        if self.family == Family::Mixed {
            return SentValue::Float(random.pick(&[0.0, -0.0, 1.5, f64::NAN, 1e9]));
        }
        let mut is_reset = false;
        match random.below(40) {
            0 => {
                self.choose_bounds(random);
                is_reset = true;
            }
            1 | 2 => {
                self.clear();
                is_reset = true;
            }
            3 => self.centre += random.below(100) as i64 - 50,
            4 if !self.is_custom() => self.zero_threshold = random.pick(&ZERO_THRESHOLDS),
            5 if random.one_in(4) => self.nans += 1,
            6..=8 if self.is_gauge() => self.shrink(random),
            _ => {}
        }
        if !(is_reset && random.one_in(3)) {
            self.observe(random);
        }
        let hint = match (self.is_gauge(), is_reset) {
            (true, _) => ResetHint::Gauge,
            // A sender's hint about a reset is not always true.
            (_, true) => random.pick(&[ResetHint::Yes, ResetHint::Unknown, ResetHint::No]),
            (_, false) if random.one_in(90) => ResetHint::Yes,
            (_, false) => random.pick(&[ResetHint::Unknown, ResetHint::Unknown, ResetHint::No]),
        };
        SentValue::Histogram(Box::new(self.message(hint, random)))
    }

    fn shrink(&mut self, random: &mut Random) {
        self.positive.retain(|_, count| {
            *count -= random.below(*count);
            !random.one_in(5)
        });
        self.negative.retain(|_, _| random.one_in(2));
        self.zero_count /= 2;
    }

    fn observe(&mut self, random: &mut Random) {
        for _ in 0..random.below(12) {
            let many = 1 + random.below(4) * random.below(30);
            let at = self.centre + random.below(9) as i64 - 4;
            if self.is_custom() {
                let last = self.custom_values.len() as i64;
                *self.positive.entry(at.rem_euclid(last + 1)).or_default() += many;
            } else if random.one_in(8) {
                self.zero_count += many;
            } else if random.one_in(5) {
                *self.negative.entry(-at).or_default() += many;
            } else {
                *self.positive.entry(at).or_default() += many;
            }
            self.sum += many as f64 * 0.1;
        }
    }

    fn is_fractions(&self) -> bool {
        match self.family {
            Family::Counter { fractions }
            | Family::Gauge { fractions }
            | Family::Custom { fractions }
            | Family::Fine { fractions } => fractions,
            Family::Mixed => false,
        }
    }

    fn count(&self, count: u64) -> Count {
        match self.is_fractions() {
            true => Count::CountFloat(count as f64 / 8.0),
            false => Count::CountInt(count),
        }
    }

    /// Encodes a counter as a client library does.
    fn message_in_few_spans(&self) -> Histogram {
        let counts: Vec<u64> = self.positive.values().copied().collect();
        let first = self.positive.keys().next().map_or(0, |index| *index as i32);
        Histogram {
            count: Some(Count::CountInt(counts.iter().sum())),
            sum: self.sum,
            schema: self.schema,
            zero_threshold: self.zero_threshold,
            zero_count: Some(ZeroCount::ZeroCountInt(0)),
            positive_spans: vec![BucketSpan { offset: first, length: counts.len() as u32 }],
            positive_deltas: deltas(&counts),
            ..Histogram::default()
        }
    }

    fn message(&self, hint: ResetHint, random: &mut Random) -> Histogram {
        let in_buckets: u64 = self.positive.values().chain(self.negative.values()).sum();
        let zero_count = match self.is_fractions() {
            true => ZeroCount::ZeroCountFloat(self.zero_count as f64 / 8.0),
            false => ZeroCount::ZeroCountInt(self.zero_count),
        };
        let index_max = self.is_custom().then_some(self.custom_values.len() as i64);
        let (positive_spans, positive) = written_down(&self.positive, index_max, random);
        let (negative_spans, negative) = match self.is_custom() {
            true => (Vec::new(), Vec::new()),
            false => written_down(&self.negative, None, random),
        };
        let mut message = Histogram {
            count: Some(self.count(in_buckets + self.zero_count + self.nans)),
            sum: if self.nans > 0 { f64::from_bits(ORDINARY_NAN_BITS) } else { self.sum },
            schema: self.schema,
            zero_threshold: self.zero_threshold,
            zero_count: Some(zero_count),
            negative_spans,
            positive_spans,
            reset_hint: hint.into(),
            custom_values: self.custom_values.clone(),
            ..Histogram::default()
        };
        if self.is_fractions() {
            let eighths = |counts: Vec<u64>| counts.into_iter().map(|n| n as f64 / 8.0).collect();
            message.positive_counts = eighths(positive);
            message.negative_counts = eighths(negative);
        } else {
            message.positive_deltas = deltas(&positive);
            message.negative_deltas = deltas(&negative);
        }
        message
    }
}

/// Returns spans and counts of buckets, with some empty buckets listed and some runs split.
fn written_down(
    buckets: &BTreeMap<i64, u64>,
    index_max: Option<i64>,
    random: &mut Random,
) -> (Vec<BucketSpan>, Vec<u64>) {
    let mut listed = buckets.clone();
    for index in buckets.keys() {
        for empty in [index - 1, index + 1] {
            let exists = index_max.is_none_or(|max| (0..=max).contains(&empty));
            if exists && random.one_in(6) {
                listed.entry(empty).or_default();
            }
        }
    }
    let mut spans: Vec<BucketSpan> = Vec::new();
    let mut next = 0;
    for index in listed.keys() {
        match spans.last_mut() {
            Some(last) if *index == next && !random.one_in(12) => last.length += 1,
            _ => spans.push(BucketSpan { offset: (index - next) as i32, length: 1 }),
        }
        next = index + 1;
    }
    (spans, listed.into_values().collect())
}

fn deltas(counts: &[u64]) -> Vec<i64> {
    let before = std::iter::once(&0).chain(counts);
    counts.iter().zip(before).map(|(count, before)| *count as i64 - *before as i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Kind;

    #[test]
    fn every_kind_is_there() {
        let shape =
            HistogramShape { seed: 3, series: 18, scrapes: 400, start_ms: 0, interval_ms: 1000 };
        let data = generate(shape);
        let values = || data.iter().flat_map(|series| &series.values);
        let histograms: Vec<&Histogram> = values()
            .filter_map(|(_, value)| match value {
                SentValue::Histogram(message) => Some(&**message),
                SentValue::Float(_) => None,
            })
            .collect();
        let some = |what: &dyn Fn(&Histogram) -> bool| histograms.iter().any(|h| what(h));
        for schema in (-4..=8).chain([CUSTOM_SCHEMA]) {
            assert!(some(&|h| h.schema == schema), "{schema}");
        }
        for hint in [ResetHint::Unknown, ResetHint::Yes, ResetHint::No, ResetHint::Gauge] {
            assert!(some(&|h| h.reset_hint() == hint), "{hint:?}");
        }
        assert!(some(&|h| h.schema > 40));
        assert!(some(&|h| h.sum.to_bits() == ORDINARY_NAN_BITS));
        assert!(some(&|h| h.positive_spans.len() > 3 && !h.negative_spans.is_empty()));
        assert!(some(&|h| h.positive_spans.is_empty() && h.negative_spans.is_empty()));
        assert!(some(&|h| !h.positive_deltas.is_empty()) && some(&|h| h.positive_counts.len() > 2));
        let ends = |kind| values().filter(|(_, v)| v.canonical() == Value::Stale(kind)).count();
        assert!(ends(Kind::Float) > 5 && ends(Kind::Whole) > 5 && ends(Kind::Fractions) > 5);
        assert!(values().all(|(_, value)| match value.canonical() {
            Value::Histogram(histogram) =>
                (-4..=8).contains(&histogram.schema) || histogram.schema == CUSTOM_SCHEMA,
            _ => true,
        }));
    }
}
