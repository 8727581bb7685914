//! Parses one line, or a sample with line breaks in its label values.
//!
//! A sample is first measured as ranges of bytes, and converted to text when it is returned. So the
//! parser learns its length without borrowing from the buffer.

use crate::item::Item;
use crate::metric::MetricType;
use crate::number::{parse_digits, parse_seconds, parse_value};
use crate::scanner::{LineError, Scanner, TextFormat, string_end, unescape, unescape_help};
use std::borrow::Cow;
use std::ops::Range;

/// Ranges of the parts of a sample in its line, and its numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SampleParts {
    pub series: Range<usize>,
    pub value: f64,
    pub timestamp_ms: Option<i64>,
    pub exemplar: Option<ExemplarParts>,
}

/// Ranges and numbers of an exemplar.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExemplarParts {
    pub labels: Range<usize>,
    pub value: f64,
    pub timestamp_ms: Option<i64>,
}

/// Returns whether a line is metadata or a comment.
pub(super) fn is_comment(line: &[u8], format: TextFormat) -> bool {
    match format {
        TextFormat::Openmetrics => line.first() == Some(&b'#'),
        TextFormat::Prometheus => line.get(blanks(line, 0)) == Some(&b'#'),
    }
}

/// Returns whether a line of the classic format is blank.
pub(super) fn is_blank(line: &[u8]) -> bool {
    blanks(line, 0) == line.len()
}

/// Measures a sample. In OpenMetrics a sample is one line; in the classic format, quoted values may
/// have line breaks.
pub(super) fn measure(line: &[u8], format: TextFormat) -> Result<SampleParts, LineError> {
    let is_lax = format == TextFormat::Prometheus;
    let start = if is_lax { blanks(line, 0) } else { 0 };
    let mut at = name_end(line, start);
    let brace = if is_lax { blanks(line, at) } else { at };
    if line.get(brace) == Some(&b'{') {
        // Labels are not parsed here: a reader with a cache needs only the text of a known series.
        at = braces_end(line, brace)?;
    }
    let series = start..at;
    if series.is_empty() {
        return Err(LineError { what: "a metric name is missing", offset: at });
    }
    let (value, mut at) = number(line, at, format, "this is not a value", parse_value)?;
    let mut sample = SampleParts { series, value, timestamp_ms: None, exemplar: None };
    if is_lax {
        let next = blanks(line, at);
        if next == line.len() {
            return Ok(sample);
        }
        let what = "this is not a time in milliseconds";
        let (time, at) = number(line, at, format, what, parse_digits)?;
        sample.timestamp_ms = Some(time);
        let next = blanks(line, at);
        return match next == line.len() {
            true => Ok(sample),
            false => Err(LineError { what: "nothing may follow the time", offset: next }),
        };
    }
    // The timestamp is optional; an exemplar may follow the value.
    if at < line.len() && !begins_exemplar(line, at) {
        let (time, end) = number(line, at, format, "this is not a time in seconds", parse_seconds)?;
        sample.timestamp_ms = Some(time);
        at = end;
    }
    if at < line.len() {
        if !begins_exemplar(line, at) {
            return Err(LineError { what: "nothing may follow the time", offset: at });
        }
        sample.exemplar = Some(exemplar(line, at + EXEMPLAR.len() - 1)?);
    }
    Ok(sample)
}

/// Beginning of an exemplar, in OpenMetrics only.
const EXEMPLAR: &[u8] = b" # {";

fn begins_exemplar(line: &[u8], at: usize) -> bool {
    line.get(at..).is_some_and(|rest| rest.starts_with(EXEMPLAR))
}

/// Measures an exemplar whose brace is at `open`.
fn exemplar(line: &[u8], open: usize) -> Result<ExemplarParts, LineError> {
    let format = TextFormat::Openmetrics;
    let rest = line.get(open..).unwrap_or_default();
    let rest = std::str::from_utf8(rest)
        .map_err(|error| LineError { what: NOT_UTF8, offset: open + error.valid_up_to() })?;
    let mut scanner = Scanner::new(rest);
    // Labels are only checked here; `Exemplar::labels` parses them on demand.
    scanner
        .labels(format, None, |_, _| {})
        .map_err(|error| LineError { offset: open + error.offset, ..error })?;
    let end = line.len() - scanner.rest().len();
    let what = "this is not a value of an exemplar";
    let (value, at) = number(line, end, format, what, parse_value)?;
    let mut exemplar = ExemplarParts { labels: open..end, value, timestamp_ms: None };
    if at < line.len() {
        let what = "this is not a time in seconds";
        let (time, at) = number(line, at, format, what, parse_seconds)?;
        exemplar.timestamp_ms = Some(time);
        if at < line.len() {
            return Err(LineError { what: "nothing may follow the exemplar", offset: at });
        }
    }
    Ok(exemplar)
}

pub(super) const NOT_UTF8: &str = "not UTF-8";

fn blanks(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

fn name_end(line: &[u8], start: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    let mut at = start;
    if line.get(at).is_some_and(u8::is_ascii_digit) {
        return at;
    }
    while line.get(at).is_some_and(is_part) {
        at += 1;
    }
    at
}

/// Returns the end of braces without parsing their content.
fn braces_end(line: &[u8], open: usize) -> Result<usize, LineError> {
    let mut at = open + 1;
    // In nearly all lines, the first closing brace is the end, and all quotes before it are closed.
    // `memchr` tests for this quickly.
    let inside = line.get(at..).unwrap_or_default();
    if let Some(inside) = memchr::memchr(b'}', inside).and_then(|end| inside.get(..end))
        && memchr::memchr2(b'\\', b'\n', inside).is_none()
        && memchr::memchr_iter(b'"', inside).count().is_multiple_of(2)
    {
        return Ok(at + inside.len() + 1);
    }
    loop {
        match line.get(at) {
            Some(b'"') => at = string_end(line, at)?,
            Some(b'}') => return Ok(at + 1),
            None | Some(b'\n') => {
                return Err(LineError { what: "the braces are not closed", offset: at });
            }
            Some(_) => at += 1,
        }
    }
}

/// Parses a number, and returns it with its end. In OpenMetrics one space must precede it; in the
/// classic format any blanks may, or none after a brace.
fn number<T>(
    line: &[u8],
    at: usize,
    format: TextFormat,
    what: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<(T, usize), LineError> {
    let is_lax = format == TextFormat::Prometheus;
    let start = match is_lax {
        true => blanks(line, at),
        false if line.get(at) == Some(&b' ') => at + 1,
        false => return Err(LineError { what: "a space is missing", offset: at }),
    };
    let rest = line.get(start..).unwrap_or_default();
    // OpenMetrics allows no tabs, so a tab makes the number invalid.
    let is_end = |byte: &u8| *byte == b' ' || (is_lax && *byte == b'\t');
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    let word = rest.get(..end).and_then(|word| std::str::from_utf8(word).ok());
    match word.and_then(parse) {
        Some(number) => Ok((number, start + end)),
        None => Err(LineError { what, offset: start }),
    }
}

/// Parses a line that begins with `#`.
pub(super) fn parse_comment(line: &[u8], format: TextFormat) -> Result<Item<'_>, LineError> {
    match format {
        TextFormat::Openmetrics => open_metrics_comment(line),
        TextFormat::Prometheus => classic_comment(line),
    }
}

const FAMILY_MISSING: &str = "the name of a metric family is missing";

fn open_metrics_comment(line: &[u8]) -> Result<Item<'_>, LineError> {
    if line == b"# EOF" {
        return Ok(Item::End);
    }
    let mut scanner = Scanner::new(text_of(line)?);
    scanner.take("#");
    let keyword = [" TYPE ", " HELP ", " UNIT "].into_iter().find(|word| scanner.take(word));
    let keyword = keyword.ok_or_else(|| scanner.error("neither TYPE, HELP, UNIT nor EOF"))?;
    let family = family(&mut scanner)?;
    if !scanner.take(" ") {
        return Err(scanner.error("a space is missing"));
    }
    let text = scanner.rest();
    match keyword {
        " TYPE " => match open_metrics_type(text) {
            Some(kind) => Ok(Item::Type { family, kind }),
            None => Err(scanner.error("this is not a type")),
        },
        " HELP " => Ok(Item::Help { family, help: unescape(text) }),
        _ => {
            // OpenMetrics demands that the name ends with the unit; an empty unit is allowed.
            let stem = family.strip_suffix(text).and_then(|stem| stem.strip_suffix('_'));
            match text.is_empty() || stem.is_some() {
                true => Ok(Item::Unit { family, unit: Cow::Borrowed(text) }),
                false => Err(scanner.error("the family's name does not end with its unit")),
            }
        }
    }
}

/// Parses a line with `#` of the classic format. A comment may contain any bytes.
fn classic_comment(line: &[u8]) -> Result<Item<'_>, LineError> {
    let hash = blanks(line, 0);
    let start = blanks(line, hash + 1);
    let keyword = line.get(start..start + 4).unwrap_or_default();
    // A comment may begin like metadata without being an error.
    let is_word = start > hash + 1 && matches!(keyword, b"TYPE" | b"HELP");
    if !is_word || !matches!(line.get(start + 4), Some(b' ' | b'\t')) {
        return Ok(Item::Comment);
    }
    let place = |error: LineError| LineError { offset: error.offset + start, ..error };
    let mut scanner = Scanner::new(text_of(line.get(start..).unwrap_or_default()).map_err(place)?);
    scanner.word();
    scanner.skip_blanks();
    let family = family(&mut scanner).map_err(place)?;
    let rest = scanner.rest();
    // Whatever character follows the name is not part of the text.
    let mut chars = rest.chars();
    chars.next();
    let text = chars.as_str();
    if keyword == b"HELP" {
        let is_empty = rest.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
        let help = if is_empty { Cow::Borrowed("") } else { unescape_help(text) };
        return Ok(Item::Help { family, help });
    }
    match classic_type(text) {
        Some(kind) => Ok(Item::Type { family, kind }),
        None => Err(place(scanner.error("this is not a type"))),
    }
}

fn open_metrics_type(text: &str) -> Option<MetricType> {
    Some(match text {
        "counter" => MetricType::Counter,
        "gauge" => MetricType::Gauge,
        "histogram" => MetricType::Histogram,
        "gaugehistogram" => MetricType::Gaugehistogram,
        "summary" => MetricType::Summary,
        "info" => MetricType::Info,
        "stateset" => MetricType::Stateset,
        "unknown" => MetricType::Unknown,
        _ => return None,
    })
}

fn classic_type(text: &str) -> Option<MetricType> {
    Some(match text {
        "counter" => MetricType::Counter,
        "gauge" => MetricType::Gauge,
        "histogram" => MetricType::Histogram,
        "summary" => MetricType::Summary,
        "untyped" => MetricType::Unknown,
        _ => return None,
    })
}

fn family<'a>(scanner: &mut Scanner<'a>) -> Result<Cow<'a, str>, LineError> {
    if scanner.peek() == Some(b'"') {
        return Ok(unescape(scanner.quoted()?));
    }
    let missing = scanner.error(FAMILY_MISSING);
    let family = scanner.metric_name();
    if family.is_empty() { Err(missing) } else { Ok(Cow::Borrowed(family)) }
}

/// Returns bytes as text; the error has the offset of the first invalid byte.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, LineError> {
    std::str::from_utf8(bytes)
        .map_err(|error| LineError { what: NOT_UTF8, offset: error.valid_up_to() })
}
