//! Series late in a scan with the labels of earlier ones: the query fails before its first result,
//! so that a server can still answer with an error status.

use std::rc::Rc;
use tidepool_promql::eval::{Evaluation, Limits, Query};
use tidepool_promql::model::{FloatPoint, Labels, Samples};
use tidepool_promql::plan::Options;
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax::{MatchOp, Matcher, ParserOptions, parse};
use tidepool_relabel::Pattern;

const SERIES: usize = 2_000;

/// Series with one sample a minute.
struct Store(Vec<Labels>);

fn series(pairs: &[(&str, &str)]) -> Labels {
    Labels::new(pairs.iter().copied())
}

impl Store {
    /// Names `a` and `b`, where `b` has the labels of the last `a`; `once` and `twice` with a label
    /// `i` each, whose last value `twice` has two times; `typed`, where a late series differs from
    /// another one in its type only; `clean` and `lone` without duplicates.
    fn new() -> Store {
        let mut all = Vec::new();
        for number in 0..SERIES {
            let i = format!("{number:06}");
            for name in ["a", "once", "twice", "typed", "clean"] {
                all.push(series(&[("__name__", name), ("i", &i)]));
            }
        }
        let last = format!("{:06}", SERIES - 1);
        all.push(series(&[("__name__", "b"), ("i", &last)]));
        all.push(series(&[("__name__", "lone"), ("i", "lone")]));
        all.push(series(&[("__name__", "twice"), ("i", &last), ("j", "1")]));
        all.push(series(&[("__name__", "typed"), ("__type__", "gauge"), ("i", &last)]));
        all.sort();
        Store(all)
    }
}

fn condition(matcher: &Matcher) -> Box<dyn Fn(&Labels) -> bool> {
    let Matcher { name, op, value } = matcher.clone();
    let pattern = match op {
        MatchOp::Regex | MatchOp::NotRegex => Some(Pattern::new(&value).expect("an expression")),
        _ => None,
    };
    Box::new(move |labels| {
        let found = labels.get(&name);
        let fits = pattern.as_ref().map_or(found == value, |pattern| pattern.is_match(found));
        fits == matches!(op, MatchOp::Equal | MatchOp::Regex)
    })
}

impl Source for Store {
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError> {
        let conditions: Vec<_> = selection.matchers.iter().map(condition).collect();
        let fits = |labels: &&Labels| conditions.iter().all(|holds| holds(labels));
        let rest: Vec<Labels> = self.0.iter().filter(fits).cloned().collect();
        let minutes = selection.start_ms.div_euclid(60_000) + 1..=selection.end_ms / 60_000;
        Ok(Box::new(SelectedSeries {
            rest: rest.into_iter(),
            minutes: minutes.clone(),
            left: None,
        }))
    }
}

struct SelectedSeries {
    rest: std::vec::IntoIter<Labels>,
    minutes: std::ops::RangeInclusive<i64>,
    left: Option<std::ops::RangeInclusive<i64>>,
}

impl SeriesSet for SelectedSeries {
    fn next(&mut self) -> Result<Option<Labels>, SourceError> {
        self.left = Some(self.minutes.clone());
        Ok(self.rest.next())
    }

    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError> {
        let Some(left) = self.left.take() else { return Ok(false) };
        let point = |minute| FloatPoint { time_ms: minute * 60_000, value: minute as f64 };
        samples.floats.extend(left.map(point));
        Ok(true)
    }
}

const MINUTE: i64 = 60_000;

fn evaluation(text: &str, options: Options) -> Evaluation {
    let expr = parse(text, &ParserOptions::all()).expect("an expression");
    let query = Query::new(&expr, options).expect("a plan");
    query.evaluate(Rc::new(Store::new())).expect("an evaluation")
}

/// One hour, in less memory than the whole answer needs.
fn hour() -> Options {
    let limits = Limits { bytes_max: 1_000_000, ..Limits::default() };
    Options { limits, ..Options::range(100 * MINUTE, 160 * MINUTE, MINUTE) }
}

const SAME: &str = "vector cannot contain metrics with the same labelset";

#[test]
fn late_duplicates_fail_before_anything_is_given() {
    let many = "found duplicate series for the match group {i=\"001999\"} on the right hand-side";
    for (text, error) in [
        (r#"rate({__name__=~"a|b"}[5m])"#, SAME),
        (r#"-{__name__=~"a|b"}"#, SAME),
        (r#"timestamp({__name__=~"a|b"})"#, SAME),
        (r#"abs({__name__=~"a|b"}) + 1"#, SAME),
        (r#"max_over_time({__name__=~"a|b"}[5m:1m])"#, SAME),
        ("rate(typed[5m])", SAME),
        ("2 * typed", SAME),
        ("-(a or on (__name__) b)", SAME),
        (r#"label_replace(twice, "j", "1", "", "")"#, SAME),
        ("once * on (i) twice", many),
        ("once * on (i) group_left twice", many),
        (r#"{__name__=~"a|b"} * ignoring (x) group_left once"#, "multiple matches for labels"),
    ] {
        let instant = Options::instant(160 * MINUTE);
        let large = Options { limits: Limits::default(), ..hour() };
        for (kind, options) in [("instant", instant), ("range", large)] {
            let first = evaluation(text, options).next();
            let found = first.map(|it| it.map(|series| series.labels.to_string()));
            let Some(Err(found)) = found else { panic!("{kind} {text}: {found:?}") };
            assert!(found.to_string().contains(error), "{kind} {text}: {found}");
        }
    }
}

#[test]
fn what_cannot_fail_flows() {
    for (text, series) in [
        ("rate(clean[5m])", SERIES),
        (r#"rate({__name__=~"clean"}[5m])"#, SERIES),
        (r#"rate({__name__=~"clean|lone"}[5m])"#, SERIES + 1),
        ("-abs(clean) * 2", SERIES),
        (r#"label_replace(clean, "k", "$1", "i", ".*(.)")"#, SERIES),
    ] {
        let all: Result<Vec<_>, _> = evaluation(text, hour()).collect();
        assert_eq!(all.map(|all| all.len()), Ok(series), "{text}");
    }
}

/// An answer that exceeds the memory ends with the limit instead of half an answer.
#[test]
fn what_may_fail_and_is_too_large_is_an_error() {
    for text in ["-(clean or b)", r#"label_replace(twice, "j", "1", "", "")"#] {
        let Some(Err(error)) = evaluation(text, hour()).next() else { panic!("no error: {text}") };
        assert!(error.to_string().contains("bytes of memory"), "{text}: {error}");
    }
}
