//! Reads files of unit tests.

use super::file::{AlertTest, ExpectedAlert, ExpectedSample, ExpressionTest, InputSeries};
use super::notation::{self, HistogramError, VALUES_MAX};
use super::{Test, TestFile};
use crate::file::document;
use crate::file::error::quoted;
use crate::file::reader::{Budget, Pairs, Reader, Stop, place};
use crate::file::{Cause, Checks, FILE_BYTES_MAX, Mistake, Options, RuleFileError};
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;
use tidepool_settings::file::read_regular;
use tidepool_settings::yaml::{Data, Entry, Node};

const KEYS: &[&str] =
    &["rule_files", "evaluation_interval", "group_eval_order", "fuzzy_compare", "tests"];

const TEST_KEYS: &[&str] = &[
    "interval",
    "input_series",
    "alert_rule_test",
    "promql_expr_test",
    "external_labels",
    "external_url",
    "name",
    "start_timestamp",
];

const SERIES_KEYS: &[&str] = &["series", "values"];
const ALERT_KEYS: &[&str] = &["eval_time", "alertname", "exp_alerts"];
const EXPECTED_ALERT_KEYS: &[&str] = &["exp_labels", "exp_annotations"];
const EXPRESSION_KEYS: &[&str] = &["expr", "eval_time", "exp_samples"];
const SAMPLE_KEYS: &[&str] = &["labels", "value", "histogram"];

const EVALUATION_INTERVAL: Duration = Duration::from_secs(60);

/// Times that Go's nanoseconds can tell, from the epoch on in both directions.
const TIME_MS_MAX: i64 = i64::MAX / 1_000_000;

/// Reads a file of unit tests. Keys that are not known are mistakes here, whatever the options say
/// of rule files.
pub fn read(
    path: &Path,
    options: &Options,
    checks: &dyn Checks,
) -> Result<TestFile, RuleFileError> {
    match read_regular(path, FILE_BYTES_MAX) {
        Ok(bytes) => parse(path, &bytes, options, checks),
        Err(error) => Err(document::unreadable(path, &error)),
    }
}

/// Reads the text of a file. The path is for messages only.
pub fn parse(
    path: &Path,
    bytes: &[u8],
    options: &Options,
    checks: &dyn Checks,
) -> Result<TestFile, RuleFileError> {
    let first = document::load(path, bytes)?;
    let options = Options { ignore_unknown_fields: false, ..*options };
    let mut budget = Budget::new(options.rules_max);
    let mut reader = Reader::new(&options, checks, &mut budget);
    reader.report_repeated(&first.repeated);
    let mut file = TestFile {
        path: path.to_owned(),
        rule_files: Vec::new(),
        evaluation_interval: EVALUATION_INTERVAL,
        group_eval_order: Vec::new(),
        fuzzy_compare: false,
        tests: Vec::new(),
        ignored: first.rest,
    };
    // What stops it was reported.
    let _ = file.read(&mut reader, &first.root);
    reader.finish(path)?;
    Ok(file)
}

impl TestFile {
    fn read(&mut self, reader: &mut Reader<'_>, root: &Node) -> Result<(), Stop> {
        let mut values_left = VALUES_MAX;
        for entry in reader.entries(root, root.place).unwrap_or_default() {
            let key = entry.key.as_str();
            if !KEYS.contains(&key) {
                reader.unknown(entry, KEYS);
                continue;
            }
            reader.at_key(key, |reader| {
                match key {
                    "rule_files" => self.rule_files = texts(reader, entry)?,
                    "evaluation_interval" => {
                        let interval = reader.duration(entry)?.filter(|time| !time.is_zero());
                        self.evaluation_interval = interval.unwrap_or(EVALUATION_INTERVAL);
                    }
                    "group_eval_order" => {
                        self.group_eval_order = texts(reader, entry)?;
                        report_repeated(reader, entry, &self.group_eval_order);
                    }
                    "fuzzy_compare" => {
                        self.fuzzy_compare = plain(reader, entry, "true or false");
                    }
                    _ => {
                        for (number, node) in reader.items(entry) {
                            let read =
                                |reader: &mut Reader<'_>| test(reader, node, &mut values_left);
                            self.tests.extend(reader.at_item(number, read)?);
                        }
                    }
                }
                Ok(())
            })?;
        }
        // The interval may stand behind the tests.
        for test in &mut self.tests {
            if test.interval.is_zero() {
                test.interval = self.evaluation_interval;
            }
        }
        Ok(())
    }
}

fn texts(reader: &mut Reader<'_>, entry: &Entry) -> Result<Vec<String>, Stop> {
    let mut texts = Vec::new();
    for (number, node) in reader.items(entry) {
        let text = reader.at_item(number, |reader| match node.text() {
            Some(text) => reader.take_text(node.place, text.len()).map(|()| Some(text)),
            None => {
                reader.report(node.place, Cause::Type("one plain value"));
                Ok(None)
            }
        })?;
        texts.extend(text.map(str::to_owned));
    }
    Ok(texts)
}

fn report_repeated(reader: &mut Reader<'_>, entry: &Entry, names: &[String]) {
    let mut seen = HashSet::new();
    if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
        reader.report(place(entry), Cause::OrderedTwice(quoted(name)));
    }
}

/// Reads the known keys of a mapping.
fn keys<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
    known: &'static [&'static str],
    mut read: impl FnMut(&mut Reader<'_>, &str, &'n Entry) -> Result<(), Stop>,
) -> Result<(), Stop> {
    for entry in reader.entries(node, node.place).unwrap_or_default() {
        match known.iter().find(|key| **key == entry.key) {
            Some(key) => reader.at_key(key, |reader| read(reader, key, entry))?,
            None => reader.unknown(entry, known),
        }
    }
    Ok(())
}

/// Reads the items of a list.
fn list<T>(
    reader: &mut Reader<'_>,
    entry: &Entry,
    mut read: impl FnMut(&mut Reader<'_>, &Node) -> Result<T, Stop>,
) -> Result<Vec<T>, Stop> {
    let mut items = Vec::new();
    for (number, node) in reader.items(entry) {
        items.push(reader.at_item(number, |reader| read(reader, node))?);
    }
    Ok(items)
}

fn owned(reader: &mut Reader<'_>, entry: &Entry) -> Result<String, Stop> {
    Ok(reader.text(entry)?.unwrap_or_default().to_owned())
}

fn plain<T: DeserializeOwned + Default>(
    reader: &mut Reader<'_>,
    entry: &Entry,
    of: &'static str,
) -> T {
    match entry.value.data {
        Data::Nothing => T::default(),
        _ => reader.plain(entry, of),
    }
}

fn duration(reader: &mut Reader<'_>, entry: &Entry) -> Result<Duration, Stop> {
    Ok(reader.duration(entry)?.unwrap_or_default())
}

fn test(reader: &mut Reader<'_>, node: &Node, values_left: &mut u64) -> Result<Option<Test>, Stop> {
    let mut test = Test {
        position: node.place,
        name: String::new(),
        interval: Duration::ZERO,
        start_ms: 0,
        series: Vec::new(),
        alerts: Vec::new(),
        expressions: Vec::new(),
        external_labels: Default::default(),
        external_url: String::new(),
        mistakes: Vec::new(),
    };
    keys(reader, node, TEST_KEYS, |reader, key, entry| {
        match key {
            "name" => test.name = owned(reader, entry)?,
            "interval" => test.interval = duration(reader, entry)?,
            "start_timestamp" => test.start_ms = start(reader, entry)?,
            "input_series" => {
                let mistakes = &mut test.mistakes;
                let read = |reader: &mut Reader<'_>, node: &Node| {
                    series(reader, node, values_left, mistakes)
                };
                test.series = list(reader, entry, read)?.into_iter().flatten().collect();
            }
            "alert_rule_test" => test.alerts = list(reader, entry, alert)?,
            "promql_expr_test" => test.expressions = list(reader, entry, expression)?,
            "external_labels" => test.external_labels = reader.pairs(entry, Pairs::Any)?,
            _ => test.external_url = owned(reader, entry)?,
        }
        Ok(())
    })?;
    Ok(Some(test))
}

fn start(reader: &mut Reader<'_>, entry: &Entry) -> Result<i64, Stop> {
    let Some(text) = reader.text(entry)? else { return Ok(0) };
    let time_ms = match text.parse::<f64>() {
        Ok(seconds) if (seconds * 1000.0).abs() <= TIME_MS_MAX as f64 => {
            Some((seconds * 1000.0) as i64)
        }
        Ok(_) => None,
        Err(_) if text.is_empty() => Some(0),
        // That library reads more than RFC 3339.
        Err(_) if !text.contains('T') => None,
        Err(_) => text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond),
    };
    Ok(match time_ms.filter(|time_ms| (-TIME_MS_MAX..=TIME_MS_MAX).contains(time_ms)) {
        Some(time_ms) => time_ms,
        None => {
            reader.report(place(entry), Cause::Time(quoted(text)));
            0
        }
    })
}

/// Reads a series. What is wrong with its texts fails the test, if that runs, and not the file.
fn series(
    reader: &mut Reader<'_>,
    node: &Node,
    values_left: &mut u64,
    mistakes: &mut Vec<Mistake>,
) -> Result<Option<InputSeries>, Stop> {
    let (mut series, mut values) = ("", "");
    let mut place_of = node.place;
    keys(reader, node, SERIES_KEYS, |reader, key, entry| {
        let text = reader.text(entry)?.unwrap_or_default();
        match key {
            "series" => series = text,
            _ => {
                values = text;
                place_of = place(entry);
            }
        }
        Ok(())
    })?;
    // Upstream reads both as one line.
    let text = format!("{} {}", series.trim_end_matches('\n'), values.trim_end_matches('\n'));
    let key = reader.path().to_owned();
    let mut wrong = |what: String| {
        mistakes.push(Mistake { place: place_of, key: key.clone(), cause: Cause::Series(what) });
    };
    if text.contains('\n') {
        wrong("a series and its values stand in one line".to_owned());
        return Ok(None);
    }
    match notation::series(&text) {
        Ok((labels, values)) => match values_left.checked_sub(values.cost()) {
            Some(left) => {
                *values_left = left;
                return Ok(Some(InputSeries { labels, values }));
            }
            None => wrong(format!("more than {VALUES_MAX} values in a file")),
        },
        Err(error) => wrong(format!("{}: {error}", quoted(&text))),
    }
    Ok(None)
}

fn alert(reader: &mut Reader<'_>, node: &Node) -> Result<AlertTest, Stop> {
    let (eval_time, alert, expected) = (Duration::ZERO, String::new(), Vec::new());
    let mut test = AlertTest { eval_time, alert, expected };
    keys(reader, node, ALERT_KEYS, |reader, key, entry| {
        match key {
            "eval_time" => test.eval_time = duration(reader, entry)?,
            "alertname" => test.alert = owned(reader, entry)?,
            _ => test.expected = list(reader, entry, expected_alert)?,
        }
        Ok(())
    })?;
    Ok(test)
}

fn expected_alert(reader: &mut Reader<'_>, node: &Node) -> Result<ExpectedAlert, Stop> {
    let mut alert = ExpectedAlert::default();
    keys(reader, node, EXPECTED_ALERT_KEYS, |reader, key, entry| {
        match key {
            "exp_labels" => alert.labels = reader.pairs(entry, Pairs::Any)?,
            _ => alert.annotations = reader.pairs(entry, Pairs::Any)?,
        }
        Ok(())
    })?;
    Ok(alert)
}

fn expression(reader: &mut Reader<'_>, node: &Node) -> Result<ExpressionTest, Stop> {
    let (expression, eval_time, expected) = (String::new(), Duration::ZERO, Ok(Vec::new()));
    let mut test = ExpressionTest { expression, eval_time, expected };
    keys(reader, node, EXPRESSION_KEYS, |reader, key, entry| {
        match key {
            "expr" => test.expression = owned(reader, entry)?,
            "eval_time" => test.eval_time = duration(reader, entry)?,
            _ => test.expected = list(reader, entry, sample)?.into_iter().collect(),
        }
        Ok(())
    })?;
    Ok(test)
}

fn sample(reader: &mut Reader<'_>, node: &Node) -> Result<Result<ExpectedSample, String>, Stop> {
    let (mut labels, mut value, mut histogram) = (String::new(), 0.0, String::new());
    keys(reader, node, SAMPLE_KEYS, |reader, key, entry| {
        match key {
            "labels" => labels = owned(reader, entry)?,
            "value" => value = plain(reader, entry, "a number"),
            _ => histogram = owned(reader, entry)?,
        }
        Ok(())
    })?;
    let parsed = parsed_sample(&labels, value, &histogram);
    Ok(parsed.map_err(|error| format!("labels {}: {error}", crate::template::quoted(&labels))))
}

fn parsed_sample(
    labels: &str,
    value: f64,
    histogram: &str,
) -> Result<ExpectedSample, HistogramError> {
    let labels = notation::metric(labels)?;
    let histogram = match histogram {
        "" => None,
        text => Some(notation::one_histogram(text)?),
    };
    Ok(ExpectedSample { labels, value, histogram })
}
