//! Outcome of one trial scrape.

use crate::append::Refusals;
use crate::error::ScrapeError;
use crate::labels::Labels;
use crate::request::ResponseSummary;
use crate::store::{ExemplarRow, FamilyMetadata};
use crate::target::Target;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidepool_exposition::{MetricType, NativeHistogram};

/// Suffixes that the names of a family's series may have.
const SUFFIXES: [&str; 8] =
    ["_total", "_created", "_bucket", "_count", "_sum", "_gcount", "_gsum", "_info"];

/// Everything that one scrape would store.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The target, with its URL and labels.
    pub target: Arc<Target>,
    /// Response of the target: its head and size.
    pub answer: ResponseSummary,
    /// Time of the scrape, and of samples without a timestamp.
    pub at_ms: i64,
    pub took: Duration,
    /// Size of the uncompressed body in bytes.
    pub body_bytes: u64,
    /// Reason why the scrape failed; then only the report would be stored.
    pub error: Option<ScrapeError>,
    /// Stored samples in the order of the exposition, native histograms last.
    pub samples: Vec<Sample>,
    /// Series of the report, such as `up`, with their values.
    pub report: Vec<(Labels, f64)>,
    /// Samples that the target exposes, but that would not be stored.
    pub refusals: Refusals,
    /// Metadata of the metric families that would be stored.
    pub metadata: Vec<FamilyMetadata>,
}

/// A sample that would be stored.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Labels of the series after relabeling.
    pub labels: Labels,
    pub timestamp_ms: i64,
    /// Whether the sample's timestamp differs from the scrape's time.
    pub is_timed: bool,
    pub value: Value,
    pub exemplars: Vec<ExemplarRow>,
}

#[derive(Clone, Debug)]
pub enum Value {
    Float(f64),
    Histogram(Box<NativeHistogram>),
}

impl Sample {
    pub(super) fn new(labels: Labels, timestamp_ms: i64, value: Value, scrape_ms: i64) -> Sample {
        let is_timed = timestamp_ms != scrape_ms;
        Sample { labels, timestamp_ms, is_timed, value, exemplars: Vec::new() }
    }
}

impl Value {
    /// Returns whether both are bitwise equal.
    pub(super) fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            // Compares bits, because a NaN does not equal itself.
            (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
            (Value::Histogram(one), Value::Histogram(other)) => one == other,
            (Value::Float(_), Value::Histogram(_)) | (Value::Histogram(_), Value::Float(_)) => {
                false
            }
        }
    }
}

impl Outcome {
    /// Returns the samples by family, in the order of the exposition. A metric without metadata is
    /// a family of its own.
    pub fn by_family(&self) -> Vec<(FamilyMetadata, Vec<&Sample>)> {
        let known: HashMap<&str, &FamilyMetadata> =
            self.metadata.iter().map(|family| (family.family.as_str(), family)).collect();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut families: Vec<(FamilyMetadata, Vec<&Sample>)> = Vec::new();
        for sample in &self.samples {
            let metric = sample.labels.metric();
            let family = family_of(metric, &known);
            let name = family.map_or(metric, |family| family.family.as_str());
            let place = *places.entry(name).or_insert_with(|| {
                let family = family.cloned().unwrap_or_else(|| FamilyMetadata {
                    family: name.to_owned(),
                    kind: MetricType::Unknown,
                    help: String::new(),
                    unit: String::new(),
                });
                families.push((family, Vec::new()));
                families.len() - 1
            });
            if let Some((_, samples)) = families.get_mut(place) {
                samples.push(sample);
            }
        }
        families
    }

    /// Returns the value of a series of the report.
    pub(super) fn reported(&self, name: &str) -> Option<f64> {
        let mut report = self.report.iter();
        report.find(|(labels, _)| labels.metric() == name).map(|(_, value)| *value)
    }
}

/// Returns the family of a metric; `None` if there is none, for example after a renaming rule.
fn family_of<'f>(
    metric: &str,
    known: &HashMap<&str, &'f FamilyMetadata>,
) -> Option<&'f FamilyMetadata> {
    let bases = SUFFIXES.iter().filter_map(|suffix| metric.strip_suffix(suffix));
    // The whole name is tried first, because a family's name may end with such a suffix.
    [metric].into_iter().chain(bases).find_map(|name| known.get(name).copied())
}
