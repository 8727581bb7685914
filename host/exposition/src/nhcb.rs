//! Converts classic histograms to native ones with custom bounds.
//!
//! Sources: `util/convertnhcb` and `model/textparse/nhcbparse.go` in prometheus/prometheus. Unlike
//! upstream, a converted histogram has the timestamp of its own samples and not of the next sample,
//! and classic samples that are kept retain their exemplars.

use crate::error::LabelError;
use crate::histogram::{CUSTOM_BUCKETS_SCHEMA, ClassicError, Counts, NativeHistogram, Span};
use crate::item::{Item, Sample};
use crate::limits::CLASSIC_BUCKETS_MAX;
use crate::metric::{LabelPairs, METRIC_NAME, MetricType};
use crate::number::parse_value;

/// Maximum number of exemplars of one histogram.
const EXEMPLARS_MAX: usize = 1024;

/// A classic histogram, collected sample by sample.
#[derive(Debug, Default)]
pub struct ClassicHistogram {
    /// Bounds with cumulative counts, by ascending bound.
    buckets: Vec<(f64, f64)>,
    count: Option<f64>,
    sum: f64,
    fault: Option<ClassicError>,
}

impl ClassicHistogram {
    /// Removes all values, but keeps the memory of the buckets.
    pub fn clear(&mut self) {
        self.buckets.clear();
        *self = ClassicHistogram {
            buckets: std::mem::take(&mut self.buckets),
            ..ClassicHistogram::default()
        };
    }

    /// Adds a bucket with its cumulative count. A repeated bound is ignored.
    pub fn bucket(&mut self, bound: f64, count: f64) {
        // Only the first fault is reported.
        if self.fault.is_some() {
            return;
        }
        if bound.is_nan() {
            self.fault = Some(ClassicError::Bound);
            return;
        }
        if count < 0.0 {
            self.fault = Some(ClassicError::Negative);
            return;
        }
        let at = self.buckets.partition_point(|(other, _)| *other < bound);
        let after = self.buckets.get(at);
        if after.is_some_and(|(other, _)| *other == bound) {
            return;
        }
        // Buckets may arrive in any order; each count must be between those of its neighbours.
        let before = at.checked_sub(1).and_then(|before| self.buckets.get(before));
        let is_less = before.is_some_and(|(_, below)| count < *below);
        if is_less || after.is_some_and(|(_, above)| count > *above) {
            self.fault = Some(ClassicError::NotCumulative);
        } else if self.buckets.len() >= CLASSIC_BUCKETS_MAX {
            self.fault = Some(ClassicError::TooMany);
        } else {
            self.buckets.insert(at, (bound, count));
        }
    }

    pub fn count(&mut self, count: f64) {
        if count < 0.0 {
            self.fault = self.fault.or(Some(ClassicError::Negative));
        } else {
            self.count = Some(count);
        }
    }

    pub fn sum(&mut self, sum: f64) {
        self.sum = sum;
    }

    /// Converts to a native histogram, with integer counts if all counts are integers.
    pub fn convert(&self, is_gauge: bool) -> Result<NativeHistogram, ClassicError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let last = self.buckets.last();
        // Without `_count`, the count of the last bucket is the number of all observations.
        let count = self.count.or(last.map(|(_, count)| *count)).unwrap_or(0.0);
        let mut buckets = self.buckets.clone();
        // The bucket `+Inf` may be missing; its count is that of all observations.
        if last.is_none_or(|(bound, _)| *bound != f64::INFINITY) {
            buckets.push((f64::INFINITY, count));
        }
        let last = buckets.last().map_or(count, |(_, count)| *count);
        if count != last {
            return Err(ClassicError::CountMismatch { count, last });
        }
        // Larger counts do not fit into deltas of 64 bits.
        let is_whole = |count: f64| count == count.trunc() && count < i64::MAX as f64;
        let counts = match buckets.iter().all(|(_, count)| is_whole(*count)) {
            true => {
                let (mut below, mut before) = (0, 0);
                let delta = |(_, count): &(f64, f64)| {
                    // If `_count` is below a bucket, `NativeHistogram::validate` fails.
                    let own = (*count as i64).wrapping_sub(below);
                    let delta = own.wrapping_sub(before);
                    (below, before) = (*count as i64, own);
                    delta
                };
                let positive = buckets.iter().map(delta).collect();
                let (zero_count, negative) = (0, Vec::new());
                Counts::Integer { count: count as u64, zero_count, positive, negative }
            }
            false => {
                let mut below = 0.0;
                let own = |(_, count): &(f64, f64)| count - std::mem::replace(&mut below, *count);
                let positive = buckets.iter().map(own).collect();
                Counts::Float { count, zero_count: 0.0, positive, negative: Vec::new() }
            }
        };
        let is_float = matches!(counts, Counts::Float { .. });
        // The cast cannot overflow: there are at most `CLASSIC_BUCKETS_MAX` buckets and infinity.
        let mut histogram = NativeHistogram {
            schema: CUSTOM_BUCKETS_SCHEMA,
            zero_threshold: 0.0,
            sum: self.sum,
            is_gauge,
            positive_spans: vec![Span { offset: 0, length: buckets.len() as u32 }],
            negative_spans: Vec::new(),
            counts,
            custom_values: buckets.iter().map(|(bound, _)| *bound).collect(),
        };
        // Infinity is implicit and not among the custom bounds.
        histogram.custom_values.pop();
        histogram.compact(if is_float { 0 } else { EMPTY_BUCKETS_KEPT });
        Ok(histogram)
    }
}

/// Number of empty buckets kept between non-empty ones, for integer counts.
const EMPTY_BUCKETS_KEPT: u32 = 2;

/// Converts classic histograms among the items of a text to native ones.
///
/// Samples of one histogram must be consecutive, as the formats require. Only families with the
/// type `histogram` are converted.
#[derive(Debug, Default)]
pub struct ClassicToNative {
    keeps_classic: bool,
    /// Family of the last `TYPE` line.
    family: String,
    kind: MetricType,
    gathered: Option<Gathered>,
    /// Series of the last native histogram. Classic samples of the same series are not converted.
    native: Option<LabelPairs>,
    classic: ClassicHistogram,
}

#[derive(Debug)]
struct Gathered {
    labels: LabelPairs,
    timestamp_ms: Option<i64>,
    exemplars: Vec<OwnedExemplar>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OwnedExemplar {
    pub labels: LabelPairs,
    pub value: f64,
    /// Timestamp in milliseconds, if the exemplar has one.
    pub timestamp_ms: Option<i64>,
}

/// A native histogram that was converted from a classic one.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// Labels as given ([`crate::Series::given_labels`]), without `le` and with the family's name.
    pub labels: LabelPairs,
    pub histogram: NativeHistogram,
    /// Timestamp of the last sample, if it has one.
    pub timestamp_ms: Option<i64>,
    /// Exemplars of the classic samples.
    pub exemplars: Vec<OwnedExemplar>,
}

/// Result of processing one item.
#[derive(Debug, Default, PartialEq)]
pub struct Step {
    /// Histogram that ended before the item.
    pub converted: Option<Converted>,
    /// Whether the item was used for a conversion and must not be stored.
    pub is_taken: bool,
}

impl ClassicToNative {
    /// Creates a converter. `keeps_classic` means that classic samples are stored as well.
    pub fn new(keeps_classic: bool) -> ClassicToNative {
        ClassicToNative { keeps_classic, ..ClassicToNative::default() }
    }

    /// Processes the next item; returns a histogram that ended before it.
    pub fn step(&mut self, item: &Item<'_>) -> Result<Step, LabelError> {
        let sample = match item {
            Item::Sample(sample) => sample,
            Item::Type { family, kind } => {
                self.family.clear();
                self.family.push_str(family);
                self.kind = *kind;
                return Ok(Step { converted: self.finish(), is_taken: false });
            }
            Item::Histogram(sample) => {
                let converted = self.finish();
                self.native = Some(sample.series.given_labels()?);
                return Ok(Step { converted, is_taken: false });
            }
            _ => return Ok(Step { converted: self.finish(), is_taken: false }),
        };
        if self.kind != MetricType::Histogram {
            return Ok(Step { converted: self.finish(), is_taken: false });
        }
        let mut labels = sample.series.given_labels()?;
        let part = self.part_of(&mut labels);
        // Samples of one histogram have equal labels except `le` and the suffix of the name.
        let same = self.gathered.as_ref().is_some_and(|gathered| gathered.labels == labels);
        let converted = if same { None } else { self.finish() };
        if self.native.as_ref() == Some(&labels) {
            return Ok(Step { converted, is_taken: false });
        }
        self.native = None;
        let Some(part) = part else { return Ok(Step { converted, is_taken: false }) };
        self.gather(labels, part, sample);
        Ok(Step { converted, is_taken: !self.keeps_classic })
    }

    /// Returns the histogram that the last items form, at the end of the text.
    pub fn finish(&mut self) -> Option<Converted> {
        let Gathered { labels, timestamp_ms, exemplars } = self.gathered.take()?;
        let converted = self.classic.convert(false);
        self.classic.clear();
        // An invalid histogram is skipped, and does not fail the scrape.
        let histogram = converted.ok().filter(|histogram| histogram.validate().is_ok())?;
        Some(Converted { labels, histogram, timestamp_ms, exemplars })
    }

    fn gather(&mut self, labels: LabelPairs, part: Part, sample: &Sample<'_>) {
        let gathered = self.gathered.get_or_insert_with(|| Gathered {
            labels,
            timestamp_ms: None,
            exemplars: Vec::new(),
        });
        // As upstream, the timestamp of the last sample is used.
        gathered.timestamp_ms = sample.timestamp_ms;
        if let Some(exemplar) = &sample.exemplar
            && gathered.exemplars.len() < EXEMPLARS_MAX
        {
            gathered.exemplars.push(OwnedExemplar {
                labels: exemplar.labels(),
                value: exemplar.value,
                timestamp_ms: exemplar.timestamp_ms,
            });
        }
        match part {
            Part::Bucket(bound) => self.classic.bucket(bound, sample.value),
            Part::Count => self.classic.count(sample.value),
            Part::Sum => self.classic.sum(sample.value),
        }
    }

    /// Returns the role of a sample, and reduces its labels to the labels of the histogram.
    fn part_of(&self, labels: &mut LabelPairs) -> Option<Part> {
        let (_, name) = labels.iter_mut().find(|(name, _)| name == METRIC_NAME)?;
        let (stem, ending) = ["_bucket", "_sum", "_count"]
            .into_iter()
            .find_map(|ending| Some((name.strip_suffix(ending)?, ending)))?;
        // A name of another family may end with such a suffix without being a histogram's.
        if stem != self.family {
            return None;
        }
        *name = stem.to_owned();
        let at = labels.iter().position(|(name, _)| name == "le");
        let bound = at.map(|at| labels.remove(at).1);
        match ending {
            "_sum" => Some(Part::Sum),
            "_count" => Some(Part::Count),
            // A bucket without a usable bound is an ordinary sample.
            _ => bound
                .and_then(|bound| parse_value(&bound))
                .filter(|le| !le.is_nan())
                .map(Part::Bucket),
        }
    }
}

enum Part {
    Bucket(f64),
    Sum,
    Count,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(buckets: &[(f64, f64)], count: Option<f64>) -> Result<(Counts, Vec<f64>), String> {
        let mut classic = ClassicHistogram::default();
        for (bound, below) in buckets {
            classic.bucket(*bound, *below);
        }
        if let Some(count) = count {
            classic.count(count);
        }
        match classic.convert(false) {
            Ok(histogram) => match histogram.validate() {
                Ok(()) => Ok((histogram.counts, histogram.custom_values)),
                Err(error) => Err(error.to_string()),
            },
            Err(error) => Err(error.to_string()),
        }
    }

    fn whole(count: u64, deltas: &[i64]) -> Counts {
        let (positive, negative) = (deltas.to_vec(), Vec::new());
        Counts::Integer { count, zero_count: 0, positive, negative }
    }

    /// The cases of upstream's `TestNHCBConvert`.
    #[test]
    fn classic_histograms_become_native() {
        const INF: f64 = f64::INFINITY;
        let bounds = || vec![1.0, 2.0];
        let plain = Ok((whole(25, &[10, -5, 5]), bounds()));
        for (buckets, count, wanted) in [
            (&[(1., 10.), (2., 15.), (INF, 25.)][..], Some(25.), plain.clone()),
            (&[(1., 10.), (2., 15.)], Some(25.), plain.clone()),
            (&[(2., 15.), (1., 10.), (INF, 25.)], Some(25.), plain.clone()),
            (&[(1., 10.), (2., 15.), (2., 99.), (INF, 25.)], None, plain),
            (&[(1., 10.), (2., 15.)], None, Ok((whole(15, &[10, -5]), bounds()))),
            (&[], Some(5.), Ok((whole(5, &[5]), Vec::new()))),
            (&[], None, Ok((whole(0, &[]), Vec::new()))),
        ] {
            assert_eq!(converted(buckets, count), wanted, "{buckets:?}");
        }
        let (count, zero_count) = (1000.25, 0.0);
        let (positive, negative) = (vec![100.5, 99.75, 800.0], Vec::new());
        let counts = Counts::Float { count, zero_count, positive, negative };
        let found = converted(&[(1., 100.5), (2., 200.25), (INF, 1000.25)], Some(1000.25));
        assert_eq!(found, Ok((counts, bounds())));
        for (buckets, count, wanted) in [
            (&[(1., 10.), (2., 5.)][..], None, "do not ascend"),
            (&[(1., 10.), (2., 15.), (1.5, 16.)], None, "do not ascend"),
            (&[(1., -1.)], None, "negative"),
            (&[(1., 1.)], Some(-1.), "negative"),
            (&[(f64::NAN, 1.)], None, "NaN"),
            (&[(1., 9e18)], Some(1.), "negative count"),
            (&[(1., 10.), (INF, 12.)], Some(13.), "its count is 13, but its last bucket has 12"),
        ] {
            let refused = converted(buckets, count).err().unwrap_or_default();
            assert!(refused.contains(wanted), "{buckets:?}: {refused}");
        }
    }

    #[test]
    fn buckets_are_bounded() {
        let mut classic = ClassicHistogram::default();
        for bound in 0..=CLASSIC_BUCKETS_MAX {
            classic.bucket(bound as f64, 1.0);
        }
        assert_eq!(classic.convert(false), Err(ClassicError::TooMany));
        classic.clear();
        classic.bucket(1.0, 1.0);
        assert!(classic.convert(false).is_ok());
    }
}
