//! What a body says, item by item.

use crate::histogram::NativeHistogram;
use crate::metric::{LabelPairs, MetricType};
use crate::series::{Series, parse_exemplar};
use std::borrow::Cow;

/// What a line says, or a part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// A sample.
    Sample(Sample<'a>),
    /// A sample that is a native histogram; in the protobuf format only.
    Histogram(HistogramSample<'a>),
    /// The type of a metric family.
    Type {
        /// The family.
        family: Cow<'a, str>,
        /// Its type.
        kind: MetricType,
    },
    /// What a metric family means.
    Help {
        /// The family.
        family: Cow<'a, str>,
        /// The text, without escapes.
        help: Cow<'a, str>,
    },
    /// The unit of a metric family.
    Unit {
        /// The family.
        family: Cow<'a, str>,
        /// The unit.
        unit: Cow<'a, str>,
    },
    /// A remark, in the classic format.
    Comment,
    /// The end of an OpenMetrics text.
    End,
}

/// A sample that is a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The series.
    pub series: Series<'a>,
    /// The value.
    pub value: f64,
    /// When, if that is said.
    pub timestamp_ms: Option<i64>,
    /// When counting began; in the protobuf format only. It is no sample of its own, unlike
    /// `_created` in OpenMetrics.
    pub created_ms: Option<i64>,
    /// An example of what was counted.
    pub exemplar: Option<Exemplar<'a>>,
}

/// A sample that is a native histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSample<'a> {
    /// The series.
    pub series: Series<'a>,
    /// The value: spans and buckets belong together, all else is as it was sent
    /// ([`NativeHistogram::validate`]).
    pub histogram: NativeHistogram,
    /// When, if that is said.
    pub timestamp_ms: Option<i64>,
    /// When counting began.
    pub created_ms: Option<i64>,
    /// Examples of what was counted, all with a time.
    pub exemplars: Vec<Exemplar<'a>>,
}

/// An exemplar.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar<'a> {
    /// Its labels in braces.
    pub(crate) text: Cow<'a, str>,
    /// Its value.
    pub value: f64,
    /// When, if it says so.
    pub timestamp_ms: Option<i64>,
}

impl Exemplar<'_> {
    /// The labels by ascending name, empty ones among them.
    pub fn labels(&self) -> LabelPairs {
        parse_exemplar(&self.text)
    }
}
