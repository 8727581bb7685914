//! The series of a world, with values that distinguish each sample from all others.

use tidepool_tests::histogram::generate::{
    FAMILIES, HistogramShape, SentSeries, SentValue, generate,
};
use tidepool_tests::histogram::{Value, wire};
use tidepool_tests::series::{Labels, ORDINARY_NAN_BITS, Random, STALE_MARKER_BITS};

/// Number of histograms of each family, which are used one after the other.
const HISTOGRAMS: usize = 150;

/// Number of groups of series, for requests about several series.
pub const GROUPS: u64 = 3;

/// A series that is still written.
#[derive(Clone, Debug)]
pub struct Live {
    pub labels: Labels,
    /// Index of the histogram family; `None` for floats.
    family: Option<usize>,
}

/// A sample to be sent.
#[derive(Clone, Debug)]
pub struct Row {
    pub labels: Labels,
    pub timestamp_ms: i64,
    pub value: SentValue,
}

impl Row {
    /// Returns the sample for a request.
    pub fn sent(&self) -> wire::SentRow<'_> {
        let Row { labels, timestamp_ms, value } = self;
        wire::SentRow { labels, timestamp_ms: *timestamp_ms, value }
    }

    /// Returns the sample for the model.
    pub fn expected(&self) -> (Labels, i64, Value) {
        (self.labels.clone(), self.timestamp_ms, self.value.canonical())
    }
}

/// Generator of series and values.
#[derive(Clone)]
pub struct Source {
    histograms: Vec<SentSeries>,
    /// Number of series so far.
    series: u64,
    /// Number of values so far.
    values: u64,
}

impl Source {
    pub fn new(seed: u64) -> Source {
        let (series, scrapes) = (FAMILIES.len(), HISTOGRAMS);
        let shape = HistogramShape { seed, series, scrapes, start_ms: 0, interval_ms: 1000 };
        Source { histograms: generate(shape), series: 0, values: 0 }
    }

    pub fn series(&mut self, random: &mut Random) -> Live {
        let family = match random.one_in(2) {
            true => None,
            false => Some(random.below(FAMILIES.len() as u64) as usize),
        };
        let long = random.pick(&[0, 0, 0, 0, 300, 3000]);
        self.series_of(family, long)
    }

    /// Makes a new series of floats.
    pub fn float_series(&mut self) -> Live {
        self.series_of(None, 0)
    }

    /// Returns the next value of such a series.
    pub fn float(&mut self) -> f64 {
        self.values += 1;
        self.values as f64 + 0.125
    }

    fn series_of(&mut self, family: Option<usize>, long: usize) -> Live {
        let name = family.map_or("float".to_owned(), |family| format!("histogram_{family}"));
        let number = self.series;
        self.series += 1;
        let labels = Labels::from_pairs([
            ("__name__", name),
            ("series", number.to_string()),
            ("group", (number % GROUPS).to_string()),
            ("long", "y".repeat(long)),
        ]);
        Live { labels, family }
    }

    /// Returns the next value of a series.
    pub fn value(&mut self, live: &Live, random: &mut Random) -> SentValue {
        self.values += 1;
        let number = self.values as f64;
        let Some(family) = live.family else {
            return SentValue::Float(match random.below(50) {
                0 => f64::from_bits(STALE_MARKER_BITS),
                1 => f64::from_bits(ORDINARY_NAN_BITS),
                _ => number / random.pick(&[1.0, 1.0, 1.0, 4.0, 7.0]),
            });
        };
        let values = &self.histograms[family].values;
        let mut value = values[self.values as usize % values.len()].1.clone();
        if let SentValue::Histogram(histogram) = &mut value
            && !histogram.sum.is_nan()
        {
            histogram.sum = number + 0.25;
        }
        value
    }
}
