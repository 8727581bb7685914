//! Parsing of scripts into commands.

use super::series::{self, Item};
use tidepool_promql::model::Labels;
use tidepool_promql::syntax::{ExprKind, ParserOptions, parse};
use tidepool_relabel::Pattern;

pub enum Command {
    Clear,
    Load(Load),
    Eval(Box<Eval>),
}

pub struct Load {
    pub step_ms: i64,
    /// Whether native histograms with custom bounds are made of classic ones, too.
    pub with_custom_buckets: bool,
    pub series: Vec<LoadedSeries>,
}

pub struct LoadedSeries {
    pub labels: Labels,
    /// Values at each step from time zero on.
    pub items: Vec<Item>,
    /// Start time of each value relative to its time; empty without start times.
    pub start_offsets: Vec<Option<i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    Instant(i64),
    Range(i64, i64, i64),
}

pub struct Eval {
    pub line: usize,
    pub text: String,
    pub when: When,
    /// Whether series must come in the order of the script.
    pub is_ordered: bool,
    pub fails: Option<Expectation>,
    /// Texts of warnings that must occur.
    pub warnings: Vec<Expectation>,
    pub no_warnings: bool,
    /// Texts of infos that must occur.
    pub infos: Vec<Expectation>,
    pub no_infos: bool,
    pub answer: Expected,
}

pub enum Expected {
    String(String),
    Scalar(f64),
    /// Series with one value, or one for each step.
    Series(Vec<ExpectedSeries>),
    /// Samples of one evaluation, from this time on.
    Samples(i64, i64, Vec<ExpectedSeries>),
}

pub struct ExpectedSeries {
    pub labels: Labels,
    pub items: Vec<Item>,
}

pub enum Expectation {
    Any,
    Text(String),
    Matches(String),
}

impl Expectation {
    pub fn fits(&self, text: &str) -> bool {
        match self {
            Expectation::Any => true,
            Expectation::Text(expected) => expected == text,
            Expectation::Matches(expression) => {
                let pattern = Pattern::new(&format!(".*(?:{expression}).*"));
                pattern.is_ok_and(|pattern| pattern.is_match(text))
            }
        }
    }
}

type Parsed<T> = Result<T, String>;

pub fn commands(text: &str) -> Parsed<Vec<Command>> {
    let cleaned = text.lines().map(str::trim).map(|line| match line.starts_with('#') {
        true => "",
        false => line,
    });
    let lines: Vec<&str> = cleaned.collect();
    let mut commands = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let head = lines[at];
        let first = at + 1;
        at += 1;
        if head.is_empty() {
            continue;
        }
        let word = head.split_whitespace().next().unwrap_or_default();
        if word == "clear" {
            commands.push(Command::Clear);
            continue;
        }
        let length = lines[at..].iter().take_while(|line| !line.is_empty()).count();
        let located = |error| format!("line {first}: {head}: {error}");
        let block = &lines[at..at + length];
        if word.starts_with("load") {
            commands.push(Command::Load(load(head, block).map_err(located)?));
            at += length;
        } else if word.starts_with("eval") {
            let (eval, used) = eval(first, head, block).map_err(located)?;
            commands.push(Command::Eval(Box::new(eval)));
            at += used;
        } else {
            return Err(located("no command".to_owned()));
        }
    }
    Ok(commands)
}

fn load(head: &str, block: &[&str]) -> Parsed<Load> {
    let (word, step) = head.split_once(char::is_whitespace).ok_or("no step")?;
    let mut series = Vec::new();
    let mut start_offsets = Vec::new();
    for line in block {
        match line.split_once(char::is_whitespace) {
            Some((metric, rest)) if metric.ends_with("@st") => {
                start_offsets = series::start_offsets(rest)?;
            }
            _ => {
                let (labels, items) = series::series(line)?;
                let start_offsets = std::mem::take(&mut start_offsets);
                series.push(LoadedSeries { labels, items, start_offsets });
            }
        }
    }
    let with_custom_buckets = word == "load_with_nhcb";
    Ok(Load { step_ms: duration(step.trim())?, with_custom_buckets, series })
}

/// An evaluation, and the number of lines that belong to it.
fn eval(line: usize, head: &str, block: &[&str]) -> Parsed<(Eval, usize)> {
    let (word, rest) = word_of(head);
    let (kind, rest) = word_of(rest);
    let (when, text) = match kind {
        "instant" => {
            let rest = rest.strip_prefix("at").ok_or("no time")?;
            let (time, text) = word_of(rest);
            (When::Instant(duration(time)?), text)
        }
        _ => {
            let (times, text) = times(rest)?;
            (times, text)
        }
    };
    let mut eval = Eval {
        line,
        text: text.to_owned(),
        when,
        is_ordered: word == "eval_ordered",
        fails: (word == "eval_fail").then_some(Expectation::Any),
        warnings: Vec::new(),
        no_warnings: false,
        infos: Vec::new(),
        no_infos: false,
        answer: Expected::Scalar(0.0),
    };
    match word {
        "eval_warn" => eval.warnings.push(Expectation::Any),
        "eval_info" => eval.infos.push(Expectation::Any),
        _ => {}
    }
    let mut series = Vec::new();
    let mut sample_times = None;
    let mut answer = None;
    let mut used = 0;
    for line in block {
        used += 1;
        if let Some(rest) = line.strip_prefix("expect range vector") {
            sample_times = Some(times(rest)?.0);
        } else if let Some(text) = line.strip_prefix("expect string ") {
            let expr = parse(text, &ParserOptions::default()).map_err(|error| error.to_string())?;
            if let ExprKind::String(text) = expr.kind {
                answer = Some(Expected::String(text.as_str().to_owned()));
            }
        } else if let Some(text) = line.strip_prefix("expected_fail_message") {
            eval.fails = Some(Expectation::Text(text.trim().to_owned()));
        } else if let Some(text) = line.strip_prefix("expected_fail_regexp") {
            eval.fails = Some(Expectation::Matches(text.trim().to_owned()));
        } else if let Some(rest) = line.strip_prefix("expect ") {
            expect(rest, &mut eval)?;
        } else if let Ok(number) = series::number(line) {
            answer = Some(Expected::Scalar(number));
            break;
        } else {
            let (labels, items) = series::series(line)?;
            series.push(ExpectedSeries { labels, items });
        }
    }
    eval.answer = match (answer, sample_times) {
        (Some(answer), _) => answer,
        (None, Some(When::Range(start, end, step))) => {
            // Upstream evaluates at the time of the last sample.
            eval.when = When::Instant(end);
            Expected::Samples(start, step, series)
        }
        _ => Expected::Series(series),
    };
    Ok((eval, used))
}

fn expect(rest: &str, eval: &mut Eval) -> Parsed<()> {
    let (kind, rest) = word_of(rest);
    let expectation = match rest.split_once(':') {
        Some(("msg", text)) => Expectation::Text(text.trim().to_owned()),
        Some(("regex", text)) => Expectation::Matches(text.trim().to_owned()),
        _ => Expectation::Any,
    };
    match kind {
        "ordered" => eval.is_ordered = true,
        "fail" => eval.fails = Some(expectation),
        "warn" => eval.warnings.push(expectation),
        "info" => eval.infos.push(expectation),
        "no_warn" => eval.no_warnings = true,
        "no_info" => eval.no_infos = true,
        other => return Err(format!("a wrong expectation {other:?}")),
    }
    Ok(())
}

/// Parses `from A to B step S`, and returns the rest.
fn times(text: &str) -> Parsed<(When, &str)> {
    let mut rest = text;
    let mut next = |word: &str| -> Parsed<i64> {
        let (found, after) = word_of(rest);
        if found != word {
            return Err(format!("{found:?} instead of {word:?}"));
        }
        let (time, after) = word_of(after);
        rest = after;
        duration(time)
    };
    let (start, end, step) = (next("from")?, next("to")?, next("step")?);
    Ok((When::Range(start, end, step), rest))
}

/// Splits off the first word; the rest has no blanks around it.
fn word_of(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

fn duration(text: &str) -> Parsed<i64> {
    Ok((series::number(text)? * 1000.0).round() as i64)
}
