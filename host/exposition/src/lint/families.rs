//! Metric families, with the properties of their series that the rules check.

use crate::metric::MetricType;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Label that distinguishes the buckets of a histogram.
pub(super) const BUCKET_LABEL: &str = "le";

/// Label that distinguishes the quantiles of a summary.
pub(super) const QUANTILE_LABEL: &str = "quantile";

/// Metric families of a text. The rules check only families with samples.
#[derive(Debug, Default)]
pub struct Families {
    families: Vec<Family>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug, Default)]
pub(super) struct Family {
    pub name: String,
    /// Whether there is a help text that is not empty.
    pub has_help: bool,
    /// Type of the family; `None` before the `TYPE` line or the first sample.
    pub kind: Option<MetricType>,
    /// Hashes of the label sets in the order of the text; equal hashes mean a repeated series.
    pub series: Vec<u64>,
    pub labels: LabelCounts,
    /// Hashes of the series so far; for histograms and summaries, whose series have several lines.
    known: HashSet<u64>,
    /// Number of buckets or quantiles of the first series.
    pub parts_of_first: usize,
}

/// Numbers of labels with names that the rules check, over all series.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LabelCounts {
    pub buckets: usize,
    pub quantiles: usize,
    pub camel_case: usize,
}

/// Labels of a sample, in the order of the text.
pub(super) type Pairs = Vec<(String, String)>;

impl Families {
    /// Returns the families that have samples, in no defined order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Family> {
        self.families.iter().filter(|family| !family.series.is_empty())
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds a family that does not exist yet; returns its index.
    pub(super) fn add(&mut self, name: &str) -> usize {
        let place = self.families.len();
        self.families.push(Family { name: name.to_owned(), ..Family::default() });
        self.by_name.insert(name.to_owned(), place);
        place
    }

    pub(super) fn at(&mut self, place: usize) -> &mut Family {
        &mut self.families[place]
    }

    pub(super) fn kind_of(&self, name: &str) -> Option<MetricType> {
        self.families.get(self.find(name)?)?.kind
    }
}

impl Family {
    pub fn is_histogram(&self) -> bool {
        matches!(self.kind, Some(MetricType::Histogram | MetricType::Gaugehistogram))
    }

    pub fn is_summary(&self) -> bool {
        self.kind == Some(MetricType::Summary)
    }

    /// Records a sample. `is_part` means a bucket or quantile, whose own label is not in `pairs`.
    pub fn add_sample(&mut self, pairs: Pairs, is_part: bool) {
        // Not sorted: upstream treats another order of labels as another series.
        if !self.is_histogram() && !self.is_summary() {
            return self.add_series(&pairs);
        }
        // Sorted: all lines of a histogram are one series, whatever the order of their labels.
        let mut sorted = pairs.clone();
        sorted.sort_unstable();
        let hash = hash_of(&sorted);
        if self.known.insert(hash) {
            self.labels.add(&pairs);
            self.series.push(hash);
        }
        // The cardinality assumes that each series has as many buckets as the first.
        if is_part && self.series.first() == Some(&hash) {
            self.parts_of_first += 1;
        }
    }

    fn add_series(&mut self, pairs: &Pairs) {
        self.labels.add(pairs);
        self.series.push(hash_of(pairs));
    }
}

impl LabelCounts {
    fn add(&mut self, pairs: &Pairs) {
        for (name, _) in pairs {
            self.buckets += usize::from(name == BUCKET_LABEL);
            self.quantiles += usize::from(name == QUANTILE_LABEL);
            self.camel_case += usize::from(is_camel_case(name));
        }
    }
}

/// Returns whether a lowercase letter directly precedes an uppercase letter.
pub(super) fn is_camel_case(name: &str) -> bool {
    let mut pairs = name.as_bytes().windows(2);
    pairs.any(|pair| matches!(pair, [b'a'..=b'z', b'A'..=b'Z']))
}

fn hash_of(pairs: &Pairs) -> u64 {
    // A collision would report a wrong duplicate, which is improbable with 64 bits.
    let mut hasher = DefaultHasher::new();
    pairs.hash(&mut hasher);
    hasher.finish()
}
