//! Joins of equal selectors that are read once equal joins of selectors read separately.

use std::cell::Cell;
use std::rc::Rc;
use tidepool_promql::eval::{EvalError, Evaluation, Limit, Limits, Query, ResultSeries};
use tidepool_promql::model::{FloatPoint, Labels, Samples};
use tidepool_promql::plan::Options;
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax::{MatchOp, ParserOptions, parse};

const GAP_MS: i64 = 15_000;
const MINUTE: i64 = 60_000;

/// A matcher that holds for all series: a selector with it equals no selector without it.
const OTHER: &str = "none=\"\"";

struct Store {
    series: Vec<Labels>,
    selections: Cell<usize>,
    reads: Rc<Cell<usize>>,
}

impl Store {
    fn new(mut series: Vec<Labels>) -> Store {
        series.sort();
        Store { series, selections: Cell::new(0), reads: Rc::default() }
    }

    /// Several series of `x` and of `y`, with labels that sort behind metadata or, as `A`, before.
    fn of(count: usize, label: &str, more: &[Labels]) -> Store {
        let series = (0..count).flat_map(|i| {
            let (value, job) = (format!("{i:04}"), format!("{}", i % 3));
            ["x", "y"].map(|name| {
                Labels::new([("__name__", name), (label, value.as_str()), ("job", job.as_str())])
            })
        });
        Store::new(series.chain(more.iter().cloned()).collect())
    }
}

impl Source for Store {
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError> {
        let fits = |labels: &&Labels| {
            selection.matchers.iter().all(|matcher| match matcher.op {
                MatchOp::Equal => labels.get(&matcher.name) == matcher.value,
                MatchOp::NotEqual => labels.get(&matcher.name) != matcher.value,
                _ => panic!("an unknown condition"),
            })
        };
        let found: Vec<Labels> = self.series.iter().filter(fits).cloned().collect();
        if !selection.hints.labels_only {
            self.selections.set(self.selections.get() + 1);
        }
        Ok(Box::new(SelectedSeries {
            rest: found.into_iter(),
            seed: 0,
            at_ms: 0,
            selection: selection.clone(),
            reads: self.reads.clone(),
        }))
    }
}

struct SelectedSeries {
    rest: std::vec::IntoIter<Labels>,
    seed: u64,
    at_ms: i64,
    selection: Selection,
    reads: Rc<Cell<usize>>,
}

impl SeriesSet for SelectedSeries {
    fn next(&mut self) -> Result<Option<Labels>, SourceError> {
        let Some(labels) = self.rest.next() else { return Ok(None) };
        self.seed = labels.iter().flat_map(|(_, value)| value.bytes()).map(u64::from).sum();
        self.at_ms = self.selection.start_ms.div_euclid(GAP_MS) * GAP_MS;
        Ok(Some(labels))
    }

    /// Each series exists for some hours of the day, and counts in its own way.
    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError> {
        self.reads.set(self.reads.get() + 1);
        for _ in 0..120 {
            let time_ms = self.at_ms;
            if time_ms > self.selection.end_ms {
                return Ok(false);
            }
            self.at_ms += GAP_MS;
            let step = (time_ms / GAP_MS) as u64;
            let is_there = !(step / 100 + self.seed).is_multiple_of(4);
            if is_there && time_ms >= self.selection.start_ms {
                let value = (step * (self.seed % 7 + 1) % 1000) as f64;
                samples.floats.push(FloatPoint { time_ms, value });
            }
        }
        Ok(true)
    }
}

fn evaluation(text: &str, options: &Options, store: &Rc<Store>) -> Evaluation {
    let expr = parse(text, &ParserOptions::all()).expect("an expression");
    let query = Query::new(&expr, options.clone()).expect("a plan");
    query.evaluate(store.clone()).expect("an evaluation")
}

/// Labels, and times with values, which may be NaN.
type Row = (Labels, Vec<(i64, u64)>);

fn row(series: ResultSeries) -> Row {
    let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    let floats = series.samples.floats.iter().map(|it| (it.time_ms, bits(it.value)));
    (series.labels, floats.collect())
}

fn answer(
    text: &str,
    options: &Options,
    store: &Rc<Store>,
) -> (Result<Vec<Row>, EvalError>, Vec<String>) {
    let mut evaluation = evaluation(text, options, store);
    let rows: Result<Vec<_>, _> = evaluation.by_ref().map(|series| series.map(row)).collect();
    let rows = rows.map(|mut rows| {
        rows.sort();
        rows
    });
    let notes = evaluation.annotations().iter().map(|note| note.text.clone()).collect();
    (rows, notes)
}

/// Expressions with `x` alone, each with an equivalent whose last `x` is another selector.
const EXPRESSIONS: [&str; 20] = [
    "x - X",
    "x / (x + X)",
    "rate(x[5m]) / X",
    "x > X offset 5m",
    "x > bool X offset 5m",
    "abs(x) == (x <= X offset 1m)",
    "x / (x + y - X offset 2m)",
    "(x + y) / X",
    "x + x * 2 + X",
    "x and X > 500",
    "x unless X offset 10m",
    "x unless (x > 500 and X offset 7m < 700)",
    "max_over_time((x - x offset 1m)[20m:3m]) - X",
    "max_over_time(x[20m:3m]) and X",
    "x * scalar(count(y)) - X",
    "sum by (job) (x / (x + X offset 5m))",
    "-(x - X offset 5m)",
    "x @ 90000 - X @ 90000",
    "timestamp(x + 0) - X",
    "label_replace(x - X offset 5m, \"job\", \"\", \"\", \"\") and on (host) y",
];

fn options() -> Vec<Options> {
    let day = 24 * 60 * MINUTE;
    let all = [
        Options::instant(day),
        Options::range(day, day + 6 * 60 * MINUTE, MINUTE),
        Options::range(day, 2 * day, 17 * MINUTE),
    ];
    let delayed = |options: &Options| Options { delayed_name_removal: true, ..options.clone() };
    let later: Vec<Options> = all.iter().map(delayed).collect();
    all.into_iter().chain(later).collect()
}

fn with(typed: &str, host: &str) -> Labels {
    Labels::new([("__name__", "x"), ("__type__", typed), ("host", host), ("job", "1")])
}

#[test]
fn answers_are_those_of_selectors_that_are_read_by_themselves() {
    let bare = Labels::new([("__name__", "x")]);
    let stores = [
        Store::of(30, "host", &[]),
        Store::of(30, "host", std::slice::from_ref(&bare)),
        // Types are dropped with names, so that several series become one.
        Store::of(30, "host", &[with("gauge", "0001"), with("counter", "0077")]),
        Store::of(30, "A", &[with("gauge", "0003")]),
        Store::new(vec![bare]),
        Store::new(Vec::new()),
    ];
    let (mut merged, mut alone, mut failures) = (0, 0, 0);
    for (number, store) in stores.into_iter().enumerate() {
        let store = Rc::new(store);
        for options in options() {
            for text in EXPRESSIONS {
                let once = answer(&text.replace('X', "x"), &options, &store);
                merged += store.selections.replace(0);
                let by_itself = format!("x{{{OTHER}}}");
                let twice = answer(&text.replace('X', &by_itself), &options, &store);
                alone += store.selections.replace(0);
                failures += usize::from(twice.0.is_err());
                assert!(once == twice, "{text} in store {number}, {options:?}");
            }
        }
    }
    // The comparison is meaningful: the plans differ, and few answers fail.
    assert!(merged * 10 < alone * 8, "{merged} selections instead of {alone}");
    assert!((1..200).contains(&failures), "{failures} failures");
}

#[test]
fn samples_are_read_once() {
    let day = 24 * 60 * MINUTE;
    let options = Options::range(day, 2 * day, MINUTE);
    let reads = |text: &str| {
        let store = Rc::new(Store::of(50, "host", &[]));
        let (rows, _) = answer(text, &options, &store);
        assert!(!rows.expect("an answer").is_empty(), "{text}");
        (store.selections.get(), store.reads.get())
    };
    let one = reads("x");
    assert_eq!(reads("x - x offset 0s"), one);
    assert_eq!(reads("x / (x + x)"), one);
    assert_eq!(reads("x and x > 5"), one);
    assert_eq!(reads("x / (x + y)"), (one.0 * 2, one.1 * 2));
    // The flowing side of this join would have to wait for the held one.
    assert_eq!(reads("x - on (host) x"), (one.0 * 2, one.1 * 2));
}

#[test]
fn one_series_is_held_at_a_time() {
    let day = 24 * 60 * MINUTE;
    let store = Rc::new(Store::of(1000, "host", &[]));
    let options = Options::range(day, 2 * day - MINUTE, MINUTE);
    for text in ["sum(x - x offset 5m)", "sum(x / (x + x * 2))", "count(x unless x > 5)"] {
        let mut evaluation = evaluation(text, &options, &store);
        let series: Result<Vec<_>, _> = evaluation.by_ref().collect();
        assert_eq!(series.map(|series| series.len()), Ok(1), "{text}");
        let held = evaluation.stats().bytes_peak;
        // A column of a day takes 13 kB, a thousand of them 13 MB.
        assert!(held < 300_000, "{text}: {held}");
    }
}

/// If series may coincide, the second side waits, and its memory counts.
#[test]
fn what_waits_counts() {
    let day = 24 * 60 * MINUTE;
    let limits = Limits { bytes_max: 2_000_000, ..Limits::default() };
    let options = Options { limits, ..Options::range(day, 2 * day - MINUTE, MINUTE) };
    let run = |store: Store| {
        let mut evaluation = evaluation("sum(x - x)", &options, &Rc::new(store));
        evaluation.by_ref().collect::<Result<Vec<_>, _>>().map(|series| series.len())
    };
    assert_eq!(run(Store::of(1000, "host", &[])), Ok(1));
    let error = run(Store::of(1000, "host", &[with("gauge", "0001")])).expect_err("a limit");
    assert!(matches!(error, EvalError::Limit { limit: Limit::Bytes, max: 2_000_000, .. }));
}
