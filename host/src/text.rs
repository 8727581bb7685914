//! A pushed text on its way into the store, line by line: what is wrong with one line does not
//! keep the others out.

use crate::prom::rows::{self, Family, Gone, LabelSet, MetricType, RowSink, RowValue};
use std::collections::BTreeMap;
use std::io::BufRead;
use tidepool_exposition::{self as exposition, Item, ReadError, TextFormat, TextReader};

/// Wrong lines that are described.
const ERRORS_MAX: usize = 10;

/// Metric families whose metadata is gathered before it is handed on.
const FAMILIES_MAX: usize = 4096;

/// Characters of a help text that are kept, which is more than the store keeps.
const HELP_CHARS_MAX: usize = 1024;

/// What holds for all lines.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Time of samples that have none.
    pub timestamp_ms: i64,
    /// Labels that all series get, whatever they have under these names.
    pub extra_labels: Vec<(String, String)>,
}

/// What became of a text.
#[derive(Debug, Default)]
pub struct Imported {
    /// Lines that could not be read, or the end of the text that is missing.
    pub refused: u64,
    /// What was wrong with the first of them.
    pub errors: Vec<String>,
}

/// What a text says of a family, which may come in several lines.
#[derive(Default)]
struct Said {
    kind: MetricType,
    help: String,
    unit: String,
}

/// Hands the samples of a text on as rows, then its metadata.
pub fn import(
    text: impl BufRead,
    format: TextFormat,
    options: &ImportOptions,
    sink: &mut impl RowSink,
) -> Result<Imported, Gone> {
    let mut reader = TextReader::new(text, format);
    let mut imported = Imported::default();
    let mut families = BTreeMap::new();
    loop {
        sink.go_on()?;
        let taken = match reader.next_item() {
            Ok(None) => break,
            Ok(Some(Item::Sample(sample))) => {
                let timestamp_ms = sample.timestamp_ms.unwrap_or(options.timestamp_ms);
                let value = RowValue::Float(sample.value);
                match sample.series.labels() {
                    Ok(labels) => {
                        let exemplar = sample.exemplar.map(|exemplar| rows::Exemplar {
                            labels: exemplar.labels(),
                            value: exemplar.value,
                            timestamp_ms: exemplar.timestamp_ms.unwrap_or(timestamp_ms),
                        });
                        let labels = all_labels(labels, options);
                        sink.row(&labels, timestamp_ms, value, exemplar.as_slice())?;
                        Ok(())
                    }
                    Err(error) => Err(ReadError::from(reader.refused_labels(error))),
                }
            }
            Ok(Some(item)) => {
                note(&mut families, item);
                if families.len() >= FAMILIES_MAX {
                    hand_on(&mut families, sink)?;
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
        let Err(error) = taken else { continue };
        imported.refused += 1;
        if imported.errors.len() < ERRORS_MAX {
            imported.errors.push(error.to_string());
        }
        // After any other error there is no next line.
        if !matches!(error, ReadError::Parse(error) if error.is_line()) {
            break;
        }
    }
    hand_on(&mut families, sink)?;
    Ok(imported)
}

fn all_labels(pairs: Vec<(String, String)>, options: &ImportOptions) -> LabelSet {
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

/// The type of a family as remote write has it.
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

fn hand_on(families: &mut BTreeMap<String, Said>, sink: &mut impl RowSink) -> Result<(), Gone> {
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

    fn imported(text: &str, format: TextFormat, extra: &[(&str, &str)]) -> (Rows, Imported) {
        let mut rows = Rows::default();
        let extra = extra.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let options = ImportOptions { timestamp_ms: 77, extra_labels: extra.collect() };
        let imported = import(text.as_bytes(), format, &options, &mut rows);
        (rows, imported.unwrap_or_default())
    }

    #[test]
    fn good_lines_are_kept_beside_wrong_ones() {
        let text = "# TYPE a counter\n# HELP a Of\\na.\na{x=\"1\"} 5\nb{ 6\nc 7 1000\n\nd x\ne{y=\"2\",job=\"j\"} NaN\n";
        let (rows, imported) = imported(text, TextFormat::Prometheus, &[("job", "k"), ("y", "")]);
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
        let (rows, imported) = imported(text, TextFormat::Openmetrics, &[]);
        assert_eq!(rows.rows, ["__name__=a_s_total 2500 1 #0.5@2500", "__name__=b 77 1 #2@3000"]);
        assert_eq!(rows.families, ["a_s Counter \"\" \"s\""]);
        assert_eq!(imported.refused, 1);
        assert!(imported.errors[0].contains("# EOF"), "{imported:?}");
    }

    #[test]
    fn bounds_and_quantiles_are_written_in_one_way() {
        let text = "# TYPE h histogram\nh{le=\"1\"} 1\n# TYPE s summary\ns{quantile=\"1\",le=\"1\"} 1\n\
                    # TYPE g gauge\ng{le=\"1\",quantile=\"1\"} 1\n";
        let (rows, _) = imported(text, TextFormat::Prometheus, &[]);
        let wanted = [
            "__name__=h,le=1.0 77 1",
            "__name__=s,le=1,quantile=1.0 77 1",
            "__name__=g,le=1,quantile=1 77 1",
        ];
        assert_eq!(rows.rows, wanted);
    }

    #[test]
    fn many_errors_are_counted_and_the_first_described() {
        let (rows, imported) = imported(&"x\n".repeat(1000), TextFormat::Prometheus, &[]);
        assert_eq!((rows.rows.len(), imported.refused, imported.errors.len()), (0, 1000, 10));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([a-z#]{1,3}[ {}=\",0-9a-zA-Z#\\\\]{0,20}\n){0,20}") {
            for format in [TextFormat::Openmetrics, TextFormat::Prometheus] {
                let (rows, imported) = imported(&text, format, &[("a", "b")]);
                let lines = text.lines().count() as u64;
                prop_assert!(rows.rows.len() as u64 + imported.refused <= lines + 1);
            }
        }
    }
}
