//! Whole expressions against cases that Prometheus computed.

mod golden;

use golden::{alike, histogram, number, rows};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::rc::Rc;
use std::vec::IntoIter;
use tidepool_promql::annotations::Severity;
use tidepool_promql::eval::{Query, ResultSeries};
use tidepool_promql::model::{FloatPoint, HistogramPoint, Labels, STALE_NAN_BITS, Samples};
use tidepool_promql::plan::Options;
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax::{Expr, Matcher, ParserOptions, parse};

/// Samples that are read at once, so that windows span several reads.
const READ_MAX: usize = 7;

/// The table of expected results; a longer one may be named.
fn table() -> String {
    match std::env::var("TIDEPOOL_EVALUATION_CASES") {
        Ok(path) => std::fs::read_to_string(path).expect("a table"),
        Err(_) => include_str!("cases/evaluation.tsv").to_string(),
    }
}

#[test]
fn expressions_give_what_prometheus_gives() {
    compare_all(&table());
}

/// Joins whose sides have equal selectors, which are read once if possible.
#[test]
fn joins_of_equal_selectors_give_what_prometheus_gives() {
    compare_all(include_str!("cases/joins.tsv"));
}

fn compare_all(table: &str) {
    let mut store = Rc::new(Store::default());
    let (mut count, mut in_pieces, mut wrong) = (0, 0, Vec::new());
    for (_, kind, fields) in rows(table) {
        if kind == "store" {
            store = Rc::new(Store::of(&fields[0]));
            continue;
        }
        count += 1;
        match compare(&store, &fields) {
            Ok(is_in_pieces) => in_pieces += usize::from(is_in_pieces),
            Err(error) => wrong.push(format!("{} {}\n    {error}", fields[0], fields[1])),
        }
    }
    golden::assert_none(count, &wrong);
    println!("{in_pieces} of {count} in pieces, too");
    assert!(in_pieces * 20 > count, "{in_pieces} of {count} were compared in pieces");
}

/// Compares an answer; returns whether the answer in pieces was compared, too.
fn compare(store: &Rc<Store>, fields: &[Json]) -> Result<bool, String> {
    let text = fields[0].as_str().expect("an expression");
    let times: Vec<i64> = (0..3).map(|i| fields[1][i].as_i64().expect("a time")).collect();
    let failure = fields[2].as_str().expect("a failure");
    let options = match times[2] {
        0 => Options::instant(times[0]),
        step => Options::range(times[0], times[1], step),
    };
    let delayed_name_removal = fields[1][3].as_bool().expect("whether names are delayed");
    let options = Options { delayed_name_removal, ..options };
    let expr = parse(text, &ParserOptions::all()).map_err(|error| error.to_string())?;
    let query = Query::new(&expr, options.clone()).map_err(|error| error.to_string())?;
    let mut evaluation = query.evaluate(store.clone()).map_err(|error| error.to_string())?;
    let series: Result<Vec<ResultSeries>, _> = evaluation.by_ref().collect();
    let is_range = times[2] != 0;
    if let Ok(series) = &series
        && is_range
        && !series.is_sorted_by(|a, b| a.labels <= b.labels)
    {
        return Err("its series are not sorted by labels".to_owned());
    }
    let mut series = match (series, failure.is_empty()) {
        // Any of several failures may be found first.
        (Err(_), false) => return Ok(false),
        (Err(error), true) => return Err(format!("fails with {error}")),
        (Ok(_), false) => return Err(format!("does not fail with {failure}")),
        (Ok(series), true) => series,
    };
    let is_in_pieces =
        is_range && evaluation.is_stepwise() && evaluation.annotations().iter().next().is_none();
    if is_in_pieces {
        compare_pieces(store, &expr, &options, &series)?;
    }
    series.sort_by(|a, b| a.labels.cmp(&b.labels));
    let mut wanted: Vec<(Labels, Samples)> =
        fields[3].as_array().expect("series").iter().map(series_of).collect();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    let names = |all: Vec<&Labels>| all.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    let (found_names, wanted_names) = (
        names(series.iter().map(|it| &it.labels).collect()),
        names(wanted.iter().map(|it| &it.0).collect()),
    );
    if found_names != wanted_names {
        return Err(format!("gives {found_names:?} instead of {wanted_names:?}"));
    }
    for (found, (labels, samples)) in series.iter().zip(&wanted) {
        same_samples(&found.samples, samples).map_err(|error| format!("{labels}: {error}"))?;
    }
    for (severity, wanted) in [(Severity::Warning, &fields[4]), (Severity::Info, &fields[5])] {
        let found = evaluation.annotations().iter().filter(|it| it.severity == severity);
        let mut found: Vec<String> = found.map(|it| without_count(&it.message(text))).collect();
        let wanted = wanted.as_array().expect("a list").iter().filter_map(Json::as_str);
        let mut wanted: Vec<String> = wanted.map(without_count).collect();
        found.sort();
        wanted.sort();
        if found != wanted {
            return Err(format!("says {found:?} instead of {wanted:?}"));
        }
    }
    Ok(is_in_pieces)
}

/// A range whose steps are independent gives the same in two pieces, bit by bit, except where a
/// piece reports that it depends on more.
fn compare_pieces(
    store: &Rc<Store>,
    expr: &Expr,
    options: &Options,
    whole: &[ResultSeries],
) -> Result<(), String> {
    let step_ms = options.step_ms.expect("a range");
    let steps = (options.end_ms - options.start_ms) / step_ms + 1;
    for first in (1..steps).step_by(5) {
        let split_ms = options.start_ms + first * step_ms;
        let mut joined: BTreeMap<Labels, (Vec<FloatPoint>, Vec<HistogramPoint>)> = BTreeMap::new();
        for (start_ms, end_ms) in
            [(options.start_ms, split_ms - step_ms), (split_ms, options.end_ms)]
        {
            let options = Options { start_ms, end_ms, ..options.clone() };
            let query = Query::new(expr, options).map_err(|error| error.to_string())?;
            let mut evaluation =
                query.evaluate(store.clone()).map_err(|error| error.to_string())?;
            for series in evaluation.by_ref() {
                let ResultSeries { labels, samples } = series.map_err(|error| error.to_string())?;
                let (floats, histograms) = joined.entry(labels).or_default();
                floats.extend(samples.floats);
                histograms.extend(samples.histograms);
            }
            if !evaluation.is_stepwise() {
                return Err("is said to be independent of its range, but not in pieces".to_owned());
            }
        }
        let found = joined.iter().map(|it| format!("{it:?}"));
        let wanted = whole.iter().map(|series| {
            let Samples { floats, histograms, .. } = &series.samples;
            format!("{:?}", (&series.labels, (floats, histograms)))
        });
        if !found.eq(wanted) {
            return Err(format!("is something else in pieces, split at {split_ms}"));
        }
    }
    Ok(())
}

/// Upstream doubles its count of raised buckets at each step.
fn without_count(message: &str) -> String {
    match (message.split_once(", over "), message.split_once(" samples from ")) {
        (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
        _ => message.to_string(),
    }
}

fn same_samples(found: &Samples, wanted: &Samples) -> Result<(), String> {
    let largest = wanted.floats.iter().map(|it| it.value.abs()).filter(|it| it.is_finite());
    let largest = largest.fold(0.0, f64::max);
    let times = |all: &[FloatPoint]| all.iter().map(|it| it.time_ms).collect::<Vec<_>>();
    if times(&found.floats) != times(&wanted.floats) {
        return Err(format!("{:?} instead of {:?}", found.floats, wanted.floats));
    }
    for (a, b) in found.floats.iter().zip(&wanted.floats) {
        let is_near = (a.value - b.value).abs() <= 1e-12 * largest.max(1.0);
        let is_same = a.value == b.value || a.value.is_nan() && b.value.is_nan();
        if !is_near && !is_same {
            return Err(format!("{} instead of {} at {}", a.value, b.value, a.time_ms));
        }
    }
    if found.histograms.len() != wanted.histograms.len() {
        return Err(format!("{:?} instead of {:?}", found.histograms, wanted.histograms));
    }
    for (a, b) in found.histograms.iter().zip(&wanted.histograms) {
        if a.time_ms != b.time_ms || !alike(&a.histogram, &b.histogram) {
            return Err(format!("{a:?} instead of {b:?}"));
        }
    }
    Ok(())
}

fn series_of(json: &Json) -> (Labels, Samples) {
    let labels: BTreeMap<String, String> = serde_json::from_value(json[0].clone()).expect("labels");
    let mut samples = Samples::default();
    for sample in json[1].as_array().expect("samples") {
        let time_ms = sample[0].as_i64().expect("a time");
        match &sample[1] {
            Json::Array(_) => {
                let histogram = Rc::new(histogram(&sample[1]));
                samples.histograms.push(HistogramPoint { time_ms, histogram });
            }
            Json::String(text) if text == "stale" => {
                let value = f64::from_bits(STALE_NAN_BITS);
                samples.floats.push(FloatPoint { time_ms, value });
            }
            value => samples.floats.push(FloatPoint { time_ms, value: number(value) }),
        }
    }
    (Labels::new(labels), samples)
}

#[derive(Default)]
struct Store(Vec<Rc<(Labels, Samples)>>);

impl Store {
    fn of(json: &Json) -> Store {
        let series = json.as_array().expect("series").iter().map(series_of);
        let mut series: Vec<_> = series.map(Rc::new).collect();
        series.sort_by(|a, b| a.0.cmp(&b.0));
        Store(series)
    }
}

impl Source for Store {
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError> {
        let fits = |labels: &Labels| {
            let holds = |m: &Matcher| m.matches(labels.get(&m.name));
            selection.matchers.iter().all(holds)
        };
        let series: Vec<_> = self.0.iter().filter(|it| fits(&it.0)).cloned().collect();
        Ok(Box::new(SelectedSeries {
            rest: series.into_iter(),
            start_ms: selection.start_ms,
            end_ms: selection.end_ms,
            floats: Vec::new().into_iter().peekable(),
            histograms: Vec::new().into_iter().peekable(),
        }))
    }
}

struct SelectedSeries {
    rest: std::vec::IntoIter<Rc<(Labels, Samples)>>,
    start_ms: i64,
    end_ms: i64,
    floats: Peekable<IntoIter<FloatPoint>>,
    histograms: Peekable<IntoIter<HistogramPoint>>,
}

impl SeriesSet for SelectedSeries {
    fn next(&mut self) -> Result<Option<Labels>, SourceError> {
        let Some(series) = self.rest.next() else { return Ok(None) };
        let is_in = |time_ms| (self.start_ms..=self.end_ms).contains(&time_ms);
        let mut samples = series.1.clone();
        samples.floats.retain(|it| is_in(it.time_ms));
        samples.histograms.retain(|it| is_in(it.time_ms));
        self.floats = samples.floats.into_iter().peekable();
        self.histograms = samples.histograms.into_iter().peekable();
        Ok(Some(series.0.clone()))
    }

    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError> {
        for _ in 0..READ_MAX {
            let time = self.histograms.peek().map_or(i64::MAX, |it| it.time_ms);
            if let Some(float) = self.floats.next_if(|it| it.time_ms < time) {
                samples.floats.push(float);
            } else if let Some(histogram) = self.histograms.next() {
                samples.histograms.push(histogram);
            } else {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
