//! A series in the notation of scripts: labels, then values of successive steps.

use std::rc::Rc;
use tidepool_promql::model::{CounterReset, Histogram, Labels, STALE_NAN_BITS, Span};
use tidepool_promql::syntax::{ExprKind, ParserOptions, parse, parse_selector};

#[derive(Clone, Debug)]
pub enum Item {
    Omitted,
    Float(f64),
    /// A histogram; true if its hint about counter resets was given.
    Histogram(Rc<Histogram>, bool),
}

type Parsed<T> = Result<T, String>;

pub fn series(line: &str) -> Parsed<(Labels, Vec<Item>)> {
    let (metric, rest) = line.split_at(metric_end(line));
    Ok((labels(metric)?, items(rest)?))
}

pub fn labels(metric: &str) -> Parsed<Labels> {
    let selector = parse_selector(metric).map_err(|error| format!("{metric}: {error}"))?;
    Ok(Labels::new(selector.matchers.into_iter().map(|it| (it.name, it.value))))
}

/// Returns the end of the labels: the first blank outside of braces and quotes.
fn metric_end(line: &str) -> usize {
    let (mut in_braces, mut quote, mut escaped) = (false, None, false);
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(mark), '\\') if mark != '`' => escaped = true,
            (Some(mark), _) if letter == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(letter),
            (None, '{') => in_braces = true,
            (None, '}') => in_braces = false,
            (None, ' ' | '\t') if !in_braces => return at,
            _ => {}
        }
    }
    line.len()
}

/// Parses a number in any form of the language, with or without a sign.
pub fn number(text: &str) -> Parsed<f64> {
    match parse(text, &ParserOptions::default()).map(|expr| expr.kind) {
        Ok(ExprKind::Number(number)) => Ok(number.value),
        _ => Err(format!("{text:?} is no number")),
    }
}

fn items(text: &str) -> Parsed<Vec<Item>> {
    let mut items = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = item_end(rest);
        push_item(&rest[..end], &mut items)?;
        rest = rest[end..].trim_start();
    }
    Ok(items)
}

/// Returns the end of the first item: the first blank outside of a histogram.
fn item_end(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ' ' | '\t' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn push_item(text: &str, items: &mut Vec<Item>) -> Parsed<()> {
    let (value, count) = match text.rsplit_once('x') {
        Some((value, count)) if !count.contains('}') => {
            let count: usize = count.parse().map_err(|_| format!("{text:?}: a wrong count"))?;
            (value, Some(count))
        }
        _ => (text, None),
    };
    match value {
        "_" => items.extend(vec![Item::Omitted; count.unwrap_or(1)]),
        "stale" => items.push(Item::Float(f64::from_bits(STALE_NAN_BITS))),
        _ if value.starts_with("{{") => push_histograms(value, count, items)?,
        _ => {
            // Behind the first sign or digit; the sign of an exponent does not begin a step.
            let bytes = value.as_bytes();
            let is_step = |at: &usize| {
                matches!(bytes[*at], b'+' | b'-') && !matches!(bytes[at - 1], b'e' | b'E')
            };
            let step_start = (1..bytes.len()).find(is_step);
            let (first, step) = value.split_at(step_start.unwrap_or(value.len()));
            let mut first = number(first)?;
            let step = if step.is_empty() { 0.0 } else { number(step)? };
            for _ in 0..=count.unwrap_or(0) {
                items.push(Item::Float(first));
                if step_start.is_some() {
                    first += step;
                }
            }
        }
    }
    Ok(())
}

fn push_histograms(value: &str, count: Option<usize>, items: &mut Vec<Item>) -> Parsed<()> {
    let end = value.find("}}").map(|at| at + 2).ok_or("a histogram without an end")?;
    let (first, has_hint) = histogram(&value[..end])?;
    let Some(sign) = value[end..].chars().next() else {
        let item = Item::Histogram(Rc::new(first), has_hint);
        items.extend(vec![item; count.unwrap_or(0) + 1]);
        return Ok(());
    };
    let (step, has_hint) = histogram(&value[end + 1..])?;
    let mut current = first;
    for i in 0..=count.ok_or("a histogram's step without a count")? {
        if i > 0 {
            if current.schema > step.schema {
                return Err("a histogram's step of a lower resolution".into());
            }
            let combined = match sign {
                '-' => current.subtract(&step),
                _ => current.add(&step),
            };
            combined.map_err(|_| "histograms that cannot be combined")?;
        }
        items.push(Item::Histogram(Rc::new(current.clone()), has_hint));
    }
    Ok(())
}

/// Parses a histogram `{{key:value …}}`; true if its hint about counter resets was given.
fn histogram(text: &str) -> Parsed<(Histogram, bool)> {
    let inner = text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    let mut rest = inner.ok_or_else(|| format!("{text:?} is no histogram"))?.trim();
    let mut out = Histogram::default();
    let (mut offset, mut negative_offset, mut has_hint) = (0, 0, false);
    while !rest.is_empty() {
        let (key, after) = rest.split_once(':').ok_or("a histogram's key without a value")?;
        let end = match after.starts_with('[') {
            true => after.find(']').ok_or("a list without an end")? + 1,
            false => after.find(' ').unwrap_or(after.len()),
        };
        let (value, after) = after.split_at(end);
        let list = || -> Parsed<Vec<f64>> {
            value.trim_matches(['[', ']']).split_whitespace().map(number).collect()
        };
        let integer = || value.parse::<i32>().map_err(|error| format!("{value:?}: {error}"));
        match key {
            "schema" => out.schema = integer()?,
            "sum" => out.sum = number(value)?,
            "count" => out.count = number(value)?,
            "z_bucket" => out.zero_count = number(value)?,
            "z_bucket_w" => out.zero_threshold = number(value)?,
            "custom_values" => out.custom_values = list()?,
            "buckets" => out.positive_buckets = list()?,
            "n_buckets" => out.negative_buckets = list()?,
            "offset" => offset = integer()?,
            "n_offset" => negative_offset = integer()?,
            "counter_reset_hint" => {
                has_hint = true;
                out.counter_reset = match value {
                    "unknown" => CounterReset::Unknown,
                    "reset" => CounterReset::Reset,
                    "not_reset" => CounterReset::NotReset,
                    "gauge" => CounterReset::Gauge,
                    other => return Err(format!("a wrong counter-reset hint {other:?}")),
                };
            }
            other => return Err(format!("a wrong key {other:?} of a histogram")),
        }
        rest = after.trim_start();
    }
    let span = |offset: i32, buckets: &[f64]| match buckets.len() as u32 {
        0 => Vec::new(),
        length => vec![Span { offset, length }],
    };
    out.positive_spans = span(offset, &out.positive_buckets);
    out.negative_spans = span(negative_offset, &out.negative_buckets);
    Ok((out, has_hint))
}

/// Parses a line of start times, `metric{…}@st item …`, as offsets in milliseconds.
pub fn start_offsets(text: &str) -> Parsed<Vec<Option<i64>>> {
    let mut offsets = Vec::new();
    for item in text.split_whitespace() {
        let (value, count) = match item.rsplit_once('x') {
            Some((value, count)) => (
                value,
                Some(count.parse::<usize>().map_err(|_| format!("{item:?}: a wrong count"))?),
            ),
            None => (item, None),
        };
        if value == "_" {
            offsets.extend(vec![None; count.unwrap_or(1)]);
            continue;
        }
        let step_start = value.get(1..).and_then(|text| text.find(['+', '-'])).map(|at| at + 1);
        let (first, step) = value.split_at(step_start.unwrap_or(value.len()));
        let mut first = signed_duration(first)?;
        let step = if step.is_empty() { 0 } else { signed_duration(step)? };
        for _ in 0..=count.unwrap_or(0) {
            offsets.push(Some(first));
            first += step;
        }
    }
    Ok(offsets)
}

fn signed_duration(text: &str) -> Parsed<i64> {
    let ms = (number(text)? * 1000.0).round();
    Ok(ms as i64)
}
