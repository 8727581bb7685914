//! Metric families, with as much of their series as rules ask for.

use crate::metric::MetricType;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The label that tells the buckets of a histogram apart.
pub(super) const BUCKET_LABEL: &str = "le";

/// The label that tells the quantiles of a summary apart.
pub(super) const QUANTILE_LABEL: &str = "quantile";

/// All families of a text that have samples.
#[derive(Debug, Default)]
pub struct Families {
    families: Vec<Family>,
    by_name: HashMap<String, usize>,
}

/// A metric family.
#[derive(Debug, Default)]
pub(super) struct Family {
    pub name: String,
    /// Whether it has a help that is not empty.
    pub has_help: bool,
    /// None before its `TYPE` or its first sample.
    pub kind: Option<MetricType>,
    /// Hashes of the labels of its series, in their order; a series that comes twice is there
    /// twice.
    pub series: Vec<u64>,
    pub labels: LabelCounts,
    /// Hashes of the labels of histograms and summaries, whose series have several lines.
    known: HashSet<u64>,
    /// Buckets or quantiles of the first series.
    pub parts_of_first: usize,
}

/// How many labels of all series have names that rules speak of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LabelCounts {
    pub buckets: usize,
    pub quantiles: usize,
    pub camel_case: usize,
}

/// Labels of a sample, in their order.
pub(super) type Pairs = Vec<(String, String)>;

impl Families {
    /// Those that have samples, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Family> {
        self.families.iter().filter(|family| !family.series.is_empty())
    }

    /// The place of a family.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds a family that is not there.
    pub(super) fn add(&mut self, name: &str) -> usize {
        let place = self.families.len();
        self.families.push(Family { name: name.to_owned(), ..Family::default() });
        self.by_name.insert(name.to_owned(), place);
        place
    }

    pub(super) fn at(&mut self, place: usize) -> &mut Family {
        &mut self.families[place]
    }

    /// The kind of a family by its name.
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

    /// Notes a sample. `is_part` is whether it is a bucket or a quantile, whose own label is not
    /// among the pairs.
    pub fn add_sample(&mut self, pairs: Pairs, is_part: bool) {
        if !self.is_histogram() && !self.is_summary() {
            return self.add_series(&pairs);
        }
        let mut sorted = pairs.clone();
        sorted.sort_unstable();
        let hash = hash_of(&sorted);
        if self.known.insert(hash) {
            self.labels.add(&pairs);
            self.series.push(hash);
        }
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

/// Whether a lowercase letter is followed by an uppercase one.
pub(super) fn is_camel_case(name: &str) -> bool {
    let mut pairs = name.as_bytes().windows(2);
    pairs.any(|pair| matches!(pair, [b'a'..=b'z', b'A'..=b'Z']))
}

fn hash_of(pairs: &Pairs) -> u64 {
    let mut hasher = DefaultHasher::new();
    pairs.hash(&mut hasher);
    hasher.finish()
}
