//! Items that parsers return: samples, histograms and metadata.

use crate::histogram::NativeHistogram;
use crate::metric::{LabelPairs, MetricType};
use crate::series::{Series, parse_exemplar};
use std::borrow::Cow;

/// One line of a text, or one part of a protobuf message.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    Sample(Sample<'a>),
    /// A sample with a native histogram; only in the protobuf format.
    Histogram(HistogramSample<'a>),
    Type {
        /// Name of the family, without quotes and escapes.
        family: Cow<'a, str>,
        kind: MetricType,
    },
    Help {
        family: Cow<'a, str>,
        /// Help text, without its escapes.
        help: Cow<'a, str>,
    },
    Unit {
        /// Name of the family, without quotes and escapes.
        family: Cow<'a, str>,
        unit: Cow<'a, str>,
    },
    /// A comment line of the classic format.
    Comment,
    /// The line `# EOF` of an OpenMetrics text.
    End,
}

/// A sample with a float value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    pub series: Series<'a>,
    pub value: f64,
    /// Timestamp in milliseconds, if the sample has one.
    pub timestamp_ms: Option<i64>,
    /// Start timestamp, only in the protobuf format: OpenMetrics' `_created` is a sample.
    pub created_ms: Option<i64>,
    pub exemplar: Option<Exemplar<'a>>,
}

/// A sample with a native histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSample<'a> {
    pub series: Series<'a>,
    /// Histogram with as many buckets as its spans describe. Everything else is unchecked
    /// ([`NativeHistogram::validate`]).
    pub histogram: NativeHistogram,
    /// Timestamp in milliseconds, if the sample has one.
    pub timestamp_ms: Option<i64>,
    /// Start timestamp in milliseconds, if it was sent.
    pub created_ms: Option<i64>,
    /// Exemplars, all of which have a timestamp.
    pub exemplars: Vec<Exemplar<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar<'a> {
    /// Labels with braces, as written.
    pub(crate) text: Cow<'a, str>,
    pub value: f64,
    /// Timestamp in milliseconds, if the exemplar has one.
    pub timestamp_ms: Option<i64>,
}

impl Exemplar<'_> {
    /// Returns the labels by ascending name, including labels with empty values.
    pub fn labels(&self) -> LabelPairs {
        parse_exemplar(&self.text)
    }
}
