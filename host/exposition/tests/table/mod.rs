//! Tables of bodies with the results of Prometheus' parsers, made by `tests/peers/expositioncases`:
//! reading them, and comparing.
//!
//! A case may state another result for this crate, with the reason. Each body is read at once and
//! byte by byte.

use serde_json::Value;
use std::error::Error;
use std::path::Path;
use tidepool_exposition::{
    ClassicToNative, Converted, Counts, Exemplar, Format, HistogramOptions, Item, LabelPairs,
    NativeHistogram, Parser, Span,
};

/// A case with an unexpected result.
pub struct Difference {
    /// Place of the body in its source, if known.
    pub name: String,
    /// The body, and both results.
    pub text: String,
}

/// Returns the cases of a table with unexpected results, and the number of all cases.
pub fn differences(path: &Path) -> Result<(Vec<Difference>, usize), Box<dyn Error>> {
    let table = std::fs::read_to_string(path)?;
    let mut differences = Vec::new();
    for (number, line) in table.lines().enumerate() {
        let case = Case::read(line)?;
        assert!(case.reason.is_empty() != case.differs, "line {}: {line}", number + 1);
        for pieces in [usize::MAX, 1] {
            let found = case.entries(pieces);
            if found != case.wanted {
                let Case { name, body, wanted, .. } = &case;
                let body = String::from_utf8_lossy(body);
                let text = format!(
                    "{}: {body:?} in pieces of {pieces}\n  wanted {wanted:?}\n  found  {found:?}",
                    number + 1
                );
                differences.push(Difference { name: name.clone(), text });
                break;
            }
        }
    }
    Ok((differences, table.lines().count()))
}

struct Case {
    name: String,
    format: Format,
    body: Vec<u8>,
    options: HistogramOptions,
    wanted: Vec<String>,
    differs: bool,
    reason: String,
}

impl Case {
    fn read(line: &str) -> Result<Case, Box<dyn Error>> {
        let case: Value = serde_json::from_str(line)?;
        let format = match case["format"].as_str() {
            Some("prometheus") => Format::Prometheus,
            Some("openmetrics") => Format::Openmetrics,
            Some("protobuf") => Format::Protobuf,
            other => return Err(format!("format {other:?}").into()),
        };
        let body = match case["bytes"].as_str() {
            Some(text) => base64(text).ok_or("bytes")?,
            None => case["body"].as_str().unwrap_or_default().as_bytes().to_vec(),
        };
        let is = |name: &str| case[name].as_bool().unwrap_or_default();
        let options = HistogramOptions {
            ignores_native: is("ignores_native"),
            keeps_classic: is("keeps_classic"),
            converts_classic: is("converts_classic"),
        };
        let entries = |name: &str| -> Option<Vec<String>> {
            let list = case[name].as_array()?;
            Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        };
        let upstream = entries("upstream").ok_or("upstream")?;
        let ours = entries("ours");
        let differs = ours.is_some();
        let wanted = ours.unwrap_or(upstream);
        let reason = case["reason"].as_str().unwrap_or_default().to_owned();
        let name = case["name"].as_str().unwrap_or_default().to_owned();
        Ok(Case { name, format, body, options, wanted, differs, reason })
    }

    fn entries(&self, piece_bytes: usize) -> Vec<String> {
        let mut parser = Parser::new(self.format, self.options);
        let is_text = self.format != Format::Protobuf;
        let mut native = (is_text && self.options.converts_classic)
            .then(|| ClassicToNative::new(self.options.keeps_classic));
        let mut found = Vec::new();
        let pieces = self.body.chunks(piece_bytes.min(self.body.len().max(1)));
        for piece in pieces.map(Some).chain([None]) {
            match piece {
                Some(piece) => parser.feed(piece),
                None => parser.end(),
            }
            loop {
                match parser.next() {
                    Ok(None) => break,
                    Ok(Some(item)) => {
                        if let Some(native) = &mut native {
                            match native.step(&item) {
                                Err(_) => {
                                    found.push("error".to_owned());
                                    return found;
                                }
                                Ok(step) => {
                                    found.extend(step.converted.as_ref().map(of_converted));
                                    if step.is_taken {
                                        continue;
                                    }
                                }
                            }
                        }
                        let entry = entry(&item);
                        let is_last = entry.as_deref() == Some("error");
                        found.extend(entry);
                        if is_last {
                            return found;
                        }
                    }
                    Err(_) => {
                        found.push("error".to_owned());
                        return found;
                    }
                }
            }
        }
        found.extend(native.and_then(|mut native| native.finish()).as_ref().map(of_converted));
        found
    }
}

fn entry(item: &Item<'_>) -> Option<String> {
    let entry = match item {
        Item::End => return None,
        Item::Comment => "comment".to_owned(),
        Item::Type { family, kind } => format!("type {} {}", quoted(family), kind.as_str()),
        Item::Help { family, help } => format!("help {} {}", quoted(family), quoted(help)),
        Item::Unit { family, unit } => format!("unit {} {}", quoted(family), quoted(unit)),
        Item::Sample(sample) => {
            let Ok(labels) = sample.series.labels() else { return Some("error".to_owned()) };
            let mut entry = format!("sample {} {}", pairs(&labels), number(sample.value));
            push_times(&mut entry, sample.timestamp_ms, sample.created_ms);
            push_exemplars(&mut entry, sample.exemplar.as_slice());
            entry
        }
        Item::Histogram(sample) => {
            let Ok(labels) = sample.series.labels() else { return Some("error".to_owned()) };
            let mut entry =
                format!("histogram {} {}", pairs(&labels), histogram(&sample.histogram));
            push_times(&mut entry, sample.timestamp_ms, sample.created_ms);
            push_exemplars(&mut entry, &sample.exemplars);
            entry
        }
    };
    Some(entry)
}

fn of_converted(converted: &Converted) -> String {
    let mut entry =
        format!("histogram {} {}", pairs(&converted.labels), histogram(&converted.histogram));
    push_times(&mut entry, converted.timestamp_ms, None);
    for exemplar in &converted.exemplars {
        push_exemplar(&mut entry, &exemplar.labels, exemplar.value, exemplar.timestamp_ms);
    }
    entry
}

fn push_times(entry: &mut String, timestamp_ms: Option<i64>, created_ms: Option<i64>) {
    entry.extend(timestamp_ms.map(|timestamp_ms| format!(" @{timestamp_ms}")));
    entry.extend(created_ms.map(|created_ms| format!(" created@{created_ms}")));
}

fn push_exemplars(entry: &mut String, exemplars: &[Exemplar<'_>]) {
    for exemplar in exemplars {
        push_exemplar(entry, &exemplar.labels(), exemplar.value, exemplar.timestamp_ms);
    }
}

fn push_exemplar(entry: &mut String, labels: &LabelPairs, value: f64, timestamp_ms: Option<i64>) {
    entry.push_str(&format!(" # {} {}", pairs(labels), number(value)));
    entry.extend(timestamp_ms.map(|timestamp_ms| format!(" @{timestamp_ms}")));
}

fn histogram(histogram: &NativeHistogram) -> String {
    let (kind, zero, count, positive, negative) = match &histogram.counts {
        Counts::Integer { count, zero_count, positive, negative } => (
            "int",
            zero_count.to_string(),
            count.to_string(),
            list(positive.iter().map(i64::to_string)),
            list(negative.iter().map(i64::to_string)),
        ),
        Counts::Float { count, zero_count, positive, negative } => (
            "float",
            number(*zero_count),
            number(*count),
            list(positive.iter().copied().map(number)),
            list(negative.iter().copied().map(number)),
        ),
    };
    let spans = |spans: &[Span]| list(spans.iter().map(|s| format!("{}:{}", s.offset, s.length)));
    format!(
        "{kind}{} schema {} zero {} {zero} count {count} sum {} positive {} {positive} negative {} \
         {negative} custom {}{}",
        if histogram.is_gauge { " gauge" } else { "" },
        histogram.schema,
        number(histogram.zero_threshold),
        number(histogram.sum),
        spans(&histogram.positive_spans),
        spans(&histogram.negative_spans),
        list(histogram.custom_values.iter().copied().map(number)),
        if histogram.validate().is_err() { " invalid" } else { "" },
    )
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(" "))
}

/// Writes an integer as such, and any other number by its bits.
fn number(value: f64) -> String {
    match value == value.trunc() && value.abs() < 1e15 {
        true => (value as i64).to_string(),
        false => format!("{:016x}", value.to_bits()),
    }
}

/// Leaves out empty values, which stand for absent labels.
fn pairs(labels: &LabelPairs) -> String {
    let labels = labels.iter().filter(|(_, value)| !value.is_empty());
    let pair = |(name, value): &(String, String)| format!("{}:{}", quoted(name), quoted(value));
    format!("{{{}}}", labels.map(pair).collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut known, mut bytes) = (0u32, 0, Vec::new());
    for digit in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | DIGITS.iter().position(|other| *other == digit)? as u32;
        known += 6;
        if known >= 8 {
            known -= 8;
            bytes.push((bits >> known) as u8);
        }
    }
    Some(bytes)
}
