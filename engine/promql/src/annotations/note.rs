//! Events of an evaluation that are annotated, and upstream's texts for them.

use super::{Annotation, Detail, Monotonicity, Severity};
use crate::syntax::{Span, quoted};

/// Operation on histograms, as named in annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistogramOperation {
    /// Addition of two histograms, by `+`.
    Add,
    /// Subtraction of two histograms, by `-`.
    Sub,
    /// Aggregation over series or over time.
    Aggregate,
}

impl HistogramOperation {
    fn name(self) -> &'static str {
        match self {
            HistogramOperation::Add => "addition",
            HistogramOperation::Sub => "subtraction",
            HistogramOperation::Aggregate => "aggregation",
        }
    }
}

/// Event of an evaluation that is annotated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note<'a> {
    /// A quantile outside of 0 to 1.
    InvalidQuantile(f64),
    /// A ratio outside of -1 to 1, and the nearest ratio that is used instead.
    InvalidRatio(f64, f64),
    /// The `le` label of a classic bucket has this value, which is not a number.
    BadBucketLabel(&'a str),
    /// A range with floats and histograms.
    MixedFloatsHistograms,
    /// A group with floats and histograms.
    MixedFloatsHistogramsInAggregation,
    /// A series has classic buckets and a native histogram.
    MixedClassicNativeHistograms,
    /// A gauge histogram where counters are expected.
    HistogramNotCounter,
    /// A counter histogram where gauges are expected.
    HistogramNotGauge,
    /// Histograms with exponential and with custom buckets.
    MixedExponentialCustom,
    /// A rate of a metric whose name is not that of a counter.
    PossibleNonCounter,
    /// A rate of a metric whose `__type__` label has this value, which is not that of a counter.
    PossibleNonCounterType(&'a str),
    /// Classic buckets whose counts were raised to make them monotonic.
    ForcedMonotonicity(Monotonicity),
    /// An unsupported operation: type of the left operand, operator, type of the right operand.
    IncompatibleTypes(&'a str, &'a str, &'a str),
    /// The aggregation with this name ignored histograms.
    HistogramIgnoredInAggregation(&'a str),
    /// A range function ignored histograms.
    HistogramIgnoredInMixedRange,
    /// Operands of this operator have incompatible kinds of buckets.
    IncompatibleBucketLayout(&'a str),
    /// Sorting over a range has no effect.
    SortInRange,
    /// A quantile that is NaN, because observations are NaN.
    QuantileNanResult,
    /// A quantile that is too high, because observations are NaN.
    QuantileNanSkew,
    /// A fraction that leaves NaN observations out.
    FractionNan,
    /// Counter reset hints conflict: one histogram is a reset, another states that it is none.
    CounterResetCollision(HistogramOperation),
    /// Custom bounds differed and were reconciled.
    MismatchedCustomBuckets(HistogramOperation),
    /// The start time of a counter is before its previous sample.
    StartTimeOverlap,
}

impl Note<'_> {
    /// Makes the annotation for a metric, whose name may be empty.
    pub fn annotation(self, metric: &str, span: Span) -> Annotation {
        let detail = match self {
            Note::ForcedMonotonicity(figures) => Detail::Monotonicity(figures),
            Note::StartTimeOverlap => Detail::Count(1),
            _ => Detail::Nothing,
        };
        Annotation { severity: self.severity(), text: self.text(metric), span: Some(span), detail }
    }

    /// Returns a bit that identifies a note whose text depends on the metric's name alone.
    pub(crate) fn bit(self) -> Option<u32> {
        let bit = match self {
            Note::MixedFloatsHistograms => 0,
            Note::HistogramNotCounter => 1,
            Note::HistogramNotGauge => 2,
            Note::MixedExponentialCustom => 3,
            Note::HistogramIgnoredInMixedRange => 4,
            Note::QuantileNanResult => 5,
            Note::QuantileNanSkew => 6,
            Note::FractionNan => 7,
            Note::CounterResetCollision(operation) => 8 + operation as u32,
            Note::MismatchedCustomBuckets(operation) => 11 + operation as u32,
            Note::PossibleNonCounter => 14,
            _ => return None,
        };
        Some(1 << bit)
    }

    fn severity(self) -> Severity {
        match self {
            Note::PossibleNonCounter
            | Note::PossibleNonCounterType(_)
            | Note::ForcedMonotonicity(_)
            | Note::IncompatibleTypes(..)
            | Note::HistogramIgnoredInAggregation(_)
            | Note::HistogramIgnoredInMixedRange
            | Note::QuantileNanResult
            | Note::QuantileNanSkew
            | Note::FractionNan
            | Note::MismatchedCustomBuckets(_) => Severity::Info,
            _ => Severity::Warning,
        }
    }

    fn text(self, metric: &str) -> String {
        // Upstream's `maybeAddMetricName` leaves an empty name out.
        let named = |text: &str| match metric {
            "" => text.to_string(),
            metric => format!("{text} for metric name {}", quoted(metric)),
        };
        let of = |text: &str| format!("{text} {}", quoted(metric));
        match self {
            Note::InvalidQuantile(quantile) => {
                let quantile = tidepool_model::number::general(quantile);
                format!("quantile value should be between 0 and 1, got {quantile}")
            }
            Note::InvalidRatio(ratio, capped) => format!(
                "ratio value should be between -1 and 1, got {}, capping to {}",
                tidepool_model::number::general(ratio),
                tidepool_model::number::general(capped)
            ),
            Note::BadBucketLabel(value) => named(&format!(
                "bucket label \"le\" is missing or has a malformed value of {}",
                quoted(value)
            )),
            Note::MixedFloatsHistograms => {
                of("encountered a mix of histograms and floats for metric name")
            }
            Note::MixedFloatsHistogramsInAggregation => {
                "encountered a mix of histograms and floats for aggregation".to_string()
            }
            Note::MixedClassicNativeHistograms => {
                named("vector contains a mix of classic and native histograms")
            }
            Note::HistogramNotCounter => of("this native histogram metric is not a counter:"),
            Note::HistogramNotGauge => of("this native histogram metric is not a gauge:"),
            Note::MixedExponentialCustom => of(
                "vector contains a mix of histograms with exponential and custom buckets schemas \
                 for metric name",
            ),
            Note::PossibleNonCounter => of(
                "metric might not be a counter, name does not end in _total/_sum/_count/_bucket:",
            ),
            Note::PossibleNonCounterType(kind) => of(&format!(
                "metric might not be a counter, __type__ label is not set to \"counter\" or \
                 \"histogram\", got {}:",
                quoted(kind)
            )),
            Note::ForcedMonotonicity(_) => named(
                "input to histogram_quantile needed to be fixed for monotonicity (see https://\
                 prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)",
            ),
            Note::IncompatibleTypes(left, operator, right) => format!(
                "incompatible sample types encountered for binary operator {}: {left} {operator} \
                 {right}",
                quoted(operator)
            ),
            Note::HistogramIgnoredInAggregation(aggregation) => {
                format!("ignored histogram in {aggregation} aggregation")
            }
            Note::HistogramIgnoredInMixedRange => of(
                "ignored histograms in a range containing both floats and histograms for metric \
                 name",
            ),
            Note::IncompatibleBucketLayout(operator) => {
                format!("incompatible bucket layout encountered for binary operator {operator}")
            }
            Note::SortInRange => "sort is ineffective for range queries since results are always \
                                  ordered by labels"
                .to_string(),
            Note::QuantileNanResult => {
                named("input to histogram_quantile has NaN observations, result is NaN")
            }
            Note::QuantileNanSkew => {
                named("input to histogram_quantile has NaN observations, result is skewed higher")
            }
            Note::FractionNan => named(
                "input to histogram_fraction has NaN observations, which are excluded from all \
                 fractions",
            ),
            Note::CounterResetCollision(operation) => {
                format!("conflicting counter resets during histogram {}", operation.name())
            }
            Note::MismatchedCustomBuckets(operation) => {
                format!("mismatched custom buckets were reconciled during {}", operation.name())
            }
            Note::StartTimeOverlap => {
                of("sample has start time that overlaps with previous sample timestamp for metric")
            }
        }
    }
}
