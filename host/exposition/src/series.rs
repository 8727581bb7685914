//! Parses and writes the notation of series.

use crate::error::{LabelError, TextPosition};
use crate::metric::{LabelPairs, METRIC_NAME, MetricType};
use crate::number::bound_text;
use crate::scanner::{LineError, Scanner, TextFormat};
use std::borrow::Cow;

/// A series as written in an exposition: `name{label="value",…}` or `{"name",label="value",…}`.
///
/// Equal texts are the same series, as long as the type of the family does not change, but one
/// series can be written in several ways. A reader that scrapes a target again and again therefore
/// caches the series of a text, and asks for labels once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Series<'a> {
    pub(crate) text: &'a str,
    pub(crate) format: TextFormat,
    /// Type of the family, which decides whether `le` or `quantile` is normalised.
    pub(crate) kind: MetricType,
    pub(crate) place: Option<TextPosition>,
}

impl<'a> Series<'a> {
    /// Returns the text, from the name to the closing brace.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the position of the text's first byte; `None` in the protobuf format.
    pub fn place(&self) -> Option<TextPosition> {
        self.place
    }

    /// Returns the non-empty labels by ascending name, including the metric's name (`__name__`).
    ///
    /// `le` of histograms and `quantile` of summaries are formatted as OpenMetrics formats numbers,
    /// so that `le="1"` and `le="1.0"` are one series, as in Prometheus 3. As upstream, the line
    /// with a repeated name parses, but its labels are an error.
    pub fn labels(&self) -> Result<LabelPairs, LabelError> {
        let mut labels = self.given_labels()?;
        // Names are sorted, so equal names are neighbours.
        if labels.windows(2).any(|pair| matches!(pair, [a, b] if a.0 == b.0)) {
            let place = self.place_of(self.text.len());
            return Err(LabelError { what: "a label name occurs twice", place });
        }
        labels.retain(|(_, value)| !value.is_empty());
        Ok(labels)
    }

    /// Returns the labels as written, by ascending name: values may be empty, and names may repeat.
    /// With `honor_labels`, an empty scraped label removes the label of the target.
    pub fn given_labels(&self) -> Result<LabelPairs, LabelError> {
        parse_series(self.text, self.format, self.kind)
            .map_err(|error| LabelError { what: error.what, place: self.place_of(error.offset) })
    }

    /// Returns the position of a byte of the text.
    fn place_of(&self, offset: usize) -> Option<TextPosition> {
        let error = LineError { what: "", offset };
        self.place.map(|place| error.place(place, self.text.as_bytes()))
    }

    /// Returns the properties that are needed, besides the text, to parse the labels again.
    pub fn form(&self) -> SeriesForm {
        SeriesForm { format: self.format, kind: self.kind }
    }
}

/// Properties of a series, besides its text, on which its labels depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesForm {
    format: TextFormat,
    kind: MetricType,
}

impl SeriesForm {
    /// Parses the labels of a text of this form, as [`Series::given_labels`] does.
    pub fn given_labels(self, text: &str) -> Result<LabelPairs, LabelError> {
        let SeriesForm { format, kind } = self;
        Series { text, format, kind, place: None }.given_labels()
    }
}

/// Parses the labels of a series as written: values may be empty, and names may repeat.
fn parse_series(text: &str, format: TextFormat, kind: MetricType) -> Result<LabelPairs, LineError> {
    let mut scanner = Scanner::new(text);
    let mut name = Cow::Borrowed(scanner.metric_name());
    let mut labels = LabelPairs::with_capacity(8);
    if format == TextFormat::Prometheus {
        scanner.skip_blanks();
    }
    if scanner.peek() == Some(b'{') {
        scanner.labels(format, Some(&mut name), |label, value| {
            // In other types, `le` and `quantile` are ordinary labels.
            let is_number = match kind {
                MetricType::Histogram => label == "le",
                MetricType::Summary => label == "quantile",
                _ => false,
            };
            let value = if is_number { bound_text(value) } else { value };
            labels.push((label.into_owned(), value.into_owned()));
        })?;
    }
    if name.is_empty() {
        return Err(scanner.error("the series has no metric name"));
    }
    labels.push((METRIC_NAME.to_owned(), name.into_owned()));
    // The sort is stable: the first value of a repeated name stays the first.
    labels.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(labels)
}

/// Parses the labels of an exemplar, which were checked when its line was read.
pub(crate) fn parse_exemplar(text: &str) -> LabelPairs {
    let mut labels = LabelPairs::new();
    let mut scanner = Scanner::new(text);
    let push = |label: Cow<'_, str>, value: Cow<'_, str>| {
        labels.push((label.into_owned(), value.into_owned()));
    };
    match scanner.labels(TextFormat::Openmetrics, None, push) {
        Ok(()) => labels.sort(),
        // Cannot happen with checked labels; an exemplar without labels is still valid.
        Err(_) => labels.clear(),
    }
    labels
}

/// Writes a series as the text formats do: `name{label="value"}`, or `{"name",label="value"}` if
/// the name needs quotes.
pub fn series_text<'l>(name: &str, labels: impl IntoIterator<Item = (&'l str, &'l str)>) -> String {
    let mut text = SeriesText::default();
    text.begin(name);
    for (name, value) in labels {
        text.label(name, value);
    }
    text.end().to_owned()
}

/// Writes a series from its parts in a form that [`parse_series`] accepts.
#[derive(Default)]
pub(crate) struct SeriesText {
    text: String,
}

impl SeriesText {
    pub fn begin(&mut self, name: &str) {
        self.text.clear();
        // Without quotes, the scanner must read the whole name as a name.
        let mut scanner = Scanner::new(name);
        scanner.metric_name();
        if scanner.rest().is_empty() {
            self.text.push_str(name);
            self.text.push('{');
        } else {
            self.text.push('{');
            push_quoted(&mut self.text, name);
            self.text.push(',');
        }
    }

    /// Begins without a name, for the labels of an exemplar.
    pub fn begin_exemplar(&mut self) {
        self.text.clear();
        self.text.push('{');
    }

    pub fn label(&mut self, name: &str, value: &str) {
        let mut scanner = Scanner::new(name);
        scanner.label_name();
        if scanner.rest().is_empty() && !name.is_empty() {
            self.text.push_str(name);
        } else {
            push_quoted(&mut self.text, name);
        }
        self.text.push('=');
        push_quoted(&mut self.text, value);
        self.text.push(',');
    }

    pub fn end(&mut self) -> &str {
        // A name without labels gets no braces; an exemplar without labels does.
        if self.text.ends_with('{') && self.text.len() > 1 {
            self.text.pop();
        } else {
            if self.text.ends_with(',') {
                self.text.pop();
            }
            self.text.push('}');
        }
        &self.text
    }
}

fn push_quoted(text: &mut String, plain: &str) {
    text.push('"');
    let mut rest = plain;
    while let Some(at) = memchr::memchr3(b'"', b'\\', b'\n', rest.as_bytes()) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        text.push_str(match after.as_bytes().first() {
            Some(b'"') => "\\\"",
            Some(b'\n') => "\\n",
            _ => "\\\\",
        });
        rest = after.get(1..).unwrap_or_default();
    }
    text.push_str(rest);
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(name: &str, labels: &[(&str, &str)]) -> String {
        series_text(name, labels.iter().copied())
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(text("up", &[]), "up");
        assert_eq!(text("up", &[("a", "b"), ("c.d", "\"")]), r#"up{a="b","c.d"="\""}"#);
        assert_eq!(text("a.b", &[]), r#"{"a.b"}"#);
        assert_eq!(text("a.b", &[("x", "")]), r#"{"a.b",x=""}"#);
        let mut exemplar = SeriesText::default();
        exemplar.begin_exemplar();
        assert_eq!(exemplar.end(), "{}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            name in ".+",
            labels in prop::collection::btree_map("[a-z.\"\\\\]{1,3}", ".*", 0..4),
        ) {
            let pairs: Vec<_> = labels.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            let mut wanted: LabelPairs = labels.clone().into_iter().filter(|(_, v)| !v.is_empty()).collect();
            wanted.push((METRIC_NAME.to_owned(), name.clone()));
            wanted.sort();
            let text = text(&name, &pairs);
            let (format, kind) = (TextFormat::Openmetrics, MetricType::Unknown);
            let series = Series { text: &text, format, kind, place: None };
            prop_assert_eq!(series.labels(), Ok(wanted), "{}", text);
            let given = series.given_labels().map(|given| given.len());
            prop_assert_eq!(given, Ok(labels.len() + 1), "{}", text);
        }
    }
}
