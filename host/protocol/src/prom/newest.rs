//! Decodes the newest sample of each series in an answer to remote read, for federation.

use super::proto::{self, BucketSpan, QueryResult, histogram};
use prost::{DecodeError, Message};
use tidepool_model::buckets::CUSTOM_BUCKETS_SCHEMA;
use tidepool_model::is_stale_nan;

/// A series with its newest sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    /// Metric name, which is not empty.
    pub name: String,
    /// Labels without the name, by ascending name.
    pub labels: Vec<(String, String)>,
    /// Timestamp of the sample, in milliseconds since the epoch.
    pub time_ms: i64,
    pub value: NewestValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NewestValue {
    Float(f64),
    Histogram(Box<FloatHistogram>),
}

/// A native histogram with absolute counts as floats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FloatHistogram {
    pub count: f64,
    pub sum: f64,
    /// Resolution of the buckets, or [`CUSTOM_BUCKETS_SCHEMA`].
    pub schema: i32,
    pub zero_threshold: f64,
    pub zero_count: f64,
    pub negative_spans: Vec<BucketSpan>,
    pub negative_counts: Vec<f64>,
    pub positive_spans: Vec<BucketSpan>,
    pub positive_counts: Vec<f64>,
    /// Upper bounds of custom buckets.
    pub custom_values: Vec<f64>,
    /// Whether the histogram is a gauge.
    pub is_gauge: bool,
}

impl Newest {
    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        // 48 bytes are the two `String` values without their text.
        let labels: usize =
            self.labels.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
        let value = match &self.value {
            NewestValue::Float(_) => 0,
            NewestValue::Histogram(it) => {
                let buckets = it.negative_counts.len() + it.positive_counts.len();
                let spans = it.negative_spans.len() + it.positive_spans.len();
                size_of::<FloatHistogram>() + 8 * (buckets + spans + it.custom_values.len())
            }
        };
        size_of::<Newest>() + self.name.len() + labels + value
    }
}

impl FloatHistogram {
    pub fn is_custom(&self) -> bool {
        self.schema == CUSTOM_BUCKETS_SCHEMA
    }

    /// Returns the upper bounds of custom buckets with cumulative counts, without the last,
    /// infinite bucket.
    pub fn classic_buckets(&self) -> Vec<(f64, f64)> {
        let mut counts = vec![0.0; self.custom_values.len()];
        let mut index = 0_i64;
        let mut buckets = self.positive_counts.iter();
        for span in &self.positive_spans {
            index += i64::from(span.offset);
            for count in buckets.by_ref().take(span.length as usize) {
                // The infinite bucket, and buckets of damaged histograms, have no bound here.
                let place = usize::try_from(index).ok().and_then(|index| counts.get_mut(index));
                if let Some(place) = place {
                    *place = *count;
                }
                index += 1;
            }
        }
        let mut below = 0.0;
        let cumulative = self.custom_values.iter().zip(counts).map(|(bound, count)| {
            below += count;
            (*bound, below)
        });
        cumulative.collect()
    }
}

/// Decodes the newest samples from complete fields of a `prometheus.QueryResult`. Skips series
/// without a name, and series whose newest sample is a stale marker.
pub fn newest(fields: &[u8]) -> Result<Vec<Newest>, DecodeError> {
    let result = QueryResult::decode(fields)?;
    Ok(result.timeseries.into_iter().filter_map(of_series).collect())
}

fn of_series(series: proto::TimeSeries) -> Option<Newest> {
    let float = series.samples.last();
    let histogram = series.histograms.last();
    let is_float = match (float, histogram) {
        (Some(float), Some(histogram)) => float.timestamp >= histogram.timestamp,
        (float, _) => float.is_some(),
    };
    let (time_ms, value) = match (float, histogram) {
        (Some(float), _) if is_float => (float.timestamp, NewestValue::Float(float.value)),
        (_, Some(histogram)) => {
            (histogram.timestamp, NewestValue::Histogram(Box::new(to_float(histogram))))
        }
        _ => return None,
    };
    let is_stale = match &value {
        NewestValue::Float(value) => is_stale_nan(*value),
        NewestValue::Histogram(histogram) => is_stale_nan(histogram.sum),
    };
    let (mut name, mut labels) = (String::new(), Vec::new());
    for proto::Label { name: label, value } in series.labels {
        match label.as_str() {
            "__name__" => name = value,
            _ => labels.push((label, value)),
        }
    }
    (!is_stale && !name.is_empty()).then_some(Newest { name, labels, time_ms, value })
}

fn to_float(from: &proto::Histogram) -> FloatHistogram {
    let count = match from.count {
        Some(histogram::Count::CountInt(count)) => count as f64,
        Some(histogram::Count::CountFloat(count)) => count,
        None => 0.0,
    };
    let zero_count = match from.zero_count {
        Some(histogram::ZeroCount::ZeroCountInt(count)) => count as f64,
        Some(histogram::ZeroCount::ZeroCountFloat(count)) => count,
        None => 0.0,
    };
    FloatHistogram {
        count,
        sum: from.sum,
        schema: from.schema,
        zero_threshold: from.zero_threshold,
        zero_count,
        negative_spans: from.negative_spans.clone(),
        negative_counts: counts(&from.negative_counts, &from.negative_deltas),
        positive_spans: from.positive_spans.clone(),
        positive_counts: counts(&from.positive_counts, &from.positive_deltas),
        custom_values: from.custom_values.clone(),
        is_gauge: from.reset_hint() == histogram::ResetHint::Gauge,
    }
}

/// Returns the absolute counts, or the running sums of the deltas.
fn counts(counts: &[f64], deltas: &[i64]) -> Vec<f64> {
    // Only float histograms have counts; integer histograms have deltas.
    if !counts.is_empty() {
        return counts.to_vec();
    }
    let mut count = 0_i64;
    let sums = deltas.iter().map(|delta| {
        count = count.wrapping_add(*delta);
        count as f64
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::{Histogram, Label, Sample, TimeSeries};

    fn series(name: &str, samples: &[(i64, f64)], histograms: Vec<Histogram>) -> TimeSeries {
        let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
        let sample =
            |(timestamp, value): &(i64, f64)| Sample { timestamp: *timestamp, value: *value };
        TimeSeries {
            labels: vec![label("__name__", name), label("job", "a")],
            samples: samples.iter().map(sample).collect(),
            histograms,
            ..TimeSeries::default()
        }
    }

    fn histogram(timestamp: i64, sum: f64) -> Histogram {
        Histogram {
            count: Some(histogram::Count::CountInt(9)),
            sum,
            schema: CUSTOM_BUCKETS_SCHEMA,
            positive_spans: vec![
                BucketSpan { offset: 0, length: 1 },
                BucketSpan { offset: 1, length: 2 },
            ],
            positive_deltas: vec![2, 1, 1],
            custom_values: vec![0.5, 1.0, 2.0],
            timestamp,
            ..Histogram::default()
        }
    }

    #[test]
    fn the_newest_sample_counts_unless_it_is_stale() -> Result<(), DecodeError> {
        let stale = tidepool_model::STALE_NAN;
        let timeseries = vec![
            series("float", &[(1, 1.0), (2, 3.0)], vec![histogram(1, 0.0)]),
            series("histogram", &[(1, 1.0)], vec![histogram(2, 4.5)]),
            series("stale", &[(1, 1.0), (2, stale)], Vec::new()),
            series("stale_histogram", &[(1, 1.0)], vec![histogram(2, stale)]),
            series("", &[(1, 1.0)], Vec::new()),
            series("none", &[], Vec::new()),
        ];
        let found = newest(&QueryResult { timeseries }.encode_to_vec())?;
        let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["float", "histogram"]);
        assert_eq!((found[0].time_ms, &found[0].value), (2, &NewestValue::Float(3.0)));
        let NewestValue::Histogram(histogram) = &found[1].value else { panic!("{:?}", found[1]) };
        assert_eq!(histogram.positive_counts, [2.0, 3.0, 4.0]);
        assert_eq!(histogram.classic_buckets(), [(0.5, 2.0), (1.0, 2.0), (2.0, 5.0)]);
        assert!(histogram.is_custom() && !histogram.is_gauge && histogram.count == 9.0);
        Ok(())
    }
}
