//! Imports a pushed text line by line; an invalid line does not affect the other lines. The
//! protobuf format is imported up to the first invalid message.

use crate::prom::native::of_exposition;
use crate::prom::rows::{self, Family, LabelSet, MetricType, ReceiverClosed, RowSink, RowValue};
use std::collections::BTreeMap;
use std::io::BufRead;
use tidepool_exposition::{
    self as exposition, Format, HistogramOptions, Item, LabelError, ProtobufParser, ReadError,
    TextFormat, TextReader,
};

/// Maximum number of errors in the result.
const ERRORS_MAX: usize = 10;

/// Limit on the bytes copied at once.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of metric families whose metadata is collected before it is written.
const FAMILIES_MAX: usize = 4096;

/// Maximum number of characters of a help text; more than the store keeps.
const HELP_CHARS_MAX: usize = 1024;

/// Options for all lines of a text.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Timestamp of samples that have none.
    pub timestamp_ms: i64,
    /// Labels that all series get; they replace labels of the same names.
    pub extra_labels: Vec<(String, String)>,
}

/// Result of importing a text.
#[derive(Debug, Default)]
pub struct Imported {
    /// Number of invalid lines. A missing end of the text counts as one line.
    pub refused: u64,
    /// Errors of the first refused lines.
    pub errors: Vec<String>,
}

/// Metadata of a family, collected from several lines.
#[derive(Default)]
struct Said {
    kind: MetricType,
    help: String,
    unit: String,
}

/// Writes the samples of a text or of protobuf messages as rows, and then the metadata.
pub fn import(
    body: impl BufRead,
    format: Format,
    options: &ImportOptions,
    sink: &mut impl RowSink,
) -> Result<Imported, ReceiverClosed> {
    let families = BTreeMap::new();
    let mut import = Import { options, sink, families, imported: Imported::default() };
    match format {
        Format::Prometheus => import.text(TextReader::new(body, TextFormat::Prometheus))?,
        Format::Openmetrics => import.text(TextReader::new(body, TextFormat::Openmetrics))?,
        Format::Protobuf => import.messages(body)?,
    }
    hand_on(&mut import.families, import.sink)?;
    Ok(import.imported)
}

struct Import<'a, S> {
    options: &'a ImportOptions,
    sink: &'a mut S,
    families: BTreeMap<String, Said>,
    imported: Imported,
}

impl<S: RowSink> Import<'_, S> {
    fn text(&mut self, mut reader: TextReader<impl BufRead>) -> Result<(), ReceiverClosed> {
        loop {
            self.sink.go_on()?;
            let taken = match reader.next_item() {
                Ok(None) => return Ok(()),
                Ok(Some(item)) => match self.take(item)? {
                    Ok(()) => continue,
                    Err(error) => ReadError::from(reader.refused_labels(error)),
                },
                Err(error) => error,
            };
            self.refuse(&taken);
            // After any other error, no further line can be read.
            if !matches!(taken, ReadError::Parse(error) if error.is_line()) {
                return Ok(());
            }
        }
    }

    fn messages(&mut self, mut body: impl BufRead) -> Result<(), ReceiverClosed> {
        let mut parser = ProtobufParser::new(HistogramOptions::default());
        let mut is_complete = false;
        loop {
            self.sink.go_on()?;
            match parser.next() {
                Ok(Some(item)) => {
                    if let Err(error) = self.take(item)? {
                        self.refuse(&error);
                    }
                    continue;
                }
                Ok(None) if is_complete => return Ok(()),
                Ok(None) => {}
                // After an error, the position of the next message is unknown.
                Err(error) => {
                    self.refuse(&error);
                    return Ok(());
                }
            }
            let read = match body.fill_buf() {
                Ok([]) => {
                    parser.end();
                    is_complete = true;
                    0
                }
                Ok(piece) => {
                    // A slice returns all its bytes at once, and the parser would copy all of them.
                    let piece = &piece[..piece.len().min(PIECE_BYTES_MAX)];
                    parser.feed(piece);
                    piece.len()
                }
                Err(error) => {
                    self.refuse(&error);
                    return Ok(());
                }
            };
            body.consume(read);
        }
    }

    /// Writes an item. The inner error is a fault of the item's labels.
    fn take(&mut self, item: Item<'_>) -> Result<Result<(), LabelError>, ReceiverClosed> {
        let time_ms = self.options.timestamp_ms;
        match item {
            Item::Sample(sample) => {
                let labels = match sample.series.labels() {
                    Ok(labels) => all_labels(labels, self.options),
                    Err(error) => return Ok(Err(error)),
                };
                let time_ms = sample.timestamp_ms.unwrap_or(time_ms);
                let exemplar = sample.exemplar.map(|exemplar| exemplar_row(&exemplar, time_ms));
                let value = RowValue::Float(sample.value);
                self.sink.row(&labels, time_ms, value, exemplar.as_slice())?;
            }
            Item::Histogram(sample) => {
                let labels = match sample.series.labels() {
                    Ok(labels) => all_labels(labels, self.options),
                    Err(error) => return Ok(Err(error)),
                };
                let time_ms = sample.timestamp_ms.unwrap_or(time_ms);
                let exemplars = sample.exemplars.iter().map(|one| exemplar_row(one, time_ms));
                let exemplars: Vec<rows::Exemplar> = exemplars.collect();
                let histogram = of_exposition(&sample.histogram, time_ms);
                self.sink.row(&labels, time_ms, RowValue::Histogram(&histogram), &exemplars)?;
            }
            item => {
                note(&mut self.families, item);
                // A text may name any number of families, so their metadata is written in parts.
                if self.families.len() >= FAMILIES_MAX {
                    hand_on(&mut self.families, self.sink)?;
                }
            }
        }
        Ok(Ok(()))
    }

    fn refuse(&mut self, error: &dyn std::error::Error) {
        self.imported.refused += 1;
        if self.imported.errors.len() < ERRORS_MAX {
            self.imported.errors.push(error.to_string());
        }
    }
}

fn exemplar_row(exemplar: &exposition::Exemplar<'_>, timestamp_ms: i64) -> rows::Exemplar {
    rows::Exemplar {
        labels: exemplar.labels(),
        value: exemplar.value,
        timestamp_ms: exemplar.timestamp_ms.unwrap_or(timestamp_ms),
    }
}

fn all_labels(pairs: Vec<(String, String)>, options: &ImportOptions) -> LabelSet {
    // The last of equal names wins, so the extra labels are appended.
    LabelSet::of(pairs.into_iter().chain(options.extra_labels.iter().cloned()).collect())
}

fn note(families: &mut BTreeMap<String, Said>, item: Item<'_>) {
    match item {
        Item::Type { family, kind } => {
            families.entry(family.into_owned()).or_default().kind = type_of(kind);
        }
        Item::Help { family, help } => {
            let help = help.chars().take(HELP_CHARS_MAX).collect();
            families.entry(family.into_owned()).or_default().help = help;
        }
        Item::Unit { family, unit } => {
            families.entry(family.into_owned()).or_default().unit = unit.into_owned();
        }
        Item::Sample(_) | Item::Histogram(_) | Item::Comment | Item::End => {}
    }
}

/// Converts a family's type to that of remote write.
pub fn type_of(kind: exposition::MetricType) -> MetricType {
    match kind {
        exposition::MetricType::Counter => MetricType::Counter,
        exposition::MetricType::Gauge => MetricType::Gauge,
        exposition::MetricType::Histogram => MetricType::Histogram,
        exposition::MetricType::Gaugehistogram => MetricType::Gaugehistogram,
        exposition::MetricType::Summary => MetricType::Summary,
        exposition::MetricType::Info => MetricType::Info,
        exposition::MetricType::Stateset => MetricType::Stateset,
        exposition::MetricType::Unknown => MetricType::Unknown,
    }
}

fn hand_on(
    families: &mut BTreeMap<String, Said>,
    sink: &mut impl RowSink,
) -> Result<(), ReceiverClosed> {
    for (name, Said { kind, help, unit }) in std::mem::take(families) {
        sink.family(Family { name: &name, kind, help: &help, unit: &unit })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prom::rows::testing::Rows;
    use proptest::prelude::*;

    fn imported(text: &str, format: Format, extra: &[(&str, &str)]) -> (Rows, Imported) {
        let mut rows = Rows::default();
        let extra = extra.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let options = ImportOptions { timestamp_ms: 77, extra_labels: extra.collect() };
        let imported = import(text.as_bytes(), format, &options, &mut rows);
        (rows, imported.unwrap_or_default())
    }

    #[test]
    fn good_lines_are_kept_beside_wrong_ones() {
        let text = "# TYPE a counter\n# HELP a Of\\na.\na{x=\"1\"} 5\nb{ 6\nc 7 1000\n\nd x\ne{y=\"2\",job=\"j\"} NaN\n";
        let (rows, imported) = imported(text, Format::Prometheus, &[("job", "k"), ("y", "")]);
        let wanted = [
            "__name__=a,job=k,x=1 77 5",
            "__name__=c,job=k 1000 7",
            "__name__=e,job=k 77 7ff8000000000001",
        ];
        assert_eq!(rows.rows, wanted);
        assert_eq!(rows.families, ["a Counter \"Of\\na.\" \"\""]);
        assert_eq!(imported.refused, 2);
        assert!(imported.errors[0].starts_with("line 4: "), "{imported:?}");
        assert!(imported.errors[1].starts_with("line 7: this is not a value"), "{imported:?}");
    }

    #[test]
    fn open_metrics_must_end_but_what_came_before_is_kept() {
        let text =
            "# TYPE a_s counter\n# UNIT a_s s\na_s_total 1 2.5 # {t=\"x\"} 0.5\nb 1 # {} 2 3\n";
        let (rows, imported) = imported(text, Format::Openmetrics, &[]);
        assert_eq!(rows.rows, ["__name__=a_s_total 2500 1 #0.5@2500", "__name__=b 77 1 #2@3000"]);
        assert_eq!(rows.families, ["a_s Counter \"\" \"s\""]);
        assert_eq!(imported.refused, 1);
        assert!(imported.errors[0].contains("# EOF"), "{imported:?}");
    }

    #[test]
    fn messages_before_a_wrong_one_are_kept() {
        // A family "a" of the type 1, a gauge, with a metric of the value 5.
        let head = b"\x12\x0a\x01a\x18\x01\x22\x0b\x12\x09\x09";
        let whole = [&head[..], &5_f64.to_le_bytes()].concat();
        let cut = [&whole[..], &whole[..9]].concat();
        for (body, refused) in [(&whole, 0), (&cut, 1)] {
            let mut rows = Rows::default();
            let options = ImportOptions { timestamp_ms: 77, extra_labels: Vec::new() };
            let taken = import(&body[..], Format::Protobuf, &options, &mut rows);
            let Imported { refused: found, errors } = taken.expect("they are taken");
            assert_eq!((found, rows.rows), (refused, vec!["__name__=a 77 5".to_owned()]));
            assert_eq!(rows.families, ["a Gauge \"\" \"\""]);
            assert!(errors.iter().all(|error| error.contains("within metric family 2")));
        }
    }

    #[test]
    fn bounds_and_quantiles_are_written_in_one_way() {
        let text = "# TYPE h histogram\nh{le=\"1\"} 1\n# TYPE s summary\ns{quantile=\"1\",le=\"1\"} 1\n\
                    # TYPE g gauge\ng{le=\"1\",quantile=\"1\"} 1\n";
        let (rows, _) = imported(text, Format::Prometheus, &[]);
        let wanted = [
            "__name__=h,le=1.0 77 1",
            "__name__=s,le=1,quantile=1.0 77 1",
            "__name__=g,le=1,quantile=1 77 1",
        ];
        assert_eq!(rows.rows, wanted);
    }

    #[test]
    fn many_errors_are_counted_and_the_first_described() {
        let (rows, imported) = imported(&"x\n".repeat(1000), Format::Prometheus, &[]);
        assert_eq!((rows.rows.len(), imported.refused, imported.errors.len()), (0, 1000, 10));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([a-z#]{1,3}[ {}=\",0-9a-zA-Z#\\\\]{0,20}\n){0,20}") {
            for format in [Format::Openmetrics, Format::Prometheus] {
                let (rows, imported) = imported(&text, format, &[("a", "b")]);
                let lines = text.lines().count() as u64;
                prop_assert!(rows.rows.len() as u64 + imported.refused <= lines + 1);
            }
        }
    }
}
