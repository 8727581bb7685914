//! What a body says, item by item.

use crate::error::{LabelError, Place};
use crate::histogram::NativeHistogram;
use crate::series;
use crate::text::LineError;
use std::borrow::Cow;

/// Labels by ascending name.
pub type LabelPairs = Vec<(String, String)>;

/// The label that holds a metric's name.
pub const METRIC_NAME: &str = "__name__";

/// Which of the two text formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics; times in seconds
    Openmetrics,
    /// Prometheus' classic text format; times in milliseconds
    Prometheus,
}

/// What a metric family is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// Not known; `untyped` in the classic format.
    #[default]
    Unknown,
    /// Counts events.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations in buckets.
    Histogram,
    /// The same, of what is there now.
    Gaugehistogram,
    /// Quantiles of observations.
    Summary,
    /// Says what does not change.
    Info,
    /// Which states hold.
    Stateset,
}

impl MetricType {
    /// As OpenMetrics and Prometheus' API write it.
    pub fn as_str(self) -> &'static str {
        match self {
            MetricType::Unknown => "unknown",
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
            MetricType::Gaugehistogram => "gaugehistogram",
            MetricType::Summary => "summary",
            MetricType::Info => "info",
            MetricType::Stateset => "stateset",
        }
    }
}

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

/// A series as it is written: `name{label="value",…}` or `{"name",label="value",…}`.
///
/// The same text is the same series, as long as its family's type does not change, but one series
/// can be written in many ways. So a reader that sees a target again and again keeps what a text
/// stands for, and asks for labels once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Series<'a> {
    pub(crate) text: &'a str,
    pub(crate) format: TextFormat,
    /// The type by which numbers in `le` and `quantile` are rewritten.
    pub(crate) kind: MetricType,
    pub(crate) place: Option<Place>,
}

impl<'a> Series<'a> {
    /// The text, from the name to the closing brace.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Where it begins; not known in the protobuf format.
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// The labels, the metric's name (`__name__`) among them, by ascending name; none is empty.
    ///
    /// `le` of histograms and `quantile` of summaries are written as OpenMetrics writes numbers, so
    /// that `le="1"` and `le="1.0"` are one series, as they are in Prometheus 3. A name that occurs
    /// twice is an error here and not of the line, as upstream has it.
    pub fn labels(&self) -> Result<LabelPairs, LabelError> {
        let mut labels = self.given_labels()?;
        if labels.windows(2).any(|pair| matches!(pair, [a, b] if a.0 == b.0)) {
            let place = self.place_of(self.text.len());
            return Err(LabelError { what: "a label name occurs twice", place });
        }
        labels.retain(|(_, value)| !value.is_empty());
        Ok(labels)
    }

    /// The labels as they are written, by ascending name: some may be empty, and names may occur
    /// twice. A scraped label that is empty takes the target's away, where scraped ones prevail.
    pub fn given_labels(&self) -> Result<LabelPairs, LabelError> {
        series::parse_series(self.text, self.format, self.kind)
            .map_err(|error| LabelError { what: error.what, place: self.place_of(error.offset) })
    }

    /// The place of a byte of the text.
    fn place_of(&self, offset: usize) -> Option<Place> {
        let error = LineError { what: "", offset };
        self.place.map(|place| error.place(place, self.text.as_bytes()))
    }

    /// What a reader that keeps the text needs to read its labels again.
    pub fn form(&self) -> SeriesForm {
        SeriesForm { format: self.format, kind: self.kind }
    }
}

/// What the labels of a series hang on besides its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesForm {
    format: TextFormat,
    kind: MetricType,
}

impl SeriesForm {
    /// The labels of a text that was in this form: those of [`Series::given_labels`].
    pub fn given_labels(self, text: &str) -> Result<LabelPairs, LabelError> {
        let SeriesForm { format, kind } = self;
        Series { text, format, kind, place: None }.given_labels()
    }
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
        series::parse_exemplar(&self.text)
    }
}
