//! Converts one metric to items: samples of its parts, or a native histogram.

use super::HistogramOptions;
use super::client::{self, Histogram, LabelPair, Metric};
use crate::error::FamilyError;
use crate::histogram::{Counts, HistogramError, NativeHistogram, Span};
use crate::metric::MetricType;
use crate::nhcb::ClassicHistogram;
use crate::number::float_text;
use crate::series::SeriesText;
use prost_types::Timestamp;

/// Part of a metric that becomes one item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    Native,
    /// Value of a counter, gauge or untyped metric.
    Value,
    /// Count of a summary or classic histogram.
    Count,
    Sum,
    /// Quantile or bucket by its index. The index after the last bucket means infinity.
    Field(usize),
    /// Native histogram with custom bounds, converted from a classic one.
    Converted,
}

pub(super) fn first(kind: MetricType, metric: &Metric, options: HistogramOptions) -> Part {
    match kind {
        MetricType::Histogram | MetricType::Gaugehistogram => match is_native(metric, options) {
            true => Part::Native,
            // If classic parts are kept, the converted histogram follows them.
            false if options.converts_classic && !options.keeps_classic => Part::Converted,
            false => Part::Count,
        },
        MetricType::Summary => Part::Count,
        _ => Part::Value,
    }
}

pub(super) fn behind(
    part: Part,
    kind: MetricType,
    metric: &Metric,
    options: HistogramOptions,
) -> Option<Part> {
    let buckets = metric.histogram.as_ref().map_or(&[][..], |histogram| &histogram.bucket);
    match part {
        // Without buckets, there is no classic histogram beside the native one.
        Part::Native => (options.keeps_classic && !buckets.is_empty()).then_some(Part::Count),
        Part::Value | Part::Converted => None,
        Part::Count => Some(Part::Sum),
        Part::Sum | Part::Field(_) => {
            let next = if let Part::Field(at) = part { at + 1 } else { 0 };
            if kind == MetricType::Summary {
                let quantiles = metric.summary.as_ref().map_or(0, |summary| summary.quantile.len());
                return (next < quantiles).then_some(Part::Field(next));
            }
            // The bucket `+Inf` is always the last, even if it was not sent.
            let is_last = match part {
                Part::Field(at) => {
                    buckets.get(at).is_none_or(|bucket| bucket.upper_bound() == f64::INFINITY)
                }
                _ => false,
            };
            match is_last {
                false => Some(Part::Field(next)),
                true if options.converts_classic && !is_native(metric, options) => {
                    Some(Part::Converted)
                }
                true => None,
            }
        }
    }
}

/// Returns whether a histogram is native: it has spans, or a zero bucket with a positive width or
/// integer count.
fn is_native(metric: &Metric, options: HistogramOptions) -> bool {
    let Some(histogram) = &metric.histogram else { return false };
    !options.ignores_native
        && (!histogram.positive_span.is_empty()
            || !histogram.negative_span.is_empty()
            || histogram.zero_threshold() > 0.0
            || histogram.zero_count() > 0)
}

/// Writes the series of a part as text.
pub(super) fn write_text(
    text: &mut SeriesText,
    family: &str,
    kind: MetricType,
    metric: &Metric,
    part: Part,
) -> Result<(), FamilyError> {
    let is_summary = kind == MetricType::Summary;
    let ending = match part {
        Part::Count => "_count",
        Part::Sum => "_sum",
        Part::Field(_) if !is_summary => "_bucket",
        _ => "",
    };
    text.begin(&format!("{family}{ending}"));
    for label in &metric.label {
        write_label(text, label)?;
    }
    if let Part::Field(at) = part {
        let (name, bound) = match is_summary {
            true => {
                let quantiles = metric.summary.as_ref().map(|summary| &summary.quantile);
                let quantile = quantiles.and_then(|quantiles| quantiles.get(at));
                ("quantile", quantile.map_or(0.0, |quantile| quantile.quantile()))
            }
            false => {
                let buckets = metric.histogram.as_ref().map(|histogram| &histogram.bucket);
                // The index after the last bucket means infinity, which need not be sent.
                let bucket = buckets.and_then(|buckets| buckets.get(at));
                ("le", bucket.map_or(f64::INFINITY, |bucket| bucket.upper_bound()))
            }
        };
        text.label(name, &float_text(bound));
    }
    Ok(())
}

fn write_label(text: &mut SeriesText, label: &LabelPair) -> Result<(), FamilyError> {
    match label.name() {
        "" => Err(FamilyError::NoLabelName),
        name => {
            text.label(name, label.value());
            Ok(())
        }
    }
}

pub(super) fn exemplar_text(exemplar: &client::Exemplar) -> Result<String, FamilyError> {
    let mut text = SeriesText::default();
    text.begin_exemplar();
    for label in &exemplar.label {
        write_label(&mut text, label)?;
    }
    Ok(text.end().to_owned())
}

pub(super) fn value_of(kind: MetricType, metric: &Metric, part: Part) -> f64 {
    match kind {
        MetricType::Counter => metric.counter.as_ref().map_or(0.0, |counter| counter.value()),
        MetricType::Gauge => metric.gauge.as_ref().map_or(0.0, |gauge| gauge.value()),
        MetricType::Summary => metric.summary.as_ref().map_or(0.0, |summary| match part {
            Part::Count => summary.sample_count() as f64,
            Part::Field(at) => summary.quantile.get(at).map_or(0.0, |quantile| quantile.value()),
            _ => summary.sample_sum(),
        }),
        MetricType::Histogram | MetricType::Gaugehistogram => {
            metric.histogram.as_ref().map_or(0.0, |histogram| match part {
                Part::Sum => histogram.sample_sum(),
                Part::Field(at) => {
                    histogram.bucket.get(at).map_or_else(|| count_of(histogram), below_of)
                }
                _ => count_of(histogram),
            })
        }
        _ => metric.untyped.as_ref().map_or(0.0, |untyped| untyped.value()),
    }
}

fn count_of(histogram: &Histogram) -> f64 {
    // In integer histograms, the float count is zero.
    match histogram.sample_count_float() {
        0.0 => histogram.sample_count() as f64,
        count => count,
    }
}

fn below_of(bucket: &client::Bucket) -> f64 {
    // In integer histograms, the float count is zero.
    match bucket.cumulative_count_float() {
        0.0 => bucket.cumulative_count() as f64,
        count => count,
    }
}

/// Returns the start timestamp, if it was sent.
pub(super) fn created_ms(kind: MetricType, metric: &Metric) -> Option<i64> {
    let created = match kind {
        MetricType::Counter => metric.counter.as_ref()?.created_timestamp,
        MetricType::Summary => metric.summary.as_ref()?.created_timestamp,
        MetricType::Histogram | MetricType::Gaugehistogram => {
            metric.histogram.as_ref()?.created_timestamp
        }
        _ => None,
    };
    created.as_ref().map(millis).filter(|created_ms| *created_ms != 0)
}

/// Converts to milliseconds; drops finer digits.
pub(super) fn millis(time: &Timestamp) -> i64 {
    time.seconds.saturating_mul(1000).saturating_add(i64::from(time.nanos / 1_000_000))
}

/// Returns the exemplars of a part. A number has at most one; a histogram's need a timestamp.
pub(super) fn exemplars(
    kind: MetricType,
    metric: &Metric,
    part: Part,
) -> impl Iterator<Item = &client::Exemplar> {
    let is_number = !matches!(part, Part::Native | Part::Converted);
    let counter = metric.counter.as_ref().filter(|_| kind == MetricType::Counter);
    let own = counter.and_then(|counter| counter.exemplar.as_ref());
    let is_histogram = matches!(kind, MetricType::Histogram | MetricType::Gaugehistogram);
    let histogram = metric.histogram.as_ref().filter(|_| is_histogram);
    let native = histogram.map_or(&[][..], |histogram| &histogram.exemplars);
    let buckets = histogram.map_or(&[][..], |histogram| &histogram.bucket);
    let buckets = match part {
        Part::Field(at) => buckets.get(at..=at).unwrap_or_default(),
        // As upstream, a histogram without exemplars of its own gets those of the classic buckets.
        Part::Native | Part::Converted if native.is_empty() => buckets,
        _ => &[],
    };
    let native = if is_number { &[] } else { native };
    let of_buckets = buckets.iter().filter_map(|bucket| bucket.exemplar.as_ref());
    let all = own.into_iter().chain(native).chain(of_buckets);
    // Prometheus stores exemplars of native histograms only with a timestamp.
    all.filter(move |exemplar| is_number || exemplar.timestamp.is_some())
}

/// Returns the native histogram of a part.
pub(super) fn histogram_of(
    kind: MetricType,
    metric: &Metric,
    part: Part,
) -> Result<NativeHistogram, HistogramError> {
    let is_gauge = kind == MetricType::Gaugehistogram;
    let empty = Histogram::default();
    let from = metric.histogram.as_ref().unwrap_or(&empty);
    if part == Part::Converted {
        let mut classic = ClassicHistogram::default();
        classic.count(count_of(from));
        classic.sum(from.sample_sum());
        for bucket in &from.bucket {
            classic.bucket(bucket.upper_bound(), below_of(bucket));
        }
        return Ok(classic.convert(is_gauge)?);
    }
    // In integer histograms, both float counts are zero.
    let counts = match from.sample_count_float() > 0.0 || from.zero_count_float() > 0.0 {
        true => Counts::Float {
            count: from.sample_count_float(),
            zero_count: from.zero_count_float(),
            positive: from.positive_count.clone(),
            negative: from.negative_count.clone(),
        },
        false => Counts::Integer {
            count: from.sample_count(),
            zero_count: from.zero_count(),
            positive: from.positive_delta.clone(),
            negative: from.negative_delta.clone(),
        },
    };
    let mut histogram = NativeHistogram {
        schema: from.schema(),
        zero_threshold: from.zero_threshold(),
        sum: from.sample_sum(),
        is_gauge,
        positive_spans: spans(&from.positive_span),
        negative_spans: spans(&from.negative_span),
        counts,
        custom_values: Vec::new(),
    };
    // `compact` requires that spans and buckets match in number.
    histogram.check_spans()?;
    histogram.compact(0);
    Ok(histogram)
}

fn spans(spans: &[client::BucketSpan]) -> Vec<Span> {
    let span = |span: &client::BucketSpan| Span { offset: span.offset(), length: span.length() };
    spans.iter().map(span).collect()
}
