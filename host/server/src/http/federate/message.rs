//! Prometheus' protobuf format: length-delimited metric families, with native histograms.
//!
//! Source: `web/federate.go` in prometheus/prometheus.

use super::escaped;
use prost::Message;
use tidepool_exposition::NameEscaping;
use tidepool_exposition::protobuf::client::{
    self, Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType, Untyped,
};
use tidepool_protocol::prom::native::BucketSpan;
use tidepool_protocol::prom::newest::{FloatHistogram, Newest, NewestValue};

/// Encodes series, which must be sorted by name.
pub fn families(
    series: &[Newest],
    external: &[(String, String)],
    escaping: NameEscaping,
) -> Vec<u8> {
    // A family has one type, so floats and histograms of the same name become two families.
    let mut out = Vec::new();
    let same = |a: &Newest, b: &Newest| a.name == b.name && type_of(a) == type_of(b);
    for family in series.chunk_by(same) {
        let Some(first) = family.first() else { continue };
        let family = MetricFamily {
            name: Some(escaped(escaping, &first.name).into_owned()),
            r#type: Some(type_of(first).into()),
            metric: family.iter().map(|one| metric(one, external, escaping)).collect(),
            ..MetricFamily::default()
        };
        out.extend_from_slice(&family.encode_length_delimited_to_vec());
    }
    out
}

fn type_of(series: &Newest) -> MetricType {
    match &series.value {
        NewestValue::Float(_) => MetricType::Untyped,
        NewestValue::Histogram(histogram) if histogram.is_gauge => MetricType::GaugeHistogram,
        NewestValue::Histogram(_) => MetricType::Histogram,
    }
}

fn metric(series: &Newest, external: &[(String, String)], escaping: NameEscaping) -> Metric {
    let label = |(name, value): (&str, &str)| LabelPair {
        name: Some(escaped(escaping, name).into_owned()),
        value: Some(value.to_owned()),
    };
    let mut metric = Metric {
        label: super::labels(&series.labels, external).map(label).collect(),
        timestamp_ms: Some(series.time_ms),
        ..Metric::default()
    };
    match &series.value {
        NewestValue::Float(value) => metric.untyped = Some(Untyped { value: Some(*value) }),
        NewestValue::Histogram(histogram) => metric.histogram = Some(of_histogram(histogram)),
    }
    metric
}

/// Converts a histogram. Custom bounds become classic buckets, as the format has no custom bounds.
fn of_histogram(from: &FloatHistogram) -> Histogram {
    let both = Histogram {
        sample_count_float: Some(from.count),
        sample_sum: Some(from.sum),
        ..Histogram::default()
    };
    if from.is_custom() {
        let bucket = |(bound, below)| Bucket {
            upper_bound: Some(bound),
            cumulative_count_float: Some(below),
            ..Bucket::default()
        };
        return Histogram {
            bucket: from.classic_buckets().into_iter().map(bucket).collect(),
            ..both
        };
    }
    Histogram {
        schema: Some(from.schema),
        zero_threshold: Some(from.zero_threshold),
        zero_count_float: Some(from.zero_count),
        negative_span: spans(&from.negative_spans),
        negative_count: from.negative_counts.clone(),
        positive_span: spans(&from.positive_spans),
        positive_count: from.positive_counts.clone(),
        ..both
    }
}

fn spans(spans: &[BucketSpan]) -> Vec<client::BucketSpan> {
    let span = |span: &BucketSpan| client::BucketSpan {
        offset: Some(span.offset),
        length: Some(span.length),
    };
    spans.iter().map(span).collect()
}
