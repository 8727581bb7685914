//! A store in memory, over which the engine's PromQL evaluates.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use tidepool_promql::eval::{Query as Evaluation, ResultSeries};
use tidepool_promql::model::{
    self, CounterReset, FloatPoint, HistogramPoint, Labels, Samples, Span, is_stale_nan,
};
use tidepool_promql::plan::Options;
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax::{MatchOp, Matcher, ParserOptions, ValueType, parse};
use tidepool_relabel::Pattern;
use tidepool_rules::engine::{
    Answer, Engine, Moment, NewSample, NewValue, Origin, Query, Refusal, Sample, Series, Value,
};
use tidepool_rules::file::Checks;
use tidepool_rules::labels::LabelSet;
use tidepool_rules::template::Template;
use tidepool_rules::unit_test::histogram::{Buckets, Histogram, ResetHint};
use tidepool_rules::unit_test::{Conditions, Laboratory, Store};

/// Expressions of PromQL as the engine parses them.
pub struct Real(pub ParserOptions);

impl Checks for Real {
    fn expression(&self, text: &str) -> Result<(), String> {
        parse(text, &self.0).map(drop).map_err(|error| error.to_string())
    }

    fn template(&self, alert: &str, text: &str) -> Result<(), String> {
        Template::of_alert(alert, text).map(drop).map_err(|error| error.to_string())
    }
}

pub struct Memories(pub ParserOptions);

impl Laboratory for Memories {
    type Store = Memory;

    fn fresh(&mut self, conditions: &Conditions) -> Result<Memory, String> {
        let series = Rc::default();
        Ok(Memory { series, parser: self.0, interval: conditions.evaluation_interval })
    }
}

pub struct Memory {
    series: Rc<AllSeries>,
    parser: ParserOptions,
    interval: Duration,
}

#[derive(Clone, Debug)]
pub struct Shared(Rc<model::Histogram>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Stored {
    Float(f64),
    Histogram(Rc<model::Histogram>),
}

type Entries = BTreeMap<i64, Stored>;

#[derive(Clone, Default)]
struct AllSeries(BTreeMap<Labels, Rc<Entries>>);

impl Memory {
    fn put(&mut self, series: &LabelSet, time_ms: i64, value: Stored) -> Result<(), Refusal> {
        let labels = Labels::new(series.iter());
        let entries = Rc::make_mut(&mut self.series).0.entry(labels).or_default();
        let entries = Rc::make_mut(entries);
        let last = entries.last_key_value();
        match last {
            Some((last_ms, _)) if *last_ms > time_ms => return Err(Refusal::OutOfOrder),
            Some((last_ms, last)) if *last_ms == time_ms => {
                let is_same = format!("{last:?}") == format!("{value:?}");
                return if is_same { Ok(()) } else { Err(Refusal::Duplicate) };
            }
            _ => {}
        }
        let value = with_hint(value, last.map(|(_, value)| value));
        entries.insert(time_ms, value);
        Ok(())
    }

    fn evaluate(&self, text: &str, time_ms: i64) -> Result<(Vec<ResultSeries>, ValueType), String> {
        let expr = parse(text, &self.parser).map_err(|error| error.to_string())?;
        let interval_ms = self.interval.as_millis() as i64;
        let options = Options { subquery_step_ms: interval_ms, ..Options::instant(time_ms) };
        let query = Evaluation::new(&expr, options).map_err(|error| error.to_string())?;
        let mut evaluation =
            query.evaluate(self.series.clone()).map_err(|error| error.to_string())?;
        let series: Result<Vec<ResultSeries>, _> = evaluation.by_ref().collect();
        Ok((series.map_err(|error| error.to_string())?, evaluation.returns()))
    }
}

/// Adds upstream's hints: within a chunk all histograms but the first are "not reset".
fn with_hint(value: Stored, last: Option<&Stored>) -> Stored {
    let last = match last {
        Some(Stored::Histogram(last)) => Some(last),
        _ => None,
    };
    let mut histogram = match (value, last) {
        (Stored::Float(mark), Some(_)) if is_stale_nan(mark) => {
            Rc::new(model::Histogram { sum: mark, ..model::Histogram::default() })
        }
        (Stored::Histogram(histogram), _) => histogram,
        (value, _) => return value,
    };
    let hint = match histogram.counter_reset {
        CounterReset::Gauge => CounterReset::Gauge,
        _ if last.is_some_and(|last| is_one_chunk(last, &histogram)) => CounterReset::NotReset,
        _ => CounterReset::Unknown,
    };
    Rc::make_mut(&mut histogram).counter_reset = hint;
    Stored::Histogram(histogram)
}

fn is_one_chunk(previous: &model::Histogram, next: &model::Histogram) -> bool {
    let is_stale = |histogram: &model::Histogram| is_stale_nan(histogram.sum);
    if is_stale(previous) || is_stale(next) {
        return is_stale(next);
    }
    previous.counter_reset != CounterReset::Gauge
        && next.counter_reset != CounterReset::Reset
        && previous.schema == next.schema
        && previous.zero_threshold == next.zero_threshold
        && previous.custom_values == next.custom_values
        && !next.detect_reset(previous)
}

fn label_set(labels: &Labels) -> LabelSet {
    LabelSet::sorted(labels.iter())
}

impl Engine for Memory {
    type Histogram = Shared;

    fn query(&self, query: &Query<'_>) -> Result<Answer<Shared>, String> {
        let (series, returns) = self.evaluate(query.expression, query.time_ms)?;
        let sample = |series: ResultSeries| {
            let value = match series.samples.floats.first() {
                Some(point) => Value::Float(point.value),
                None => Value::Histogram(Shared(series.samples.histograms[0].histogram.clone())),
            };
            Sample { labels: label_set(&series.labels), value }
        };
        Ok(match returns {
            ValueType::Vector => Answer::Vector(series.into_iter().map(sample).collect()),
            ValueType::Scalar => {
                Answer::Scalar(series.first().map_or(f64::NAN, |it| it.samples.floats[0].value))
            }
            _ => Answer::Other,
        })
    }

    fn append(
        &mut self,
        _: &Origin<'_>,
        samples: &[NewSample<Shared>],
    ) -> Result<Vec<(usize, Refusal)>, String> {
        let mut refused = Vec::new();
        for (position, sample) in samples.iter().enumerate() {
            let value = match &sample.value {
                NewValue::Float(value) => Stored::Float(*value),
                NewValue::Histogram(histogram) => Stored::Histogram(histogram.0.clone()),
                NewValue::Stale => Stored::Float(tidepool_model::STALE_NAN),
            };
            let stored = self.put(&sample.series, sample.time_ms, value);
            refused.extend(stored.err().map(|refusal| (position, refusal)));
        }
        Ok(refused)
    }

    fn now(&self) -> Moment {
        Moment::default()
    }
}

impl Store for Memory {
    fn load(&mut self, samples: &[NewSample<Histogram>]) -> Result<(), String> {
        for sample in samples {
            let value = match &sample.value {
                NewValue::Float(value) => Stored::Float(*value),
                NewValue::Histogram(histogram) => Stored::Histogram(Rc::new(stored(histogram))),
                NewValue::Stale => Stored::Float(tidepool_model::STALE_NAN),
            };
            self.put(&sample.series, sample.time_ms, value).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn buckets_of(&self, histogram: &Shared) -> Histogram {
        shown(&histogram.0)
    }

    fn dump(&self, expression: &str, time_ms: i64) -> Result<Vec<Series<Shared>>, String> {
        let (mut series, _) = self.evaluate(expression, time_ms)?;
        series.sort_by(|a, b| a.labels.cmp(&b.labels));
        let dumped = |series: ResultSeries| {
            let floats = series.samples.floats.iter();
            let histograms = series.samples.histograms.iter();
            let floats = floats.map(|it| (it.time_ms, Value::Float(it.value)));
            let histograms =
                histograms.map(|it| (it.time_ms, Value::Histogram(Shared(it.histogram.clone()))));
            let samples = floats.chain(histograms).collect();
            Series { labels: label_set(&series.labels), samples }
        };
        Ok(series.into_iter().map(dumped).collect())
    }
}

pub fn stored(histogram: &Histogram) -> model::Histogram {
    let side = |buckets: &Buckets| {
        let (mut spans, mut next) = (Vec::<Span>::new(), None);
        for index in buckets.keys() {
            match (spans.last_mut(), next) {
                (Some(span), Some(next)) if next == *index => span.length += 1,
                _ => spans.push(Span { offset: index - next.unwrap_or(0), length: 1 }),
            }
            next = Some(index + 1);
        }
        (spans, buckets.values().copied().collect::<Vec<f64>>())
    };
    let (positive_spans, positive_buckets) = side(&histogram.positive);
    let (negative_spans, negative_buckets) = side(&histogram.negative);
    model::Histogram {
        counter_reset: match histogram.reset_hint {
            ResetHint::Unknown => CounterReset::Unknown,
            ResetHint::Reset => CounterReset::Reset,
            ResetHint::NotReset => CounterReset::NotReset,
            ResetHint::Gauge => CounterReset::Gauge,
        },
        schema: histogram.schema,
        zero_threshold: histogram.zero_threshold,
        zero_count: histogram.zero_count,
        count: histogram.count,
        sum: histogram.sum,
        positive_spans,
        positive_buckets,
        negative_spans,
        negative_buckets,
        custom_values: histogram.custom_values.clone(),
    }
}

pub fn shown(histogram: &model::Histogram) -> Histogram {
    let side = |spans: &[Span], counts: &[f64]| {
        let mut next = 0;
        let mut indexes = Vec::new();
        for span in spans {
            next += span.offset;
            indexes.extend(next..next + span.length as i32);
            next += span.length as i32;
        }
        indexes.into_iter().zip(counts.iter().copied()).collect::<Buckets>()
    };
    Histogram {
        reset_hint: match histogram.counter_reset {
            CounterReset::Unknown => ResetHint::Unknown,
            CounterReset::Reset => ResetHint::Reset,
            CounterReset::NotReset => ResetHint::NotReset,
            CounterReset::Gauge => ResetHint::Gauge,
        },
        schema: histogram.schema,
        zero_threshold: histogram.zero_threshold,
        zero_count: histogram.zero_count,
        count: histogram.count,
        sum: histogram.sum,
        positive: side(&histogram.positive_spans, &histogram.positive_buckets),
        negative: side(&histogram.negative_spans, &histogram.negative_buckets),
        custom_values: histogram.custom_values.clone(),
    }
}

struct Selected {
    rest: std::vec::IntoIter<(Labels, Rc<Entries>)>,
    current: Option<Rc<Entries>>,
    start_ms: i64,
    end_ms: i64,
}

impl Source for AllSeries {
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError> {
        let mut tests = Vec::new();
        for Matcher { name, op, value } in &selection.matchers {
            let pattern = match op {
                MatchOp::Regex | MatchOp::NotRegex => {
                    Some(Pattern::new(value).map_err(|text| SourceError { text })?)
                }
                _ => None,
            };
            tests.push((name, value, matches!(op, MatchOp::Equal | MatchOp::Regex), pattern));
        }
        let fits = |labels: &Labels| {
            tests.iter().all(|(name, value, wanted, pattern)| {
                let found = labels.get(name);
                let holds = match pattern {
                    Some(pattern) => pattern.is_match(found),
                    None => found == value.as_str(),
                };
                holds == *wanted
            })
        };
        let found = self.0.iter().filter(|(labels, _)| fits(labels));
        let found: Vec<_> = found.map(|(labels, all)| (labels.clone(), all.clone())).collect();
        let (start_ms, end_ms) = (selection.start_ms, selection.end_ms);
        Ok(Box::new(Selected { rest: found.into_iter(), current: None, start_ms, end_ms }))
    }
}

impl SeriesSet for Selected {
    fn next(&mut self) -> Result<Option<Labels>, SourceError> {
        let Some((labels, entries)) = self.rest.next() else { return Ok(None) };
        self.current = Some(entries);
        Ok(Some(labels))
    }

    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError> {
        let Some(entries) = self.current.take() else { return Ok(false) };
        if self.start_ms > self.end_ms {
            return Ok(true);
        }
        for (time_ms, entry) in entries.range(self.start_ms..=self.end_ms) {
            let time_ms = *time_ms;
            match entry {
                Stored::Float(value) => {
                    samples.floats.push(FloatPoint { time_ms, value: *value });
                }
                Stored::Histogram(histogram) => {
                    samples
                        .histograms
                        .push(HistogramPoint { time_ms, histogram: histogram.clone() });
                }
            }
        }
        Ok(true)
    }
}
