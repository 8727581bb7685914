//! One line.

use super::number::{parse_milliseconds, parse_seconds, parse_value};
use super::series::{Scanner, unescape};
use super::{Event, Exemplar, LineError, SampleLine, TextFormat};

const OPEN_METRICS_TYPES: [&str; 8] =
    ["counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown"];
const CLASSIC_TYPES: [&str; 5] = ["counter", "gauge", "histogram", "summary", "untyped"];

/// Reads a line, given without its end.
pub fn parse_line(line: &str, format: TextFormat) -> Result<Event<'_>, LineError> {
    let mut scanner = Scanner::new(line);
    match format {
        TextFormat::Openmetrics => {
            if line == "# EOF" {
                return Ok(Event::End);
            }
            if scanner.take("#") {
                return open_metrics_comment(scanner);
            }
        }
        TextFormat::Prometheus => {
            scanner.skip_blanks();
            if scanner.rest().is_empty() {
                return Ok(Event::Comment);
            }
            if scanner.take("#") {
                return classic_comment(scanner);
            }
        }
    }
    sample(scanner, format).map(Event::Sample)
}

fn open_metrics_comment(mut scanner: Scanner<'_>) -> Result<Event<'_>, LineError> {
    let keyword = [" TYPE ", " HELP ", " UNIT "].into_iter().find(|word| scanner.take(word));
    let keyword = keyword.ok_or_else(|| scanner.error("neither TYPE, HELP, UNIT nor EOF"))?;
    let family = family(&mut scanner)?;
    // The text may be missing, and then the space before it, too.
    if !scanner.take(" ") && !scanner.rest().is_empty() {
        return Err(scanner.error("a space is missing"));
    }
    let text = scanner.rest();
    match keyword {
        " TYPE " => match OPEN_METRICS_TYPES.contains(&text) {
            true => Ok(Event::Type { family, kind: text }),
            false => Err(scanner.error("this is not a type")),
        },
        " HELP " => Ok(Event::Help { family, help: unescape(text) }),
        _ => {
            let stem = family.strip_suffix(text).and_then(|stem| stem.strip_suffix('_'));
            match text.is_empty() || stem.is_some() {
                true => Ok(Event::Unit { family, unit: text }),
                false => Err(scanner.error("the family's name does not end with its unit")),
            }
        }
    }
}

fn classic_comment(mut scanner: Scanner<'_>) -> Result<Event<'_>, LineError> {
    scanner.skip_blanks();
    let keyword = scanner.word();
    if !matches!(keyword, "TYPE" | "HELP") || !scanner.skip_blanks() {
        return Ok(Event::Comment);
    }
    let family = family(&mut scanner)?;
    scanner.skip_blanks();
    let text = scanner.rest();
    if keyword == "HELP" {
        return Ok(Event::Help { family, help: unescape(text) });
    }
    let kind = text.trim_end_matches([' ', '\t']);
    match CLASSIC_TYPES.contains(&kind) {
        true => Ok(Event::Type { family, kind }),
        false => Err(scanner.error("this is not a type")),
    }
}

fn family(scanner: &mut Scanner<'_>) -> Result<String, LineError> {
    let missing = scanner.error("the name of a metric family is missing");
    let family = match scanner.peek() {
        Some(b'"') => unescape(scanner.quoted()?),
        _ => scanner.metric_name().to_owned(),
    };
    if family.is_empty() { Err(missing) } else { Ok(family) }
}

fn sample<'a>(mut scanner: Scanner<'a>, format: TextFormat) -> Result<SampleLine<'a>, LineError> {
    let series = scanner.skip_series()?;
    separate(&mut scanner, format)?;
    let no_value = scanner.error("this is not a value");
    let value = parse_value(scanner.word()).ok_or(no_value)?;
    let mut line = SampleLine { series, value, timestamp_ms: None, exemplar: None, format };
    if is_at_end(&mut scanner, format) {
        return Ok(line);
    }
    if !begins_exemplar(&mut scanner, format) {
        separate(&mut scanner, format)?;
        line.timestamp_ms = Some(timestamp(&mut scanner, format)?);
        if is_at_end(&mut scanner, format) {
            return Ok(line);
        }
        if !begins_exemplar(&mut scanner, format) {
            return Err(scanner.error("nothing may follow the time"));
        }
    }
    line.exemplar = Some(exemplar(&mut scanner)?);
    Ok(line)
}

/// What follows ` # `, in OpenMetrics only.
fn exemplar(scanner: &mut Scanner<'_>) -> Result<Exemplar, LineError> {
    let format = TextFormat::Openmetrics;
    let labels = scanner.labels(format, None)?;
    separate(scanner, format)?;
    let no_value = scanner.error("this is not a value of an exemplar");
    let value = parse_value(scanner.word()).ok_or(no_value)?;
    let mut timestamp_ms = None;
    if !scanner.rest().is_empty() {
        separate(scanner, format)?;
        timestamp_ms = Some(timestamp(scanner, format)?);
    }
    match scanner.rest().is_empty() {
        true => Ok(Exemplar { labels, value, timestamp_ms }),
        false => Err(scanner.error("nothing may follow the exemplar")),
    }
}

fn begins_exemplar(scanner: &mut Scanner<'_>, format: TextFormat) -> bool {
    let begins = format == TextFormat::Openmetrics && scanner.rest().starts_with(" # {");
    begins && scanner.take(" # ")
}

fn timestamp(scanner: &mut Scanner<'_>, format: TextFormat) -> Result<i64, LineError> {
    let no_time = scanner.error("this is not a timestamp");
    let text = scanner.word();
    let parsed = match format {
        TextFormat::Openmetrics => parse_seconds(text),
        TextFormat::Prometheus => parse_milliseconds(text),
    };
    parsed.ok_or(no_time)
}

/// What stands between two fields: one space, or any blanks in the classic format.
fn separate(scanner: &mut Scanner<'_>, format: TextFormat) -> Result<(), LineError> {
    let found = match format {
        TextFormat::Openmetrics => scanner.take(" "),
        TextFormat::Prometheus => {
            // Between the closing brace and the value none is needed.
            let after_brace = scanner.at() > 0 && !scanner.rest().is_empty();
            scanner.skip_blanks() || after_brace
        }
    };
    if found { Ok(()) } else { Err(scanner.error("a space is missing")) }
}

fn is_at_end(scanner: &mut Scanner<'_>, format: TextFormat) -> bool {
    let rest = scanner.rest();
    match format {
        TextFormat::Openmetrics => rest.is_empty(),
        TextFormat::Prometheus => rest.trim_start_matches([' ', '\t']).is_empty(),
    }
}
